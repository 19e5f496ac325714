"""How many threads the linear algebra takes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["one_blas_thread"]


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS and LAPACK on one thread inside the block, for this process.

    For many small decompositions: on a busy machine the threads of one wait for each other, and a
    fit of 500 pairs was measured twenty times slower on two threads than on one.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
