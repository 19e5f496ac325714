"""What all maps share that are two trained encoders: centring, state, transforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from isthmus._linalg import in_row_blocks
from isthmus._types import FloatArray
from isthmus._validate import check_whole
from isthmus.maps._anchored import Anchored
from isthmus.maps._sides import Sides, centre
from isthmus.maps.training.encoder import Encoder
from isthmus.maps.training.two_sided import TrainedPair, TwoSided

__all__ = ["TwoEncoders"]

MOST = 10**6
"""Columns: whoever gives more has made a slip."""


class TwoEncoders(Anchored):
    """A map of two encoders, LayerNorm and a linear layer each, into one space of unit rows."""

    freedom: ClassVar[int] = 80
    unrecorded: ClassVar[frozenset[str]] = frozenset({"device"})
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "source_weight": ("source", "width"),
        "source_bias": ("width",),
        "mean_source": ("source",),
        "target_weight": ("target", "width"),
        "target_bias": ("width",),
        "mean_target": ("target",),
        "losses": ("epochs",),
        "look_epochs": ("looks",),
        "look_scores": ("looks",),
    }

    source_weight_: FloatArray
    source_bias_: FloatArray
    mean_source_: FloatArray
    target_weight_: FloatArray
    target_bias_: FloatArray
    mean_target_: FloatArray
    losses_: FloatArray
    look_epochs_: npt.NDArray[np.int64]
    look_scores_: FloatArray

    width: int
    seed: int
    device: str

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Encode source rows: (n, width), float32, of length one."""
        rows = self._check_source(X)
        return _encode(rows, self.mean_source_, Encoder(self.source_weight_, self.source_bias_))

    def transform_target(self, Y: npt.ArrayLike) -> FloatArray:
        """Encode target rows: (n, width), float32, of length one."""
        rows = self._check_target(Y)
        return _encode(rows, self.mean_target_, Encoder(self.target_weight_, self.target_bias_))

    def _check_training(self, schedule: TwoSided) -> None:
        """Check the parameters that all of these maps have.

        Raises
        ------
        ParameterError
        """
        schedule.check()
        check_whole(self.width, name="width", maximum=MOST)
        check_whole(self.seed, name="seed", minimum=0)

    def _draw(self, sides: Sides) -> tuple[Encoder, Encoder]:
        """Return first weights of both encoders."""
        rng = np.random.default_rng([self.seed, 0])
        left, right = (Encoder.draw(len(mean), self.width, rng=rng) for mean in sides.means)
        return left, right

    def _keep(self, trained: TrainedPair, sides: Sides) -> None:
        self.source_weight_, self.source_bias_ = trained.source.weight, trained.source.bias
        self.target_weight_, self.target_bias_ = trained.target.weight, trained.target.bias
        self.mean_source_, self.mean_target_ = sides.means
        self.losses_ = trained.losses
        self.look_epochs_ = np.array([epoch for epoch, _ in trained.looks], dtype=np.int64)
        self.look_scores_ = np.array([score for _, score in trained.looks], dtype=np.float64)
        self.n_features_in_, self.n_features_target_ = (len(mean) for mean in sides.means)


def _encode(rows: FloatArray, mean: FloatArray, encoder: Encoder) -> FloatArray:
    return in_row_blocks(lambda block: encoder.forward(centre(block, mean)), rows)
