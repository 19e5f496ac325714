"""Agreement of people who judge the same things: mean pairwise agreement and Fleiss' kappa."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._types import IntArray
from isthmus.errors import CountMismatchError, DimensionError, EmptyInputError, ParameterError

__all__ = ["fleiss_kappa", "pairwise_agreement"]


def fleiss_kappa(counts: npt.ArrayLike) -> float:
    """Return Fleiss' kappa: the agreement beyond what the shares of the categories give by chance.

    Parameters
    ----------
    counts : array-like of int of shape (n, categories)
        How many annotators put each of n subjects into each category. All rows add up to the same
        number of annotators, at least 2.

    Returns
    -------
    float
        (P - C) / (1 - C) with P the mean pairwise agreement and C the sum of the squared shares of
        the categories (Fleiss 1971, equations 3 to 7). At most 1; 0 is chance; at least
        -1 / (annotators - 1). NaN where every judgement is the same: chance agrees fully too. Where
        nearly all are the same it is low though nearly all pairs agree: report both.

    Raises
    ------
    DimensionError, EmptyInputError, ParameterError, CountMismatchError

    Examples
    --------
    >>> fleiss_kappa([[3, 0], [0, 3], [3, 0]])
    1.0
    >>> round(fleiss_kappa([[2, 1], [1, 2]]), 3)
    -0.333
    """
    table = _as_counts(counts)
    shares = table.sum(axis=0) / table.sum()
    if np.count_nonzero(shares) == 1:
        return float("nan")
    chance = float(np.square(shares).sum())
    return (_observed(table) - chance) / (1.0 - chance)


def pairwise_agreement(counts: npt.ArrayLike) -> float:
    """Return the share of subjects on which two annotators agree, in the mean over their pairs.

    Parameters
    ----------
    counts : array-like of int of shape (n, categories)
        As in `fleiss_kappa`.

    Returns
    -------
    float
        In [0, 1]. Chance is included: compare with `fleiss_kappa`.

    Raises
    ------
    DimensionError, EmptyInputError, ParameterError, CountMismatchError

    Examples
    --------
    >>> round(pairwise_agreement([[3, 0], [1, 2]]), 3)
    0.667
    """
    return _observed(_as_counts(counts))


def _observed(table: IntArray) -> float:
    """Count the agreeing pairs of all subjects, and divide by all pairs."""
    annotators = int(table[0].sum())
    agreeing = int((table * (table - 1)).sum())
    return agreeing / (len(table) * annotators * (annotators - 1))


def _as_counts(counts: npt.ArrayLike) -> IntArray:
    """Check a table of counts; a row that adds up to another number is named."""
    table = np.asarray(counts)
    if table.ndim != 2:
        raise DimensionError(
            expected="counts of shape (n, categories)",
            got=f"shape {table.shape}",
            do="give one row for each subject",
        )
    if table.size == 0:
        raise EmptyInputError(
            expected="counts of at least one subject and one category",
            got=f"shape {table.shape}",
            do="give the judgements",
        )
    if table.dtype.kind not in "iu" or (table < 0).any():
        raise ParameterError(
            expected="counts as whole numbers from 0",
            got=f"an array of type {table.dtype}"
            + (f", from {table.min()}" if table.dtype.kind in "iu" else ""),
            do="count the annotators for each subject and category",
        )
    sums = table.sum(axis=1)
    if sums[0] < 2:
        raise ParameterError(
            expected="judgements of at least 2 annotators", got=f"{sums[0]}", do="add an annotator"
        )
    if (sums != sums[0]).any():
        row = int(np.argmax(sums != sums[0]))
        raise CountMismatchError(
            expected=f"{sums[0]} judgements of each subject, as in row 0",
            got=f"{sums[row]} in row {row}",
            do="leave out subjects that not all annotators judged",
        )
    return table.astype(np.int64)
