"""Retrieval against judgements: nDCG@k and Recall@k from arrays of gains.

A query that a run does not answer has gains of 0 and counts as the worst, so that no system gains
by answering less. A query without relevant documents has no value (NaN): it is left out of the
mean and counted (`Value.left_out`). Graded gains count linearly, as in trec_eval.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus.errors import (
    CountMismatchError,
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    ParameterError,
)
from isthmus.evaluate.report import Value, summarise
from isthmus.neighbors import check_k

__all__ = ["measure_run", "ndcg", "recall"]


def ndcg(gains: npt.ArrayLike, ideal: npt.ArrayLike, k: int) -> FloatArray:
    """Return nDCG@k per query: sum of gain / log2(rank + 1), over that of the ideal ranking.

    The gain is the judgement itself, as in trec_eval's ``ndcg_cut`` and ir_measures' ``nDCG@k``;
    not 2^judgement - 1 (Burges et al. 2005), which agrees only for judgements of 0 and 1.

    Parameters
    ----------
    gains : array-like of shape (m, n_results)
        Judgements of the results of each query, best result first; 0 where a result is not judged
        or missing. Negative judgements count as 0.
    ideal : array-like of shape (m, n_ideal)
        The highest judgements of each query, sorted downwards, padded with 0; at least k of them or
        all there are.
    k : int
        Results beyond it do not count; fewer than k results count as not relevant.

    Returns
    -------
    FloatArray of shape (m,), float64
        In [0, 1]; NaN for a query without relevant documents.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError

    Examples
    --------
    >>> ndcg([[0, 1]], [[1, 0]], k=10).round(4).tolist()
    [0.6309]
    """
    check_k(k)
    found = _as_gains(gains, name="gains")[:, :k]
    best = _as_gains(ideal, name="ideal")[:, :k]
    _check_queries(len(found), len(best), name="ideal rankings")
    if (np.diff(best, axis=1) > 0).any():
        raise ParameterError(
            expected="ideal gains sorted downwards",
            got=f"a rise in row {int(np.argmax((np.diff(best, axis=1) > 0).any(axis=1)))}",
            do="sort each row, highest first",
        )
    reached, possible = _discounted(found), _discounted(best)
    return _shares(reached, possible)


def recall(gains: npt.ArrayLike, n_relevant: npt.ArrayLike, k: int) -> FloatArray:
    """Return Recall@k per query: relevant results among the first k, over all relevant documents.

    With more than k relevant documents it cannot reach 1. Not "capped recall", which divides by
    min(k, relevant), and not Success@k or Hit@k, which ask for one relevant result only.

    Parameters
    ----------
    gains : array-like of shape (m, n_results)
        As in `ndcg`; a result with a gain over 0 is relevant.
    n_relevant : array-like of int of shape (m,)
        Relevant documents of each query in the whole collection.
    k : int

    Returns
    -------
    FloatArray of shape (m,), float64
        In [0, 1]; NaN for a query without relevant documents.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError
        More results are relevant than ``n_relevant`` says.

    Examples
    --------
    >>> recall([[0, 1, 2], [0, 0, 0]], [4, 0], k=2).tolist()
    [0.25, nan]
    """
    check_k(k)
    found = (_as_gains(gains, name="gains")[:, :k] > 0).sum(axis=1)
    relevant = np.asarray(n_relevant)
    if relevant.ndim != 1 or relevant.dtype.kind not in "iu" or (relevant < 0).any():
        raise ParameterError(
            expected="n_relevant as one whole number from 0 per query",
            got=f"shape {relevant.shape}, type {relevant.dtype}",
            do="count the documents judged relevant",
        )
    _check_queries(len(found), len(relevant), name="counts of relevant documents")
    impossible = found > relevant
    if impossible.any():
        row = int(np.argmax(impossible))
        raise ParameterError(
            expected=f"at most {relevant[row]} relevant results for query {row}",
            got=f"{found[row]}",
            do="count relevant documents over the whole collection, and list no result twice",
        )
    return _shares(found, relevant)


def measure_run(
    gains: npt.ArrayLike,
    ideal: npt.ArrayLike,
    n_relevant: npt.ArrayLike,
    *,
    k: int = 10,
    seed: int = 0,
) -> dict[str, Value]:
    """Return ``nDCG@k`` and ``Recall@k`` of one run with intervals.

    Parameters
    ----------
    gains, ideal, n_relevant
        As in `ndcg` and `recall`.
    k : int, default 10
    seed : int, default 0

    Returns
    -------
    dict of name to Value

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError

    Examples
    --------
    >>> values = measure_run([[1, 0], [0, 0]], [[1, 0], [1, 0]], [1, 1], k=2)
    >>> values["Recall@2"].mean
    0.5
    """
    per_query = {f"nDCG@{k}": ndcg(gains, ideal, k), f"Recall@{k}": recall(gains, n_relevant, k)}
    return summarise(per_query, seed=seed)


def _shares(reached: FloatArray, possible: FloatArray) -> FloatArray:
    """Divide; NaN where nothing is possible."""
    shares: FloatArray = np.full(len(reached), np.nan)
    np.divide(reached, possible, out=shares, where=possible > 0)
    return shares


def _discounted(gains: FloatArray) -> FloatArray:
    sums: FloatArray = (gains / np.log2(np.arange(gains.shape[1]) + 2.0)).sum(axis=1)
    return sums


def _as_gains(values: npt.ArrayLike, *, name: str) -> FloatArray:
    array = np.asarray(values)
    if array.ndim != 2:
        raise DimensionError(
            expected=f"{name} with one row per query", got=f"shape {array.shape}", do="fix it"
        )
    if not len(array):
        raise EmptyInputError(
            expected=f"{name} of at least one query", got="none", do="give at least one query"
        )
    if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
        raise InvalidVectorsError(
            expected=f"{name} as finite numbers",
            got=f"NaN, infinity, or an array of type {array.dtype}",
            do="give 0 where a result is not judged or missing",
        )
    return np.maximum(array.astype(np.float64), 0.0)


def _check_queries(queries: int, other: int, *, name: str) -> None:
    if queries != other:
        raise CountMismatchError(
            expected=f"{queries} {name}, one per query", got=f"{other}", do="give every query"
        )
