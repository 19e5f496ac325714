"""Fitted weights: how much native similarity and each space count, from a few labelled queries.

One number at a time is fitted: the share of the native similarity, or the share of one space. With
tens of queries more would fit noise. Folds that were not used for the choice say whether it helps;
where they do not say so beyond noise, the default stays.

References: HVMap, sections 5.1.3 and 5.4.2 (one weight for all; the sweep of figure 10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus._validate import check_whole
from isthmus.errors import CountMismatchError, TooFewPairsError
from isthmus.evaluate.bootstrap import paired_difference
from isthmus.evaluate.retrieval import ndcg
from isthmus.federate.candidates import Candidates
from isthmus.federate.fusion.score import Score
from isthmus.federate.merging import keep_best, order

__all__ = ["FittedWeights", "fit_weights"]

FOLDS = 5
LEVEL = 0.99
"""Of the interval that decides: at .95, weights accepted by chance lost up to .025 nDCG on
splits that are not reported."""
LEAST_QUERIES = 10
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""As the paper's figure 10."""
SPACE_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class FittedWeights:
    """Weights, and why they were taken.

    Parameters
    ----------
    score : Score
        The method to rank with: fitted, or the default.
    fitted : bool
        Whether it differs from the default.
    gain : float
        Mean nDCG@k over that of the default, on queries that the weights were not chosen on.
    low, high : float
        99 % interval of the gain.
    n_queries : int
        Labelled queries with a relevant document.
    reason : str
        One sentence.
    """

    score: Score
    fitted: bool
    gain: float
    low: float
    high: float
    n_queries: int
    reason: str


def fit_weights(
    candidates: Candidates,
    gains: npt.ArrayLike,
    ideal: npt.ArrayLike,
    *,
    k: int = 10,
    seed: int = 0,
) -> FittedWeights:
    """Fit the weights of `Score` on labelled queries.

    Parameters
    ----------
    candidates : Candidates of m queries
        As `Federation.candidates` gives them under fusion ``score``.
    gains : array-like of shape (m, w)
        Judgement of each candidate: ``qrels.gains(query_ids, candidates.ids)``.
    ideal : array-like of shape (m, n_ideal)
        Highest judgements of each query: ``qrels.ideal(query_ids, k)``.
    k : int, default 10
        nDCG@k is what is made best.
    seed : int, default 0
        Of the folds and the interval.

    Returns
    -------
    FittedWeights
        The default where no other weights are better beyond noise.

    Raises
    ------
    CountMismatchError, TooFewPairsError, ParameterError
        Other shapes; fewer than 10 queries with a relevant document.

    Examples
    --------
    Twenty queries whose relevant document is first in the hub's space, and last in the other:

    >>> m = 20
    >>> found = Candidates(
    ...     ids=np.tile(np.array(["a", "b"]), (m, 1)),
    ...     similarities=np.tile(np.float32([[[0.9, 0.5]], [[0.1, 0.6]]]), (1, m, 1)),
    ...     source=np.array([0, 1]), rank=np.array([1, 1]), space=np.array([0, 1]),
    ...     same=np.tile(np.arange(2), (m, 1)),
    ... )
    >>> result = fit_weights(found, np.tile([1, 0], (m, 1)), np.ones((m, 1)))
    >>> result.fitted, result.low > 0
    (True, True)
    """
    check_whole(k, name="k")
    labels, best = np.asarray(gains, dtype=np.float64), np.asarray(ideal, dtype=np.float64)
    if labels.shape != candidates.ids.shape or len(best) != len(labels):
        raise CountMismatchError(
            expected=f"gains of shape {candidates.ids.shape}, and as many ideal rows",
            got=f"shapes {labels.shape} and {best.shape}",
            do="take qrels.gains(query_ids, candidates.ids) and qrels.ideal(query_ids, k)",
        )
    judged = np.flatnonzero((best > 0).any(axis=1))
    if len(judged) < LEAST_QUERIES:
        raise TooFewPairsError(
            expected=f"at least {LEAST_QUERIES} queries with a relevant document",
            got=f"{len(judged)}",
            do="judge more queries, or keep the default weights",
        )
    methods = _methods(candidates.n_spaces)
    values = np.stack(
        [_ndcg(candidates, method, labels, best, k)[judged] for method in methods]
    )  # one row per method, the default first
    return _choose(methods, values, seed=seed)


def _methods(n_spaces: int) -> list[Score]:
    """Return what is tried: the default, native shares, shares of one space."""
    methods = [Score()]
    if n_spaces == 1:
        return methods
    methods += [Score(weight=share) for share in SHARES]
    for space in range(n_spaces if n_spaces > 2 else 1):
        for share in SPACE_SHARES:
            rest = (1 - share) / (n_spaces - 1)
            weights = [rest] * n_spaces
            weights[space] = share
            methods.append(Score(weights=tuple(weights)))
    return methods


def _ndcg(
    candidates: Candidates, method: Score, gains: FloatArray, ideal: FloatArray, k: int
) -> FloatArray:
    """Return nDCG@k per query; of the columns of one document only the best counts."""
    scores = keep_best(method.score(candidates), candidates.same)
    first = order(scores)[:, :k]
    found = ~np.isnan(np.take_along_axis(scores, first, axis=1))
    return ndcg(np.where(found, np.take_along_axis(gains, first, axis=1), 0.0), ideal, k)


def _choose(methods: Sequence[Score], values: FloatArray, *, seed: int) -> FittedWeights:
    """Choose on folds, judge on what each fold left out, and take the choice if it is better."""
    n_queries = values.shape[1]
    fold = np.random.default_rng(seed).permutation(n_queries) % FOLDS
    chosen = np.empty(n_queries)
    for left_out in range(FOLDS):
        asked = fold == left_out
        place = _best(values[:, ~asked])
        chosen[asked] = values[place, asked]
    gain, low, high = paired_difference(chosen, values[0], seed=seed, level=LEVEL)
    best = _best(values)
    better = low > 0 and best > 0
    said = f"{gain:+.4f} nDCG over the default on queries left out (99 % {low:+.4f} to {high:+.4f})"
    reason = f"fitted weights: {said}" if better else f"default weights: not beyond noise, {said}"
    return FittedWeights(
        methods[best] if better else methods[0], better, gain, low, high, n_queries, reason
    )


def _best(values: FloatArray) -> int:
    """Return the best method in the mean, the default among equals."""
    return int(values.mean(axis=1).argmax())
