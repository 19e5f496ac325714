"""CSA: canonical directions, compared by a cosine that counts each by its correlation.

    s(x, y) = sum over i of c_i (x A)_i (y B)_i / (|x A| |y B|)

with A and B the canonical directions of the centred pairs and c their correlations, the s leading
ones. What comes out has two columns more than directions, filled so that every row has length one
and a plain cosine of a source row and a target row is exactly s(x, y).

When to use it: as a rival, with many pairs for each dimension. As its authors have it, nothing
tames the covariances: with no more pairs than dimensions every direction correlates perfectly,
whatever the data, and the map finds next to nothing (ChEBI-20, 500 pairs of 512 and 384 dimensions:
recall at 1 under 1 percent). `CCA` shrinks; here ``shrinkage`` is this project's.
Shapes: (n, dim_source) and (n, dim_target) to (n, n_components + 2).
Reference: Li, Chinchali et al. (2025), CSA: data-efficient mapping of unimodal features to
multimodal features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import (
    affine,
    cross_product,
    in_row_blocks,
    mean_rows,
    normalise,
    right_singular,
    row_lengths,
)
from isthmus._types import FloatArray
from isthmus.errors import ParameterError
from isthmus.maps._fitting import PairedRows, check_fit
from isthmus.maps.base import LandsIn, Map

__all__ = ["CSA", "Canonical", "canonical"]

USUAL_COMPONENTS = 150
"""What the authors' published code compares by where nothing else is asked for."""


class CSA(Map):
    """Both sides on their canonical directions, for a cosine weighted by the correlations.

    Parameters
    ----------
    n_components : int, optional
        Directions to keep, those of the highest correlation. Default: 150 as in the authors' code,
        or all where there are fewer.
    shrinkage : float in [0, 1), default 0
        Share of the mean variance in every direction of both covariances. 0 is the rival as its
        authors have it; directions in which the pairs do not differ are left out.

    Attributes
    ----------
    source_directions_, target_directions_ : (dim, n_components) float32
    mean_source_, mean_target_ : (dim,) float64
    correlations_ : (n_components,) float64
        From 1 down.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 3))
    >>> csa = CSA(n_components=2).fit(X, X @ rng.standard_normal((3, 3)))
    >>> csa.correlations_.round(3)
    array([1., 1.])
    >>> csa.transform(X).shape
    (50, 4)
    """

    name: ClassVar[str] = "csa"
    lands_in: ClassVar[LandsIn] = "comparison"
    freedom: ClassVar[int] = 21
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "source_directions": ("source", "components"),
        "target_directions": ("target", "components"),
        "mean_source": ("source",),
        "mean_target": ("target",),
        "correlations": ("components",),
    }

    source_directions_: FloatArray
    target_directions_: FloatArray
    mean_source_: FloatArray
    mean_target_: FloatArray
    correlations_: FloatArray

    def __init__(self, *, n_components: int | None = None, shrinkage: float = 0.0) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn the directions from pairs X (n, dim_source) and Y (n, dim_target).

        Raises
        ------
        ParameterError
            More components than there are directions; shrinkage out of range.
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        if not 0 <= self.shrinkage < 1:
            raise ParameterError(
                expected="shrinkage from 0 to under 1",
                got=f"{self.shrinkage!r}",
                do="give 0 for the rival as published, or try 0.5",
            )
        pairs = check_fit(X, Y, sample_weight)
        found = canonical(pairs, shrinkage=self.shrinkage)
        kept = self._n_kept(len(found.correlations))
        self.mean_source_, self.mean_target_ = found.mean_source, found.mean_target
        self.source_directions_ = found.source[:, :kept].astype(np.float32)
        self.target_directions_ = found.target[:, :kept].astype(np.float32)
        self.correlations_ = found.correlations[:kept]
        self.n_features_in_, self.n_features_target_ = pairs.source.shape[1], pairs.target.shape[1]
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Project and weigh source rows: (n, n_components + 2), float32, of length one."""
        rows = self._check_source(X)
        return self._weigh(rows, self.source_directions_, self.mean_source_, spare=0)

    def transform_target(self, Y: npt.ArrayLike) -> FloatArray:
        """Project and weigh target rows: (n, n_components + 2), float32, of length one."""
        rows = self._check_target(Y)
        return self._weigh(rows, self.target_directions_, self.mean_target_, spare=1)

    def _n_kept(self, found: int) -> int:
        if self.n_components is None:
            return min(USUAL_COMPONENTS, found)
        if not 1 <= self.n_components <= found:
            raise ParameterError(
                expected=f"n_components from 1 to {found}, the directions these pairs have",
                got=f"{self.n_components}",
                do="keep fewer, or add pairs",
            )
        return self.n_components

    def _weigh(
        self,
        rows: FloatArray,
        directions: FloatArray,
        mean: FloatArray,
        *,
        spare: int,
    ) -> FloatArray:
        """Weigh projected rows, and bring them to length one.

        What is missing goes into a column of the row's own side, which is zero on the other side.
        """
        bias = -mean @ directions.astype(np.float64)
        taken = np.sqrt(self.correlations_).astype(np.float32)
        missing = np.sqrt(1 - self.correlations_).astype(np.float32)
        place = len(taken) + spare

        def weigh(block: FloatArray) -> FloatArray:
            projected = normalise(affine(block, directions, bias))
            out = np.zeros((len(block), len(taken) + 2), np.float32)
            out[:, : len(taken)] = projected * taken
            out[:, place] = row_lengths(projected * missing)
            return out

        return in_row_blocks(weigh, rows)


@dataclass(frozen=True, eq=False)
class Canonical:
    """Means (dim,) and canonical directions (dim, k) of both sides, and correlations (k,)."""

    mean_source: FloatArray
    mean_target: FloatArray
    source: FloatArray
    target: FloatArray
    correlations: FloatArray


def canonical(pairs: PairedRows, *, shrinkage: float = 0.0) -> Canonical:
    """Return the canonical directions of pairs, those of the highest correlation first.

    By whitening each side in the directions in which its rows differ, so that there may be fewer
    pairs than columns; then all correlations are one.
    """
    from scipy.linalg import svd

    weight = pairs.weight
    mean_source = mean_rows(pairs.source, weight=weight)
    mean_target = mean_rows(pairs.target, weight=weight)
    source = _whiten(pairs.source, mean_source, weight=weight, shrinkage=shrinkage)
    target = _whiten(pairs.target, mean_target, weight=weight, shrinkage=shrinkage)
    cross = cross_product(
        pairs.source, pairs.target, mean_x=mean_source, mean_y=mean_target, weight=weight
    )
    total = len(pairs) if weight is None else weight.sum()
    left, correlations, right = svd(
        source.T @ (cross / total) @ target, full_matrices=False, check_finite=False
    )
    return Canonical(
        mean_source, mean_target, source @ left, target @ right.T, np.minimum(correlations, 1.0)
    )


def _whiten(
    rows: FloatArray, mean: FloatArray, *, weight: FloatArray | None, shrinkage: float
) -> FloatArray:
    """Return directions (dim, rank) in which the rows have variance one and no covariance.

    Of the covariance ``S + r / (1 - r) mean_variance I`` for a shrinkage of r, as `CCA` has it.
    """
    total = len(rows) if weight is None else weight.sum()
    singular, basis = right_singular(rows, mean=mean, weight=weight)
    variance = singular**2 / total
    ridge = shrinkage / (1 - shrinkage) * variance.sum() / rows.shape[1]
    directions: FloatArray = basis / np.sqrt(variance + ridge)
    return directions
