"""JSON lines: ``{"space": ..., "rows": n}``, then ``{"id": ..., "vector": [...]}`` in each line."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from isthmus._files import atomic_path
from isthmus._types import FloatArray, IdArray
from isthmus.errors import CorruptFileError
from isthmus.spaces.io.base import FileFormat, Plan, Raw, corrupt
from isthmus.spaces.io.space_json import parse_space
from isthmus.spaces.space import Space

__all__ = ["JSONL"]


def _read(path: Path, memory_map: bool) -> Raw:  # noqa: FBT001 - the registry's call
    del memory_map
    space: Space | None = None
    announced: int | None = None
    ids: list[Any] = []
    rows: list[FloatArray] = []
    for number, entry in _entries(path):
        if number == 1 and "space" in entry:
            space = parse_space(json.dumps(entry["space"]), path)
            announced = entry.get("rows")
            continue
        ids.append(entry.get("id"))
        rows.append(_vector(entry, path, number, width=len(rows[0]) if rows else None))
    if not rows or (announced is not None and announced != len(rows)):
        raise corrupt(
            path,
            expected="at least one vector" if announced is None else f"{announced} vectors",
            got=f"{len(rows):,}",
        )
    return Raw(ids=ids, vectors=np.stack(rows), space=space)


def _entries(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of the lines that are not empty, with the number of the line."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, _parse(line, path, number)
    except UnicodeDecodeError as error:
        raise corrupt(path, expected="text in UTF-8", got=str(error)) from error


def _parse(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _broken(path, number, line) from error
    if not isinstance(entry, dict):
        raise _broken(path, number, line)
    return entry


def _vector(entry: dict[str, Any], path: Path, number: int, *, width: int | None) -> FloatArray:
    """Read one vector; rows of several lengths are refused where they stand."""
    values = entry.get("vector")
    if "id" not in entry or not isinstance(values, list):
        raise _broken(path, number, f"an object with {', '.join(map(repr, entry))}")
    if width is not None and len(values) != width:
        raise corrupt(
            path,
            expected=f"{width} numbers in line {number}, as in the lines before",
            got=f"{len(values)}",
        )
    if not set(map(type, values)) <= {int, float}:
        raise _broken(path, number, "a vector with something else than numbers")
    try:
        with np.errstate(over="ignore"):  # becomes infinity, which the set refuses
            return np.array(values, dtype=np.float64).astype(np.float32)
    except OverflowError as error:  # a whole number of hundreds of digits
        raise _broken(path, number, "a number that is too large") from error


def _broken(path: Path, number: int, got: str) -> CorruptFileError:
    return corrupt(
        path,
        expected=f'{{"id": ..., "vector": [...]}} in line {number}',
        got=got.strip()[:80] or "an empty line",
    )


class _Sink:
    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, ids: IdArray, vectors: FloatArray) -> None:
        """Append one line for each row."""
        for text, row in zip(ids.tolist(), vectors, strict=True):
            line = json.dumps({"id": text, "vector": row.tolist()}, ensure_ascii=False)
            self._out.write(line + "\n")


@contextlib.contextmanager
def _open_sink(plan: Plan) -> Iterator[_Sink]:
    with (
        atomic_path(plan.path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as out,
    ):
        head = {"space": plan.space.to_dict(), "rows": plan.rows}
        out.write(json.dumps(head, sort_keys=True, ensure_ascii=False) + "\n")
        yield _Sink(out)


JSONL = FileFormat(suffix=".jsonl", read=_read, open_sink=_open_sink)
