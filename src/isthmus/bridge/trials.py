"""Trying maps on the same held-out pairs, and the numbers that a report is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from isthmus._progress import Track, silent
from isthmus._types import FloatArray, IntArray
from isthmus.bridge.held_out import HeldOut, Plan, Split, fit, held_out
from isthmus.bridge.retention import NAME, Curve, estimate_retention
from isthmus.bridge.rule import KEPT, Criterion, Trial, best_of, worse_by
from isthmus.bridge.unpaired import NO_ROWS, Unpaired
from isthmus.evaluate.preservation import Native, cluster_agreement, measure_pairs
from isthmus.evaluate.preservation.overlap import neighbors_kept
from isthmus.evaluate.report import Report, Value
from isthmus.evaluate.view import View
from isthmus.maps import Compose, make
from isthmus.spaces import Pairs

__all__ = ["Build", "Trials", "describe_trial"]

Build = Callable[[str], Compose]
"""Makes an unfitted map with its preprocessing by its name."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Trials:
    """What all maps that are compared share.

    Parameters
    ----------
    pairs : Pairs
    plan : Plan
        Which of them are held out.
    native : Native
        The held-out target rows among the target collection.
    build : Build
    unpaired : Unpaired
    seed : int
    """

    pairs: Pairs
    plan: Plan
    native: Native
    build: Build
    unpaired: Unpaired
    seed: int

    @classmethod
    def prepare(
        cls,
        pairs: Pairs,
        plan: Plan,
        collection: FloatArray | None,
        collection_rows: IntArray | None,
        *,
        build: Build,
        unpaired: Unpaired = NO_ROWS,
        seed: int,
    ) -> Self:
        """Find the native neighbours of the held-out rows, among the paired rows by default."""
        if collection is None or collection_rows is None:
            collection, collection_rows = pairs.target, np.arange(len(pairs))
        native = Native(
            pairs.target[plan.test],
            collection,
            own_rows=collection_rows[plan.test],
            metric=pairs.target_space.metric,
        )
        return cls(pairs=pairs, plan=plan, native=native, build=build, unpaired=unpaired, seed=seed)

    def map_held_out(
        self, name: str, splits: Sequence[Split], *, track: Track[Any] = silent
    ) -> HeldOut:
        """Map the held-out rows by maps that were fitted without them."""
        return held_out(
            partial(self.build, name),
            self.pairs,
            splits,
            collection=self.native.index.database,
            unpaired=self.unpaired,
            track=track,
        )

    def measure(self, name: str, *, track: Track[Any] = silent) -> Trial:
        """Fit a map on the other pairs and measure it on the held-out ones."""
        out, native = self.map_held_out(name, self.plan.full, track=track), self.native
        values = measure_pairs(
            out.mapped,
            native.target if out.target is None else out.target,
            out.collection,
            native=native,
            clusters=False,
            seed=self.seed,
        )
        return Trial(name, make(name).freedom, out, values)

    def fit_all(self, name: str) -> Compose:
        """Fit a map on all pairs."""
        return fit(
            self.build(name),
            self.pairs,
            np.arange(len(self.pairs)),
            collection=self.native.index.database,
            unpaired=self.unpaired,
        )

    def carry_to_all(self, chosen: Trial) -> tuple[Curve, Value]:
        """Carry the held-out retention to all pairs, by the chosen map fitted on half of them."""
        half, native = chosen.kept, self.native
        if chosen.method != "null":  # the null map does not learn
            out = self.map_held_out(chosen.method, self.plan.half)
            view = View(out.mapped, native, target=out.target, collection=out.collection)
            half = neighbors_kept(view, 10)
        full, less = self.plan.sizes
        curve = Curve(
            (less, full),
            (float(half.mean()), float(chosen.kept.mean())),
            self.pairs.source.shape[1],
        )
        return curve, self.retention(chosen, half, gain=curve.gain(len(self.pairs)))

    def retention(self, chosen: Trial, half: FloatArray, *, gain: float) -> Value:
        """Estimate the retention over the rest of the collection; see `estimate_retention`."""
        rest = max(len(self.native.index) - len(self.pairs), 0)
        return estimate_retention(chosen.kept, half, gain=gain, rest=rest, seed=self.seed)

    def report(self, chosen: Trial, retention: Value, *, null: Trial) -> Report:
        """Make the report of the chosen map beside the null map."""
        plain = null.values[KEPT]
        headline = Value(NAME, plain.mean, plain.low, plain.high, plain.per_query)
        return Report(
            {NAME: retention, **self._with_clusters(chosen)},
            {NAME: headline, **self._with_clusters(null)},
            n_queries=len(self.plan.test),
        )

    def _with_clusters(self, trial: Trial) -> dict[str, Value]:
        """Return the values of a trial with the one that is worth its time once only."""
        agreement = cluster_agreement(
            trial.out.mapped, self.native.target, metric=self.native.metric, seed=self.seed
        )
        return {**trial.values, "cluster_agreement": agreement}


def describe_trial(
    trial: Trial, trials: Sequence[Trial], criterion: Criterion, *, seed: int
) -> Mapping[str, Any]:
    """Return the row of a candidate: its held-out means, and by how much it is worse than best."""
    mean, low, high = worse_by(best_of(trials, criterion), trial, criterion, seed=seed)
    return {
        "method": trial.method,
        "criterion": criterion.measure,
        "worse_than_best": {"mean": mean, "low": low, "high": high},
        **{name: value.mean for name, value in trial.values.items()},
    }
