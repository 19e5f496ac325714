"""Reading the files of an artifact, trusting none of them.

Sizes are checked before anything is read, links and pipes are refused, and nothing in a file is
ever used as a path. The rules are written down in SPEC.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from isthmus.errors import (
    CorruptFileError,
    MalformedArtifactError,
    MissingFileError,
    OversizedArtifactError,
    UnsafePathError,
)

__all__ = [
    "LIMITS",
    "Limits",
    "check_size",
    "cut_short",
    "malformed",
    "open_plain",
    "parse_json",
    "read_limited",
]


@dataclass(frozen=True)
class Limits:
    """The largest sizes that are read, in bytes unless said otherwise; see SPEC.md, section 5."""

    manifest: int = 4 * 2**20
    header: int = 2**20
    weights: int = 4 * 2**30
    tensors: int = 4_096
    axes: int = 4


LIMITS = Limits()


@contextlib.contextmanager
def open_plain(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file of an artifact; links, pipes and devices are refused.

    Raises
    ------
    MissingFileError
        No such file.
    UnsafePathError
        A symbolic link, or anything else that is not a regular file.
    """
    try:
        # O_NONBLOCK: opening a pipe must not wait for a writer that never comes
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingFileError(
            expected=f"a bridge with the file {path.name!r}",
            got="no such file",
            do="check the path of the bridge, or copy the whole folder again",
        ) from error
    except OSError as error:
        if path.is_symlink():
            raise _unsafe(path, "a symbolic link") from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _unsafe(path, "a folder, a pipe, a device or a socket")
    with os.fdopen(handle, "rb") as file:
        yield file


def _unsafe(path: Path, got: str) -> UnsafePathError:
    return UnsafePathError(
        expected=f"{path.name!r} as a regular file inside the bridge folder",
        got=got,
        do="do not use this bridge; ask its maker for a plain copy",
    )


def read_limited(path: Path, *, limit: int) -> bytes:
    """Read a whole plain file, after its size was compared with ``limit``.

    Raises
    ------
    OversizedArtifactError, MissingFileError, UnsafePathError
    """
    with open_plain(path) as file:
        check_size(path.name, os.fstat(file.fileno()).st_size, limit)
        content = file.read(limit + 1)
    check_size(path.name, len(content), limit)
    return content


def check_size(name: str, size: int, limit: int) -> None:
    """Refuse ``size`` bytes of ``name`` when they are more than ``limit``."""
    if size > limit:
        raise OversizedArtifactError(
            expected=f"at most {limit:,} bytes in {name}",
            got=f"{size:,}",
            do="do not use this file; a real one is far smaller",
        )


def malformed(what: str, got: str) -> MalformedArtifactError:
    """Make the error for bytes that do not follow SPEC.md."""
    return MalformedArtifactError(
        expected=what, got=got, do="ask its maker for a new copy; SPEC.md has the rules"
    )


def parse_json(content: bytes, *, name: str) -> dict[str, Any]:
    """Parse one JSON object: UTF-8, no repeated keys, no NaN or infinity.

    Raises
    ------
    CorruptFileError
        Text that ends before the object does.
    MalformedArtifactError
        Anything else that is not such an object.
    """
    if not content.rstrip().endswith(b"}"):
        raise CorruptFileError(
            expected=f"a JSON object up to its closing brace in {name}",
            got=f"{len(content):,} bytes that end before it",
            do="copy the file again; it was cut short",
        )
    try:
        parsed = json.loads(
            content.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
        # half a surrogate pair cannot be written back, so no hash could cover it
        json.dumps(parsed, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise malformed(f"{name} as JSON", str(error).splitlines()[0][:200]) from error
    if not isinstance(parsed, dict):
        raise malformed(f"{name} as a JSON object", type(parsed).__name__)
    return parsed


def _unique(items: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(items)
    if len(fields) != len(items):
        raise ValueError("a key that is repeated in one object")
    return fields


def _no_constant(text: str) -> float:
    raise ValueError(f"the number {text}")


def cut_short(name: str, *, expected: int, size: int) -> CorruptFileError:
    """Make the error for a file that ends before its header says it does."""
    return CorruptFileError(
        expected=f"at least {expected:,} bytes in {name}, as its header says",
        got=f"{size:,}",
        do="copy the file again; it was cut short",
    )
