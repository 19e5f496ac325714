"""The space of a file as JSON text."""

from __future__ import annotations

import json
from pathlib import Path

from isthmus.errors import IsthmusError
from isthmus.spaces.io.base import corrupt
from isthmus.spaces.space import Space

__all__ = ["dump_space", "parse_space"]

MAX_CHARACTERS = 65_536


def dump_space(space: Space) -> str:
    """Return every field of the space as JSON with sorted keys.

    Examples
    --------
    >>> parse_space(dump_space(Space(model="m", dim=2)), Path("v.npz")).dim
    2
    """
    return json.dumps(space.to_dict(), sort_keys=True, ensure_ascii=False)


def parse_space(text: str, path: Path) -> Space:
    """Read the space that a file records.

    Raises
    ------
    CorruptFileError
        Text that is not a space; the reason is kept as the cause.
    """
    if len(text) > MAX_CHARACTERS:
        raise corrupt(
            path,
            expected=f"a space of at most {MAX_CHARACTERS:,} characters",
            got=f"{len(text):,} characters",
        )
    try:
        return Space.from_json(text)
    except IsthmusError as error:
        raise corrupt(path, expected=error.expected, got=error.got) from error
