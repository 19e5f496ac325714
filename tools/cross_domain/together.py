"""Several questions at once, their answers in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from cross_domain.endpoint import Endpoint

__all__ = ["ask_all"]

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def ask_all(
    items: Iterable[Item], ask: Callable[[Item], Answer], *, endpoint: Endpoint, workers: int
) -> Iterator[Answer]:
    """Yield the answer to each item in order, while up to ``workers`` items are being asked.

    After a failure the others give up as soon as their request ends.
    """
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Answer]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(ask, item))
                if len(waiting) == workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BaseException:
            endpoint.stop()
            for other in waiting:
                other.cancel()
            raise
