"""Means over the cells of alignment, for tables, goals and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from align_cells import KS

Cells = list[Mapping[str, Any]]
WAYS = ("there", "back")


def by(cells: Cells, *keys: str) -> dict[Any, Cells]:
    """Group cells by the value of one key, or by those of several."""
    groups: dict[Any, Cells] = {}
    for cell in cells:
        told = tuple(cell[key] for key in keys)
        groups.setdefault(told[0] if len(told) == 1 else told, []).append(cell)
    return groups


def recall(cells: Cells, way: str, k: int) -> float:
    """Return the mean recall at k in one direction."""
    return mean(cell[way][KS.index(k)] for cell in cells)


def both(cells: Cells, k: int) -> float:
    """Return the mean recall at k of both directions."""
    return mean(recall(cells, way, k) for way in WAYS)


def mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def percent(value: float) -> str:
    return f"{100 * value:.1f}"
