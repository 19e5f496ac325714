"""Training of two encoders into one space, on batches whose partners may be known only softly.

Each batch takes rows of both sides and has its own loss of their similarities: the cross-entropy of
known pairs, or of the rows and columns of a transport plan (AnchorDOT, equations 10 to 12).
Everything random comes from numpy's generator, so that no device matters for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus._optional import require
from isthmus._progress import current_track
from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_positive, check_whole
from isthmus.errors import DivergedTrainingError, ParameterError
from isthmus.maps.training.encoder import LAYER_NORM, Encoder

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Batch",
    "Loss",
    "Plan",
    "TrainedPair",
    "TwoSided",
    "best_epoch",
    "pair_loss",
    "plan_loss",
]

Loss = Callable[["Tensor", "Tensor"], "Tensor"]
"""Takes cosines of a batch (rows of the source, rows of the target) and the inverse temperature."""

MOST, LARGEST = 10**6, 1e6
"""Epochs; learning rates and decays: whoever gives more has made a slip."""
LOOK_EVERY = 5
"""Epochs between two looks at held-out pairs. A round number."""
DECAY = 3
"""Of the weights that are averaged over the steps: step t counts as t^3 (Shamir and Zhang 2013,
section 4). Adam at a constant rate wanders about: the last weights found 2 to 4 hundredths fewer
partners than the mean (molecules and texts, seeds over 99)."""


@dataclass(frozen=True, eq=False)
class Batch:
    """One step: rows of both sides, and the loss of their similarities."""

    source: IntArray
    target: IntArray
    loss: Loss


@dataclass(frozen=True)
class TwoSided:
    """How long and how fast; the defaults are AnchorDOT's, table 8.

    Parameters
    ----------
    epochs : int, default 200
    learning_rate : float, default 1e-3
        Of Adam.
    weight_decay : float, default 1e-2
        Added to the gradient, as Adam does.
    warm_up : int, default 200
        Steps over which the learning rate rises.
    temperature : float, default 0.07
        That training starts with; it is learned.
    largest_scale : float, default 100
        Of the inverse temperature (section 3.4).
    patience : int, optional
        Looks at held-out pairs, five epochs apart, without gain before training ends.
    """

    epochs: int = 200
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    warm_up: int = 200
    temperature: float = 0.07
    largest_scale: float = 100.0
    patience: int | None = None

    def check(self) -> None:
        """Refuse numbers out of their range.

        Raises
        ------
        ParameterError
        """
        check_whole(self.epochs, name="epochs", maximum=MOST)
        check_whole(self.warm_up, name="warm_up", minimum=0)
        check_positive(self.learning_rate, name="learning_rate", maximum=LARGEST)
        if not 0 <= self.weight_decay <= LARGEST:
            raise ParameterError(
                expected=f"weight_decay from 0 to {LARGEST:g}",
                got=f"{self.weight_decay!r}"[:100],
                do="give such a number; 0 is none",
            )
        if self.patience is not None:
            check_whole(self.patience, name="patience")

    def train(
        self,
        encoders: tuple[Encoder, Encoder],
        sides: tuple[FloatArray, FloatArray],
        batches: Callable[[int], Iterable[Batch]],
        *,
        held_out: tuple[FloatArray, FloatArray] | None = None,
        device: object = "cpu",
    ) -> TrainedPair:
        """Train two encoders.

        Parameters
        ----------
        encoders : pair of Encoder
            Where training starts.
        sides : pair of FloatArray of shape (n_source, dim_source) and (n_target, dim_target)
            Rows that batches name by their numbers.
        batches : callable
            Gives the batches of an epoch, counted from 0.
        held_out : pair of FloatArray, optional
            Pairs that say when to stop, with ``patience``.
        device : torch device or its name

        Raises
        ------
        MissingExtraError, DivergedTrainingError
        """
        run = _Run(require("torch", extra="torch"), self, encoders, sides, device=device)
        return run.go(batches, held_out)


@dataclass(frozen=True, eq=False)
class TrainedPair:
    """Two trained encoders, and how they came about.

    Parameters
    ----------
    source, target : Encoder
        Of the mean of the weights over the steps, in which late ones count more.
    losses : FloatArray of shape (n_epochs,)
        Mean loss of each epoch.
    looks : tuple of (int, float)
        Epoch and mean reciprocal rank of held-out pairs.
    """

    source: Encoder
    target: Encoder
    losses: FloatArray
    looks: tuple[tuple[int, float], ...] = ()


class _Run:
    """One training: its tensors and where it stands."""

    def __init__(
        self,
        torch: Any,
        schedule: TwoSided,
        encoders: tuple[Encoder, Encoder],
        sides: tuple[FloatArray, FloatArray],
        *,
        device: object,
    ) -> None:
        self.torch, self.schedule = torch, schedule
        self.device = torch.device(device)
        self.sides = [self._tensor(side) for side in sides]
        self.layers = []
        for encoder in encoders:
            dim = len(encoder.weight)
            first = (np.ones(dim), np.zeros(dim), encoder.weight, encoder.bias)
            self.layers.append([self._tensor(each).requires_grad_() for each in first])
        first_scale = np.asarray(math.log(1 / schedule.temperature))
        self.log_scale = self._tensor(first_scale).requires_grad_()
        self.parameters = [*self.layers[0], *self.layers[1], self.log_scale]
        self.adam = torch.optim.Adam(
            self.parameters, lr=schedule.learning_rate, weight_decay=schedule.weight_decay
        )
        self.step = 0
        self.mean = [[each.detach().clone() for each in side] for side in self.layers]

    def go(
        self,
        batches: Callable[[int], Iterable[Batch]],
        held_out: tuple[FloatArray, FloatArray] | None,
    ) -> TrainedPair:
        """Take all epochs, or stop when held-out pairs no longer gain."""
        patience = self.schedule.patience
        judged = held_out is not None and patience is not None
        losses: list[float] = []
        looks: list[tuple[int, float]] = []
        best = self._copy()
        for epoch in current_track()(range(self.schedule.epochs), "training", self.schedule.epochs):
            seen = [self._take_step(batch) for batch in batches(epoch)]
            losses.append(float(self.torch.stack(seen).mean().item()))
            self._check(losses)
            if not judged or (epoch + 1) % LOOK_EVERY:
                continue
            looks.append((epoch + 1, self._look(held_out)))
            place = int(np.argmax([score for _, score in looks]))
            if place == len(looks) - 1:
                best = self._copy()
            elif len(looks) - 1 - place >= (patience or 0):
                break
        source, target = self._encoders(best if looks else self._copy())
        return TrainedPair(source, target, np.asarray(losses), tuple(looks))

    def _tensor(self, array: FloatArray) -> Tensor:
        tensor: Tensor = self.torch.tensor(np.asarray(array, dtype=np.float32), device=self.device)
        return tensor

    def _encode(self, layers: list[Tensor], rows: Tensor) -> Tensor:
        functional = self.torch.nn.functional
        gain, shift, weight, bias = layers
        inner = functional.layer_norm(rows, rows.shape[1:], gain, shift, LAYER_NORM)
        out: Tensor = functional.normalize(functional.linear(inner, weight.T, bias), dim=1)
        return out

    def _take_step(self, batch: Batch) -> Tensor:
        rows = [
            side[self.torch.from_numpy(picked).to(self.device)]
            for side, picked in zip(self.sides, (batch.source, batch.target), strict=True)
        ]
        encoded = [
            self._encode(layers, picked) for layers, picked in zip(self.layers, rows, strict=True)
        ]
        cosines = encoded[0] @ encoded[1].T
        scale = self.log_scale.exp().clamp(max=self.schedule.largest_scale)
        loss = batch.loss(cosines, scale)
        rate = self.schedule.learning_rate * min(
            1.0, (self.step + 1) / max(self.schedule.warm_up, 1)
        )
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it so
        self.adam.step()
        self.step += 1
        self._average()
        return loss.detach()

    def _average(self) -> None:
        share = min(1.0, (DECAY + 1) / (self.step + DECAY))
        with self.torch.no_grad():
            for means, side in zip(self.mean, self.layers, strict=True):
                for mean, each in zip(means, side, strict=True):
                    mean.lerp_(each, share)

    def _check(self, losses: Sequence[float]) -> None:
        if not math.isfinite(losses[-1]):
            raise DivergedTrainingError(
                expected="a finite training loss",
                got=f"{losses[-1]} in epoch {len(losses)}",
                do=f"lower learning_rate (it was {self.schedule.learning_rate:g})",
            )

    def _look(self, held_out: tuple[FloatArray, FloatArray] | None) -> float:
        """Return the mean reciprocal rank of held-out pairs among each other, both ways."""
        if held_out is None:
            return math.nan
        with self.torch.no_grad():
            encoded = [
                self._encode(layers, self._tensor(rows))
                for layers, rows in zip(self.mean, held_out, strict=True)
            ]
            cosines = encoded[0] @ encoded[1].T
            own = cosines.diagonal()
            there = (cosines > own[:, None]).sum(dim=1) + 1
            back = (cosines > own).sum(dim=0) + 1
            return float((1 / there.double()).mean() + (1 / back.double()).mean()) / 2

    def _copy(self) -> list[list[FloatArray]]:
        return [[each.cpu().numpy().copy() for each in side] for side in self.mean]

    def _encoders(self, copied: list[list[FloatArray]]) -> tuple[Encoder, Encoder]:
        """Multiply the gain and the shift into the linear layers."""
        made = []
        for gain, shift, weight, bias in copied:
            folded = gain[:, None].astype(np.float64) * weight
            offset = bias + shift.astype(np.float64) @ weight
            made.append(Encoder(folded.astype(np.float32), offset.astype(np.float32)))
        return made[0], made[1]


def best_epoch(looks: Sequence[tuple[int, float]], otherwise: int) -> int:
    """Return the first epoch of the best look, or another number where nothing was looked at.

    Examples
    --------
    >>> best_epoch([(5, 0.2), (10, 0.4), (15, 0.4)], otherwise=60)
    10
    """
    return max(looks, key=lambda look: (look[1], -look[0]))[0] if looks else otherwise


def pair_loss(weight: FloatArray | None = None) -> Loss:
    """Return the cross-entropy of rows whose partner stands in the same place, both ways.

    Parameters
    ----------
    weight : FloatArray of shape (n_pairs,), optional
        Of each pair's loss.
    """

    def loss(cosines: Tensor, scale: Tensor) -> Tensor:
        logits = scale * cosines
        there = logits.log_softmax(dim=1).diagonal()
        back = logits.log_softmax(dim=0).diagonal()
        own = -(there + back) / 2
        if weight is None:
            return own.mean()
        shares = own.new_tensor(weight / weight.sum())
        return (own * shares).sum()

    return loss


@dataclass(eq=False)
class Plan:
    """A transport plan whose cost is one minus an inner product, on a device.

    Parameters
    ----------
    source, target : FloatArray of shape (n, width) and (m, width)
        Rows whose inner products are the similarities.
    source_potential, target_potential : FloatArray of shape (n,) and (m,)
        In units of epsilon.
    epsilon : float
    device : torch device or its name
    """

    source: FloatArray
    target: FloatArray
    source_potential: FloatArray
    target_potential: FloatArray
    epsilon: float
    device: object = "cpu"
    _tensors: list[Tensor] = field(init=False)

    def __post_init__(self) -> None:
        torch = require("torch", extra="torch")
        arrays = (self.source, self.target, self.source_potential, self.target_potential)
        self._tensors = [
            torch.tensor(np.asarray(each, dtype=np.float32), device=torch.device(self.device))
            for each in arrays
        ]

    def log_block(self, rows: IntArray, columns: IntArray) -> Tensor:
        """Return the logarithm of the plan at some rows and columns (AnchorDOT, equation 9)."""
        source, target, f, g = self._tensors
        product = source[rows] @ target[columns].T
        out: Tensor = (product - 1) / self.epsilon + f[rows][:, None] + g[columns]
        return out


def plan_loss(plan: Plan, rows: IntArray, columns: IntArray) -> Loss:
    """Return the cross-entropy of the plan's rows and columns (AnchorDOT, equations 10 to 12)."""

    def loss(cosines: Tensor, scale: Tensor) -> Tensor:
        logits = scale * cosines
        block = plan.log_block(rows, columns)
        there = (block.softmax(dim=1) * logits.log_softmax(dim=1)).sum(dim=1)
        back = (block.softmax(dim=0) * logits.log_softmax(dim=0)).sum(dim=0)
        return -(there.mean() + back.mean()) / 2

    return loss
