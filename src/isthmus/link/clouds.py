"""What linking needs of two clouds whatever the links: whitened rows and how dense they lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from isthmus._linalg import affine, cross_product, mean_rows
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray
from isthmus.neighbors import nearest_similarities

__all__ = ["DEPTHS", "Clouds", "Side", "next_best"]

DEPTHS = (1, 3, 10, 50)
"""Next best rows that a similarity is compared with, as means."""

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
    density : FloatArray of shape (n, len(DEPTHS))
        Mean similarity of each row to its nearest in its own cloud.
    rank : FloatArray of shape (n, len(DEPTHS))
        Rank of that in the cloud, over 0 and up to 1.
    """

    rows: FloatArray
    white: FloatArray
    density: FloatArray
    rank: FloatArray

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.rows)

    @classmethod
    def of(cls, rows: FloatArray) -> Side:
        """Compute what does not depend on links."""
        similar, _ = nearest_similarities(rows, rows, depth=DEPTHS[-1] + 1)
        density = next_best(similar, similar[:, 0])  # a row's nearest is itself, or its equal
        return cls(
            rows=rows,
            white=_whitened(rows),
            density=density,
            rank=rankdata(density, axis=0) / len(rows),
        )

    def select(self, kept: IntArray) -> Side:
        """Return the side with only these rows."""
        return Side(self.rows[kept], self.white[kept], self.density[kept], self.rank[kept])


@dataclass(frozen=True, eq=False)
class Clouds:
    """Both sides.

    Parameters
    ----------
    source, target : Side
    """

    source: Side
    target: Side


def next_best(similar: FloatArray, own: FloatArray) -> FloatArray:
    """Return the mean of the highest similarities of each row, one similarity left out.

    Parameters
    ----------
    similar : FloatArray of shape (n, depth)
        The highest of each row, highest first.
    own : FloatArray of shape (n,)
        The similarity to leave out where it is among them.

    Returns
    -------
    FloatArray of shape (n, len(DEPTHS)), float64
        Means of the next 1, 3, 10 and 50; of as many as there are.

    Examples
    --------
    >>> next_best(np.array([[0.9, 0.5, 0.1]]), np.array([0.9]))[0, :2].round(3).tolist()
    [0.5, 0.3]
    """
    sums = np.cumsum(similar, axis=1, dtype=np.float64)
    out = np.empty((len(similar), len(DEPTHS)))
    for column, depth in enumerate(DEPTHS):
        k = max(1, min(depth, similar.shape[1] - 1))
        more = min(k, similar.shape[1] - 1)
        among = own >= similar[:, more]
        out[:, column] = np.where(among & (more > 0), sums[:, more] - own, sums[:, k - 1]) / k
    return out


def _whitened(rows: FloatArray) -> FloatArray:
    from scipy.linalg import eigh

    with one_blas_thread():
        mean = mean_rows(rows)
        covariance = cross_product(rows, mean_x=mean) / len(rows)
        values, vectors = eigh(covariance, driver="evd", check_finite=False)
        average = float(values.mean())
        scale = (np.maximum(values, 0.0) / average + WHITENING_FLOOR) ** -WHITENING
        weight = (vectors * scale) @ vectors.T
        bias = -mean @ weight
    return affine(rows, weight, bias)
