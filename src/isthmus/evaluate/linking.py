"""How right links are, and how far their posteriors can be believed, against the true pairs.

`score_links` looks at the links that were kept, `link_curve` at all candidates by posterior, and
`reliability` at the posteriors themselves. Leave the seed pairs out: they were given, not found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_share
from isthmus.errors import CountMismatchError, ParameterError
from isthmus.evaluate import bootstrap
from isthmus.evaluate.report import Value

__all__ = [
    "LinkCurve",
    "LinkScores",
    "Reliability",
    "are_true",
    "link_curve",
    "reliability",
    "score_links",
]

BINS = 10


@dataclass(frozen=True, kw_only=True)
class LinkScores:
    """Precision, recall and F1 of links, each with its interval.

    Parameters
    ----------
    precision : Value
        True links over links; NaN where there are none.
    recall : Value
        True links over true pairs; NaN where there are none.
    f1 : Value
        2 x true links / (links + true pairs); NaN where there are neither.
    n_links, n_true, n_correct : int
        Links, true pairs, and links that are true pairs.
    """

    precision: Value
    recall: Value
    f1: Value
    n_links: int
    n_true: int
    n_correct: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            **{
                name: getattr(self, name).to_dict(per_query=False)
                for name in ("precision", "recall", "f1")
            },
            **{name: getattr(self, name) for name in ("n_links", "n_true", "n_correct")},
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkCurve:
    """Precision and recall of the candidates that reach each posterior, the highest first.

    Candidates of equal posterior come and go together: no threshold can part them.

    Parameters
    ----------
    threshold : FloatArray of shape (n_points,), float64
        The different posteriors, falling.
    coverage : FloatArray of shape (n_points,), float64
        Share of the candidates that have at least this posterior.
    precision, recall : FloatArray of shape (n_points,), float64
        Of those candidates; recall is NaN where there are no true pairs.
    """

    threshold: FloatArray
    coverage: FloatArray
    precision: FloatArray
    recall: FloatArray

    @property
    def f1(self) -> FloatArray:
        """F1 at every threshold, shape (n_points,)."""
        total = self.precision + self.recall
        f1: FloatArray = np.divide(
            2.0 * self.precision * self.recall, total, out=np.zeros(len(total)), where=total > 0
        )
        return f1

    def precision_at(self, threshold: float) -> float:
        """Return the precision of the candidates with at least this posterior; NaN without any."""
        count = int(np.count_nonzero(self.threshold >= threshold))
        return float(self.precision[count - 1]) if count else float("nan")

    def precision_at_coverage(self, coverage: float) -> float:
        """Return the precision of the surest candidates that are at least this share of all.

        Raises
        ------
        ParameterError
            A share outside [0, 1].
        """
        check_share(coverage, name="coverage")
        if not len(self.coverage):
            return float("nan")
        place = int(np.searchsorted(self.coverage, coverage - 1e-12))
        return float(self.precision[min(place, len(self.coverage) - 1)])

    def recall_at_precision(self, precision: float) -> float:
        """Return the highest recall of a threshold with at least this precision, 0 without one.

        Raises
        ------
        ParameterError
            A share outside [0, 1].
        """
        check_share(precision, name="precision")
        reached = self.recall[self.precision >= precision - 1e-12]
        return float(reached.max()) if len(reached) else 0.0

    def best_f1(self) -> tuple[float, float]:
        """Return the highest F1 and its threshold: what nobody knows without the true pairs."""
        if not len(self.threshold):
            return 0.0, float("nan")
        place = int(np.argmax(self.f1))
        return float(self.f1[place]), float(self.threshold[place])


@dataclass(frozen=True, eq=False, kw_only=True)
class Reliability:
    """What posteriors say and what is true, in bins of equally many candidates.

    Parameters
    ----------
    posterior : FloatArray of shape (n_bins,), float64
        Mean posterior of each bin, rising.
    correct : FloatArray of shape (n_bins,), float64
        Share of true links in it.
    count : IntArray of shape (n_bins,)
        Empty bins are left out.
    """

    posterior: FloatArray
    correct: FloatArray
    count: IntArray

    @property
    def error(self) -> float:
        """Expected calibration error: the mean of |posterior - correct| over the candidates.

        It leans upwards by the chance in each bin, about sqrt(p (1 - p) / count), and resampling
        would add as much again: it has no interval.
        """
        if not len(self.count):
            return float("nan")
        off = np.abs(self.posterior - self.correct)
        return float((off * self.count).sum() / self.count.sum())


def are_true(links: npt.ArrayLike, true: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Tell which links are true pairs.

    Parameters
    ----------
    links : array-like of int of shape (n_links, 2)
        Source row, target row.
    true : array-like of int of shape (n_true, 2)
        A row may be in several pairs, where objects stand in a cloud more than once.

    Returns
    -------
    ndarray of bool of shape (n_links,)

    Raises
    ------
    ParameterError
        Rows that are no whole numbers from 0, or a pair that stands there twice.

    Examples
    --------
    >>> are_true([(0, 5), (1, 6)], [(1, 6), (2, 7)]).tolist()
    [False, True]
    """
    found, wanted = _pairs(links, "links"), _pairs(true, "true")
    width = 1 + max((int(one[:, 1].max()) for one in (found, wanted) if len(one)), default=0)
    correct: npt.NDArray[np.bool_] = np.isin(
        found[:, 0] * width + found[:, 1], wanted[:, 0] * width + wanted[:, 1]
    )
    return correct


def score_links(
    links: npt.ArrayLike,
    true: npt.ArrayLike,
    *,
    leave_out: npt.ArrayLike = (),
    seed: int = 0,
) -> LinkScores:
    """Return precision, recall and F1 of links.

    Intervals come from resampling source rows (those with a link or a true pair), which are to
    linking what queries are to a search. A recall of 1 has no width: no such row was missed.

    Parameters
    ----------
    links : array-like of int of shape (n_links, 2)
        Source row, target row: those that were kept.
    true : array-like of int of shape (n_true, 2)
    leave_out : array-like of int, optional
        Source rows that do not count, on either side: those of the seeds.
    seed : int, default 0
        Of the intervals.

    Returns
    -------
    LinkScores

    Raises
    ------
    ParameterError
        Rows that are no whole numbers from 0, or a pair that stands there twice.

    Examples
    --------
    >>> found = score_links([(0, 0), (1, 1), (2, 9)], [(0, 0), (1, 1), (3, 3), (4, 4)])
    >>> round(found.precision.mean, 3), found.recall.mean, round(found.f1.mean, 3)
    (0.667, 0.5, 0.571)
    """
    found, wanted = _pairs(links, "links"), _pairs(true, "true")
    out = np.asarray(leave_out, dtype=np.int64)
    found, wanted = (one[~np.isin(one[:, 0], out)] for one in (found, wanted))
    correct = found[are_true(found, wanted)]
    rows = np.unique(np.concatenate([found[:, 0], wanted[:, 0]]))
    per_row = [
        np.bincount(np.searchsorted(rows, one[:, 0]), minlength=len(rows))
        for one in (found, wanted, correct)
    ]
    of_links, of_true, of_both = per_row
    return LinkScores(
        precision=_ratio("precision", of_both, of_links, seed),
        recall=_ratio("recall", of_both, of_true, seed),
        f1=_ratio("f1", 2 * of_both, of_links + of_true, seed),
        n_links=len(found),
        n_true=len(wanted),
        n_correct=len(correct),
    )


def link_curve(posterior: npt.ArrayLike, correct: npt.ArrayLike, *, n_true: int) -> LinkCurve:
    """Return precision and recall at every threshold.

    Parameters
    ----------
    posterior : array-like of shape (n_candidates,)
        From 0 to 1.
    correct : array-like of bool of shape (n_candidates,)
        See `are_true`.
    n_true : int
        True pairs in all, those that no candidate proposes included.

    Returns
    -------
    LinkCurve

    Raises
    ------
    CountMismatchError, ParameterError
        Not as many of both; posteriors outside [0, 1]; fewer true pairs than true candidates.

    Examples
    --------
    >>> curve = link_curve([0.9, 0.8, 0.3], [True, False, True], n_true=4)
    >>> curve.precision.round(2).tolist(), curve.recall.tolist()
    ([1.0, 0.5, 0.67], [0.25, 0.25, 0.5])
    >>> curve.recall_at_precision(0.6), curve.precision_at_coverage(0.5)
    (0.5, 0.5)
    """
    sure, right = _judged(posterior, correct)
    if n_true < np.count_nonzero(right):
        raise ParameterError(
            expected=f"at least {np.count_nonzero(right)} true pairs, as many as candidates that "
            "are true",
            got=f"n_true={n_true}",
            do="count all true pairs",
        )
    order = np.argsort(-sure, kind="stable")
    last = np.flatnonzero(np.diff(sure[order], append=-1.0))  # of each run of equal posteriors
    true, kept = np.cumsum(right[order])[last], last + 1
    return LinkCurve(
        threshold=sure[order][last],
        coverage=kept / max(1, len(sure)),
        precision=true / kept,
        recall=true / n_true if n_true else np.full(len(true), np.nan),
    )


def reliability(
    posterior: npt.ArrayLike, correct: npt.ArrayLike, *, bins: int = BINS
) -> Reliability:
    """Compare posteriors with what is true, in bins of equally many candidates.

    Equal counts (Nguyen and O'Connor 2015) and not equal widths: most posteriors lie near 0 or 1,
    and a bin of a few would count for nothing. Equal posteriors are in one bin, whatever their
    order.

    Parameters
    ----------
    posterior : array-like of shape (n_candidates,)
        From 0 to 1.
    correct : array-like of bool of shape (n_candidates,)
    bins : int, default 10

    Returns
    -------
    Reliability
        Without bins where there is no candidate.

    Raises
    ------
    CountMismatchError, ParameterError

    Examples
    --------
    >>> found = reliability([0.2] * 50 + [0.9] * 50, [False] * 40 + [True] * 60, bins=2)
    >>> found.posterior.round(3).tolist(), found.correct.tolist(), round(found.error, 3)
    ([0.2, 0.9], [0.2, 1.0], 0.05)
    """
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise ParameterError(
            expected="bins as a whole number over 0", got=repr(bins), do="change it"
        )
    sure, right = _judged(posterior, correct)
    if not len(sure):
        return Reliability(posterior=sure, correct=sure, count=np.zeros(0, np.int64))
    place = _equal_bins(sure, bins)
    count = np.bincount(place)
    means = [np.bincount(place, weights=one) / count for one in (sure, right)]
    return Reliability(posterior=means[0], correct=means[1], count=count)


def _equal_bins(values: FloatArray, bins: int) -> IntArray:
    """Number the bin of each value from 0, without gaps; equal values go by their middle rank."""
    from scipy.stats import rankdata

    place = ((rankdata(values) - 0.5) * bins / len(values)).astype(np.int64)
    numbered: IntArray = np.unique(place, return_inverse=True)[1]
    return numbered


def _ratio(name: str, part: IntArray, whole: IntArray, seed: int) -> Value:
    """Return sum(part) / sum(whole) with its interval over the rows."""
    if not whole.sum():
        return Value(name, float("nan"), float("nan"), float("nan"))
    return Value(name, *bootstrap.ratio(part, whole, seed=seed))


def _judged(
    posterior: npt.ArrayLike, correct: npt.ArrayLike
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    sure = np.asarray(posterior, dtype=np.float64)
    right = np.asarray(correct)
    if sure.ndim != 1 or sure.shape != right.shape:
        raise CountMismatchError(
            expected="one posterior and one judgement per candidate",
            got=f"shapes {sure.shape} and {right.shape}",
            do="give both for every candidate",
        )
    if not ((sure >= 0) & (sure <= 1)).all():  # NaN, too
        raise ParameterError(
            expected="posteriors from 0 to 1",
            got="others",
            do="give the probability of each link",
        )
    return sure, right.astype(np.bool_)


def _pairs(rows: npt.ArrayLike, name: str) -> IntArray:
    pairs = np.asarray(rows)
    if not pairs.size:
        return np.empty((0, 2), np.int64)
    whole = pairs.dtype.kind in "iu" and pairs.ndim == 2 and pairs.shape[1] == 2
    if not whole or pairs.min() < 0:
        raise ParameterError(
            expected=f"{name} as whole numbers from 0, of shape (n, 2)",
            got=f"shape {pairs.shape}, type {pairs.dtype}"
            + (f", from {pairs.min()}" if whole else ""),
            do="give source row and target row of each pair",
        )
    pairs = pairs.astype(np.int64)
    if len(np.unique(pairs, axis=0)) < len(pairs):
        raise ParameterError(
            expected=f"each pair of {name} once", got="one that is repeated", do="drop the copies"
        )
    return pairs
