"""One JSON document as a database answers it: a list of rows, or a page of them; only read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isthmus.spaces.io.asked import Asked
from isthmus.spaces.io.base import FileFormat, Raw, Stream, corrupt
from isthmus.spaces.io.json_pages import rows_in
from isthmus.spaces.io.json_rows import blocks, layout_of

__all__ = ["JSON"]


def _read(path: Path, asked: Asked) -> Raw:
    return _stream(path, asked).whole(path)


def _stream(path: Path, asked: Asked) -> Stream:
    """Read the whole document: JSON has no way to stop in between."""
    rows = [
        (f"row {number}", row)
        for number, row in enumerate(rows_in(_value(path), path=path, place="it"), start=1)
    ]
    if not rows:
        raise corrupt(path, expected="at least one vector", got="0")
    place, first = rows[0]
    layout = layout_of(first, asked, path=path, place=place)
    return Stream(
        blocks=blocks(rows, layout, path),
        rows=len(rows),
        space=None,
        stored=path.stat().st_size,
        taken=str(layout),
    )


def _value(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise corrupt(path, expected="text in UTF-8", got=str(error)) from error
    except (ValueError, RecursionError) as error:
        raise corrupt(
            path,
            expected="one JSON document",
            got=str(error)[:100],
            do="name a file of one document a line .jsonl",
        ) from error


JSON = FileFormat(suffix=".json", read=_read, stream=_stream, open_sink=None, asks=("id", "vector"))
