"""The probability that a candidate link is true, from candidates and decoys, without any label.

Candidates are a mixture of true and wrong links; decoys (`isthmus.link.decoys`) are wrong ones. A
logistic regression on the features is fitted by expectation maximisation: each candidate counts as
true with its posterior and as wrong with the rest, each decoy as wrong; the share of wrong links is
held to what the decoys say (`wrong_share`). Scores are cross-fitted: no candidate is scored by a
regression that was fitted on it (the soft labels of the others come from rounds before, where it
may have been). Shapes: features (n, n_features), posterior (n,).
References: Elkan and Noto (2008) for learning from one labelled class; Storey (2002) for the share.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray
from isthmus.link.clouds import Seed

__all__ = ["LEAST_CANDIDATES", "MOST", "posterior_by_decoys", "wrong_share"]

FOLDS = 4
ITERATIONS = 8
PENALTY = 0.1
"""Inverse strength of the quadratic penalty on standardised features (scikit-learn's C)."""

FIRST_PENALTY = 0.01
MOST = 1.0 - 1e-6
"""No link is certain, and none reaches a threshold of 1."""

MOST_WRONG = 0.9
"""Share of wrong candidates while fitting: with all of them wrong there is nothing to learn, and a
first estimate from few decoys may say so by chance."""

LEAST_DECOYS = 12
LEAST_CANDIDATES = 24
LEAST_MEAN = 1e-3
"""Of the posteriors: links are weights of the next pass, and some have to be over 0."""


def posterior_by_decoys(
    candidates: FloatArray, decoys: FloatArray, *, prior: float, seed: Seed
) -> FloatArray:
    """Return the posterior of every candidate.

    Parameters
    ----------
    candidates : FloatArray of shape (n, n_features)
    decoys : FloatArray of shape (n_decoys, n_features)
    prior : float
        Share of true candidates to take where there are too few of both to learn from.
    seed : int or tuple of int
        Of the folds.
    """
    n = len(candidates)
    if len(decoys) < LEAST_DECOYS or n < LEAST_CANDIDATES:
        return np.full(n, max(prior, LEAST_MEAN))
    rng = np.random.default_rng(seed)
    both = np.vstack([candidates, decoys])
    both = (both - both.mean(axis=0)) / np.maximum(both.std(axis=0), 1e-9)
    fold = np.concatenate([rng.permutation(n) % FOLDS, rng.permutation(len(decoys)) % FOLDS])
    true = np.zeros(len(both))
    true[:n] = 0.5
    balance = np.ones(len(both))
    balance[n:] = n / len(decoys)
    with one_blas_thread():
        # First only candidates against decoys: which way true links differ from wrong ones.
        first = np.arange(len(both)) < n
        score = 2.0 * _cross_fitted(both, first.astype(np.float64), balance, fold, FIRST_PENALTY)
        wrong = wrong_share(score[:n], score[n:])
        for _ in range(ITERATIONS):
            some = min(wrong, MOST_WRONG)
            true[:n] = _with_mean(score[:n], 1.0 - some)
            balance[n:] = some * n / len(decoys)
            score = _cross_fitted(both, true, balance, fold, PENALTY)
            wrong = wrong_share(score[:n], score[n:])
    return _with_mean(score[:n], 1.0 - wrong)


def wrong_share(candidates: FloatArray, decoys: FloatArray) -> float:
    """Return the share of wrong candidates: how much rarer low scores are than among decoys.

    The mean ratio of the two distribution functions over the upper middle of the decoys' scores:
    lower down few of either are left and the ratio is mostly chance, higher up true links score as
    low as decoys.

    Parameters
    ----------
    candidates, decoys : FloatArray
        Scores.

    Examples
    --------
    >>> decoys = np.linspace(0.0, 1.0, 101)
    >>> wrong_share(np.concatenate([decoys, decoys + 5.0]), decoys)
    0.5
    """
    cuts = np.quantile(decoys, np.linspace(0.5, 0.8, 13))
    below = np.searchsorted(np.sort(candidates), cuts, side="right") / len(candidates)
    expected = np.searchsorted(np.sort(decoys), cuts, side="right") / len(decoys)
    return float(min(1.0, (below / expected).mean()))


def _cross_fitted(
    features: FloatArray, true: FloatArray, weight: FloatArray, fold: IntArray, penalty: float
) -> FloatArray:
    """Score every row by a regression fitted on the other folds; ``true`` are soft labels."""
    from sklearn.linear_model import LogisticRegression

    score = np.empty(len(features))
    for one in range(FOLDS):
        fitted, out = fold != one, fold == one
        rows = np.vstack([features[fitted], features[fitted]])
        label = np.repeat([1, 0], np.count_nonzero(fitted))
        share = np.concatenate([true[fitted], 1.0 - true[fitted]]) * np.tile(weight[fitted], 2)
        kept = share > 0.0
        model = LogisticRegression(C=penalty, max_iter=2_000)
        model.fit(rows[kept], label[kept], sample_weight=share[kept])
        score[out] = model.decision_function(features[out])
    return score


def _with_mean(score: FloatArray, mean: float) -> FloatArray:
    """Return the logistic of the scores, moved so that the mean is the one asked for."""
    mean = min(max(mean, LEAST_MEAN), 1.0 - LEAST_MEAN)
    reach = float(np.abs(score).max()) + 20.0
    shift = brentq(lambda by: float(expit(score + by).mean()) - mean, -reach, reach)
    return np.asarray(np.minimum(expit(score + shift), MOST))
