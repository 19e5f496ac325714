"""The posterior from candidates and decoys, on mixtures whose labels are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.link.posterior import LEAST_CANDIDATES, LEAST_DECOYS, posterior_by_decoys, wrong_share


def mixture(share, *, n=1_500, decoys=600, distance=1.2, dim=5, seed=0):
    """Features of candidates, whether they are true, and features of decoys."""
    rng = np.random.default_rng(seed)
    true = rng.random(n) < share
    candidates = rng.standard_normal((n, dim)) + distance * true[:, None]
    return candidates, true, rng.standard_normal((decoys, dim))


def calibration_error(posterior, true):
    """Expected calibration error in ten bins of equal width."""
    bins = np.minimum((posterior * 10).astype(int), 9)
    return sum(
        abs(posterior[bins == one].sum() - true[bins == one].sum()) for one in range(10)
    ) / len(true)


@pytest.mark.parametrize("share", [0.15, 0.5, 0.85])
def test_the_posterior_is_calibrated(share):
    candidates, true, decoys = mixture(share)
    posterior = posterior_by_decoys(candidates, decoys, prior=0.5, seed=1)

    assert ((posterior > 0) & (posterior < 1)).all()
    assert posterior.mean() == pytest.approx(true.mean(), abs=0.04)
    # The penalty shrinks scores: posteriors are nearer the middle than they might be, not farther.
    assert calibration_error(posterior, true) < 0.08
    sure = posterior > 0.5
    assert posterior[sure].mean() < true[sure].mean() + 0.02
    # As good as the best rule there is: the sum of the features, at the true share.
    best = candidates.sum(axis=1) > np.sort(candidates.sum(axis=1))[-np.count_nonzero(true)]
    assert (sure == true).mean() > (best == true).mean() - 0.02


def test_no_true_candidate():
    candidates, _, decoys = mixture(0.0)
    posterior = posterior_by_decoys(candidates, decoys, prior=0.5, seed=1)
    assert posterior.mean() < 0.1
    assert np.count_nonzero(posterior > 0.9) <= 5


def test_the_scale_of_features_does_not_matter():
    candidates, _, decoys = mixture(0.5, n=400, decoys=200)
    scale, shift = np.array([1e-3, 10, 1, 5, 200]), np.array([0.3, -50, 0, 1, 2])
    plain = posterior_by_decoys(candidates, decoys, prior=0.5, seed=1)
    moved = posterior_by_decoys(
        candidates * scale + shift, decoys * scale + shift, prior=0.5, seed=1
    )
    np.testing.assert_allclose(moved, plain, atol=1e-4)


def test_a_feature_that_is_constant():
    candidates, true, decoys = mixture(0.5, n=400, decoys=200)
    candidates[:, 0], decoys[:, 0] = 1.0, 1.0
    posterior = posterior_by_decoys(candidates, decoys, prior=0.5, seed=1)
    assert ((posterior > 0.5) == true).mean() > 0.85


def test_too_few_to_learn_from():
    candidates, _, decoys = mixture(0.5, n=LEAST_CANDIDATES, decoys=LEAST_DECOYS)
    learnt = posterior_by_decoys(candidates, decoys, prior=0.3, seed=0)
    assert len(np.unique(learnt)) == LEAST_CANDIDATES
    for few in ((candidates[1:], decoys), (candidates, decoys[1:]), (candidates, decoys[:0])):
        assert posterior_by_decoys(*few, prior=0.3, seed=0).tolist() == [0.3] * len(few[0])
    # Posteriors are weights of the next pass, which have to be over 0.
    assert posterior_by_decoys(candidates[:3], decoys, prior=0.0, seed=0).min() > 0


def test_the_seed_decides():
    candidates, _, decoys = mixture(0.5, n=300, decoys=100)
    one, same, other = (
        posterior_by_decoys(candidates, decoys, prior=0.5, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    np.testing.assert_allclose(one, other, atol=0.3)  # the folds decide little


@settings(max_examples=25, deadline=None)
@given(st.floats(0.05, 0.95), st.floats(4.0, 9.0), st.integers(0, 999))
def test_the_share_of_wrong_candidates(share, distance, seed):
    """Normal scores, well apart; 2,000 of each leave a standard deviation under .03."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(2_000) < share
    candidates = rng.standard_normal(2_000) + distance * ~wrong
    assert wrong_share(candidates, rng.standard_normal(2_000)) == pytest.approx(
        wrong.mean(), abs=0.1
    )


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30), st.integers(0, 99))
def test_the_share_is_a_share(candidates, seed):
    decoys = np.random.default_rng(seed).standard_normal(20)
    found = wrong_share(np.array(candidates), decoys)
    assert 0.0 <= found <= 1.0
    # A candidate more over all decoys can only lower it.
    assert wrong_share(np.array([*candidates, 9.0]), decoys) <= found


def test_all_candidates_over_or_like_the_decoys():
    decoys = np.arange(100.0)
    assert wrong_share(decoys + 1_000, decoys) == 0.0
    assert wrong_share(decoys, decoys) == 1.0
    assert wrong_share(decoys - 1_000, decoys) == 1.0
