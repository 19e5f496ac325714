"""The rule: the most constrained map within noise of the best.

"A rotation that gets you to 0.85 is better than a network that gets you to 0.87" (the map family),
so for retrieval a difference of .02 is not worth more freedom, whatever its interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from isthmus._types import FloatArray
from isthmus.bridge.held_out import HeldOut
from isthmus.evaluate.bootstrap import paired_difference
from isthmus.evaluate.report import Value

__all__ = ["CRITERIA", "KEPT", "Criterion", "Purpose", "Trial", "best_of", "choose", "worse_by"]

KEPT = "nbr_overlap@10"

Purpose = Literal["search", "score"]
"""``search``: mapped rows search the target's collection. ``score``: mapped rows are ranked among
native ones by their similarity, as candidates that a federation carries back to its hub."""


@dataclass(frozen=True)
class Criterion:
    """What the rule looks at: a measure, and the difference that is not worth more freedom."""

    measure: str
    higher_is_better: bool
    tolerance: float


CRITERIA: Mapping[str, Criterion] = MappingProxyType(
    {
        # .02 is what the map family's own example gives away for a more constrained map.
        "search": Criterion("nbr_overlap@10", higher_is_better=True, tolerance=0.02),
        "score": Criterion("similarity_error", higher_is_better=False, tolerance=0.0),
    }
)


@dataclass(frozen=True)
class Trial:
    """One candidate on the held-out rows."""

    method: str
    freedom: int
    out: HeldOut
    values: dict[str, Value]

    @property
    def kept(self) -> FloatArray:
        """Return ``nbr_overlap@10`` per held-out row."""
        return self.values[KEPT].per_query

    def worth(self, criterion: Criterion) -> FloatArray:
        """Return the criterion per held-out row, so that more is better."""
        per_query = self.values[criterion.measure].per_query
        return per_query if criterion.higher_is_better else -per_query


def choose(
    trials: Sequence[Trial], criterion: Criterion, *, method: str, min_retention: float, seed: int
) -> tuple[Trial, str]:
    """Apply the rule; the null map counts only where it meets the preservation target by itself."""
    if method != "auto":
        return trials[-1], "it was asked for by name"
    best = best_of(trials, criterion)
    for trial in sorted(trials, key=lambda trial: trial.freedom):
        if trial.method == "null" and trial.values[KEPT].low < min_retention:
            continue
        difference, low, _ = worse_by(best, trial, criterion, seed=seed)
        if low <= 0.0 or difference <= criterion.tolerance:
            break
    said = ", ".join(
        f"{trial.method} {trial.values[criterion.measure].mean:.3f}" for trial in trials
    )
    return trial, (
        f"most constrained map within noise of best preservation ({criterion.measure}: {said})"
    )


def best_of(trials: Sequence[Trial], criterion: Criterion) -> Trial:
    """Return the trial that is best in the mean."""
    return max(trials, key=lambda trial: float(np.nanmean(trial.worth(criterion))))


def worse_by(
    best: Trial, trial: Trial, criterion: Criterion, *, seed: int
) -> tuple[float, float, float]:
    """Return by how much a trial is worse than the best, with the interval over held-out rows."""
    return paired_difference(best.worth(criterion), trial.worth(criterion), seed=seed)
