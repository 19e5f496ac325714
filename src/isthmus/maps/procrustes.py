"""Orthogonal Procrustes: the best rotation or reflection.

Solves ``min over R of sum w |s (x - m_x) R + m_y - y|^2`` subject to ``R R^T = I`` (or
``R^T R = I`` to fewer dimensions). ``R = U V^T`` from the SVD of the weighted cross-product
``(X - m_x)^T (Y - m_y)``; ``s`` is 1, or the trace of the singular values over the weighted sum of
``|(x - m_x) R|^2`` when ``scale`` is asked for.

When to use it: first after the null map. It keeps all distances and angles of the source, cannot
fix scale or shear, and needs the fewest pairs. Where the widths differ a lot and there are
thousands of pairs, ridge usually keeps more. Centre (and normalise) first: both are explicit here
and in ``Compose``. Shapes: (n, dim_source) to (n, dim_target).
References: Schönemann (1966); Schönemann and Carroll (1970) for the scale; the map family paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine, cross_product, mean_rows, pca, semi_orthogonal
from isthmus._types import FloatArray
from isthmus.errors import ParameterError
from isthmus.maps._fitting import PairedRows, check_fit
from isthmus.maps.base import Map

__all__ = ["Procrustes"]


class Procrustes(Map):
    """A rotation or reflection, with optional centring and one optional scale.

    Parameters
    ----------
    centre : bool, default True
        Subtract the mean of the source pairs before, add the mean of the target pairs after.
    scale : bool, default False
        Multiply by the one factor that fits best.
    unequal : {"semi_orthogonal", "pca"}, default "semi_orthogonal"
        What to do where the widths differ: a matrix with orthonormal rows or columns, or first a
        PCA of the larger side to the width of the smaller, as the map family paper says. The PCA is
        part of the state.

    Attributes
    ----------
    rotation_ : (dim_source, dim_target) float32
    scale_ : () float64
    mean_source_, mean_target_ : (dim_source,) and (dim_target,) float64
    pca_ : (larger dim, smaller dim) float32
        The PCA of the larger side; shape (0, 0) where there was none.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> Y = X[:, ::-1] + 5
    >>> Procrustes().fit(X, Y).transform([[2.0, 3.0]]).round(4)
    array([[8., 7.]], dtype=float32)
    """

    name: ClassVar[str] = "procrustes"
    freedom: ClassVar[int] = 10
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "rotation": ("source", "target"),
        "scale": (),
        "mean_source": ("source",),
        "mean_target": ("target",),
        "pca": ("larger", "smaller"),
    }

    rotation_: FloatArray
    scale_: FloatArray
    mean_source_: FloatArray
    mean_target_: FloatArray
    pca_: FloatArray

    def __init__(
        self,
        *,
        centre: bool = True,
        scale: bool = False,
        unequal: Literal["semi_orthogonal", "pca"] = "semi_orthogonal",
    ) -> None:
        self.centre = centre
        self.scale = scale
        self.unequal = unequal

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn the rotation from pairs X (n, dim_source) and Y (n, dim_target).

        Raises
        ------
        ParameterError
            ``unequal`` is neither of the two.
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        if self.unequal not in ("semi_orthogonal", "pca"):
            raise ParameterError(
                expected="unequal as 'semi_orthogonal' or 'pca'",
                got=repr(self.unequal),
                do="choose one",
            )
        pairs = check_fit(X, Y, sample_weight)
        dims = pairs.source.shape[1], pairs.target.shape[1]
        means = [
            mean_rows(side, weight=pairs.weight) if self.centre else np.zeros(side.shape[1])
            for side in (pairs.source, pairs.target)
        ]
        cross = cross_product(
            pairs.source, pairs.target, mean_x=means[0], mean_y=means[1], weight=pairs.weight
        )
        axes: FloatArray = np.zeros((0, 0))
        if self.unequal == "pca" and dims[0] != dims[1]:
            axes = _larger_side_axes(pairs)
        rotation = _rotation(cross, axes)
        self.scale_ = np.asarray(
            _best_scale(cross, rotation, means[0], pairs) if self.scale else 1.0
        )
        self.rotation_ = rotation.astype(np.float32)
        self.mean_source_, self.mean_target_ = means
        self.pca_ = axes.astype(np.float32)
        self.n_features_in_, self.n_features_target_ = dims
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Rotate source rows into the target space: (n, dim_target), float32."""
        source = self._check_source(X)
        scale = float(self.scale_)
        turned_mean = self.mean_source_ @ self.rotation_.astype(np.float64)
        return affine(source, self.rotation_, self.mean_target_ - scale * turned_mean, scale=scale)


def _larger_side_axes(pairs: PairedRows) -> FloatArray:
    """Return orthonormal principal axes (larger dim, smaller dim) of the larger side."""
    sides = sorted((pairs.source, pairs.target), key=lambda side: side.shape[1])
    width = sides[0].shape[1]
    _, directions, _ = pca(sides[1], width, weight=pairs.weight)
    if directions.shape[1] == width:
        return directions
    # Fewer pairs than dimensions: the axes without variance are filled with any orthonormal ones.
    filled: Any = np.linalg.qr(directions, mode="complete")[0]
    filled[:, : directions.shape[1]] = directions
    return np.asarray(filled[:, :width])


def _rotation(cross: FloatArray, axes: FloatArray) -> FloatArray:
    if not axes.size:
        return semi_orthogonal(cross)
    if cross.shape[0] > cross.shape[1]:
        return axes @ semi_orthogonal(axes.T @ cross)
    return semi_orthogonal(cross @ axes) @ axes.T


def _best_scale(
    cross: FloatArray, rotation: FloatArray, mean: FloatArray, pairs: PairedRows
) -> float:
    """Return the factor of least squares: trace(R^T C) over the sum of |x R|^2."""
    gram = cross_product(pairs.source, mean_x=mean, weight=pairs.weight)
    spread = float(np.sum(rotation * (gram @ rotation)))
    best = float(np.sum(rotation * cross)) / spread if spread > 0 else 1.0
    return best if best > 0 else 1.0
