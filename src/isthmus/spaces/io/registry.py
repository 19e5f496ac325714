"""The formats by ending, and reading a set in any of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import (
    FileError,
    InputError,
    IsthmusError,
    MissingFileError,
    SpaceMismatchError,
    UnknownFormatError,
    UnknownNameError,
    UnsupportedOperationError,
)
from isthmus.spaces.io.asked import Asked, split_asked
from isthmus.spaces.io.base import FileFormat, Raw
from isthmus.spaces.io.faiss_index import FAISS, INDEX
from isthmus.spaces.io.json_file import JSON
from isthmus.spaces.io.jsonl import JSONL, NDJSON
from isthmus.spaces.io.npy import NPY, space_beside
from isthmus.spaces.io.npz import NPZ
from isthmus.spaces.io.parquet import PARQUET
from isthmus.spaces.io.safetensors import SAFETENSORS
from isthmus.spaces.io.vdf import VDF, is_vdf
from isthmus.spaces.space import Space
from isthmus.spaces.vector_set import VectorSet

__all__ = ["FORMATS", "agree", "find", "format_of", "load", "load_stored", "read_raw", "telling"]

FORMATS: dict[str, FileFormat] = {
    form.suffix: form
    for form in (NPZ, NPY, PARQUET, JSONL, NDJSON, JSON, SAFETENSORS, FAISS, INDEX, VDF)
}


def format_of(path: Path) -> FileFormat:
    """Return the format that the ending of ``path`` names, or the folder there.

    Raises
    ------
    UnknownFormatError

    Examples
    --------
    >>> format_of(Path("docs.npz")).suffix
    '.npz'
    """
    path, _ = split_asked(path)
    if is_vdf(path):
        return VDF
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
    found, asked = find(path)
    if memory_map and not format_of(found).memory_maps:
        names = ", ".join(name for name, other in FORMATS.items() if other.memory_maps)
        raise UnsupportedOperationError(
            expected=f"a format that can stay on disk ({names})",
            got=repr(found.name),
            do="save it as .npy first, or load it into memory",
        )
    with telling(found):
        raw = _read(found, replace(asked, memory_map=memory_map))
        made = VectorSet(raw.ids, raw.vectors, agree(raw.space, space, raw.partial, path=found))
    return made, raw.vectors.dtype


def read_raw(path: Path, *, memory_map: bool) -> Raw:
    """Read what a file holds, and the space beside it where it names none; nothing is checked."""
    found, asked = find(path)
    return _read(found, replace(asked, memory_map=memory_map))


def _read(path: Path, asked: Asked) -> Raw:
    raw = format_of(path).read(path, asked)
    return raw if raw.space is not None else replace(raw, space=space_beside(path))


def find(path: Path) -> tuple[Path, Asked]:
    """Return where a file lies and what is asked of it.

    Raises
    ------
    UnknownFormatError, UnknownNameError, UnsupportedOperationError
    MissingFileError, FileError
        It is not there, or may not be read.
    """
    found, asked = split_asked(path)
    form = format_of(found)
    for name, value in vars(asked).items():
        if value and name not in form.asks:
            raise UnknownNameError.of(f"choice for {form.suffix} files", name, form.asks)
    if form is VDF and is_vdf(found):
        return found, asked
    if not found.is_file():
        raise MissingFileError(
            expected=f"a file at {str(found)!r}",
            got="a folder" if found.is_dir() else "nothing there",
            do="check the path",
        )
    try:
        found.open("rb").close()
    except OSError as error:
        raise FileError(
            expected=f"to read {found.name!r}",
            got=error.strerror or str(error),
            do="check the permission",
        ) from error
    return found, asked


@contextlib.contextmanager
def telling(path: Path) -> Iterator[None]:
    """Add the name of the file to an error of ours."""
    try:
        yield
    except IsthmusError as error:
        error.add_note(f"while reading {path.name}")
        raise


def agree(
    recorded: Space | None, given: Space | None, partial: Mapping[str, Any], *, path: Path
) -> Space:
    """Return the space that the file records, or else the one the caller gave.

    Where the file says less than a whole space, what it says must be so of the one that was given;
    where none was, it is enough if it names the model.
    """
    if recorded is None and given is None and partial.get("model"):
        return Space(**partial)
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
        other = {name: value for name, value in partial.items() if getattr(given, name) != value}
        if other:
            raise SpaceMismatchError(
                expected=", ".join(f"{name} {getattr(given, name)!r}" for name in other),
                got=", ".join(f"{name} {value!r}" for name, value in other.items())
                + f" in {path.name!r}",
                do="give the space of these vectors, or use another file",
            )
        return given
    if given is not None:
        given.check(recorded, what="a file of vectors")
    return recorded
