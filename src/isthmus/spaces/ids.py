"""Ids of rows: read, checked and looked up as numpy arrays, fast enough for a million."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._types import IdArray, IntArray
from isthmus.errors import CountMismatchError, DuplicateIdError, InvalidIdError, UnknownIdError

__all__ = ["IdIndex", "as_ids", "check_unique", "name_few"]

MAX_CHARACTERS = 1_024
"""numpy keeps every id as wide as the longest: one id of a megabyte would cost one per row."""

FEW = 3


def as_ids(values: Sequence[Any] | npt.NDArray[Any], *, name: str = "ids") -> IdArray:
    """Return ids as a read-only array of text of shape (n,); whole numbers become text.

    Parameters
    ----------
    values : sequence of str or int, or an array of them
    name : str, default "ids"
        What the caller calls them, for the message.

    Raises
    ------
    InvalidIdError
        An id that is empty, ends in a NUL, is longer than 1,024 characters, is not text, or holds
        half of a surrogate pair (no file could keep it).

    Examples
    --------
    >>> as_ids(["b", 7]).tolist()
    ['b', '7']
    """
    array = values if isinstance(values, np.ndarray) else None
    if array is None or array.dtype.kind not in "Uiu":
        array = _from_objects(list(values), name)
    elif array.dtype.kind in "iu":
        array = array.astype(np.str_)
    if array.ndim != 1:
        raise CountMismatchError(
            expected=f"{name} in one axis (n,)", got=f"shape {array.shape}", do="pass one id a row"
        )
    _check_length(array.dtype.itemsize // 4, name)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).view()
    _check_text(array, name)
    array.flags.writeable = False
    return array


def _from_objects(values: list[Any], name: str) -> IdArray:
    """Turn Python objects into text before numpy can drop a closing NUL or guess a type."""
    if set(map(type, values)) <= {str} and "\0" not in "".join(values):
        _check_length(max(map(len, values), default=0), name)
        return np.array(values, dtype=np.str_)
    texts = []
    for row, value in enumerate(values):
        text = _to_text(value)
        if text is None:
            raise InvalidIdError(
                expected=f"{name} as text",
                got=f"{' '.join(repr(value)[:80].split())} in row {row}",
                do="pass each id as a str",
            )
        if text.endswith("\0"):
            raise InvalidIdError(
                expected=f"{name} that do not end in a NUL character",
                got=f"{text!r} in row {row}",
                do="strip it: numpy cannot keep it",
            )
        texts.append(text)
    _check_length(max(map(len, texts), default=0), name)
    return np.array(texts, dtype=np.str_)


def _to_text(value: Any) -> str | None:
    """Return text as it is, whole numbers and UTF-8 bytes as text, anything else as None."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None


def _check_length(longest: int, name: str) -> None:
    if longest > MAX_CHARACTERS:
        raise InvalidIdError(
            expected=f"{name} of at most {MAX_CHARACTERS:,} characters",
            got=f"one of {longest:,}",
            do="use a key or a hash as the id, and keep the long text in your own table",
        )


def _check_text(ids: IdArray, name: str) -> None:
    """Refuse empty ids and lone surrogates, by looking at the code points themselves."""
    points = _code_points(ids)
    if len(ids) and (not points.shape[1] or not points[:, 0].all()):
        empty = np.flatnonzero(ids == "")
        if len(empty):
            raise InvalidIdError(
                expected=f"{name} that are not empty",
                got=f"an empty one in row {empty[0]}",
                do="give every row an id",
            )
    surrogate = (points >= 0xD800) & (points <= 0xDFFF)
    if surrogate.any():
        row = int(np.argmax(surrogate.any(axis=1)))
        raise InvalidIdError(
            expected=f"{name} of whole Unicode characters",
            got=f"half of a surrogate pair in row {row}",
            do="decode the ids as UTF-8",
        )


def _code_points(ids: IdArray) -> npt.NDArray[np.uint32]:
    """View text of shape (n,) as code points of shape (n, width), padded with zeros."""
    return ids.view(np.uint32).reshape(len(ids), ids.dtype.itemsize // 4)


def check_unique(ids: IdArray, *, name: str = "ids") -> None:
    """Refuse an id that stands in two rows, naming the first few.

    Rows are hashed as numbers and sorted; only rows whose hashes meet are compared as text, which
    takes a tenth of the time and memory of a set of a million strings.

    Raises
    ------
    DuplicateIdError

    Examples
    --------
    >>> check_unique(as_ids(["a", "b"]))
    """
    hashes = _hashes(ids)
    ordered = np.sort(hashes)
    meeting = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(meeting):
        return
    suspects = ids[np.isin(hashes, meeting)]
    texts, counts = np.unique(suspects, return_counts=True)
    repeated = texts[counts > 1]
    if len(repeated):
        raise DuplicateIdError(
            expected=f"every one of the {name} once",
            got=f"{len(repeated)} repeated: {name_few(repeated)}",
            do="drop the repeated rows, or make the ids differ",
        )


def _hashes(ids: IdArray) -> npt.NDArray[np.uint64]:
    """Hash each row to 64 bits: FNV-1a over its code points."""
    hashes = np.full(len(ids), 0xCBF29CE484222325, dtype=np.uint64)
    prime = np.uint64(0x100000001B3)
    for column in _code_points(ids).T:
        hashes ^= column
        hashes *= prime
    return hashes


class IdIndex:
    """Rows by id, built once.

    Parameters
    ----------
    ids : IdArray of shape (n,)
        All different.

    Examples
    --------
    >>> IdIndex(as_ids(["a", "b"])).find(as_ids(["b", "c"])).tolist()
    [1, -1]
    """

    def __init__(self, ids: IdArray) -> None:
        self._rows = {text: row for row, text in enumerate(ids.tolist())}

    def find(self, ids: IdArray) -> IntArray:
        """Return the row of each id, -1 where there is none."""
        get = self._rows.get
        return np.fromiter((get(text, -1) for text in ids.tolist()), np.int64, len(ids))

    def rows(self, ids: IdArray, *, name: str) -> IntArray:
        """Return the row of each id.

        Raises
        ------
        UnknownIdError
            Names the first few ids that are not there, and their count.
        """
        rows = self.find(ids)
        if (rows < 0).any():
            unknown = ids[rows < 0]
            raise UnknownIdError(
                expected=f"ids of {name}",
                got=f"{len(unknown):,} of {len(ids):,} that it does not have: {name_few(unknown)}",
                do="check that both come from the same collection",
            )
        return rows


def name_few(ids: IdArray) -> str:
    """Quote the first three ids, for a message.

    Examples
    --------
    >>> name_few(as_ids(["a", "b", "c", "d"]))
    "'a', 'b', 'c', ..."
    """
    return ", ".join(map(repr, ids[:FEW].tolist())) + (", ..." if len(ids) > FEW else "")
