"""Writing files whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from isthmus.errors import WriteFailedError

__all__ = [
    "atomic_folder",
    "atomic_path",
    "atomic_set",
    "check_file_writable",
    "check_folder_writable",
]


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; on success fsync it and rename it into place.

    On any failure the temporary file is removed and what stood at ``path`` stays as it was. A link
    stays, and what it leads to is replaced.

    Raises
    ------
    WriteFailedError
        When the file system refuses (disk full, no permission, no such folder).
    """
    place = _place(path)
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, place)  # noqa: PTH105 - os.replace is the documented atomic rename
        _sync(place.parent)
    except OSError as error:
        raise _failed(path, error) from error
    finally:
        _remove(temporary)


@contextlib.contextmanager
def atomic_set(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Give temporary paths for files that belong together; on success move all into place in order.

    When a move fails, what was there before is moved back. No file system moves several files at
    once: after a crash in between, new and old files may stand side by side, so the last file must
    hold what tells them apart (sizes, hashes).

    Parameters
    ----------
    paths : sequence of Path
        In one folder; the last one is the one that vouches for the others. Links stay, and what
        they lead to is replaced.

    Raises
    ------
    WriteFailedError
        When the file system refuses.
    """
    token = secrets.token_hex(4)
    places = [_place(path) for path in paths]
    temporaries = [place.with_name(f".{place.name}.{token}.tmp") for place in places]
    aside = [place.with_name(f".{place.name}.{token}.old") for place in places]
    try:
        yield temporaries
        for temporary in temporaries:
            _sync(temporary)
        _move_all(temporaries, places, aside)
        for folder in {place.parent for place in places}:
            _sync(folder)
    except OSError as error:
        raise _failed(paths[0], error) from error
    finally:
        for leftover in temporaries:
            _remove(leftover)


def _move_all(temporaries: list[Path], paths: list[Path], aside: list[Path]) -> None:
    """Move every file into place, or move back what was there."""
    try:
        for temporary, path, old in zip(temporaries, paths, aside, strict=True):
            if path.is_dir():
                raise IsADirectoryError(f"{path.name!r} is a folder")
            if path.exists():
                path.rename(old)
            temporary.rename(path)
    except OSError:
        for temporary, path, old in zip(temporaries, paths, aside, strict=True):
            if old.exists():
                old.replace(path)
            elif path.is_file() and not temporary.exists():
                _remove(path)
        raise
    for old in aside:
        _remove(old)


def _place(path: Path) -> Path:
    """Follow a link to the file that it names, which need not be there yet."""
    try:
        return path.resolve() if path.is_symlink() else path
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead to each other
        raise WriteFailedError(
            expected=f"to write {path.name!r}",
            got="a link that leads nowhere" if path.is_symlink() else str(error),
            do="remove the link, or write somewhere else",
        ) from error


def _remove(path: Path) -> None:
    """Remove a file that may not be there, or whose folder may not be one."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder beside ``path``; on success swap it into place.

    A folder cannot replace a full one in a single rename: the old one is moved aside first and is
    moved back when the swap fails, so that one of the two is always whole.

    Raises
    ------
    WriteFailedError
        When the file system refuses.
    """
    token = secrets.token_hex(4)
    temporary = path.with_name(f".{path.name}.{token}.tmp")
    aside = path.with_name(f".{path.name}.{token}.old")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        for item in [*sorted(temporary.rglob("*")), temporary]:
            _sync(item)
        if path.exists():
            path.rename(aside)
        try:
            temporary.rename(path)
        except OSError:
            if aside.exists():
                aside.rename(path)
            raise
        _sync(path.parent)
    except OSError as error:
        raise _failed(path, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)


def check_file_writable(path: Path) -> None:
    """Refuse a path that no file can be written to, before any work is done for it.

    Raises
    ------
    WriteFailedError
        A folder stands there, or its own folder is missing or takes no file.
    """
    _check_name(path)
    if path.is_dir():
        raise WriteFailedError(
            expected=f"{path.name!r} as a file to write", got="a folder", do="name a file in it"
        )
    if not path.parent.is_dir():
        raise WriteFailedError(
            expected=f"a folder {str(path.parent)!r} to write {path.name!r} in",
            got="a file" if path.parent.exists() else "nothing there",
            do="create it, or write somewhere else",
        )
    _probe(path.parent, path)


def check_folder_writable(path: Path) -> None:
    """Refuse a path that `atomic_folder` cannot write, before any work is done for it.

    Folders above it that are missing are made when it is written, and not before.

    Raises
    ------
    WriteFailedError
        What stands above it is a file, or a folder that takes nothing.
    """
    _check_name(path)
    above = next((one for one in path.absolute().parents if one.exists()), path.parent)
    if not above.is_dir():
        raise WriteFailedError(
            expected=f"a folder {str(above)!r} to write {path.name!r} in",
            got="a file",
            do="write somewhere else",
        )
    _probe(above, path)


def _check_name(path: Path) -> None:
    """Refuse a path that the file system cannot even look up: a name too long."""
    try:
        path.exists()
    except OSError as error:
        raise _failed(path, error) from error


def _probe(folder: Path, path: Path) -> None:
    """Make a file in a folder and remove it: what permissions say is not all that can forbid it."""
    probe = folder / f".{path.name}.{secrets.token_hex(4)}.tmp"
    try:
        probe.touch(exist_ok=False)
    except OSError as error:
        raise _failed(path, error) from error
    finally:
        _remove(probe)


def _sync(path: Path) -> None:
    """Ask the disk to keep what was written; folders carry the names."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _failed(path: Path, error: OSError) -> OSError:
    """Keep our own errors as they are; say the rest in our words."""
    if isinstance(error, WriteFailedError):
        return error
    return WriteFailedError(
        expected=f"to write {path.name!r}",
        got=error.strerror or str(error),
        do="check free space, permission and that the folder exists; what was there is unchanged",
    )
