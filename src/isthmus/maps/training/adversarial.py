"""Training of translators between two clouds without pairs, against networks that judge them.

    source -> into_s -> z + shared(z) -> out_t -> target,   and back; each row at length one

Per step a batch of either cloud, drawn apart. Judges, one per space and one between what both sides
give to the space in the middle, learn to tell rows that are there from rows that were made, by
least squares. The translators are trained to be taken for real, and to keep

- each row that goes through the middle and back to its own side (reconstruction),
- each row that goes to the other side and back (cycle),
- the inner products among the rows of a batch, on the own and on the other side.

Reference: Jha, Zhang, Shmatikov and Morris (2025), Harnessing the universal geometry of embeddings.
Unlike there: no batch norm, since a row's numbers must not depend on those beside it; one judge in
the middle instead of two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus._linalg import normalise
from isthmus._optional import require
from isthmus._progress import current_track
from isthmus._types import FloatArray
from isthmus.errors import DivergedTrainingError
from isthmus.maps.training.network import Network

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Adversarial", "Translators"]

RECONSTRUCTION, CYCLE = 1.0, 10.0
KEPT_OWN, KEPT_OTHER = 1.0, 10.0
"""Weights of the losses, those of the authors' code."""
REAL = 0.9
"""What a judge is to say of a real row; 0 of a made one. Smoothed, as in the authors' code."""
CHECK_EVERY = 100
"""Steps between two looks at whether the loss is finite."""


@dataclass(frozen=True)
class Translators:
    """Networks between two sides through one space.

    Parameters
    ----------
    into, out : pair of Network
        Of the source and the target side: into the middle, and from there.
    shared : Network
        In the middle, beside the identity.
    """

    into: tuple[Network, Network]
    shared: Network
    out: tuple[Network, Network]

    @classmethod
    def draw(cls, dims: tuple[int, int], *, width: int, rng: np.random.Generator) -> Translators:
        """Return networks of one hidden layer each, by numpy, so that no device matters."""
        source, target = dims
        into = [Network.draw([dim, width, width], rng=rng) for dim in (source, target)]
        shared = Network.draw([width, width, width], rng=rng)
        out = [Network.draw([width, width, dim], rng=rng) for dim in (source, target)]
        return cls((into[0], into[1]), shared, (out[0], out[1]))

    @property
    def networks(self) -> list[Network]:
        """All networks, in the order of `with_networks`."""
        return [*self.into, self.shared, *self.out]

    @classmethod
    def with_networks(cls, networks: Sequence[Network]) -> Translators:
        """Return translators of networks in the order of `networks`."""
        first, second, shared, third, fourth = networks
        return cls((first, second), shared, (third, fourth))

    def translate(self, rows: FloatArray) -> FloatArray:
        """Carry source rows (n, dim_source) to target rows of length one, without torch."""
        middle = self.into[0].forward(rows)
        return normalise(self.out[1].forward(middle + self.shared.forward(middle)))


@dataclass(frozen=True)
class Adversarial:
    """How long and how fast.

    Parameters
    ----------
    steps : int
    batch : int
        Rows of each cloud per step.
    learning_rate, judge_rate : float
        Of Adam, for the translators and for the judges.
    """

    steps: int
    batch: int
    learning_rate: float
    judge_rate: float

    def train(
        self,
        translators: Translators,
        sides: tuple[FloatArray, FloatArray],
        *,
        rng: np.random.Generator,
        device: object = "cpu",
    ) -> Translators:
        """Train translators on two clouds of rows of length one.

        Raises
        ------
        MissingExtraError, DivergedTrainingError
        """
        run = _Run(self, translators, sides, rng=rng, device=device)
        for step in current_track()(range(self.steps), "training", self.steps):
            loss = run.take_step()
            if (step + 1) % CHECK_EVERY and step + 1 < self.steps:
                continue
            if not math.isfinite(float(loss.item())):
                raise DivergedTrainingError(
                    expected="a finite training loss",
                    got=f"{float(loss.item())} in step {step + 1}",
                    do=f"lower learning_rate (it was {self.learning_rate:g})",
                )
        return run.trained()


class _Run:
    """One training: its tensors and where it stands."""

    def __init__(
        self,
        schedule: Adversarial,
        translators: Translators,
        sides: tuple[FloatArray, FloatArray],
        *,
        rng: np.random.Generator,
        device: object,
    ) -> None:
        torch = require("torch", extra="torch")
        self.torch, self.schedule, self.rng = torch, schedule, rng
        self.device = torch.device(device)
        self.sides = [self._tensor(side) for side in sides]
        width = len(translators.shared.weights[0])
        self.networks = translators.networks
        self.judges = [
            Network.draw([dim, width, 1], rng=rng) for dim in (*(s.shape[1] for s in sides), width)
        ]
        self.layers = [self._trained(network) for network in self.networks]
        self.judging = [self._trained(network) for network in self.judges]
        self.adam = torch.optim.Adam(
            [each for layers in self.layers for each in layers], lr=schedule.learning_rate
        )
        self.judge_adam = torch.optim.Adam(
            [each for layers in self.judging for each in layers], lr=schedule.judge_rate
        )

    def take_step(self) -> Tensor:
        """Let the judges learn from a batch, then the translators."""
        rows = [self._draw(side) for side in self.sides]
        middle = [self._into(side, rows[side]) for side in (0, 1)]
        made = [self._out(side, middle[1 - side]) for side in (0, 1)]
        judged = self._judge_loss(rows, [each.detach() for each in middle + made])
        self._descend(self.judge_adam, judged)
        loss = self._deceived(middle, made) + self._kept(rows, middle, made)
        self._descend(self.adam, loss)
        return loss.detach()

    def trained(self) -> Translators:
        """Return the networks as they are."""
        return Translators.with_networks(
            [
                network.with_arrays([each.detach().cpu().numpy() for each in layers])
                for network, layers in zip(self.networks, self.layers, strict=True)
            ]
        )

    def _judge_loss(self, rows: list[Tensor], made: list[Tensor]) -> Tensor:
        first, second, in_source, in_target = made
        loss: Tensor = (
            _off(self._say(0, rows[0]), REAL)
            + _off(self._say(0, in_source), 0.0)
            + _off(self._say(1, rows[1]), REAL)
            + _off(self._say(1, in_target), 0.0)
            + _off(self._say(2, first), REAL)
            + _off(self._say(2, second), 0.0)
        )
        return loss

    def _deceived(self, middle: list[Tensor], made: list[Tensor]) -> Tensor:
        """Return how far the judges are from taking one for the other."""
        loss: Tensor = (
            _off(self._say(0, made[0]), REAL)
            + _off(self._say(1, made[1]), REAL)
            + _off(self._say(2, middle[0]), 0.0)
            + _off(self._say(2, middle[1]), REAL)
        )
        return loss

    def _kept(self, rows: list[Tensor], middle: list[Tensor], made: list[Tensor]) -> Tensor:
        loss = rows[0].new_zeros(())
        for side in (0, 1):
            own = self._out(side, middle[side])
            back = self._out(side, self._into(1 - side, made[1 - side]))
            gram = rows[side] @ rows[side].T
            loss = loss + RECONSTRUCTION * _apart(own, rows[side])
            loss = loss + CYCLE * _apart(back, rows[side])
            loss = loss + KEPT_OWN * _apart(own @ own.T, gram)
            other = made[1 - side]
            loss = loss + KEPT_OTHER * _apart(other @ other.T, gram)
        return loss

    def _into(self, side: int, rows: Tensor) -> Tensor:
        first = self.networks[side].forward_torch(self.layers[side], rows)
        return first + self.networks[2].forward_torch(self.layers[2], first)

    def _out(self, side: int, middle: Tensor) -> Tensor:
        out = self.networks[3 + side].forward_torch(self.layers[3 + side], middle)
        unit: Tensor = self.torch.nn.functional.normalize(out, dim=1)
        return unit

    def _say(self, judge: int, rows: Tensor) -> Tensor:
        return self.judges[judge].forward_torch(self.judging[judge], rows)

    def _descend(self, adam: Any, loss: Tensor) -> None:
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it so
        adam.step()

    def _draw(self, rows: Tensor) -> Tensor:
        drawn = self.rng.integers(len(rows), size=min(self.schedule.batch, len(rows)))
        picked: Tensor = rows[self.torch.from_numpy(drawn).to(self.device)]
        return picked

    def _tensor(self, array: FloatArray) -> Tensor:
        tensor: Tensor = self.torch.tensor(np.asarray(array, np.float32), device=self.device)
        return tensor

    def _trained(self, network: Network) -> list[Tensor]:
        return [self._tensor(each).requires_grad_() for each in network.arrays]


def _off(said: Tensor, wanted: float) -> Tensor:
    return (said - wanted).square().mean()


def _apart(one: Tensor, other: Tensor) -> Tensor:
    """Return the mean over rows of the squared distance."""
    return (one - other).square().sum(dim=1).mean()
