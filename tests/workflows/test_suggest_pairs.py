"""Suggesting pairs from files, beside pairs that are there already."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isthmus import Pairs, Space, VectorSet
from isthmus.errors import EmptyInputError, ParameterError, SpaceMismatchError, UnknownIdError
from isthmus.workflows import suggest_pairs


@pytest.fixture(scope="module")
def sets() -> tuple[VectorSet, VectorSet]:
    draw = np.random.default_rng(3)
    rows = draw.normal(size=(150, 6))
    turned = rows @ np.linalg.qr(draw.normal(size=(6, 6)))[0]
    ids = [f"d{row}" for row in range(150)]
    return VectorSet(ids, rows, Space(model="a", dim=6)), VectorSet(
        ids, turned, Space(model="b", dim=6)
    )


def pairs_of(sets, n: int) -> Pairs:
    return Pairs.from_rows(*sets, np.arange(n), np.arange(n))


@pytest.mark.parametrize("strategy", ["random", "kmeans", "uncertainty"])
def test_paired_rows_are_not_suggested_again(sets, strategy):
    found = suggest_pairs(*sets, pairs_of(sets, 60), n=90, strategy=strategy)
    assert sorted(found.rows.tolist()) == list(range(60, 150))
    np.testing.assert_array_equal(sets[0].ids[found.rows], found.ids)


def test_rows_that_have_a_double_are_the_uncertain_ones(sets):
    """Where two target rows are nearly the same, a coupling cannot say which one it is."""
    source, target = (one.vectors.copy() for one in sets)
    for rows in (source, target):
        rows[100:125] = rows[125:150]
    rng = np.random.default_rng(0)
    doubled = tuple(
        VectorSet(one.ids, rows + 1e-3 * rng.standard_normal(rows.shape), one.space)
        for one, rows in zip(sets, (source, target), strict=True)
    )
    found = suggest_pairs(*doubled, pairs_of(doubled, 40), n=110, strategy="uncertainty")
    scores = dict(zip(found.rows.tolist(), found.scores.tolist(), strict=True))
    double, single = (
        np.mean([scores[row] for row in rows]) for rows in (range(100, 150), range(40, 100))
    )
    assert double > single


def test_files_stand_in_for_sets(sets, tmp_path: Path):
    for name, one in zip(("a.npz", "b.npz"), sets, strict=True):
        one.save(tmp_path / name, dtype="float32")
    (tmp_path / "pairs.csv").write_text("source,target\nd0,d0\nd1,d1\n")
    paths = [tmp_path / name for name in ("a.npz", "b.npz", "pairs.csv")]
    found = suggest_pairs(*paths, n=20, near=tmp_path / "a.npz")
    assert len(found) == 20
    assert not {"d0", "d1"} & set(found.ids.tolist())


def test_what_is_missing_or_wrong_is_named(sets, tmp_path: Path):
    pairs = pairs_of(sets, 60)
    with pytest.raises(ParameterError, match="pairs, which the strategy uncertainty starts from"):
        suggest_pairs(*sets, n=5, strategy="uncertainty")
    with pytest.raises(ParameterError, match="the target's vectors beside the pairs"):
        suggest_pairs(sets[0], None, pairs, n=5)
    with pytest.raises(ParameterError, match="at most 90"):
        suggest_pairs(*sets, pairs, n=91)
    with pytest.raises(ParameterError, match="n as a whole number"):
        suggest_pairs(*sets, pairs, n=0, strategy="uncertainty")
    with pytest.raises(EmptyInputError, match="all 150 stand in pairs"):
        suggest_pairs(*sets, pairs_of(sets, 150), n=1)
    few = sets[1].select(np.arange(60))
    with pytest.raises(EmptyInputError, match="target rows without a pair"):
        suggest_pairs(sets[0], few, pairs, n=5, strategy="uncertainty")
    with pytest.raises(SpaceMismatchError, match="pairs on the source side"):
        suggest_pairs(sets[1], sets[0], pairs, n=5)
    with pytest.raises(SpaceMismatchError, match="rows to be near to"):
        suggest_pairs(sets[0], n=5, near=sets[1])
    (tmp_path / "pairs.csv").write_text("source,target\nnobody,d0\n")
    with pytest.raises(UnknownIdError, match="nobody"):
        suggest_pairs(*sets, tmp_path / "pairs.csv", n=5)
