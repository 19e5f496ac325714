"""Id, vector and metadata of the rows in JSON, of ours and of the common databases' exports.

The first row decides under which keys they stand; every other row must have them too.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from isthmus._types import FloatArray
from isthmus.spaces.io.asked import Asked
from isthmus.spaces.io.base import Block, corrupt
from isthmus.spaces.io.json_pages import Row, lifted, wrong
from isthmus.spaces.io.jsonable import joined
from isthmus.spaces.io.names import looks_like_vector, pick_id, pick_vector, several

__all__ = ["Layout", "blocks", "layout_of"]

BATCH_ROWS = 10_000
OPENED = ("metadata", "payload", "properties")
"""Keys that hold the metadata of a row as one object, which is opened."""
ANSWER_ONLY = {"score", "version", "shard_key", "order_value", "sparse_values", "sparseValues"}
"""Beside such an object these belong to the answer that the row came with, not to the row."""


@dataclass(frozen=True)
class Layout:
    """Where a row keeps what.

    Parameters
    ----------
    id, vector : str
        Keys.
    inner : str
        Name of the vector where a row has several under one key; empty where it has one.
    left : frozenset of str
        Keys of other vectors.
    """

    id: str
    vector: str
    inner: str = ""
    left: frozenset[str] = field(default_factory=frozenset)

    def __str__(self) -> str:
        name = f"{self.vector}.{self.inner}" if self.inner else self.vector
        left = f"; left out: {', '.join(sorted(self.left))}" if self.left else ""
        return f"ids from the key {self.id!r}, vectors from {name!r}{left}"

    def metadata(self, fields: Row) -> dict[str, Any]:
        """Return what is neither id nor vector."""
        skipped = {self.id, self.vector, *self.left}
        rest = {name: each for name, each in fields.items() if name not in skipped}
        opened = [name for name in OPENED if isinstance(fields.get(name), dict)]
        if len(opened) != 1 or opened[0] in skipped:
            return {name: each for name, each in rest.items() if each is not None}
        inside = rest.pop(opened[0])
        beside = {
            name: each
            for name, each in rest.items()
            if name not in ANSWER_ONLY and each is not None and each not in ({}, [])
        }
        return joined(beside, inside)


def layout_of(row: Row, asked: Asked, *, path: Path, place: str) -> Layout:
    """Find the keys of id, vector and metadata in a row.

    Raises
    ------
    CorruptFileError
        No id or no vector is there.
    InputError
        Several are.
    """
    fields, sure = lifted(row)
    names = list(fields)
    if asked.vector and asked.vector not in fields:
        key, _, inner = asked.vector.partition(".")
    else:
        key, inner = asked.vector, ""
    able = [name for name in names if _could_be_vector(name, fields[name])]
    able = able or [name for name in names if _could_be_packed(name, fields[name])]
    if not names or (not key and not able):
        raise wrong(path, place, f"an object with {', '.join(map(repr, names))[:120] or 'nothing'}")
    vector = pick_vector(able, key, names=names, path=path, what="key")
    held = fields[vector]
    if isinstance(held, dict):
        inner = inner or _one_of(vector, held, path)
        if inner not in held:
            pick_vector([], inner, names=list(held), path=path, what="key")
    picked = pick_id(
        [name for name in names if name != vector], asked.id or sure, path=path, what="key"
    )
    left = {name for name in able if name != vector and looks_like_vector(name)}
    return Layout(picked, vector, inner, frozenset(left))


def _one_of(key: str, held: dict[str, Any], path: Path) -> str:
    names = [name for name, each in held.items() if _is_numbers(each)]
    if len(names) != 1:
        raise several([f"{key}.{name}" for name in held], path=path, what="key", of="vector")
    return names[0]


def _could_be_vector(name: str, value: Any) -> bool:
    """Tell lists of numbers, and, under a name of vectors, text and named vectors."""
    if _is_numbers(value):
        return True
    if not looks_like_vector(name):
        return False
    if isinstance(value, dict):
        return any(_is_numbers(each) for each in value.values())
    return isinstance(value, str) and value.lstrip().startswith("[") and _could_be_read(value)


def _could_be_packed(name: str, value: Any) -> bool:
    """Tell base64 under a name of vectors; looked for last, since many a word is base64, too."""
    return looks_like_vector(name) and isinstance(value, str) and _could_be_read(value)


def _could_be_read(text: str) -> bool:
    return _numbers_in_text(text) is not None


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and set(map(type, value)) <= {int, float}


def _numbers_in_text(text: str) -> list[Any] | FloatArray | None:
    """Read ``[1,2,3]`` as pgvector writes it, or float32 in base64; None for other text."""
    if text.lstrip().startswith("["):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return found if _is_numbers(found) else None
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    if not content or len(content) % 4:
        return None
    return np.frombuffer(content, dtype="<f4")


def blocks(rows: Iterable[tuple[str, Row]], layout: Layout, path: Path) -> Iterator[Block]:
    """Read rows, each with its place in words, into blocks."""
    ids: list[Any] = []
    vectors: list[FloatArray] = []
    metadata: list[dict[str, Any]] = []
    width: int | None = None
    for place, row in rows:
        fields, _ = lifted(row)
        vector = _vector(fields, layout, path, place, width=width)
        width = len(vector)
        ids.append(fields[layout.id])
        vectors.append(vector)
        metadata.append(layout.metadata(fields))
        if len(ids) == BATCH_ROWS:
            yield Block(ids, np.stack(vectors), metadata)
            ids, vectors, metadata = [], [], []
    if ids:
        yield Block(ids, np.stack(vectors), metadata)


def _vector(
    fields: Row, layout: Layout, path: Path, place: str, *, width: int | None
) -> FloatArray:
    """Read one vector; rows of several lengths are refused where they stand."""
    values = fields.get(layout.vector)
    if layout.inner:
        values = values.get(layout.inner) if isinstance(values, dict) else None
    if isinstance(values, str):
        values = _numbers_in_text(values)
    if layout.id not in fields or not isinstance(values, list | np.ndarray):
        raise wrong(path, place, f"an object with {', '.join(map(repr, fields))[:120]}")
    if width is not None and len(values) != width:
        raise corrupt(
            path,
            expected=f"{width} numbers in {place}, as in those before",
            got=f"{len(values)}",
            do="put the vectors of each model in a file of their own",
        )
    if isinstance(values, np.ndarray):
        return values
    if not set(map(type, values)) <= {int, float}:
        raise wrong(path, place, "a vector with something else than numbers")
    try:
        with np.errstate(over="ignore"):  # becomes infinity, which the set refuses
            return np.array(values, dtype=np.float64).astype(np.float32)
    except OverflowError as error:  # a whole number of hundreds of digits
        raise wrong(path, place, "a number that is too large") from error
