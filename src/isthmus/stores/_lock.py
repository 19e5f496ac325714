"""One writer at a time: a lock file that the system lets go of when its process ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from isthmus.errors import StoreBusyError

__all__ = ["locked"]

PAUSE_SECONDS = 0.02


@contextlib.contextmanager
def locked(path: Path, *, seconds: float) -> Iterator[None]:
    """Hold a lock file during the block; it stays afterwards, empty.

    Parameters
    ----------
    path : Path
        Of the lock file, in a folder that is there.
    seconds : float
        To wait for another writer, in this process or another.

    Raises
    ------
    StoreBusyError
    OSError
        The file cannot be made.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with locked(Path(folder) / "a.lock", seconds=0):
    ...         pass
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _take(handle, path, seconds)
        yield
    finally:
        os.close(handle)


def _take(handle: int, path: Path, seconds: float) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
        else:
            return
        if time.monotonic() >= until:
            raise StoreBusyError(
                expected=f"the lock {str(path)!r} within {seconds:g} s",
                got="another writer that holds it",
                do="wait for it to end, or open the store with a longer &timeout=SECONDS",
            )
        time.sleep(PAUSE_SECONDS)
