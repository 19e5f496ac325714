"""What the tests of the stores share."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from isthmus.spaces import Space, VectorSet

DIM = 16
SPACE = Space(model="m", dim=DIM)

START = f"""
import sys
import numpy as np
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store
space = Space(model="m", dim={DIM})
url = sys.argv[1]
def rows(n, prefix, seed=0):
    values = np.random.default_rng(seed).standard_normal((n, {DIM}))
    return VectorSet([f"{{prefix}}-{{row}}" for row in range(n)], values, space)
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/one.db?collection=docs"


@pytest.fixture
def rows() -> Callable[..., VectorSet]:
    def make(n: int, prefix: str = "row", *, seed: int = 0, space: Space = SPACE) -> VectorSet:
        values = np.random.default_rng(seed).standard_normal((n, space.dim)).astype(np.float32)
        return VectorSet([f"{prefix}-{row}" for row in range(n)], values, space)

    return make


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a process that has ``space``, ``url`` and ``rows``, and runs the code given."""
    with ExitStack() as started:

        def run(code: str, url: str, *arguments: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-W",
                    "error",
                    "-c",
                    START + textwrap.dedent(code),
                    url,
                    *arguments,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            started.enter_context(process)
            started.callback(process.kill)
            return process

        yield run
