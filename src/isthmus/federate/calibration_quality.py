"""How far one threshold means the same in every store: calibration error, spread of precision.

Reference: Naeini, Cooper and Hauskrecht (AAAI 2015) for the expected calibration error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray
from isthmus.errors import CountMismatchError
from isthmus.evaluate.retrieval import ndcg
from isthmus.federate.merging import order

__all__ = ["CalibrationQuality", "as_labels", "measure"]

BINS = 10
QUANTILES = (0.5, 0.6, 0.7, 0.8, 0.9)
LEAST_ABOVE = 20
"""Candidates over a threshold, for a precision."""


@dataclass(frozen=True)
class CalibrationQuality:
    """How far one threshold means the same in every store.

    Parameters
    ----------
    error : tuple of float, one per source
        Expected calibration error: mean absolute difference of predicted and observed share of
        relevant candidates, over ten bins of equally many candidates. NaN without candidates.
    spread : float
        Highest less lowest precision of the sources at a common threshold, the mean over five
        thresholds (where half to nine tenths of all candidates are under it).
    ndcg : float
        nDCG@10 of the candidates ranked by these scores; NaN where it was not asked for.
    """

    error: tuple[float, ...]
    spread: float
    ndcg: float


def measure(
    scores: FloatArray,
    relevant: npt.ArrayLike,
    source: IntArray,
    *,
    ideal: npt.ArrayLike | None = None,
) -> CalibrationQuality:
    """Measure scores taken as probabilities, on queries that no curve was learned on.

    Parameters
    ----------
    scores : FloatArray of shape (m, w)
        Probabilities, or canonical scores for comparison; NaN where there is no candidate.
    relevant : array-like of shape (m, w)
        Judgements; over 0 is relevant.
    source : IntArray of shape (w,)
    ideal : array-like of shape (m, n_ideal), optional
        Highest judgements of each query, for nDCG@10.

    Raises
    ------
    CountMismatchError

    Examples
    --------
    >>> scores = np.float32([[0.0, 1.0], [1.0, 0.0]])
    >>> measure(scores, [[0, 1], [1, 0]], np.array([0, 1])).error
    (0.0, 0.0)
    """
    labels = as_labels(scores, relevant, source)
    found = np.isfinite(scores)
    n_sources = int(source.max()) + 1
    holder = np.broadcast_to(source, scores.shape)
    of_source = [
        (scores[mask].astype(np.float64), labels[mask])
        for mask in (found & (holder == place) for place in range(n_sources))
    ]
    spreads = []
    for threshold in np.quantile(scores[found], QUANTILES) if found.any() else ():
        above = [hits[values >= threshold] for values, hits in of_source]
        precisions = [float(hits.mean()) for hits in above if len(hits) >= LEAST_ABOVE]
        if len(precisions) > 1:
            spreads.append(max(precisions) - min(precisions))
    value = float("nan")
    if ideal is not None:
        best = order(scores)[:, :10]
        gains = np.where(found, np.asarray(relevant, dtype=np.float64), 0.0)
        ranked = np.take_along_axis(gains, best, axis=1)
        value = float(np.nanmean(ndcg(ranked, ideal, 10)))
    return CalibrationQuality(
        tuple(_error(values, hits) for values, hits in of_source),
        float(np.mean(spreads)) if spreads else float("nan"),
        value,
    )


def _error(values: FloatArray, hits: FloatArray) -> float:
    """Return the expected calibration error over bins of equally many candidates."""
    if not len(values):
        return float("nan")
    order = np.argsort(values, kind="stable")
    parts = np.array_split(order, min(BINS, len(order)))
    gaps = [abs(values[part].mean() - hits[part].mean()) * len(part) for part in parts]
    return float(sum(gaps) / len(values))


def as_labels(scores: FloatArray, relevant: npt.ArrayLike, source: IntArray) -> FloatArray:
    """Return 1 where relevant and 0 elsewhere, after all shapes were checked.

    Raises
    ------
    CountMismatchError
    """
    labels = (np.asarray(relevant) > 0).astype(np.float64)
    if scores.ndim != 2 or labels.shape != scores.shape or source.shape != scores.shape[1:]:
        raise CountMismatchError(
            expected="scores and judgements of one shape (m, w), and w sources",
            got=f"shapes {scores.shape}, {labels.shape} and {source.shape}",
            do="take qrels.gains(query_ids, candidates.ids) and candidates.source",
        )
    return labels
