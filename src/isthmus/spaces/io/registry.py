"""The formats by ending, and reading a set in any of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import (
    FileError,
    InputError,
    IsthmusError,
    MissingFileError,
    UnknownFormatError,
    UnsupportedOperationError,
)
from isthmus.spaces.io.base import FileFormat, Raw
from isthmus.spaces.io.jsonl import JSONL
from isthmus.spaces.io.npy import NPY, space_beside
from isthmus.spaces.io.npz import NPZ
from isthmus.spaces.io.parquet import PARQUET
from isthmus.spaces.io.safetensors import SAFETENSORS
from isthmus.spaces.space import Space
from isthmus.spaces.vector_set import VectorSet

__all__ = ["FORMATS", "format_of", "load", "load_stored", "read_raw"]

FORMATS: dict[str, FileFormat] = {
    form.suffix: form for form in (NPZ, NPY, PARQUET, JSONL, SAFETENSORS)
}


def format_of(path: Path) -> FileFormat:
    """Return the format that the ending of ``path`` names.

    Raises
    ------
    UnknownFormatError

    Examples
    --------
    >>> format_of(Path("docs.npz")).suffix
    '.npz'
    """
    if path.suffix.lower() not in FORMATS:
        raise UnknownFormatError(
            expected=f"a file of vectors ending in {', '.join(FORMATS)}",
            got=repr(path.name),
            do="rename or convert it",
        )
    return FORMATS[path.suffix.lower()]


def load(path: Path, *, space: Space | None, memory_map: bool) -> VectorSet:
    """Read a set; see `VectorSet.load`."""
    return load_stored(path, space=space, memory_map=memory_map)[0]


def load_stored(
    path: Path, *, space: Space | None = None, memory_map: bool
) -> tuple[VectorSet, np.dtype[Any]]:
    """Read a set, and say which number type its file holds: in memory all are float32."""
    form = format_of(path)
    if not path.is_file():
        raise MissingFileError(
            expected=f"a file at {str(path)!r}",
            got="a folder" if path.is_dir() else "nothing there",
            do="check the path",
        )
    if memory_map and not form.memory_maps:
        names = ", ".join(name for name, other in FORMATS.items() if other.memory_maps)
        raise UnsupportedOperationError(
            expected=f"a format that can stay on disk ({names})",
            got=repr(path.name),
            do="save it as .npy first, or load it into memory",
        )
    try:
        path.open("rb").close()
    except OSError as error:
        raise FileError(
            expected=f"to read {path.name!r}",
            got=error.strerror or str(error),
            do="check the permission",
        ) from error
    try:
        raw = read_raw(path, memory_map=memory_map)
        made = VectorSet(raw.ids, raw.vectors, _agree(raw.space, space, path))
    except IsthmusError as error:
        error.add_note(f"while reading {path.name}")
        raise
    return made, raw.vectors.dtype


def read_raw(path: Path, *, memory_map: bool) -> Raw:
    """Read what a file holds, and the space beside it where it names none; nothing is checked."""
    raw = format_of(path).read(path, memory_map)
    return raw if raw.space is not None else replace(raw, space=space_beside(path))


def _agree(recorded: Space | None, given: Space | None, path: Path) -> Space:
    """Return the space that the file records, or else the one the caller gave."""
    if recorded is None and given is None:
        raise InputError(
            expected="a file that names its space, or a space given with it",
            got="neither",
            do=f"write {path.stem + '.space.json'!r} beside it, such as "
            '{"model": "NAME", "dim": 384, "normalized": true}, or in Python pass '
            "space=Space(model=..., dim=...): only you know which model made the vectors",
        )
    if recorded is None:
        assert given is not None  # noqa: S101 - tells the type checker what the line above says
        return given
    if given is not None:
        given.check(recorded, what="a file of vectors")
    return recorded
