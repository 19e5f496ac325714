"""Low rank: what it recovers, the best rank, its place below ridge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import ParameterError
from isthmus.maps import LowRank, Ridge


def planted(n, dim_source, dim_target, rank, *, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim_source)) + 2
    weight = rng.standard_normal((dim_source, rank)) @ rng.standard_normal((rank, dim_target))
    return X, X @ weight - 1 + noise * rng.standard_normal((n, dim_target)), weight


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    dims=st.tuples(st.integers(2, 9), st.integers(2, 9)),
    rank=st.integers(1, 3),
    seed=st.integers(0, 999),
)
def test_a_planted_map_of_low_rank_is_recovered_with_its_rank(dims, rank, seed):
    rank = min(rank, *dims)
    X, Y, weight = planted(60, *dims, rank, seed=seed)

    fitted = LowRank().fit(X, Y)
    given_rank = LowRank(rank=rank).fit(X, Y)

    assert fitted.up_.shape == (rank, dims[1])
    np.testing.assert_allclose(fitted.down_ @ fitted.up_, weight, atol=1e-4)
    np.testing.assert_allclose(given_rank.transform(X), Y, atol=1e-3)


def test_the_rank_survives_noise():
    X, Y, _ = planted(400, 12, 10, 3, noise=0.5)

    fitted = LowRank().fit(X, Y)

    # directions held fixed make a direction of noise look a little better than it is
    assert fitted.up_.shape[0] in (3, 4)
    assert fitted.rank_errors_[1] > 1.5 * fitted.rank_errors_[2]


@pytest.mark.parametrize("shape", [(60, 6, 9), (60, 9, 6), (8, 12, 15)], ids=str)
def test_full_rank_is_ridge(shape):
    X, Y, _ = planted(*shape, rank=min(shape[1:]), noise=1.0)
    ridge = Ridge(penalty=2.0).fit(X, Y)
    full = min(shape[0] - 1, *shape[1:])

    fitted = LowRank(rank=full, penalty=2.0).fit(X, Y)

    np.testing.assert_allclose(fitted.transform(X), ridge.transform(X), atol=1e-4)


def test_more_rank_fits_the_training_pairs_better():
    X, Y, _ = planted(60, 6, 6, 6, noise=1.0)
    errors = [
        float(np.sum((LowRank(rank=rank, penalty=1e-6).fit(X, Y).transform(X) - Y) ** 2))
        for rank in range(1, 7)
    ]

    assert errors == sorted(errors, reverse=True)


def test_no_other_map_of_that_rank_fits_better():
    X, Y, _ = planted(80, 6, 5, 5, noise=1.0)
    penalty, rank = 4.0, 2
    fitted = LowRank(rank=rank, penalty=penalty).fit(X, Y)
    x, y = X - X.mean(0), Y - Y.mean(0)

    def loss(weight):
        return np.sum((x @ weight - y) ** 2) + penalty * np.sum(weight**2)

    # the answer by an SVD of the rows with the penalty as rows of its own (Mukherjee and Zhu)
    rows, wanted = np.r_[x, np.sqrt(penalty) * np.eye(6)], np.r_[y, np.zeros((6, 5))]
    ridge = np.linalg.lstsq(rows, wanted, rcond=None)[0]
    right = np.linalg.svd(rows @ ridge)[2][:rank].T
    found = fitted.down_.astype(np.float64) @ fitted.up_
    assert loss(found) == pytest.approx(loss(ridge @ right @ right.T), rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_rank_errors_are_the_brute_force_ones_with_the_directions_held_fixed(weighted):
    X, Y, _ = planted(25, 4, 5, 4, noise=2.0)
    weight = np.random.default_rng(1).random(25) + 0.2 if weighted else np.ones(25)
    fitted = LowRank(penalty=3.0).fit(X, Y, sample_weight=weight)
    every = LowRank(penalty=3.0, rank=4).fit(X, Y, sample_weight=weight)

    for rank, error in enumerate(fitted.rank_errors_, start=1):
        through = every.up_[:rank].T @ every.up_[:rank]
        errors = []
        for row in range(25):
            others = np.arange(25) != row
            ridge = Ridge(penalty=3.0).fit(X[others], Y[others], sample_weight=weight[others])
            mean = np.average(Y[others], axis=0, weights=weight[others])
            said = mean + (ridge.transform(X[row : row + 1])[0] - mean) @ through
            errors.append(np.sum((said - Y[row]) ** 2))
        assert error == pytest.approx(np.average(errors, weights=weight), rel=1e-4)
    assert fitted.up_.shape[0] == 1 + int(np.argmin(fitted.rank_errors_))


@pytest.mark.parametrize("rank", [0, 4, -1, "half"])
def test_a_rank_that_the_pairs_do_not_have(rank):
    X, Y, _ = planted(30, 3, 5, 3)

    with pytest.raises(ParameterError, match=f"rank from 1 to 3.*got {rank!r}"):
        LowRank(rank=rank).fit(X, Y)


def test_a_penalty_that_is_not_over_zero():
    X, Y, _ = planted(30, 3, 5, 3)
    with pytest.raises(ParameterError, match="penalty over 0 or 'loo'"):
        LowRank(penalty=-2.0).fit(X, Y)
