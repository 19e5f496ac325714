"""What linking needs of a cloud whatever the links are: its rows, and the same partly whitened."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus._linalg import affine, cross_product, mean_rows
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray

__all__ = ["Clouds", "Seed", "Side"]

Seed = int | tuple[int, ...]
"""Of a random stream; steps of one run add a number each, so that no two share a stream."""

WHITENING = 0.25
"""Power of the inverse covariance; 1/2 would be whitening. Strong directions are shared by most
rows of a cloud and tell them apart badly; weak ones are noise."""

WHITENING_FLOOR = 0.1
"""Share of the mean variance that is added to each."""


@dataclass(frozen=True, eq=False)
class Side:
    """One cloud.

    Parameters
    ----------
    rows : FloatArray of shape (n, dim), float32
        Of length one.
    white : FloatArray of shape (n, dim), float32
        Centred, and partly whitened by the cloud's own covariance.
    """

    rows: FloatArray
    white: FloatArray

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.rows)

    @classmethod
    def of(cls, rows: FloatArray) -> Side:
        """Whiten the rows by their own covariance.

        Examples
        --------
        >>> side = Side.of(np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], np.float32))
        >>> bool(np.allclose(side.white, 0.976 * side.rows, atol=1e-3))
        True
        """
        from scipy.linalg import eigh

        with one_blas_thread():
            mean = mean_rows(rows)
            covariance = cross_product(rows, mean_x=mean) / len(rows)
            values, vectors = eigh(covariance, driver="evd", check_finite=False)
            average = float(values.mean())
            scale = (np.maximum(values, 0.0) / average + WHITENING_FLOOR) ** -WHITENING
            weight = (vectors * scale) @ vectors.T
            bias = -mean @ weight
        return cls(rows=rows, white=affine(rows, weight, bias))

    def select(self, kept: IntArray) -> Side:
        """Return the side with only these rows."""
        return Side(self.rows[kept], self.white[kept])


@dataclass(frozen=True, eq=False)
class Clouds:
    """Both sides.

    Parameters
    ----------
    source, target : Side
    """

    source: Side
    target: Side
