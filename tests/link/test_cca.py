"""CCA on the seeds: standardised sides, limited rank."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import ParameterError
from isthmus.link import CCA, LinkProblem


def problem(n=80, seeds=15, dims=(30, 20), seed=0):
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n, 6))
    sides = [
        latent @ rng.standard_normal((6, dim)) + 0.1 * rng.standard_normal((n, dim)) for dim in dims
    ]
    return LinkProblem.of_rows(*sides, [(row, row) for row in range(seeds)])


@pytest.mark.parametrize("seeds", [3, 8, 15])
def test_few_seeds_have_few_directions(seeds):
    source, target = CCA().align(problem(seeds=seeds), seed=0)

    assert source.shape == target.shape == (80, seeds - 1)
    for side in (source, target):
        np.testing.assert_allclose(np.linalg.norm(side, axis=1), 1, atol=1e-5)


def test_more_components_than_there_are_keep_all():
    given = problem(seeds=5)

    for kept, width in ((2, 2), (4, 4), (100, 4)):
        source, target = CCA(n_components=kept).align(given, seed=0)
        assert source.shape[1] == target.shape[1] == width


def test_the_seeds_themselves_meet():
    source, target = CCA(shrinkage=1e-6).align(problem(), seed=0)

    assert (np.einsum("ij,ij->i", source[:15], target[:15]) > 0.99).all()


def test_columns_are_standardised_first():
    """A column in other units, or moved, changes nothing that float32 can hold."""
    given = problem(dims=(8, 8), seeds=40)
    factors, shift = np.geomspace(0.1, 10, 8), np.linspace(-0.2, 0.2, 8)
    other = LinkProblem(
        source=(given.source * factors + shift).astype(np.float32),
        target=given.target,
        seed_source=(given.seed_source * factors + shift).astype(np.float32),
        seed_target=given.seed_target,
        seed_rows=given.seed_rows,
    )

    for one, two in zip(CCA().align(given, seed=0), CCA().align(other, seed=0), strict=True):
        np.testing.assert_allclose(one @ one.T, two @ two.T, atol=1e-3)


def test_a_constant_column_says_nothing():
    given = problem(dims=(8, 8), seeds=40)
    source, seeds = given.source.copy(), given.seed_source.copy()
    source[:, 2] = seeds[:, 2] = 0.25
    constant = LinkProblem(
        source=source,
        target=given.target,
        seed_source=seeds,
        seed_target=given.seed_target,
        seed_rows=given.seed_rows,
    )

    links = CCA().link(constant)

    assert (links.source_rows == links.target_rows).mean() > 0.9


def test_bad_parameters():
    with pytest.raises(ParameterError, match="n_components as a whole number"):
        CCA(n_components=0)
    with pytest.raises(ParameterError, match="shrinkage from"):
        CCA(shrinkage=2.0).link(problem())
    with pytest.raises(ParameterError, match="power"):
        CCA(power=-1.0).link(problem())
