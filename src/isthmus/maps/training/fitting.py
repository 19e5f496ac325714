"""Fitting a network to pairs: where to start, how long to train, and training on all pairs.

A part of the pairs is held out. From every start training goes on until that part no longer gains;
where most of it is kept, the same number of steps is taken on all pairs, from a start fitted on all
of them. With few pairs a held-out part says nothing, and the first start stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from isthmus._linalg import mean_rows, row_lengths
from isthmus._types import FloatArray, IntArray, Metric
from isthmus.errors import DivergedTrainingError
from isthmus.maps._fitting import PairedRows
from isthmus.maps.training.checkpoint import Checkpoint
from isthmus.maps.training.devices import find_device
from isthmus.maps.training.held_out import draw_targets
from isthmus.maps.training.loop import Precision, Schedule, Trained, train
from isthmus.maps.training.network import Network
from isthmus.maps.training.objectives import Objective

__all__ = ["Fitting", "is_unit"]

FEWEST_TO_HOLD_OUT = 50
"""A round number: ten pairs held out of fewer would say nothing."""
MOST_HELD_OUT = 500
"""A round number."""
REFIT_FROM = 0.05
"""From this share of held-out pairs on, training is done again on all pairs. A round number."""

UNIT_TOLERANCE = 1e-3

Draw = Callable[[FloatArray, FloatArray, FloatArray | None], Network]
"""Makes a first network from source rows, target rows and weights."""


@dataclass(frozen=True)
class Fitting:
    """One fit of a network.

    Parameters
    ----------
    pairs : PairedRows
    starts : mapping of str to Draw
        The more constrained first: it is taken on a tie, and where nothing is held out.
    objective : Objective
    schedule : Schedule
        Its ``steps`` are the least at the most: those of ``epochs`` are taken where they are more.
    epochs : int
    held_out : float
        Share of the pairs, at most half and 500 of them.
    seed : int
    device : str
    precision : Precision
    checkpoint : str, optional
        Folder.
    params : mapping
        What tells this fit from others on the same pairs, for the checkpoint.
    collection : FloatArray of shape (m, dim_target), optional
        Target rows among which held-out rows are to find their neighbours, those of the pairs to
        train on by default; of more than 10,000 a random 10,000.
    metric : {"cosine", "dot", "l2"}, default "cosine"
        By which they are near.
    train_few : bool, default False
        Whether to take all steps where there are too few pairs to hold any out: for random starts.
    """

    pairs: PairedRows
    starts: Mapping[str, Draw]
    _: KW_ONLY
    objective: Objective
    schedule: Schedule
    epochs: int
    held_out: float
    seed: int
    device: str = "cpu"
    precision: Precision = "float32"
    checkpoint: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    collection: FloatArray | None = None
    metric: Metric = "cosine"
    train_few: bool = False

    def run(self) -> Trained:
        """Return the trained network, as a function of raw rows.

        Raises
        ------
        MissingExtraError, ParameterError, DivergedTrainingError, CorruptFileError
        """
        find_device(self.device)  # an unknown device fails before any work
        trained = self._run()
        for each in self._used:
            each.remove()
        mean, scale = self._standard
        return replace(trained, network=trained.network.fold(mean, scale, self._out_scale))

    @cached_property
    def _used(self) -> list[Checkpoint]:
        """Filled as trainings begin."""
        return []

    @cached_property
    def unit(self) -> bool:
        """Whether all targets have length one: then so does what comes out."""
        return is_unit(self.pairs.target)

    @cached_property
    def _source(self) -> FloatArray:
        return self.pairs.source.astype(np.float32)

    @cached_property
    def _out_scale(self) -> float:
        if self.unit:
            return 1.0
        lengths = row_lengths(self.pairs.target.astype(np.float32)).astype(np.float64)
        return float(np.sqrt(np.mean(lengths**2)))

    @cached_property
    def _target(self) -> FloatArray:
        return (self.pairs.target / self._out_scale).astype(np.float32)

    @cached_property
    def _collection(self) -> FloatArray:
        if self.collection is None:
            return draw_targets(self._target[self._rows[0]], seed=self.seed)
        rows = draw_targets(np.asarray(self.collection), seed=self.seed)
        return rows.astype(np.float32) / np.float32(self._out_scale)

    @cached_property
    def _standard(self) -> tuple[FloatArray, float]:
        """Mean row and one scale, so that Adam's steps fit any unit of measure."""
        mean = mean_rows(self._source, weight=self.pairs.weight)
        return mean, float(np.sqrt(np.mean((self._source - mean) ** 2)))

    @cached_property
    def _rows(self) -> tuple[IntArray, IntArray]:
        """Rows to train on, and rows to hold out."""
        n = len(self.pairs)
        order = np.random.default_rng([self.seed, 1]).permutation(n)
        most = min(MOST_HELD_OUT, n // 2)
        held = min(most, round(self.held_out * n)) if n >= FEWEST_TO_HOLD_OUT else 0
        return np.sort(order[held:]), order[:held]

    def _run(self) -> Trained:
        rest, held = self._rows
        first = next(iter(self.starts))
        if not len(held):
            network = self._draw(first, rest)
            if not self.train_few:
                return replace(self._train(network, rest, steps=0), outcome="too_few_pairs")
            return self._train(network, rest, steps=self._steps(len(rest)))
        name, found = max(self._try_starts(), key=lambda tried: tried[1].kept)  # first on a tie
        if len(held) < REFIT_FROM * len(self.pairs):
            return found
        every = np.arange(len(self.pairs))
        try:
            again = self._train(self._draw(name, every), every, steps=found.steps)
        except DivergedTrainingError:
            return found  # which stands, although fitted on fewer pairs
        return replace(found, network=again.network)

    def _try_starts(self) -> list[tuple[str, Trained]]:
        """Train from every start; one that diverges is left out while another does not."""
        rest, _ = self._rows
        steps = self._steps(len(rest))
        tried: list[tuple[str, Trained]] = []
        diverged: DivergedTrainingError | None = None
        for name in self.starts:
            try:
                found = self._train(self._draw(name, rest), rest, steps=steps, judged=True)
            except DivergedTrainingError as error:
                diverged = error
            else:
                tried.append((name, found))
        if diverged is not None and not tried:
            raise diverged
        return tried

    def _draw(self, name: str, rows: IntArray) -> Network:
        return self.starts[name](self._source[rows], self._target[rows], self._weight(rows))

    def _weight(self, rows: IntArray) -> FloatArray | None:
        return None if self.pairs.weight is None else self.pairs.weight[rows]

    def _steps(self, n: int) -> int:
        return max(self.epochs * -(-n // self.schedule.batch), self.schedule.steps)

    def _train(
        self, network: Network, rows: IntArray, *, steps: int, judged: bool = False
    ) -> Trained:
        held = self._rows[1]
        return train(
            network,
            self._source[rows],
            self._target[rows],
            objective=self.objective,
            schedule=replace(self.schedule, steps=steps),
            seed=self.seed,
            weight=self._weight(rows),
            held_out=(self._source[held], self._target[held]) if judged else None,
            collection=self._collection if judged else None,
            # of rows of length one all metrics are one; so it is exactly
            metric="dot" if judged and is_unit(self._collection) else self.metric,
            normalise=self.unit,
            standard=self._standard,
            device=self.device,
            precision=self.precision,
            checkpoint=self._checkpoint(network, rows, steps) if steps else None,
        )

    def _checkpoint(self, network: Network, rows: IntArray, steps: int) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        weight = [] if self.pairs.weight is None else [self.pairs.weight]
        data = (self._source, self._target, rows, self._rows[1], *network.arrays, *weight)
        params = {**self.params, "metric": self.metric, "steps": steps}
        made = Checkpoint.of(self.checkpoint, *data, self._collection, params=params)
        self._used.append(made)
        return made


def is_unit(rows: FloatArray) -> bool:
    """Whether all rows have length one, as far as float16 goes."""
    lengths = row_lengths(rows.astype(np.float32, copy=False))
    return bool(np.abs(lengths - 1).max() <= UNIT_TOLERANCE)
