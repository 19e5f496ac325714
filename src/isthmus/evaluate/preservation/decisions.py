"""Do decisions stay the same: thresholds, calibrated scores, and close calls."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray, Metric
from isthmus.errors import ParameterError
from isthmus.evaluate.view import View, view_of
from isthmus.neighbors import check_k

__all__ = [
    "calibration_transfer",
    "hard_negative_margin",
    "similarity_error",
    "threshold_transfer",
]

# Candidates per row on which decisions are compared; half of them pass the default threshold.
CANDIDATES = 20
# Native neighbours that count as hard negatives.
HARD_NEGATIVES = 10


def threshold_transfer(
    mapped: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    threshold: float | None = None,
    collection: npt.ArrayLike | None = None,
    own_rows: npt.ArrayLike | None = None,
    metric: Metric = "cosine",
    candidates: int = CANDIDATES,
) -> FloatArray:
    """Return the share of match decisions that stay the same at the native threshold, per row.

    Each row decides on its nearest native neighbours: match, if the similarity is at least the
    threshold. The mapped row decides on the same neighbours at the same threshold. Close candidates
    only: over the whole collection almost all decisions are an easy no.

    Parameters
    ----------
    mapped, target, collection, own_rows, metric
        As in `nbr_overlap`.
    threshold : float, optional
        On the native scale. The median of the native similarities in question by default, so that a
        map that always says no keeps one half.
    candidates : int, default 20
        Native neighbours to decide on; fewer where the collection is smaller.

    Returns
    -------
    FloatArray of shape (m,), float64
        In [0, 1]; about .5 for a useless map at the default threshold. NaN without neighbours.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError
    UnknownNameError, ZeroVectorError

    Examples
    --------
    >>> rows = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]
    >>> threshold_transfer(rows, rows).tolist()
    [1.0, 1.0, 1.0]
    """
    check_k(candidates, name="candidates")
    view = view_of(mapped, target, collection, own_rows, metric, native_depth=candidates)
    return decisions_kept(view, threshold=threshold, candidates=candidates)


def calibration_transfer(
    mapped: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    threshold: float | None = None,
    collection: npt.ArrayLike | None = None,
    own_rows: npt.ArrayLike | None = None,
    metric: Metric = "cosine",
    candidates: int = CANDIDATES,
    seed: int = 0,
) -> FloatArray:
    """Return `threshold_transfer` after mapped scores are put on the native scale, per row.

    A rising curve (isotonic regression) from mapped to native scores is learned on half of the
    rows and used for the other half, and the other way round. What is still lost then is order, not
    scale. Not the error of a probability (expected calibration error).

    Parameters
    ----------
    mapped, target, threshold, collection, own_rows, metric, candidates
        As in `threshold_transfer`.
    seed : int, default 0
        Of the halves.

    Returns
    -------
    FloatArray of shape (m,), float64
        In [0, 1]; about .5 for a useless map at the default threshold. NaN without neighbours, and
        with fewer than two rows.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError
    UnknownNameError, ZeroVectorError

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((40, 8))
    >>> bool(calibration_transfer(rows, rows).mean() > 0.95)
    True
    """
    check_k(candidates, name="candidates")
    view = view_of(mapped, target, collection, own_rows, metric, native_depth=candidates)
    return calibrated_kept(view, threshold=threshold, candidates=candidates, seed=seed)


def hard_negative_margin(
    mapped: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    collection: npt.ArrayLike | None = None,
    own_rows: npt.ArrayLike | None = None,
    metric: Metric = "cosine",
    negatives: int = HARD_NEGATIVES,
) -> FloatArray:
    """Return by how much each mapped row prefers its own target row to the closest wrong one.

    Its similarity to its own target row, minus the highest one among the native row's nearest
    neighbours: the rows that the target model itself takes for almost the same.

    Parameters
    ----------
    mapped, target, collection, own_rows, metric
        As in `nbr_overlap`.
    negatives : int, default 10
        Native neighbours that count as hard negatives.

    Returns
    -------
    FloatArray of shape (m,), float64
        In units of the metric; in [-2, 2] for the cosine. Over 0 where the object itself wins.
        Compare it with the margin of the native rows themselves. NaN without neighbours.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError
    UnknownNameError, ZeroVectorError

    Examples
    --------
    >>> hard_negative_margin([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]).tolist()
    [1.0, 1.0]
    """
    check_k(negatives, name="negatives")
    view = view_of(mapped, target, collection, own_rows, metric, native_depth=negatives)
    return margin(view, negatives=negatives)


def similarity_error(
    mapped: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    collection: npt.ArrayLike | None = None,
    own_rows: npt.ArrayLike | None = None,
    metric: Metric = "cosine",
    candidates: int = CANDIDATES,
) -> FloatArray:
    """Return how far the similarities to the nearest native neighbours are from the native ones.

    The root of the mean squared difference, per row. What counts where mapped rows are ranked among
    native ones by their score: a map may keep every order and still lift or lower all its scores.

    Parameters
    ----------
    mapped, target, collection, own_rows, metric
        As in `nbr_overlap`.
    candidates : int, default 20
        Native neighbours to compare with; fewer where the collection is smaller.

    Returns
    -------
    FloatArray of shape (m,), float64
        0 or more, in units of the metric; lower is better. NaN without neighbours.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError
    UnknownNameError, ZeroVectorError

    Examples
    --------
    >>> rows = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]
    >>> similarity_error(rows, rows).tolist()
    [0.0, 0.0, 0.0]
    """
    check_k(candidates, name="candidates")
    view = view_of(mapped, target, collection, own_rows, metric, native_depth=candidates)
    return score_error(view, candidates=candidates)


def score_error(view: View, *, candidates: int = CANDIDATES) -> FloatArray:
    """Return `similarity_error` of a view."""
    native = view.native.neighbors.scores[:, :candidates].astype(np.float64)
    squared = (view.mapped_scores[:, :candidates] - native) ** 2
    there = ~np.isnan(squared)
    errors: FloatArray = np.full(len(squared), np.nan)
    sums = np.where(there, squared, 0.0).sum(axis=1)
    np.divide(sums, there.sum(axis=1), out=errors, where=there.any(axis=1))
    return np.sqrt(errors)


def decisions_kept(
    view: View, *, threshold: float | None = None, candidates: int = CANDIDATES
) -> FloatArray:
    """Return `threshold_transfer` of a view."""
    native = view.native.neighbors.scores[:, :candidates]
    return _kept(view.mapped_scores[:, :candidates], native, _threshold(native, threshold))


def calibrated_kept(
    view: View, *, threshold: float | None = None, candidates: int = CANDIDATES, seed: int = 0
) -> FloatArray:
    """Return `calibration_transfer` of a view."""
    from sklearn.isotonic import IsotonicRegression

    native = view.native.neighbors.scores[:, :candidates].astype(np.float64)
    mapped = view.mapped_scores[:, :candidates].astype(np.float64)
    calibrated = np.full(mapped.shape, np.nan)
    order = np.random.default_rng(seed).permutation(len(mapped))
    for learn, use in _halves(order):
        known, asked = ~np.isnan(mapped[learn]), ~np.isnan(mapped[use])
        if known.any() and asked.any():
            curve = IsotonicRegression(out_of_bounds="clip")
            curve.fit(mapped[learn][known], native[learn][known])
            values = np.full(asked.shape, np.nan)
            values[asked] = curve.predict(mapped[use][asked])
            calibrated[use] = values
    kept = _kept(calibrated, native, _threshold(native, threshold))
    return np.where(np.isnan(calibrated).all(axis=1), np.nan, kept)


def margin(view: View, *, negatives: int = HARD_NEGATIVES) -> FloatArray:
    """Return `hard_negative_margin` of a view."""
    wrong = view.mapped_scores[:, :negatives]
    hardest = np.where(np.isnan(wrong), -np.inf, wrong).max(axis=1, initial=-np.inf)
    margins = view.own_scores.astype(np.float64) - hardest
    return np.where(np.isfinite(hardest), margins, np.nan)


def _kept(mapped: FloatArray, native: FloatArray, threshold: float) -> FloatArray:
    there = ~np.isnan(native)
    same = ((mapped >= threshold) == (native >= threshold)) & there
    counts = there.sum(axis=1)
    shares: FloatArray = np.full(len(native), np.nan)
    np.divide(same.sum(axis=1), counts, out=shares, where=counts > 0)
    return shares


def _threshold(native: FloatArray, threshold: float | None) -> float:
    if threshold is None:
        there = native[~np.isnan(native)]
        return float(np.median(there)) if len(there) else 0.0
    if not np.isfinite(threshold):
        raise ParameterError(
            expected="a finite threshold", got=f"{threshold}", do="give a native similarity"
        )
    return float(threshold)


def _halves(order: IntArray) -> list[tuple[IntArray, IntArray]]:
    first, second = np.sort(order[::2]), np.sort(order[1::2])
    return [(first, second), (second, first)]
