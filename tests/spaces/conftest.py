"""What the tests of this room share."""

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from isthmus.spaces import Space, VectorSet


@pytest.fixture
def space() -> Space:
    return Space(model="m", dim=4, kind="query", prompt="Frage: ä")


@pytest.fixture
def make_set(space: Space) -> Callable[..., VectorSet]:
    """Make sets whose numbers float16 holds exactly."""

    def make(rows: int = 5, *, seed: int = 0) -> VectorSet:
        rng = np.random.default_rng(seed)
        values = rng.integers(1, 100, (rows, space.dim)) / 64
        return VectorSet([f"id {row} ü" for row in range(rows)], values, space)

    return make


@pytest.fixture
def small_disk() -> Callable[[int], object]:
    """Let no file grow over a size: the disk is full for this process."""

    @contextmanager
    def limit(size: int) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)

    return limit
