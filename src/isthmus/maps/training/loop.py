"""The training loop: mini-batches by Adam, stopped when held-out rows no longer gain.

One optimiser step per mini-batch, reshuffled at each epoch. Held-out preservation is looked at
after steps that lie further and further apart (by a fifth), so that a few steps and thousands are
judged by as many looks; the best weights are kept. Everything random comes from numpy's generator,
so that no device matters for it.

References: Kingma and Ba (2015), Adam; HVMap, section 3.5.3 (batches, epochs, learning rate).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from isthmus._optional import require
from isthmus._progress import current_track
from isthmus._types import FloatArray, Metric
from isthmus.errors import DivergedTrainingError
from isthmus.maps.training.checkpoint import Checkpoint
from isthmus.maps.training.held_out import Preservation, as_neighbors
from isthmus.maps.training.network import Network

if TYPE_CHECKING:
    from torch import Tensor

    from isthmus.maps.training.objectives import Objective

__all__ = ["Outcome", "Precision", "Schedule", "Trained", "train"]

Outcome = Literal["no_more_gain", "out_of_steps", "too_few_pairs"]
Precision = Literal["float32", "bfloat16"]

FIRST_LOOK = 5
SPACING = 1.2
DIVERGED, LEAST_LOSS = 1e4, 1e-3
"""Times the first loss, or this one: rows of length one lose about one at most."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast.

    Parameters
    ----------
    steps : int
        Optimiser steps at most.
    batch : int
    learning_rate : float
    patience : int
        Looks at the held-out rows without gain before training ends.
    weight_decay : float, default 0
    warm_up : int, default 0
        Steps over which the learning rate rises: Adam's first steps are as large as any, in
        directions that one batch gives, and would overturn a good start.
    """

    steps: int
    batch: int
    learning_rate: float
    patience: int
    weight_decay: float = 0.0
    warm_up: int = 0

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        return self.learning_rate * min(1.0, (step + 1) / (self.warm_up + 1))

    def is_look(self, step: int) -> bool:
        """Whether held-out rows are looked at after this step, counted from 1."""
        look = FIRST_LOOK
        while look < step:
            look = max(look + FIRST_LOOK, math.ceil(look * SPACING))
        return step in {look, self.steps}


@dataclass(frozen=True)
class Trained:
    """A trained network, and how it came about.

    Parameters
    ----------
    network : Network
        With the best weights, or the last where nothing was held out.
    steps : int
        After how many steps these weights stood; 0 where the start was best.
    looks : tuple of (int, float)
        Step and held-out preservation at each look, the start's first.
    outcome : Outcome
    """

    network: Network
    steps: int
    looks: tuple[tuple[int, float], ...]
    outcome: Outcome

    @property
    def kept(self) -> float:
        """The best held-out preservation; NaN where nothing was held out."""
        return max((score for _, score in self.looks), default=math.nan)


def train(
    network: Network,
    source: FloatArray,
    target: FloatArray,
    *,
    objective: Objective,
    schedule: Schedule,
    seed: int,
    weight: FloatArray | None = None,
    held_out: tuple[FloatArray, FloatArray] | None = None,
    collection: FloatArray | None = None,
    metric: Metric = "dot",
    normalise: bool = True,
    standard: tuple[FloatArray, float] | None = None,
    device: object = "cpu",
    precision: Precision = "float32",
    checkpoint: Checkpoint | None = None,
) -> Trained:
    """Train a network on pairs.

    Parameters
    ----------
    network : Network
        Its arrays are where training starts; they stay as they are.
    source, target : FloatArray of shape (n, dim), float32
    objective : Objective
        Loss of each row from mapped and target rows.
    schedule : Schedule
    seed : int
        Of the order of the rows.
    weight : FloatArray of shape (n,), optional
        Of each row's loss.
    held_out : pair of FloatArray, optional
        Source and target rows that say when to stop; without them all steps are taken.
    collection : FloatArray of shape (m, dim_target), optional
        Where the neighbours of held-out rows are searched; among ``target`` by default.
    metric : {"cosine", "dot", "l2"}, default "dot"
        By which they are near.
    normalise : bool, default True
        Whether mapped rows are brought to length one before the objective sees them.
    standard : mean row and scale, optional
        Taken from the rows before the layers (not before the skip branch).
    device : torch device or its name
    precision : {"float32", "bfloat16"}
        Of the layers' products; the weights, the loss and Adam are float32.
    checkpoint : Checkpoint, optional

    Raises
    ------
    DivergedTrainingError, MissingExtraError, CorruptFileError
    """
    run = _Run(
        require("torch", extra="torch"),
        network,
        (source, target),
        weight,
        held_out,
        collection=collection,
        metric=metric,
        objective=objective,
        schedule=schedule,
        seed=seed,
        normalise=normalise,
        standard=standard,
        device=device,
        precision=precision,
    )
    return run.go(checkpoint)


class _Run:
    """One training: its tensors and where it stands."""

    def __init__(
        self,
        torch: Any,
        network: Network,
        pairs: tuple[FloatArray, FloatArray],
        weight: FloatArray | None,
        held_out: tuple[FloatArray, FloatArray] | None,
        *,
        collection: FloatArray | None,
        metric: Metric,
        objective: Objective,
        schedule: Schedule,
        seed: int,
        normalise: bool,
        standard: tuple[FloatArray, float] | None,
        device: object,
        precision: Precision,
    ) -> None:
        self.torch, self.network, self.objective = torch, network, objective
        self.schedule, self.seed, self.normalise = schedule, seed, normalise
        self.device, self.precision = torch.device(device), precision
        mean, scale = (np.zeros(pairs[0].shape[1]), 1.0) if standard is None else standard
        self.mean, self.scale = self._tensor(np.asarray(mean)), float(scale)
        self.source, self.target = (self._tensor(side) for side in pairs)
        self.weight = None if weight is None else self._tensor(weight / weight.mean())
        self.judge = None
        if held_out is not None:
            rows, wanted = (self._tensor(side) for side in held_out)
            among = as_neighbors(pairs[1] if collection is None else collection, metric)
            self.judge = Preservation.of(rows, wanted, *(self._tensor(each) for each in among))
        self.parameters = [self._tensor(each).requires_grad_() for each in network.arrays]
        self.adam = torch.optim.AdamW(
            self.parameters, lr=schedule.learning_rate, weight_decay=schedule.weight_decay
        )
        self.step, self.best_step, self.since = 0, 0, 0
        self.first_loss = math.nan
        self.looks: list[tuple[int, float]] = []
        self.best = [each.detach().clone() for each in self.parameters]

    def go(self, checkpoint: Checkpoint | None) -> Trained:
        """Train until held-out rows no longer gain, or the steps are done."""
        if checkpoint is not None:
            self._take_up(checkpoint)
        if self.judge is not None and not self.looks:
            self._look()
        outcome: Outcome = "out_of_steps"
        left = range(self.step, self.schedule.steps)
        batches = current_track()(zip(left, self._batches(), strict=False), "training", len(left))
        for _, rows in batches:
            if self.since >= self.schedule.patience:
                outcome = "no_more_gain"
                break
            self._take_step(rows)
            if self.schedule.is_look(self.step):
                self._look()
                if checkpoint is not None:
                    self._write_down(checkpoint)
        if self.judge is None:
            self.best, self.best_step = list(self.parameters), self.step
        if self.since >= self.schedule.patience:
            outcome = "no_more_gain"
        arrays = [each.detach().float().cpu().numpy() for each in self.best]
        if not all(np.isfinite(array).all() for array in arrays):
            self._check(math.nan)
        return Trained(self.network.with_arrays(arrays), self.best_step, tuple(self.looks), outcome)

    def _tensor(self, array: FloatArray) -> Tensor:
        tensor: Tensor = self.torch.tensor(np.asarray(array, dtype=np.float32), device=self.device)
        return tensor

    def _map(self, rows: Tensor) -> Tensor:
        """Carry rows through the layers; the skip branch takes them as they are."""
        bare = Network(self.network.weights, self.network.biases, None, self.network.activation)
        with self._autocast():
            inner = (rows - self.mean) / self.scale
            mapped = bare.forward_torch(self.parameters, inner)
        mapped = mapped.float()
        if self.network.skip is not None:
            mapped = mapped + rows @ self.parameters[-1]
        if self.normalise:
            mapped = self.torch.nn.functional.normalize(mapped, dim=1)
        return mapped

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.precision == "float32":
            return nullcontext()
        context: AbstractContextManager[Any] = self.torch.autocast(
            self.device.type, dtype=self.torch.bfloat16
        )
        return context

    def _batches(self) -> Iterator[Tensor]:
        """Yield the rows of each batch from the current step on, without end.

        An epoch's order depends on the seed and the number of the epoch alone, so that a training
        that is taken up in the middle of one goes on in the same order.
        """
        n, batch = len(self.source), min(self.schedule.batch, len(self.source))
        per_epoch = -(-n // batch)
        while True:
            epoch, place = divmod(self.step, per_epoch)
            order = np.random.default_rng([self.seed, epoch]).permutation(n)
            # Parts of equal size: a last batch of a few rows would be a step of noise.
            rows = np.array_split(order, per_epoch)[place]
            yield self.torch.from_numpy(rows).to(self.device)

    def _take_step(self, rows: Tensor) -> None:
        losses = self.objective(self._map(self.source[rows]), self.target[rows])
        if self.weight is not None:
            losses = losses * self.weight[rows]
        loss = losses.mean()
        for group in self.adam.param_groups:
            group["lr"] = self.schedule.rate(self.step)
        self.adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it so
        self.adam.step()
        self.step += 1
        if self.schedule.is_look(self.step) or self.step == 1:
            self._check(float(loss.item()))

    def _check(self, loss: float) -> None:
        if math.isnan(self.first_loss):
            self.first_loss = loss
        if not math.isfinite(loss) or loss > DIVERGED * max(self.first_loss, LEAST_LOSS):
            raise DivergedTrainingError(
                expected="a training loss that falls",
                got=f"{loss:.3g} at step {self.step}, after {self.first_loss:.3g} at the start",
                do=f"lower learning_rate (it was {self.schedule.learning_rate:g}), or look for "
                "vectors of extreme length",
            )

    def _look(self) -> None:
        """Score the held-out rows and keep the weights where they are the best so far."""
        if self.judge is None:
            return
        with self.torch.no_grad():
            mapped = self._map(self.judge.source)
        if not mapped.isfinite().all():
            self._check(math.nan)  # such rows have no order that could be scored
        score = self.judge.score(mapped)
        best = max((value for _, value in self.looks), default=-math.inf)
        self.looks.append((self.step, score))
        self.since += 1
        if score > best:
            self.since, self.best_step = 0, self.step
            self.best = [each.detach().clone() for each in self.parameters]

    def _write_down(self, checkpoint: Checkpoint) -> None:
        moments = [self.adam.state[each] for each in self.parameters]
        arrays = {}
        for kind, tensors in (
            ("weight", self.parameters),
            ("best", self.best),
            ("first_moment", [one["exp_avg"] for one in moments]),
            ("second_moment", [one["exp_avg_sq"] for one in moments]),
        ):
            for place, tensor in enumerate(tensors):
                arrays[f"{kind}.{place}"] = tensor.detach().cpu().numpy()
        checkpoint.write(
            arrays,
            {
                "step": self.step,
                "best_step": self.best_step,
                "since": self.since,
                "first_loss": self.first_loss,
                "looks": self.looks,
            },
        )

    def _take_up(self, checkpoint: Checkpoint) -> None:
        """Go on where an earlier run of the same training stopped."""
        kinds = ("weight", "best", "first_moment", "second_moment")
        shapes = {
            f"{kind}.{place}": tuple(each.shape)
            for kind in kinds
            for place, each in enumerate(self.parameters)
        }
        arrays, numbers = checkpoint.read(shapes)
        if not arrays:
            return
        try:
            self.step, self.best_step = int(numbers["step"]), int(numbers["best_step"])
            self.since, self.first_loss = int(numbers["since"]), float(numbers["first_loss"])
            self.looks = [(int(step), float(score)) for step, score in numbers["looks"]]
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise checkpoint.corrupt(f"{type(error).__name__}: {error}") from error
        if not (0 <= self.best_step <= self.step <= self.schedule.steps and self.since >= 0):
            raise checkpoint.corrupt(f"step {self.step}, of which {self.best_step} is the best")
        if not all(0 <= step <= self.step and math.isfinite(score) for step, score in self.looks):
            raise checkpoint.corrupt("looks after other steps than were taken")
        self.best = [self._tensor(arrays[f"best.{place}"]) for place in range(len(self.best))]
        for place, each in enumerate(self.parameters):
            each.data = self._tensor(arrays[f"weight.{place}"])
            self.adam.state[each] = {
                "step": self.torch.tensor(float(self.step)),
                "exp_avg": self._tensor(arrays[f"first_moment.{place}"]),
                "exp_avg_sq": self._tensor(arrays[f"second_moment.{place}"]),
            }
