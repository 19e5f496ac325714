"""Files that belong together, changed at one instant: the old ones or the new ones, never both.

New files are written beside the old ones (``NAME.next``); the instant is the one at which the last
of them, which holds the hashes of the others, gets its name. From then on the new ones count, also
where a crash keeps them from taking the place of the old ones.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

__all__ = ["FileSet", "hash_of"]


def hash_of(content: bytes | memoryview) -> str:
    """Return the SHA-256 of bytes in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


class FileSet:
    """Files in one folder.

    Parameters
    ----------
    paths : sequence of Path
        The last one vouches for the others.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)

    def now(self, path: Path) -> Path:
        """Return where a file is read: where a crash came between, that is the new one."""
        new = _next(path)
        return new if _next(self.paths[-1]).exists() and new.exists() else path

    def state(self) -> tuple[tuple[int, int, int], ...]:
        """Return what changes when a file does."""
        return tuple(_state(self.now(path)) for path in self.paths)

    def replace(self, contents: Sequence[bytes | memoryview | None]) -> None:
        """Write all files; None leaves one as it is. The caller holds the lock of writers.

        Raises
        ------
        OSError
            Nothing was changed.
        """
        self.settle()
        last = self.paths[-1]
        draft = last.with_name(f"{last.name}.draft")
        places = [*map(_next, self.paths[:-1]), draft]
        try:
            for path, place, content in zip(self.paths, places, contents, strict=True):
                if content is not None:
                    _write(place, content)
                    if path.exists():
                        shutil.copymode(path, place)
            draft.rename(_next(last))
        except BaseException:
            for place in places:
                with contextlib.suppress(OSError):
                    place.unlink(missing_ok=True)
            raise
        _sync(last.parent)
        self.settle()

    def settle(self) -> None:
        """Put new files into their places, or remove those that never came to count."""
        last = _next(self.paths[-1])
        counts = last.exists()
        for path in self.paths[:-1]:
            new = _next(path)
            if counts and new.exists():
                new.replace(path)
            elif new.exists():
                new.unlink()
        if counts:
            _sync(last.parent)
            last.replace(self.paths[-1])


def _next(path: Path) -> Path:
    return path.with_name(f"{path.name}.next")


def _state(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _write(path: Path, content: bytes | memoryview) -> None:
    with path.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
