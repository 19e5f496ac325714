"""Ids, payloads and filters of Qdrant, the same for its engine in this process and its server.

A point has a whole number or a UUID as its id. A text id that is written like one of these is that
id; any other becomes the UUID that follows from it, with the text in the payload.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from isthmus._types import FloatArray
from isthmus.stores._digits import ROUNDED, exact_copy, reads_back, restored
from isthmus.stores._tokens import token, tokens

__all__ = [
    "ID",
    "LENGTHS",
    "NAMES",
    "RESERVED",
    "Filter",
    "NativeId",
    "Point",
    "conditions",
    "fits",
    "lengths_of",
    "metadata_of",
    "native_id",
    "payload_of",
    "text_id",
]

ID = "isthmus_id"
LENGTHS = "isthmus_length"
NUMBERS = "isthmus_exact"
"""Key of the fields, as JSON text, with numbers that Qdrant reads back with another last digit."""
RESERVED = (ID, LENGTHS, NUMBERS)
NAMES = r"(?!\.{1,2}$)[^<>:\"/\\|?*\x00-\x1f]{1,255}"
NAMESPACE = uuid.UUID("7d1f64b4-2b6c-5c0e-9a53-0d1a54a0c6f1")
LARGEST = 2**64
EXACT = 2**53  # larger whole numbers are rounded where they are compared as numbers
WHOLE = re.compile(r"0|[1-9][0-9]{0,19}")

NativeId: TypeAlias = int | str
Filter: TypeAlias = dict[str, Any]
"""A filter as Qdrant's REST interface writes it."""


@dataclass(frozen=True)
class Point:
    """A row of Qdrant.

    Parameters
    ----------
    id : int or str
        A whole number, or a UUID as text.
    vector : FloatArray of shape (dim,) or None
        The one that was asked for.
    payload : dict
    """

    id: NativeId
    vector: FloatArray | None
    payload: dict[str, Any]


@dataclass(frozen=True)
class Change:
    """What changes of a point that is there.

    Parameters
    ----------
    id : int or str
    vector : FloatArray of shape (dim,)
        The one that is written.
    payload : dict
        Fields that are set.
    removed : tuple of str
        Fields that go.
    length : float, optional
        Length of the vector; what the payload says of it stays where none is given.
    """

    id: NativeId
    vector: FloatArray
    payload: dict[str, Any]
    removed: tuple[str, ...] = ()
    length: float | None = None

    def applied(self, payload: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Return the payload that a point has with this change of one of its vectors."""
        kept = {key: value for key, value in payload.items() if key not in self.removed}
        kept |= self.payload
        if self.length is not None:
            kept[LENGTHS] = {**lengths_of(payload), name: self.length}
        return kept


def quoted(key: str) -> str:
    """Write a key as a path of Qdrant.

    Examples
    --------
    >>> quoted("a.b")
    '"a.b"'
    """
    return f'"{key}"'


def native_id(text: str) -> NativeId:
    """Return the id of a point.

    Examples
    --------
    >>> native_id("7"), native_id("7d1f64b4-2b6c-5c0e-9a53-0d1a54a0c6f1")
    (7, '7d1f64b4-2b6c-5c0e-9a53-0d1a54a0c6f1')
    >>> native_id("07") == native_id("07"), native_id("07") == native_id("7")
    (True, False)
    """
    if WHOLE.fullmatch(text) and int(text) < LARGEST:
        return int(text)
    if len(text) == 36:
        try:
            if str(uuid.UUID(text)) == text:
                return text
        except ValueError:
            pass
    return str(uuid.uuid5(NAMESPACE, text))


def text_id(native: NativeId, payload: Mapping[str, Any]) -> str:
    """Return the text of a point's id: that of the payload where it fits, or its own.

    Examples
    --------
    >>> text_id(native_id("doc"), {"isthmus_id": "doc"}), text_id(7, {"isthmus_id": "of another"})
    ('doc', '7')
    """
    text = payload.get(ID)
    if isinstance(text, str) and native_id(text) == native:
        return text
    return str(native)


def payload_of(text: str, metadata: str | None, lengths: Mapping[str, float]) -> dict[str, Any]:
    """Return the payload of a row: its metadata, its id where that is not the point's own."""
    payload: dict[str, Any] = json.loads(metadata) if metadata else {}
    if str(native_id(text)) != text:
        payload[ID] = text
    copy = exact_copy(payload)
    if copy is not None:
        payload[NUMBERS] = copy
    if lengths:
        payload[LENGTHS] = dict(lengths)
    return payload


def metadata_of(payload: Mapping[str, Any]) -> str | None:
    """Return the metadata of a row as JSON text, None where it has none."""
    fields = {key: value for key, value in payload.items() if key not in RESERVED}
    if NUMBERS in payload:
        fields = restored(fields, payload[NUMBERS])
    return json.dumps(fields, ensure_ascii=False) if fields else None


def lengths_of(payload: Mapping[str, Any]) -> dict[str, float]:
    """Return the lengths of the vectors of a row that were not 1, by the vector's name."""
    found = payload.get(LENGTHS)
    if not isinstance(found, Mapping):
        return {}
    return {
        str(key): float(value) for key, value in found.items() if isinstance(value, int | float)
    }


def conditions(where: Mapping[str, Any]) -> tuple[list[Filter], dict[str, Any]]:
    """Return a filter as Qdrant's conditions, and what they leave to be checked.

    Qdrant finds a value also inside a list, which the contract does not; a second condition keeps
    lists out. Keys with quotes have no path, and large numbers are compared as rounded ones.

    Examples
    --------
    >>> conditions({"year": 2020})[0][0]
    {'key': '"year"', 'range': {'gte': 2020, 'lte': 2020}}
    >>> conditions({'"': 1})
    ([], {'"': 1})
    """
    found: list[Filter] = []
    rest: dict[str, Any] = {}
    for key, value in where.items():
        if '"' in key or "\\" in key:
            rest[key] = value
            continue
        path = f'"{key}"'
        if value is None:
            found.append({"is_null": {"key": path}})
            found.append({"key": path, "values_count": {"lt": 1}})
            continue
        found.append({"is_empty": {"key": f"{path}[]"}})
        if isinstance(value, bool | str):
            found.insert(-1, {"key": path, "match": {"value": value}})
        else:
            between = {"gte": value, "lte": value}
            if abs(value) >= EXACT or not reads_back(value):
                rest[key] = value
                slack = abs(value) * ROUNDED
                between = {"gte": value - slack, "lte": value + slack}
            found.insert(-1, {"key": path, "range": between})
    return found, rest


def fits(payload: Mapping[str, Any], rest: Mapping[str, Any]) -> bool:
    """Whether a payload has the values that conditions left to be checked."""
    kept = set(tokens(metadata_of(payload)))
    return all(token(key, value) in kept for key, value in rest.items())
