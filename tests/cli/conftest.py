"""Planted spaces as files, a bridge between them, and the command line in and out of process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isthmus import Bridge, Pairs, Space, VectorSet
from isthmus.cli.run import run

ONE = Space(model="one", dim=8)
TWO = Space(model="two", dim=12)


@dataclass(frozen=True)
class Ran:
    """What a command gave."""

    code: int
    out: str
    err: str

    @property
    def envelope(self) -> dict[str, Any]:
        assert self.out.count("\n") == 1, "one line of JSON and nothing else"
        return json.loads(self.out)

    @property
    def result(self) -> dict[str, Any]:
        assert self.envelope["ok"] is True
        return self.envelope["result"]

    @property
    def error(self) -> dict[str, Any]:
        assert self.envelope["ok"] is False
        return self.envelope["error"]


Cli = Callable[..., Ran]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in this process."""

    def call(*arguments: object) -> Ran:
        capsys.readouterr()
        code = run([str(one) for one in arguments])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return call


@pytest.fixture
def process(tmp_path: Path) -> Cli:
    """Run a command as users do, as a process of its own."""

    def call(*arguments: object, program: str = "", **more: Any) -> Ran:
        start = ["-c", program] if program else ["-m", "isthmus"]
        done = subprocess.run(
            [sys.executable, *start, *(str(one) for one in arguments)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, **more},
            timeout=120,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return call


@dataclass(frozen=True)
class Files:
    """Files of planted spaces: ``two`` is a rotation of ``one`` with a little noise."""

    folder: Path
    one: Path
    two: Path
    queries: Path
    target_queries: Path
    pairs: Path
    qrels: Path
    bridge: Path
    back: Path


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """240 objects in both spaces, of which 100 are pairs; 20 queries, each near one document."""
    folder = tmp_path_factory.mktemp("planted")
    draw = np.random.default_rng(7)
    turn = np.linalg.qr(draw.normal(size=(12, 12)))[0][:8]

    def both(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return rows, rows @ turn + 0.02 * draw.normal(size=(len(rows), 12))

    ids = [f"d{i}" for i in range(240)]
    rows = draw.normal(size=(240, 8))
    one, two = (
        VectorSet(ids, side, space) for side, space in zip(both(rows), (ONE, TWO), strict=True)
    )
    asked = rows[150:170] + 0.1 * draw.normal(size=(20, 8))
    names = [f"q{i}" for i in range(20)]
    mine, theirs = (
        VectorSet(names, side, space.with_kind("query"))
        for side, space in zip(both(asked), (ONE, TWO), strict=True)
    )
    made = Files(
        folder,
        *(
            folder / name
            for name in (
                "one.npz",
                "two.npz",
                "queries.npz",
                "target-queries.npz",
                "pairs.csv",
                "qrels.tsv",
                "bridge",
                "back",
            )
        ),
    )
    for vectors, path in (
        (one, made.one),
        (two, made.two),
        (mine, made.queries),
        (theirs, made.target_queries),
    ):
        vectors.save(path, dtype="float32")
    lines = ["source,target", *(f"d{i},d{i}" for i in range(100))]
    made.pairs.write_text("\n".join(lines) + "\n")
    made.qrels.write_text("".join(f"q{i}\td{150 + i}\t1\n" for i in range(20)))
    pairs = Pairs.from_file(made.pairs, one, two)
    Bridge.fit(pairs, method="procrustes", collection=two).save(made.bridge)
    Bridge.fit(pairs.reverse(), method="procrustes", collection=one).save(made.back)
    return made
