"""What linking accepts, and what it says about the rest."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import (
    ConflictingSeedsError,
    CountMismatchError,
    DegenerateVectorsError,
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    ParameterError,
    TooFewPairsError,
    ZeroVectorError,
)
from isthmus.link import LinkProblem

RNG = np.random.default_rng(0)
SOURCE, TARGET = RNG.standard_normal((12, 4)), RNG.standard_normal((9, 6))
SEEDS = [(0, 8), (3, 1), (5, 0), (11, 4)]


def with_row(cloud: np.ndarray, value: float) -> np.ndarray:
    changed = cloud.copy()
    changed[2] = value
    return changed


def test_rows_get_length_one_and_seeds_their_vectors():
    problem = LinkProblem.of_rows(7 * SOURCE, TARGET, SEEDS)
    for side in (problem.source, problem.target, problem.seed_source, problem.seed_target):
        assert side.dtype == np.float32
        assert np.linalg.norm(side, axis=1) == pytest.approx(1, abs=1e-6)
    assert np.array_equal(problem.seed_source, problem.source[[0, 3, 5, 11]])
    assert np.array_equal(problem.seed_target, problem.target[[8, 1, 0, 4]])
    assert problem.seed_rows.tolist() == [list(seed) for seed in SEEDS]
    assert repr(problem) == "LinkProblem(12 x 4 to 9 x 6, 4 seeds)"


def test_what_came_in_stays_as_it_is():
    source, target, seeds = SOURCE.copy(), TARGET.copy(), np.array(SEEDS)
    LinkProblem.of_rows(source, target, seeds)
    assert np.array_equal(source, SOURCE)
    assert np.array_equal(target, TARGET)
    assert seeds.tolist() == [list(seed) for seed in SEEDS]


def test_seeds_from_elsewhere_have_vectors_and_no_rows():
    problem = LinkProblem.of_vectors(SOURCE, TARGET, 3 * SOURCE[:5], TARGET[:5])
    assert problem.seed_rows is None
    assert problem.n_seeds == 5
    assert problem.seed_source == pytest.approx(problem.source[:5], abs=1e-6)


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda cloud: with_row(cloud, np.nan), InvalidVectorsError, "row 2"),
        (lambda cloud: with_row(cloud, np.inf), InvalidVectorsError, "row 2"),
        (lambda cloud: with_row(cloud, 0.0), ZeroVectorError, "row 2"),
        (lambda cloud: np.repeat(cloud[:1], 9, axis=0), DegenerateVectorsError, "equal rows"),
        (lambda cloud: np.outer(np.arange(1, 10), cloud[0]), DegenerateVectorsError, "length"),
        (lambda cloud: cloud[:1], DegenerateVectorsError, "1 equal row"),
        (lambda cloud: cloud[:0], EmptyInputError, "at least one row"),
        (lambda cloud: cloud[0], DimensionError, "two axes"),
    ],
)
def test_clouds_that_cannot_be_used(side, spoil, error, message):
    clouds = {"source": SOURCE, "target": TARGET}
    clouds[side] = spoil(clouds[side])
    with pytest.raises(error, match=message) as caught:
        LinkProblem.of_rows(clouds["source"], clouds["target"], SEEDS)
    assert side in str(caught.value)
    with pytest.raises(error):
        LinkProblem.of_vectors(clouds["source"], clouds["target"], SOURCE[:4], TARGET[:4])


@pytest.mark.parametrize(
    ("seeds", "error", "message"),
    [
        ([], TooFewPairsError, "at least 3 seed pairs; got 0"),
        ([(0, 0), (1, 1)], TooFewPairsError, "got 2"),
        ([(0, 0), (1, 1), (12, 2)], ParameterError, "source rows of seeds from 0 to 11; got 0 to"),
        ([(0, 0), (1, 1), (2, 9)], ParameterError, "target rows of seeds from 0 to 8; got 0 to 9"),
        ([(0, 0), (1, 1), (-1, 2)], ParameterError, "got -1 to 1"),
        ([(0, 0), (1, 1), (0, 2)], ConflictingSeedsError, "source row 0 with 0, 2"),
        ([(0, 0), (1, 1), (2, 1)], ConflictingSeedsError, "target row 1 with 1, 2"),
        ([(0, 0), (1, 1), (0, 0)], ConflictingSeedsError, "source row 0 with 0, 0"),
        ([(0, 0, 0)] * 3, ParameterError, r"shape \(3, 3\)"),
        ([(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)], ParameterError, "type float64"),
        ([0, 1, 2], ParameterError, r"shape \(3,\)"),
    ],
)
def test_seed_rows_that_cannot_be_used(seeds, error, message):
    with pytest.raises(error, match=message):
        LinkProblem.of_rows(SOURCE, TARGET, seeds)


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [
        (SOURCE[:2], TARGET[:2], TooFewPairsError),
        (SOURCE[:4], TARGET[:3], CountMismatchError),
        (SOURCE[:4, :3], TARGET[:4], DimensionError),
        (SOURCE[:4], SOURCE[:4], DimensionError),
        (with_row(SOURCE, np.nan)[:4], TARGET[:4], InvalidVectorsError),
        (SOURCE[:4], with_row(TARGET, 0.0)[:4], ZeroVectorError),
        (SOURCE[[0, 0, 1, 1]], TARGET[[0, 0, 1, 1]], TooFewPairsError),
    ],
)
def test_seed_vectors_that_cannot_be_used(first, second, error):
    with pytest.raises(error):
        LinkProblem.of_vectors(SOURCE, TARGET, first, second)


def test_lengths_beyond_float32_become_directions():
    cloud = np.random.default_rng(0).standard_normal((9, 4)) * np.logspace(-30, 37, 9)[:, None]
    problem = LinkProblem.of_rows(cloud, cloud, [(0, 0), (1, 1), (8, 8)])
    np.testing.assert_allclose(np.linalg.norm(problem.source, axis=1), 1.0, rtol=1e-6)


def test_seeds_of_several_lengths_are_refused():
    cloud = np.random.default_rng(0).standard_normal((9, 4))
    with pytest.raises(ParameterError, match="pairs of whole numbers"):
        LinkProblem.of_rows(cloud, cloud, [(0, 0), (1,), (2, 2)])
