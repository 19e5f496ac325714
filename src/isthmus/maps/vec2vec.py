"""Vec2vec: translators between two clouds, trained against judges, without a single pair.

Adapters into a space in the middle and out of it, a network there that both sides share, and judges
that are to tell made rows from real ones (`isthmus.maps.training.adversarial`); trained twice from
other weights, since such training often ends nowhere, and compared.

When to use it: with some hundred thousand rows a side and a GPU, or to compare with; try
`MiniVec2Vec` first, which takes thousands of rows and a minute. What it finds at such sizes is not
measured here. Look at ``confidence_``: it is near 0 where nothing was found, but two trainings may
agree by chance about clouds of few groups in few directions.
Shapes: (n, dim_source) and (m, dim_target) to (n, dim_target). Trained with torch; transforms need
numpy only.
Reference: Jha, Zhang, Shmatikov and Morris (2025), Harnessing the universal geometry of embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from isthmus._linalg import in_row_blocks, normalise
from isthmus._types import FloatArray
from isthmus._validate import check_positive, check_whole
from isthmus.maps._clouds import Cloud
from isthmus.maps._unpaired import MOST, CloudMap, agreement, compared
from isthmus.maps.training.adversarial import Adversarial, Translators
from isthmus.maps.training.devices import find_device
from isthmus.maps.training.network import Network

__all__ = ["Vec2Vec"]

LARGEST_RATE = 1e6
"""So that no step is infinite in float32."""
LARGEST_WIDTH = 65_536
PARTS = ("into", "shared", "out")


class Vec2Vec(CloudMap):
    """Networks between two clouds, trained against judges. The extra ``torch`` trains it.

    The defaults are for a GPU and a million rows a side, as the authors'. On a processor,
    ``width=256, steps=2_000, learning_rate=1e-3, judge_rate=5e-4`` takes minutes.

    Parameters
    ----------
    width : int, default 1,024
        Of the space in the middle and of all hidden layers (the authors').
    steps : int, default 300,000
        Of each attempt (the authors' 80 epochs over a million rows).
    batch : int, default 256
        Rows of each cloud per step (the authors').
    learning_rate, judge_rate : float, default 2e-5 and 1e-5
        Of Adam, for translators and judges (the authors').
    attempts : int, default 2
        Trainings from other weights; the two that agree most are compared.
    sample : int, default 1,000,000
        Rows of each cloud that are looked at, at most.
    seed : int, default 0
    device : str, default "cpu"
        Torch's name of it.

    Attributes
    ----------
    into_weight_first_ and so on : float32
        Arrays of three networks of two layers: ``into``, ``shared``, ``out``.
    scale_ : () float64
        Root of the mean squared distance of target rows to their mean.
    mean_source_, mean_target_ : (dim_source,) and (dim_target,) float64
    confidence_ : () float64
        Share of rows, 0 to 1, that two attempts send to the same of 1,000 target rows. Under 0.3
        the map is worthless (``reliable``).
    attempts_made_ : () int64

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clouds = rng.standard_normal((60, 4)), rng.standard_normal((70, 3))
    >>> made = Vec2Vec(width=8, steps=10).fit(*clouds)
    >>> made.transform(clouds[0]).shape, made.reliable
    ((60, 3), False)
    """

    name: ClassVar[str] = "vec2vec"
    freedom: ClassVar[int] = 75
    unrecorded: ClassVar[frozenset[str]] = frozenset({"device"})
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "into_weight_first": ("source", "hidden"),
        "into_bias_first": ("hidden",),
        "into_weight_last": ("hidden", "hidden"),
        "into_bias_last": ("hidden",),
        "shared_weight_first": ("hidden", "hidden"),
        "shared_bias_first": ("hidden",),
        "shared_weight_last": ("hidden", "hidden"),
        "shared_bias_last": ("hidden",),
        "out_weight_first": ("hidden", "hidden"),
        "out_bias_first": ("hidden",),
        "out_weight_last": ("hidden", "target"),
        "out_bias_last": ("target",),
        "scale": (),
        "mean_source": ("source",),
        "mean_target": ("target",),
        "confidence": (),
        "attempts_made": (),
    }

    scale_: FloatArray
    mean_source_: FloatArray
    mean_target_: FloatArray

    def __init__(
        self,
        *,
        width: int = 1_024,
        steps: int = 300_000,
        batch: int = 256,
        learning_rate: float = 2e-5,
        judge_rate: float = 1e-5,
        attempts: int = 2,
        sample: int = 1_000_000,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.width = width
        self.steps = steps
        self.batch = batch
        self.learning_rate = learning_rate
        self.judge_rate = judge_rate
        self.attempts = attempts
        self.sample = sample
        self.seed = seed
        self.device = device

    @property
    def networks(self) -> tuple[Network, Network, Network]:
        """Into the middle, beside the identity there, and out: for centred rows of length one."""
        self._check_fitted()
        into, shared, out = (
            Network(
                [getattr(self, f"{part}_weight_{layer}_") for layer in ("first", "last")],
                [getattr(self, f"{part}_bias_{layer}_") for layer in ("first", "last")],
            )
            for part in PARTS
        )
        return into, shared, out

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Carry source rows into the target space: (n, dim_target), float32."""
        into, shared, out = self.networks
        made = Translators((into, into), shared, (out, out))
        mean, middle = self.mean_source_, self.mean_target_.astype(np.float32)
        scale = np.float32(self.scale_)

        def carry(rows: FloatArray) -> FloatArray:
            unit = normalise((rows - mean).astype(np.float32))
            return made.translate(unit) * scale + middle

        return in_row_blocks(carry, self._check_source(X))

    def _learn(self, source: Cloud, target: Cloud, rng: np.random.Generator) -> None:
        device = find_device(self.device)
        schedule = Adversarial(self.steps, self.batch, self.learning_rate, self.judge_rate)
        dims = source.rows.shape[1], target.rows.shape[1]
        rows, others = compared(source.rows, target.rows)
        found: list[tuple[Translators, FloatArray]] = []
        best = -1.0
        for _ in range(self.attempts):
            made = schedule.train(
                Translators.draw(dims, width=self.width, rng=rng),
                (source.rows, target.rows),
                rng=rng,
                device=device,
            )
            mapped = made.translate(rows)
            for _, other in found:
                agreed = agreement(other, mapped, others)
                if agreed > best:
                    best, kept = agreed, made
            found.append((made, mapped))
        self._keep(kept)
        self.confidence_ = np.asarray(best)
        self.attempts_made_ = np.asarray(self.attempts)
        self.scale_ = np.asarray(target.scale)
        self.mean_source_, self.mean_target_ = source.mean, target.mean

    def _keep(self, made: Translators) -> None:
        for part, network in zip(PARTS, (made.into[0], made.shared, made.out[1]), strict=True):
            for layer, weight, bias in zip(
                ("first", "last"), network.weights, network.biases, strict=True
            ):
                setattr(self, f"{part}_weight_{layer}_", weight)
                setattr(self, f"{part}_bias_{layer}_", bias)

    def _check_params(self) -> None:
        super()._check_params()
        check_whole(self.width, name="width", maximum=LARGEST_WIDTH)
        check_whole(self.steps, name="steps", maximum=10**9)
        check_whole(self.batch, name="batch", minimum=2, maximum=MOST)
        check_positive(self.learning_rate, name="learning_rate", maximum=LARGEST_RATE)
        check_positive(self.judge_rate, name="judge_rate", maximum=LARGEST_RATE)
