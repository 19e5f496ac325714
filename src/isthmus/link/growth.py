"""Growing links from seeds: a rotation fitted on the links before, from coarse to fine.

Each round fits the centred orthogonal Procrustes map on all links so far, compares both clouds in
the directions of which the links say most, and takes the mutual nearest neighbours by CSLS as new
links. Three things let it start from few seeds, some of them wrong, where plain self-training
(`SelfTraining`) often stays with chance:

1. the number of directions grows slowly (``first_rank`` times ``rank_growth`` per round): fifteen
   seeds tell a dozen directions well and hundreds badly;
2. directions count by their singular value to a power that falls from ``first_power`` to 0;
3. a link counts by how its CSLS compares with the others of the round (`soft_weights`): wrong links
   near the right place help, those that fit badly fade.

The seeds start it and are not held to afterwards, so a wrong seed does no lasting harm. When to use
it: as the first half of `Auto`. Shapes: links (n_links,) rows of each cloud; cross-product
(dim_source, dim_target).
References: Schönemann (1966); Artetxe, Labaka and Agirre (2018), who drop links at random instead
and whiten; Lample et al. (2018) for CSLS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isthmus._linalg import (
    affine,
    cross_product,
    mean_rows,
    normalise,
    singular_directions,
)
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray
from isthmus.neighbors import mutual_by_csls

__all__ = ["Anchors", "Growth", "principal_pairs", "soft_weights"]


@dataclass(frozen=True, eq=False)
class Anchors:
    """Pairs of rows that a map is fitted on.

    Parameters
    ----------
    source_rows, target_rows : IntArray of shape (n,)
    weight : FloatArray of shape (n,), float64
        Over 0.
    """

    source_rows: IntArray
    target_rows: IntArray
    weight: FloatArray

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.source_rows)

    def select(self, kept: IntArray | npt.NDArray[np.bool_]) -> Anchors:
        """Return some of the pairs: row numbers or one boolean each."""
        return Anchors(self.source_rows[kept], self.target_rows[kept], self.weight[kept])


@dataclass(frozen=True, kw_only=True)
class Growth:
    """How the directions and their weights change from round to round.

    Parameters
    ----------
    first_rank : int, default 12
        Directions compared in the first round.
    rank_growth : float, default 1.15
        Factor per round; the last round has all directions that the links tell.
    first_power : float, default 0.5
        Power of the singular values, on each side, in the first round.
    power_decay : float, default 0.8
        Factor per round.
    neighborhood : int, default 10
        Neighbours in CSLS (Lample et al. 2018, section 2.3).
    """

    first_rank: int = 12
    rank_growth: float = 1.15
    first_power: float = 0.5
    power_decay: float = 0.8
    neighborhood: int = 10

    def rounds(self, dim: int) -> int:
        """Count the rounds until the rank reaches a number of dimensions, and two more.

        Examples
        --------
        >>> Growth().rounds(384)
        27
        """
        steps = np.log(max(dim / self.first_rank, 1.0)) / np.log(self.rank_growth)
        return int(np.ceil(steps)) + 2

    def grow(
        self,
        source: FloatArray,
        target: FloatArray,
        anchor_source: FloatArray,
        anchor_target: FloatArray,
        weight: FloatArray,
        *,
        round_: int,
    ) -> Anchors:
        """Return the links of one round.

        Parameters
        ----------
        source : FloatArray of shape (n_source, dim_source)
        target : FloatArray of shape (n_target, dim_target)
        anchor_source : FloatArray of shape (n_anchors, dim_source)
            Vectors of the links of the round before; of the seeds in the first.
        anchor_target : FloatArray of shape (n_anchors, dim_target)
        weight : FloatArray of shape (n_anchors,)
        round_ : int
            From 0.
        """
        left, right = principal_pairs(
            source,
            target,
            anchor_source,
            anchor_target,
            weight,
            rank=int(self.first_rank * self.rank_growth**round_),
            power=self.first_power * self.power_decay**round_,
        )
        found = mutual_by_csls(left, right, neighborhood=self.neighborhood)
        return Anchors(found.source_rows, found.target_rows, soft_weights(found.scores))


def soft_weights(scores: FloatArray) -> FloatArray:
    """Return weights in (0, 1): the logistic of scores, centred on their median, over their spread.

    Parameters
    ----------
    scores : FloatArray of shape (n,)
        CSLS of the links of one round.

    Examples
    --------
    >>> soft_weights(np.array([-1.0, 0.0, 1.0])).round(2).tolist()
    [0.23, 0.5, 0.77]
    """
    if not len(scores):
        return np.empty(0)
    wide = scores.astype(np.float64)
    spread = float(wide.std())
    if spread == 0.0:
        return np.full(len(wide), 0.5)
    return np.asarray(1.0 / (1.0 + np.exp(-(wide - np.median(wide)) / spread)))


def principal_pairs(
    source: FloatArray,
    target: FloatArray,
    anchor_source: FloatArray,
    anchor_target: FloatArray,
    weight: FloatArray,
    *,
    rank: int | None = None,
    power: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Return both clouds in the singular directions of the anchors' cross-product.

    With power 0 and all directions, inner products are those of the Procrustes map, in the
    directions that the anchors determine.

    Parameters
    ----------
    source : FloatArray of shape (n_source, dim_source)
    target : FloatArray of shape (n_target, dim_target)
    anchor_source : FloatArray of shape (n_anchors, dim_source)
    anchor_target : FloatArray of shape (n_anchors, dim_target)
    weight : FloatArray of shape (n_anchors,)
    rank : int, optional
        Directions to keep, the strongest first; all by default.
    power : float, default 0
        Of the singular values, as shares of the largest, on each side.

    Returns
    -------
    source, target : FloatArray of shape (n_source or n_target, up to rank), float32
        Rows of length one; of zeros where a row has no part in the directions.
    """
    with one_blas_thread():
        mean_source = mean_rows(anchor_source, weight=weight)
        mean_target = mean_rows(anchor_target, weight=weight)
        cross = cross_product(
            anchor_source, anchor_target, mean_x=mean_source, mean_y=mean_target, weight=weight
        )
        left, strength, right = singular_directions(cross, rank)
        if not len(strength):  # the anchors are one point on a side
            return np.zeros((len(source), 1), np.float32), np.zeros((len(target), 1), np.float32)
        scale = (strength / strength[0]) ** power
        left, right = left * scale, right * scale
    return (
        normalise(affine(source, left, -mean_source @ left)),
        normalise(affine(target, right, -mean_target @ right)),
    )
