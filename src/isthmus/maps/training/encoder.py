"""One side's encoder: LayerNorm and a linear layer, to unit length.

    e(x) = n(LN(x) W + b),   LN(x) = (x - mean(x)) / sqrt(var(x) + 1e-5)

The gain and the shift of the LayerNorm, which training has, are multiplied into W and b afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus._linalg import affine, in_row_blocks, normalise
from isthmus._types import FloatArray

__all__ = ["Encoder"]

LAYER_NORM = 1e-5
"""Added to the variance: torch's default."""


@dataclass(frozen=True, eq=False)
class Encoder:
    """LayerNorm, a linear layer, unit length.

    Parameters
    ----------
    weight : FloatArray of shape (dim, width), float32
    bias : FloatArray of shape (width,), float32

    Examples
    --------
    >>> Encoder(np.eye(2, dtype=np.float32), np.zeros(2, np.float32)).forward(np.array([[3, 1.0]]))
    array([[ 0.70710677, -0.70710677]], dtype=float32)
    """

    weight: FloatArray
    bias: FloatArray

    @classmethod
    def draw(cls, dim: int, width: int, *, rng: np.random.Generator) -> Encoder:
        """Return first weights, uniform within 1 / sqrt(dim): what torch's linear layer has."""
        bound = 1 / np.sqrt(dim)
        weight = rng.uniform(-bound, bound, (dim, width)).astype(np.float32)
        return cls(weight, rng.uniform(-bound, bound, width).astype(np.float32))

    @classmethod
    def project(cls, directions: FloatArray, width: int) -> Encoder:
        """Return an encoder that projects centred rows on the first directions (dim, n).

        As many as there are, at most ``width``; of length one in the mean, as large as drawn
        weights.
        """
        taken = directions[:, :width]
        length = np.sqrt(np.square(taken).sum() / taken.shape[1])
        return cls((taken / length).astype(np.float32), np.zeros(taken.shape[1], np.float32))

    def forward(self, rows: FloatArray) -> FloatArray:
        """Carry rows (n, dim) to (n, width), float32, without torch."""
        return in_row_blocks(
            lambda block: normalise(affine(layer_norm(block), self.weight, self.bias)), rows
        )


def layer_norm(rows: FloatArray) -> FloatArray:
    """Return rows of mean 0 and variance 1, float32; each by itself."""
    block = np.asarray(rows, dtype=np.float32)
    centred = block - block.mean(axis=1, keepdims=True)
    variance = np.square(centred).mean(axis=1, keepdims=True)
    scaled: FloatArray = centred / np.sqrt(variance + np.float32(LAYER_NORM))
    return scaled
