"""Canonical correlation analysis: the directions of both sides that go together.

Solves, for the centred, weighted pairs, ``max over A, B of trace(A^T S_xy B)`` subject to
``A^T S_xx A = B^T S_yy B = I``, with ridged covariances ``S + r / (1 - r) mean_variance I``: the
shrunk covariance of Ledoit and Wolf, not multiplied by 1 - r, so that no correlation exceeds 1. The
columns of A and B are scaled by ``correlation ** power``, so that directions which do not go
together do not count in a comparison.

When to use it: where the spaces share a subspace and each has private structure, and both sides may
move: it scores candidates, or searches an index of ``transform_target`` vectors. For an untouched
store use ``Procrustes`` or ``Ridge``. High correlation is not the same as kept ranks. Shapes:
(n, dim_source) and (n, dim_target) to (n, n_components).
References: Hotelling (1936); Vinod (1976) for the ridge; Ledoit and Wolf (2004) for its size; Gong,
Ke, Isard and Lazebnik (2014) for the scaling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import (
    affine,
    cross_product,
    eigen_directions,
    iter_centred,
    mean_rows,
)
from isthmus._types import FloatArray
from isthmus.errors import ParameterError
from isthmus.maps._fitting import PairedRows, check_fit
from isthmus.maps.base import LandsIn, Map

__all__ = ["CCA"]

LEAST_GIVEN = 1e-9
"""With less, a covariance of fewer directions than columns has no Cholesky factor in float64."""

LEAST_CORRELATION = 1e-4
"""Of the largest: directions under it say nothing, and rounding decides which they are."""

SMALLEST_SHRINKAGE = 1e-6
"""Never none at all, so that a whitener exists, and never all, so that something is whitened."""


class CCA(Map):
    """Both sides projected on their canonical directions.

    Parameters
    ----------
    n_components : int, optional
        Directions to keep, those of the highest correlation. Default: all there are.
    shrinkage : float in [1e-9, 1) or "ledoit_wolf", default "ledoit_wolf"
        Share r of the mean variance in every direction; by default the share that Ledoit and Wolf
        (2004) estimate from the rows of each side.
    power : float, default 4
        Of the correlation that scales each direction; the default is that of Gong et al. (2014).
        0 leaves the directions as CCA gives them.

    Attributes
    ----------
    source_directions_, target_directions_ : (dim, n_components) float32
        Scaled.
    mean_source_, mean_target_ : (dim,) float64
    correlations_ : (n_components,) float64
        Of the ridged problem, from 1 down.
    shrinkages_ : (2,) float64
        That were used, source and target.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 3))
    >>> cca = CCA(n_components=2, shrinkage=1e-6).fit(X, X @ rng.standard_normal((3, 3)))
    >>> cca.correlations_.round(3)
    array([1., 1.])
    """

    name: ClassVar[str] = "cca"
    lands_in: ClassVar[LandsIn] = "comparison"
    freedom: ClassVar[int] = 20
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "source_directions": ("source", "components"),
        "target_directions": ("target", "components"),
        "mean_source": ("source",),
        "mean_target": ("target",),
        "correlations": ("components",),
        "shrinkages": ("sides",),
    }

    source_directions_: FloatArray
    target_directions_: FloatArray
    mean_source_: FloatArray
    mean_target_: FloatArray
    correlations_: FloatArray
    shrinkages_: FloatArray

    def __init__(
        self,
        *,
        n_components: int | None = None,
        shrinkage: float | Literal["ledoit_wolf"] = "ledoit_wolf",
        power: float = 4.0,
    ) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.power = power

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
            More components than there are directions; shrinkage or power out of range.
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        pairs = check_fit(X, Y, sample_weight)
        self._check_params()
        source = _decompose(pairs.source, pairs.weight, self.shrinkage)
        target = _decompose(pairs.target, pairs.weight, self.shrinkage)
        left, correlations, right = _canonical(source, target, pairs)
        kept = self._n_kept(len(correlations))
        scale = correlations[:kept] ** self.power
        self.source_directions_ = (source.directions(left[:, :kept]) * scale).astype(np.float32)
        self.target_directions_ = (target.directions(right[:, :kept]) * scale).astype(np.float32)
        self.mean_source_, self.mean_target_ = source.mean, target.mean
        self.correlations_ = correlations[:kept]
        self.shrinkages_ = np.asarray([source.shrinkage, target.shrinkage])
        self.n_features_in_, self.n_features_target_ = pairs.source.shape[1], pairs.target.shape[1]
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Project source rows: (n, n_components), float32."""
        return _project(self._check_source(X), self.source_directions_, self.mean_source_)

    def transform_target(self, Y: npt.ArrayLike) -> FloatArray:
        """Project target rows: (n, n_components), float32."""
        return _project(self._check_target(Y), self.target_directions_, self.mean_target_)

    def _check_params(self) -> None:
        shrinkage_fits = self.shrinkage == "ledoit_wolf" or (
            not isinstance(self.shrinkage, str) and LEAST_GIVEN <= self.shrinkage < 1
        )
        if not shrinkage_fits or self.power < 0:
            raise ParameterError(
                expected=f"shrinkage from {LEAST_GIVEN} to under 1 or 'ledoit_wolf', power of at "
                "least 0",
                got=f"shrinkage={self.shrinkage!r}, power={self.power!r}",
                do="leave them out",
            )

    def _n_kept(self, found: int) -> int:
        if self.n_components is None:
            return found
        if not 1 <= self.n_components <= found:
            raise ParameterError(
                expected=f"n_components from 1 to {found}, the directions these pairs have",
                got=f"{self.n_components}",
                do="keep fewer, or add pairs",
            )
        return self.n_components


@dataclass(frozen=True)
class _Side:
    """One side: mean (dim,) and Cholesky factor (dim, dim) of its ridged covariance."""

    mean: FloatArray
    factor: FloatArray
    shrinkage: float

    def whiten(self, rows: FloatArray) -> FloatArray:
        """Return ``L^-1 rows``, for rows of shape (dim, k)."""
        return _solve(self.factor, rows)

    def directions(self, whitened: FloatArray) -> FloatArray:
        """Return ``L^-T whitened``: directions (dim, k) in the space of the side."""
        return _solve(self.factor, whitened, transposed=True)


def _solve(factor: FloatArray, rows: FloatArray, *, transposed: bool = False) -> FloatArray:
    from scipy.linalg import solve_triangular

    return np.asarray(
        solve_triangular(factor, rows, lower=True, trans=int(transposed), check_finite=False)
    )


def _decompose(
    rows: FloatArray, weight: FloatArray | None, shrinkage: float | Literal["ledoit_wolf"]
) -> _Side:
    from scipy.linalg import cholesky

    mean = mean_rows(rows, weight=weight)
    total = len(rows) if weight is None else weight.sum()
    covariance = cross_product(rows, mean_x=mean, weight=weight) / total
    estimate = shrinkage == "ledoit_wolf"
    used = _ledoit_wolf(rows, mean, covariance, weight) if estimate else float(shrinkage)
    covariance[np.diag_indices_from(covariance)] += (
        used / (1 - used) * np.trace(covariance) / len(covariance)
    )
    return _Side(mean, cholesky(covariance, lower=True, check_finite=False), used)


def _ledoit_wolf(
    rows: FloatArray, mean: FloatArray, covariance: FloatArray, weight: FloatArray | None
) -> float:
    """Return the share of the mean variance that estimates the covariance best.

    Ledoit and Wolf (2004), section 3.2: the spread of ``x x^T`` around the covariance, over n, as
    a share of the distance of the covariance to the mean variance times the identity. With weights
    the number of rows becomes ``sum(w)^2 / sum(w^2)``.
    """
    share = np.full(len(rows), 1 / len(rows)) if weight is None else weight / weight.sum()
    fourth, at = 0.0, 0
    for block in iter_centred(rows, mean=mean):
        fourth += float(share[at : at + len(block)] @ np.square(block).sum(axis=1) ** 2)
        at += len(block)
    squared = float(np.sum(covariance**2))
    distance = squared - float(np.trace(covariance)) ** 2 / rows.shape[1]
    noise = (fourth - squared) * float(np.sum(share**2))
    share_of_noise = noise / distance if distance > 0 else 1.0
    return min(max(share_of_noise, SMALLEST_SHRINKAGE), 1 - SMALLEST_SHRINKAGE)


def _canonical(
    source: _Side, target: _Side, pairs: PairedRows
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the left directions, the correlations and the right directions."""
    cross = cross_product(
        pairs.source, pairs.target, mean_x=source.mean, mean_y=target.mean, weight=pairs.weight
    )
    total = len(pairs) if pairs.weight is None else pairs.weight.sum()
    whitened = target.whiten(source.whiten(cross / total).T).T
    # The smaller Gram matrix is exact enough for what is kept.
    if whitened.shape[0] > whitened.shape[1]:
        right, correlations, left = _by_gram(whitened.T)
    else:
        left, correlations, right = _by_gram(whitened)
    return left, np.minimum(correlations, 1.0), right


def _by_gram(wide: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    values, left = eigen_directions(wide @ wide.T)
    singular = np.sqrt(values)
    kept = singular > LEAST_CORRELATION * singular[0]
    left, singular = left[:, kept], singular[kept]
    return left, singular, wide.T @ (left / singular)


def _project(rows: FloatArray, directions: FloatArray, mean: FloatArray) -> FloatArray:
    return affine(rows, directions, -mean @ directions.astype(np.float64))
