"""How results are read and written down: markdown tables, intervals, goals and what came out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["REPORTED", "Goal", "Part", "Record", "gain", "load", "markdown", "reported", "span"]

Record = Mapping[str, Any]
REPORTED = range(5)  # seeds; others are for tuning and never shown


@dataclass(frozen=True)
class Goal:
    """Something asked for, and what was measured; ``reached`` is None where nothing was."""

    asked: str
    measured: str
    reached: bool | None

    @property
    def answer(self) -> str:
        """Say yes, no, or that nobody knows yet."""
        return {True: "yes", False: "**no**", None: "not measured"}[self.reached]


@dataclass(frozen=True)
class Part:
    """What one benchmark adds to the page."""

    lines: Sequence[str]
    goals: Sequence[Goal] = ()


def load(results: Path, task: str) -> list[Record]:
    """Read a task's results: one file per run in its folder, or files that begin with its name."""
    paths = [
        *sorted((results / task).glob("*.json")),
        *sorted(results.glob(f"{task}.json")),
        *sorted(results.glob(f"{task}-*.json")),
    ]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def reported(records: Sequence[Record]) -> list[Record]:
    """Leave out the seeds that were used for tuning."""
    return [record for record in records if record["parameters"].get("seed", 0) in REPORTED]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table: the first column to the left, the others to the right."""
    bars = ["---", *["---:"] * (len(head) - 1)]
    return ["| " + " | ".join(cells) + " |" for cells in (head, bars, *rows)]


def span(triple: Sequence[float]) -> str:
    """Write a mean with its interval."""
    mean, low, high = triple
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def gain(triple: Sequence[float]) -> str:
    """Write a difference with its interval."""
    mean, low, high = triple
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
