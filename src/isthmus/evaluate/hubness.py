"""Hubness: whether a few rows are the neighbours of everything."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray, Metric
from isthmus._validate import check_whole
from isthmus.errors import ParameterError
from isthmus.evaluate.report import Value
from isthmus.neighbors import top_k

__all__ = ["hubness", "hubness_both_ways", "k_occurrence", "skewness"]


def k_occurrence(rows: npt.ArrayLike, *, n: int) -> IntArray:
    """Count how often each row of a collection is among the neighbours that were found.

    Parameters
    ----------
    rows : array-like of int of shape (m, k)
        Rows found for each query; -1 for none.
    n : int
        Rows of the collection.

    Returns
    -------
    IntArray of shape (n,)
        N_k of Radovanovic et al. 2010, section 2.

    Raises
    ------
    ParameterError
        A row beyond the collection.

    Examples
    --------
    >>> k_occurrence([[0, 1], [0, -1]], n=3).tolist()
    [2, 1, 0]
    """
    found = np.asarray(rows)
    if found.dtype.kind not in "iu" or (found.size and (found.max() >= n or found.min() < -1)):
        raise ParameterError(
            expected=f"rows as whole numbers from -1 to {n - 1}",
            got=f"an array of type {found.dtype}"
            + (f", from {found.min()} to {found.max()}" if found.size else ""),
            do="give rows of that collection",
        )
    return np.bincount(found[found >= 0].ravel(), minlength=n)


def skewness(counts: npt.ArrayLike) -> float:
    """Return the standardised third moment of counts, E[(N - mean)^3] / std^3.

    Parameters
    ----------
    counts : array-like of shape (n,)

    Returns
    -------
    float
        0 for a symmetric spread, and where all counts are equal; 1 and more means hubs
        (Radovanovic et al. 2010, section 2.2). The population moment, without the small-sample
        correction of some statistics packages.

    Examples
    --------
    >>> round(skewness([0, 0, 0, 4]), 4)
    1.1547
    """
    centred = np.asarray(counts, dtype=np.float64)
    centred = centred - centred.mean()
    deviation = np.sqrt((centred**2).mean())
    return float((centred**3).mean() / deviation**3) if deviation > 0 else 0.0


def hubness(
    queries: npt.ArrayLike,
    database: npt.ArrayLike,
    *,
    k: int = 10,
    metric: Metric = "cosine",
    exclude: npt.ArrayLike | None = None,
) -> Value:
    """Return the skewness of how often each database row is among the k nearest of the queries.

    Parameters
    ----------
    queries : array-like of shape (m, dim)
    database : array-like of shape (n, dim)
    k : int, default 10
    metric : {"cosine", "dot", "l2"}, default "cosine"
    exclude : array-like of int of shape (m,), optional
        As in `isthmus.neighbors.top_k`.

    Returns
    -------
    Value
        Named ``hubness@k``. Its interval is NaN: queries drawn twice would make hubs of their own
        neighbours, so resampling cannot say how sure the value is. Compare it with the same queries
        in another space; it grows with their number.

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError, ZeroVectorError, ParameterError

    Examples
    --------
    >>> hubness([[1.0, 0.0], [0.9, 0.1]], [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], k=1).name
    'hubness@1'
    """
    found = top_k(queries, database, k=k, metric=metric, exclude=exclude)
    return hubness_of(found.rows, n=len(np.asarray(database)), k=k)


def hubness_both_ways(
    target_rows: npt.ArrayLike, source_rows: npt.ArrayLike, *, k: int = 10
) -> tuple[float, float]:
    """Return the skewness of N_k on both sides, for rankings of both sides for each other.

    As `isthmus.transport.match` gives them; every row of both sides was asked.

    Parameters
    ----------
    target_rows : array-like of int of shape (n_source, at least k)
        Target rows that were found for each source row, the best first.
    source_rows : array-like of int of shape (n_target, at least k)
    k : int, default 10
        As many columns of both count; all there are where there are fewer.

    Returns
    -------
    of_target, of_source : float
        Of how often each target row was found, and each source row (AnchorDOT, figure 4).

    Raises
    ------
    ParameterError

    Examples
    --------
    >>> of_target, of_source = hubness_both_ways([[0], [0], [0]], [[2], [1], [0]], k=1)
    >>> round(of_target, 4), of_source
    (0.7071, 0.0)
    """
    check_whole(k, name="k")
    there, back = np.asarray(target_rows), np.asarray(source_rows)
    return (
        skewness(k_occurrence(there[:, :k], n=len(back))),
        skewness(k_occurrence(back[:, :k], n=len(there))),
    )


def hubness_of(rows: IntArray, *, n: int, k: int) -> Value:
    """Return `hubness` of neighbours that were found already, of which the first k count."""
    mean = skewness(k_occurrence(rows[:, :k], n=n))
    nothing: FloatArray = np.empty(0, np.float32)
    return Value(f"hubness@{k}", mean, float("nan"), float("nan"), nothing)
