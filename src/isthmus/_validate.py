"""Checks of what comes in, each with an error that says expected, got, do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus.errors import (
    CountMismatchError,
    DegenerateVectorsError,
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    ParameterError,
    TooFewPairsError,
    ZeroVectorError,
)

__all__ = [
    "as_matrix",
    "check_finite",
    "check_nonzero",
    "check_pairs",
    "check_positive",
    "check_share",
    "check_spread",
    "check_weight",
    "check_whole",
]

BLOCK_ROWS = 65_536
LARGEST_NUMBER = float(np.finfo(np.float64).max)


def as_matrix(values: npt.ArrayLike, *, name: str, dim: int | None = None) -> FloatArray:
    """Return ``values`` as a float32 or float64 matrix of shape (n, dim), finite and not empty.

    Float32 and float64 arrays come back as they are, never copied and never changed; float16 and
    integers become float32. Numbers that float32 cannot hold are refused.

    Parameters
    ----------
    values : array-like of shape (n, dim)
    name : str
        What the caller calls it, for the message.
    dim : int, optional
        Width that is expected.

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError

    Examples
    --------
    >>> as_matrix([[1, 2], [3, 4]], name="X").dtype
    dtype('float32')
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidVectorsError(
            expected=f"{name} as rows of equal length", got="rows of several lengths", do="fix it"
        ) from error
    if array.dtype.kind not in "fiu":
        raise InvalidVectorsError(
            expected=f"{name} as numbers",
            got=f"an array of type {array.dtype}",
            do="pass a float array of shape (n, dim)",
        )
    if array.ndim != 2:
        raise DimensionError(
            expected=f"{name} with two axes (n, dim)",
            got=f"shape {array.shape}",
            do="pass one row per vector; a single vector is vector[None, :]",
        )
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise EmptyInputError(
            expected=f"{name} with at least one row and one column",
            got=f"shape {array.shape}",
            do="pass at least one vector",
        )
    if dim is not None and array.shape[1] != dim:
        raise DimensionError(
            expected=f"{name} with {dim} columns",
            got=f"{array.shape[1]} columns",
            do="check which model made these vectors",
        )
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32)
    check_finite(array, name=name)
    if array.dtype == np.float64:
        _check_range(array, name=name)
    return array


def _check_range(array: FloatArray, *, name: str) -> None:
    """Refuse numbers that float32, in which all results come, cannot hold."""
    limit = float(np.finfo(np.float32).max)
    largest = max(float(array.max()), -float(array.min()))
    if largest > limit:
        raise InvalidVectorsError(
            expected=f"numbers up to {limit:.1e} in {name}, as float32 holds them",
            got=f"{largest:.1e}",
            do="scale the vectors down",
        )


def check_finite(array: FloatArray, *, name: str, first_row: int = 0) -> None:
    """Refuse NaN and infinity, naming the first bad row; reads in blocks, safe for mapped files."""
    for start in range(0, len(array), BLOCK_ROWS):
        block = array[start : start + BLOCK_ROWS]
        if _sums_to_finite(block):
            continue
        bad = ~np.isfinite(block).all(axis=tuple(range(1, block.ndim)))
        if bad.any():
            raise InvalidVectorsError(
                expected=f"finite numbers in {name}",
                got=f"NaN or infinity in row {first_row + start + int(np.argmax(bad))}",
                do="drop or re-embed that row",
            )


def _sums_to_finite(block: FloatArray) -> bool:
    """Say whether the sum is finite, and so every number; half the time of looking at each."""
    with np.errstate(over="ignore", invalid="ignore"):
        return block.dtype != np.float16 and bool(np.isfinite(block.sum()))


def check_nonzero(array: FloatArray, *, name: str, first_row: int = 0) -> None:
    """Refuse rows of length zero: they have no direction to compare."""
    for start in range(0, len(array), BLOCK_ROWS):
        block = array[start : start + BLOCK_ROWS]
        zero = block[:, 0] == 0  # few rows of an embedding begin with zero: look only at those
        if zero.any():
            zero[zero] = ~block[zero].any(axis=1)
        if zero.any():
            raise ZeroVectorError(
                expected=f"rows with a direction in {name}",
                got=f"only zeros in row {first_row + start + int(np.argmax(zero))}",
                do="drop that row; an empty text often gives one",
            )


def check_spread(array: FloatArray, *, name: str) -> None:
    """Refuse a matrix whose rows are all the same: nothing can be fitted on it."""
    if len(array) < 2 or not np.ptp(array, axis=0).any():
        raise DegenerateVectorsError(
            expected=f"at least two different rows in {name}",
            got=f"{len(array)} equal row{'s' if len(array) != 1 else ''}",
            do="check that the vectors were read in the right way",
        )


def check_pairs(X: FloatArray, Y: FloatArray, *, minimum: int = 2) -> None:
    """Refuse two sides with different counts, or fewer pairs than ``minimum``."""
    if len(X) != len(Y):
        raise CountMismatchError(
            expected="as many source rows as target rows",
            got=f"{len(X)} source rows and {len(Y)} target rows",
            do="pair them by id first (Pairs.from_ids)",
        )
    if len(X) < minimum:
        raise TooFewPairsError(
            expected=f"at least {minimum} pairs",
            got=f"{len(X)}",
            do="add pairs",
        )


def check_weight(weight: npt.ArrayLike | None, *, rows: int) -> FloatArray | None:
    """Return sample weights as float64 of shape (rows,), not negative and not all zero."""
    if weight is None:
        return None
    array = np.asarray(weight, dtype=np.float64)
    if array.shape != (rows,):
        raise CountMismatchError(
            expected=f"{rows} weights, one per pair", got=f"shape {array.shape}", do="fix the count"
        )
    if not np.isfinite(array).all() or (array < 0).any() or not (array > 0).any():
        raise ParameterError(
            expected="weights that are finite, not negative and not all zero",
            got=f"values from {array.min()} to {array.max()}",
            do="use posteriors in [0, 1]",
        )
    return array


def check_positive(value: float, *, name: str, maximum: float | None = None) -> None:
    """Refuse a parameter that is not over zero, or over its maximum."""
    bound = "over 0" if maximum is None else f"over 0 and at most {maximum:g}"
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    # a comparison, and not isfinite, which takes no whole number beyond 64 bits
    plain = value.item() if isinstance(value, np.generic) else value  # float32 ends before float64
    if not (number and 0 < plain <= (LARGEST_NUMBER if maximum is None else maximum)):
        raise ParameterError(
            expected=f"{name} {bound}",
            got=f"{value!r}"[:100],
            do=f"give {name} a number {bound}",
        )


def check_share(value: float, *, name: str) -> None:
    """Refuse a parameter outside 0 to 1, and NaN.

    Raises
    ------
    ParameterError
    """
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and 0.0 <= value <= 1.0):
        percent = number and 1 < value <= 100
        raise ParameterError(
            expected=f"{name} from 0 to 1",
            got=f"{value!r}"[:100],
            do=f"give a share: {value / 100:g} is {value:g} %"
            if percent
            else "give a share: 0.5 is one half",
        )


def check_whole(value: int, *, name: str, minimum: int = 1, maximum: int | None = None) -> None:
    """Refuse a parameter that is not a whole number from the minimum to the maximum.

    Raises
    ------
    ParameterError
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < minimum:
        raise ParameterError(
            expected=f"{name} as a whole number of at least {minimum}",
            got=f"{value!r}"[:100],
            do=f"give {name} {minimum} or more",
        )
    if maximum is not None and value > maximum:
        raise ParameterError(
            expected=f"{name} as a whole number of at most {maximum}",
            got=f"{value!r}"[:100],
            do=f"give {name} {maximum} or less",
        )
