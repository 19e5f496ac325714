"""One measured run of linking, and where its raw result is kept.

A cell is one run of one method on one split. Files hold the cells of one data set, pair of models
and method; a cell is written as soon as it is done, and done cells are not run again.
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import common
import numpy as np

from isthmus.evaluate.linking import are_true, link_curve, reliability
from isthmus.link import LinkProblem, Links

COVERAGES = tuple(round(0.1 * tenth, 1) for tenth in range(1, 11))


class Method(Protocol):
    """What a benchmark asks of a method: a `Linker`, or a program that is called."""

    def link(self, problem: LinkProblem, *, seed: int = 0) -> Links:
        """Find the links."""


def run(method: Method, problem: LinkProblem, truth: np.ndarray, *, seed: int) -> dict[str, Any]:
    """Link, and return everything that is kept of it."""
    before = peak_from_now()
    start = time.perf_counter()
    links = method.link(problem, seed=seed)
    seconds = time.perf_counter() - start
    if links.interrupted:  # half a run is no result
        raise KeyboardInterrupt
    return {
        "rows": [len(problem.source), len(problem.target)],
        "dims": [problem.source.shape[1], problem.target.shape[1]],
        "shared": len(truth),
        "seconds": round(seconds, 3),
        "peak_mb": round(peak_mb(), 1),
        "before_mb": round(before, 1),
        **measured(links, truth, problem.seed_rows),
    }


def measured(links: Links, truth: np.ndarray, seeds: np.ndarray | None) -> dict[str, Any]:
    """Return how good the links are, at every threshold that somebody may ask for.

    Seeds count where a method returns them, as in the paper (the true pairs are all of the shared
    objects); ``unseeded`` leaves them out of the links and of the truth, and ``new_at_95`` counts
    the links at precision .95 that are no seeds.
    """
    found = np.stack([links.source_rows, links.target_rows], axis=1)
    right = are_true(found, truth)
    own = len(links.matched_rows())
    curve = link_curve(links.posterior, right, n_true=len(truth))
    bins = reliability(links.posterior, right)
    given = np.empty((0, 2), np.int64) if seeds is None else seeds
    seeded = np.isin(found[:own, 0], given[:, 0])
    rest = len(truth) - int(are_true(given, truth).sum())
    counts = {
        "own": own,
        "max_f1": len(links.matched_rows("max_f1")),
        "precision_95": len(links.matched_rows(precision=0.95)),
        "hindsight": int(np.count_nonzero(links.posterior >= curve.best_f1()[1])),
    }
    return {
        "candidates": len(links),
        "iterations": len(links.history),
        "views": links.views,
        **{name: scores(right[:count], len(truth)) for name, count in counts.items()},
        "unseeded": scores(right[:own][~seeded], rest),
        "new_at_95": int((~are_true(found[: counts["precision_95"]], given)).sum()),
        "coverage": [
            [share, len(kept := links.matched_rows(coverage=share)), int(right[: len(kept)].sum())]
            for share in COVERAGES
        ],
        "ece": bins.error,
        "reliability": np.stack([bins.count, bins.posterior, bins.correct], axis=1),
        "threshold": links.threshold,
        "overlap_estimate": links.overlap,
        "verdict": {"status": links.verdict.status, "reasons": list(links.verdict.reasons)},
    }


def scores(right: np.ndarray, shared: int) -> dict[str, float]:
    """Return precision, recall and F1 of links; no link has no precision."""
    true, count = int(right.sum()), len(right)
    return {
        "links": count,
        "precision": true / count if count else float("nan"),
        "recall": true / shared if shared else float("nan"),
        "f1": 2 * true / (count + shared) if count + shared else float("nan"),
    }


def peak_from_now() -> float:
    """Forget the process's highest memory, where Linux lets us; return what it holds, in MB."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * resource.getpagesize() / 2**20


def peak_mb() -> float:
    """Return the highest memory of the process: all of Python, libraries and inputs included."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def report(name: str, cell: Mapping[str, Any], key: Mapping[str, Any]) -> None:
    """Print one line per cell."""

    def share(value: float) -> str:
        return f"{value:.3f}"

    own, at = cell["own"], cell["precision_95"]
    print(
        name,
        ", ".join(f"{word} {value}" for word, value in key.items()) + ":",
        f"P {share(own['precision'])} R {share(own['recall'])} F1 {share(own['f1'])}",
        f"(best {share(cell['hindsight']['f1'])};",
        f"at .95 P {share(at['precision'])} R {share(at['recall'])})",
        f"{cell['verdict']['status']}, {cell['seconds']:.1f} s, {cell['peak_mb']:.0f} MB",
        flush=True,
    )


class Kept:
    """The cells of one file, by what tells them apart; written after every cell.

    Run processes side by side on different files only: a file is read before it is written, but
    not locked.
    """

    def __init__(
        self,
        results: Path,
        task: str,
        name: str,
        parameters: Mapping[str, Any],
        keys: Sequence[str],
    ) -> None:
        self.results, self.task, self.name = results, task, name
        self.parameters, self.keys = dict(parameters), tuple(keys)

    def cells(self) -> list[dict[str, Any]]:
        """Read the cells that are done."""
        path = self.results / self.task / f"{self.name}.json"
        if not path.exists():
            return []
        found: list[dict[str, Any]] = json.loads(path.read_text())["result"]["cells"]
        return found

    def has(self, **key: Any) -> bool:
        """Tell whether a cell is done."""
        return any(self._same(cell, key) for cell in self.cells())

    def add(self, cell: Mapping[str, Any]) -> None:
        """Keep a cell in place of an older one of the same key; the file is never half written."""
        cells = [old for old in self.cells() if not self._same(old, cell)]
        cells.append({name: plain(value) for name, value in cell.items()})
        cells.sort(key=lambda one: [one[key] for key in self.keys])
        folder = self.results / self.task
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as part:
            common.write(Path(part), self.task, self.name, self.parameters, {"cells": "CELLS"})
            path = Path(part) / self.task / f"{self.name}.json"
            lines = ",\n".join(json.dumps(one) for one in cells)  # a line per cell
            path.write_text(path.read_text().replace('"CELLS"', f"[\n{lines}\n]"))
            path.replace(folder / f"{self.name}.json")

    def _same(self, cell: Mapping[str, Any], key: Mapping[str, Any]) -> bool:
        return all(cell[name] == key[name] for name in self.keys)


def plain(value: Any) -> Any:
    """Return a value as JSON has it: no numpy numbers, None for NaN."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return round(value, 6) if np.isfinite(value) else None
    return value
