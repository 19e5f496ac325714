"""JSON lines: ``{"space": ..., "rows": n}``, then ``{"id": ..., "vector": [...]}`` in each line.

Where there is metadata, each line has it as an object under ``metadata``. Of what others wrote, a
line is a row, or a page of rows as a database answers it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from isthmus._files import atomic_path
from isthmus._types import FloatArray, IdArray
from isthmus.spaces.io.asked import Asked
from isthmus.spaces.io.base import Block, FileFormat, Metadata, Plan, Raw, Stream, corrupt
from isthmus.spaces.io.json_pages import Row, rows_in, wrong
from isthmus.spaces.io.json_rows import Layout, blocks, layout_of
from isthmus.spaces.io.jsonable import dump_metadata
from isthmus.spaces.io.space_json import parse_space
from isthmus.spaces.space import Space

__all__ = ["JSONL", "NDJSON"]

ACTIONS = ("index", "create")
"""Lines of a bulk request of Elasticsearch, each before the line of its document."""


def _read(path: Path, asked: Asked) -> Raw:
    return _stream(path, asked).whole(path)


def _stream(path: Path, asked: Asked) -> Stream:
    space, announced, ours = _head(path)
    first = next(_rows(path, skip_head=ours), None)
    if first is None:
        raise corrupt(path, expected="at least one vector", got="0")
    layout = _layout(first, asked, path, ours=ours)
    return Stream(
        blocks=_blocks(path, layout, announced, ours=ours),
        rows=None,
        space=space,
        stored=path.stat().st_size,
        taken="" if ours else str(layout),
    )


def _layout(first: tuple[str, Row], asked: Asked, path: Path, *, ours: bool) -> Layout:
    place, row = first
    known = Asked(id=asked.id or "id", vector=asked.vector or "vector") if ours else asked
    if ours and not {known.id, known.vector} <= set(row):
        raise wrong(path, place, f"an object with {', '.join(map(repr, row))[:120]}")
    made = layout_of(row, known, path=path, place=place)
    return replace(made, left=frozenset()) if ours else made


def _head(path: Path) -> tuple[Space | None, int | None, bool]:
    """Read the space and the number of rows from the first line of a file of ours."""
    number, value = next(_values(path), (0, None))
    if number != 1 or not isinstance(value, dict) or "space" not in value:
        return None, None, False
    return parse_space(json.dumps(value["space"]), path), value.get("rows"), True


def _blocks(path: Path, layout: Layout, announced: int | None, *, ours: bool) -> Iterator[Block]:
    count = 0
    for block in blocks(_rows(path, skip_head=ours), layout, path):
        count += len(block.ids)
        yield block
    if announced is not None and announced != count:
        raise corrupt(path, expected=f"{announced} vectors", got=f"{count:,}")


def _rows(path: Path, *, skip_head: bool) -> Iterator[tuple[str, Row]]:
    """Yield the rows of all lines, each with its place in words."""
    action: Row | None = None
    for number, value in _values(path):
        if skip_head and number == 1:
            continue
        place = f"line {number}"
        if not isinstance(value, dict):
            raise wrong(path, place, f"{value!r:.80}")
        if _is_action(value):
            action = next(iter(value.values()))
            continue
        if action is not None:
            yield place, {"_id": action.get("_id"), "_source": value}
            action = None
            continue
        for row in rows_in(value, path=path, place=place):
            yield place, row


def _is_action(value: Row) -> bool:
    """Tell the line of a bulk request that names the document in the next line."""
    name, held = next(iter(value.items())) if len(value) == 1 else ("", None)
    return name in ACTIONS and isinstance(held, dict) and set(held) <= {"_id", "_index", "_type"}


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield what the lines hold that are not empty, with the number of the line."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, _parse(line, path, number)
    except UnicodeDecodeError as error:
        raise corrupt(path, expected="text in UTF-8", got=str(error)) from error


def _parse(line: str, path: Path, number: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise wrong(path, f"line {number}", line.strip()[:80]) from error


class _Sink:
    def __init__(self, out: TextIO, *, metadata: bool) -> None:
        self._out = out
        self._metadata = metadata

    def write(self, ids: IdArray, vectors: FloatArray, metadata: Metadata) -> None:
        """Append one line for each row."""
        for row, (text, vector) in enumerate(zip(ids.tolist(), vectors, strict=True)):
            line = json.dumps({"id": text, "vector": vector.tolist()}, ensure_ascii=False)
            if self._metadata:
                line = f'{line[:-1]}, "metadata": {dump_metadata(metadata[row])}}}'
            self._out.write(line + "\n")


@contextlib.contextmanager
def _open_sink(plan: Plan) -> Iterator[_Sink]:
    with (
        atomic_path(plan.path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as out,
    ):
        head = {"space": plan.space.to_dict(), "rows": plan.rows}
        out.write(json.dumps(head, sort_keys=True, ensure_ascii=False) + "\n")
        yield _Sink(out, metadata=plan.metadata)


JSONL = FileFormat(
    suffix=".jsonl",
    read=_read,
    stream=_stream,
    open_sink=_open_sink,
    keeps_metadata=True,
    asks=("id", "vector"),
)
NDJSON = replace(JSONL, suffix=".ndjson")
