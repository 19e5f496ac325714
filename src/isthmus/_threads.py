"""How many threads the linear algebra takes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]


def one_blas_thread() -> AbstractContextManager[int]:
    """Keep BLAS and LAPACK on one thread inside the block, and give the number that they had.

    Inside, `affine` and `in_row_blocks` start no threads: a caller may spread rows over as many of
    its own. The numbers are the same on any number of threads.

    For products that our own threads share out, and for many small decompositions: on a busy
    machine the threads of one wait for each other, and a fit of 500 pairs was measured twenty times
    slower on two threads than on one.

    Examples
    --------
    >>> with one_blas_thread() as threads:
    ...     threads >= 1
    True
    """
    return _holder().hold()


class _Holder:
    """Holds the matrix library to one thread while anybody is inside.

    The number of threads belongs to the process, not to a caller, so entries are counted under a
    lock: the first to enter sets it, the last to leave puts it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None
        self._libraries = ThreadpoolController().select(user_api="blas")

    @contextmanager
    def hold(self) -> Iterator[int]:
        """Yield how many threads the library had: 1 for those who enter later."""
        with self._lock:
            found = self._libraries.lib_controllers
            threads = max((each.get_num_threads() or 1 for each in found), default=1)
            if self._inside == 0 and threads > 1:
                self._limit = self._libraries.limit(limits=1)
            self._inside += 1
        try:
            yield threads
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0 and self._limit is not None:
                    self._limit.restore_original_limits()
                    self._limit = None


@cache
def _holder() -> _Holder:
    return _Holder()
