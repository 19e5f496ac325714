"""Checks of what a caller hands to a store, the same for every store."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from isthmus._types import FloatArray, IdArray
from isthmus._validate import as_matrix, check_nonzero
from isthmus.errors import CountMismatchError, InputError, ParameterError
from isthmus.neighbors.exact import check_k
from isthmus.spaces import Space, VectorSet
from isthmus.spaces.ids import as_ids

__all__ = [
    "as_number",
    "as_queries",
    "as_texts",
    "check_collection",
    "check_notes",
    "check_where",
    "from_json",
    "matches",
    "to_json",
]

INT_BITS = 63
ODD_NUMBERS = re.compile(r"[0-9][0-9.]{15}|[0-9][eE][+-]?[0-9]{3}")
"""Signs of numbers that neither 64 bits nor a float may hold to the last digit."""
MAX_NAME = 255


def as_queries(queries: Any, space: Space, *, k: int) -> FloatArray:
    """Return query vectors as float32 of shape (n_queries, dim), after checking them and ``k``.

    Raises
    ------
    SpaceMismatchError
        A `VectorSet` of another space.
    DimensionError, EmptyInputError, InvalidVectorsError, ZeroVectorError, ParameterError
    """
    check_k(k)
    if isinstance(queries, VectorSet):
        space.check(queries.space, what="queries")
        queries = queries.matrix()
    matrix = as_matrix(queries, name="queries", dim=space.dim)
    if space.metric == "cosine":
        check_nonzero(matrix, name="queries")
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused as infinity
        return as_matrix(np.ascontiguousarray(matrix, dtype=np.float32), name="queries")


def as_texts(ids: Sequence[str] | IdArray) -> list[str]:
    """Return ids as a list of text; none at all is allowed."""
    return as_ids(ids).tolist() if len(ids) else []


def as_number(cursor: str) -> int:
    """Return the row number that a cursor stands for."""
    if cursor == "":
        return 0
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 18:
        raise ParameterError(
            expected="the cursor of a batch of this store, or the empty text",
            got=repr(cursor[:40]),
            do="pass what the last batch gave",
        )
    return int(cursor)


def check_collection(name: str) -> str:
    """Return the name of a collection: 1 to 255 characters, whatever they are."""
    if not 1 <= len(name) <= MAX_NAME or "\0" in name:
        raise ParameterError(
            expected=f"a collection name of 1 to {MAX_NAME} characters, none of them NUL",
            got=f"{name[:40]!r} ({len(name)} characters)",
            do="choose another name",
        )
    return name


def check_where(where: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a filter as a dict: keys of text, values of one JSON value each."""
    if where is not None and not isinstance(where, Mapping):
        raise ParameterError(
            expected="a filter as a mapping of keys to values",
            got=repr(where)[:80],
            do='write {"year": 2001}',
        )
    checked = dict(where or {})
    for key, value in checked.items():
        if not isinstance(key, str) or not isinstance(value, str | int | float | None):
            raise ParameterError(
                expected="a filter of text keys and text, number, true, false or null values",
                got=f"{key!r}: {value!r}",
                do="filter by one value per key",
            )
        _check_number(value, name=f"the filter's {key!r}")
    return checked


def check_notes(notes: Mapping[str, str] | None) -> dict[str, str]:
    """Return notes as a dict of text to text."""
    checked = dict(notes or {})
    for key, value in checked.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ParameterError(
                expected="notes of text to text", got=f"{key!r}: {value!r}", do="write it as JSON"
            )
        _check_text(key + value, name="a note")
    return checked


def matches(fields: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Return whether the metadata of a row have the values that a filter asks for.

    Examples
    --------
    >>> matches({"year": 2.0}, {"year": 2}), matches({"year": True}, {"year": 1})
    (True, False)
    """
    return all(key in fields and _equal(fields[key], value) for key, value in asked.items())


def _equal(stored: object, asked: object) -> bool:
    """Compare two JSON values; in Python, but not in JSON, ``True == 1``."""
    if isinstance(stored, bool) or isinstance(asked, bool):
        return stored is asked
    return stored == asked


def to_json(metadata: Sequence[Mapping[str, Any]] | None, *, rows: int) -> list[str | None]:
    """Return the metadata of each row as JSON text, None where it has none.

    Raises
    ------
    CountMismatchError, InputError
        A value that JSON does not have (NaN, a date), or a key that is not text.
    """
    if metadata is None:
        return [None] * rows
    if len(metadata) != rows:
        raise CountMismatchError(
            expected=f"metadata for each of {rows:,} rows",
            got=f"{len(metadata):,}",
            do="pass one mapping per row, empty where there is nothing to say",
        )
    return [_to_json(one, row) for row, one in enumerate(metadata)]


def _to_json(fields: Mapping[str, Any], row: int) -> str | None:
    if not isinstance(fields, Mapping) or not all(isinstance(key, str) for key in fields):
        raise _not_json(fields, row, "keys that are text")
    for key, value in fields.items():
        _check_number(value, name=f"{key!r} of row {row}")
    try:
        text = json.dumps(dict(fields), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _not_json(fields, row, "JSON values only") from error
    except RecursionError as error:
        raise _not_json(fields, row, "fewer levels in one another") from error
    _check_text(text, name=f"the metadata of row {row}")
    return text if fields else None


def from_json(text: str | None, name: str) -> dict[str, Any]:
    """Return the metadata of the row of that name, none where it has no text.

    A number of which neither 64 bits nor a float hold every digit comes as text: decimals of
    databases have more, and nothing of theirs is rounded.

    Raises
    ------
    InputError
        More levels in one another than Python reads.

    Examples
    --------
    >>> from_json('{"a": 0.5, "b": 123456789012345678.12}', "row")
    {'a': 0.5, 'b': '123456789012345678.12'}
    """
    if text is None:
        return {}
    try:
        if ODD_NUMBERS.search(text):
            return dict(json.loads(text, parse_int=_whole, parse_float=_exact))
        return dict(json.loads(text))
    except RecursionError as error:
        raise InputError(
            expected=f"metadata of the row {name[:40]!r} with fewer levels in one another",
            got="more than can be read",
            do="make them flat, or take them out",
        ) from error


def _whole(digits: str) -> int | float | str:
    if len(digits) > 20:  # more than 64 bits have, and with a sign
        return _exact(digits)
    number = int(digits)
    return number if -(2**INT_BITS) <= number < 2**INT_BITS else _exact(digits)


def _exact(digits: str) -> float | str:
    number = float(digits)
    if math.isfinite(number) and Decimal(digits) in (Decimal(number), Decimal(repr(number))):
        return number
    return digits


def _not_json(fields: object, row: int, expected: str) -> InputError:
    return InputError(
        expected=f"metadata with {expected}",
        got=f"{_shown(fields)} in row {row}",
        do="write it as text, a number, true, false or null",
    )


def _shown(fields: object) -> str:
    try:
        return str(fields)[:80]
    except (ValueError, RecursionError):  # numbers of too many digits, too many levels
        return "something else"


def _check_number(value: object, *, name: str) -> None:
    """Refuse what a database would round: whole numbers over 64 bits, NaN and infinity."""
    if isinstance(value, int) and value.bit_length() > INT_BITS:
        raise InputError(
            expected=f"a whole number of at most 64 bits as {name}",
            got=f"one of {value.bit_length():,} bits",
            do="write it as text",
        )
    if isinstance(value, float) and not np.isfinite(value):
        raise InputError(expected=f"a finite number as {name}", got=str(value), do="leave it out")


def _check_text(text: str, *, name: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            expected=f"whole Unicode characters in {name}",
            got="half of a surrogate pair",
            do="decode the text as UTF-8",
        ) from error
