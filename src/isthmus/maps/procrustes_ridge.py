"""Procrustes with a ridge correction: a linear map that is shrunk towards a rotation.

Solves ``min over W, b of sum w |x W + b - y|^2 + a |W - R|^2`` where R is the rotation of
``Procrustes``; the bias is not penalised. The penalty ``a`` is chosen by exact leave-one-out (R
held fixed) over a log grid, or is given. A large penalty gives Procrustes, a small one least
squares.

When to use it: where ``Procrustes`` has too few pairs to be left for ``Ridge``, or where it is not
known which of the two keeps more. Ridge pulls what the pairs do not say to zero, which scrambles
near neighbours; this map pulls it to a rotation, which keeps them. Shapes: (n, dim_source) to
(n, dim_target).
References: Schönemann (1966); Hoerl and Kennard (1970); shrinking towards a given matrix is ridge
regression of what that matrix leaves. The combination is this project's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine
from isthmus._types import FloatArray
from isthmus.maps._fitting import check_fit
from isthmus.maps._least_squares import LeastSquares, resolve_penalties
from isthmus.maps.base import Map

__all__ = ["ProcrustesRidge"]


class ProcrustesRidge(Map):
    """An affine map of least squares with a penalty on its distance from the best rotation.

    Parameters
    ----------
    penalty : float or "loo", default "loo"
        As in ``Ridge``.
    penalties : tuple of float, optional
        As in ``Ridge``.

    Attributes
    ----------
    weight_ : (dim_source, dim_target) float32
    bias_ : (dim_target,) float32
    penalty_ : () float64
    penalties_, loo_errors_ : (n_penalties,) float64
        The leave-one-out curve; empty with a fixed penalty.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> Y = X[:, ::-1] + 5
    >>> ProcrustesRidge().fit(X, Y).transform([[1.0, 2.0, 3.0]]).round(3)
    array([[8., 7., 6.]], dtype=float32)
    """

    name: ClassVar[str] = "procrustes_ridge"
    freedom: ClassVar[int] = 45
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "weight": ("source", "target"),
        "bias": ("target",),
        "penalty": (),
        "penalties": ("penalties",),
        "loo_errors": ("penalties",),
    }

    weight_: FloatArray
    bias_: FloatArray
    penalty_: FloatArray
    penalties_: FloatArray
    loo_errors_: FloatArray

    def __init__(
        self,
        *,
        penalty: float | Literal["loo"] = "loo",
        penalties: tuple[float, ...] | None = None,
    ) -> None:
        self.penalty = penalty
        self.penalties = penalties

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn the rotation and its correction from pairs X (n, dim_source), Y (n, dim_target).

        Raises
        ------
        ParameterError
            A penalty that is not over zero.
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        pairs = check_fit(X, Y, sample_weight)
        problem = LeastSquares.decompose(pairs, towards_rotation=True)
        grid = resolve_penalties(problem, self.penalty, self.penalties)
        best, self.penalties_, self.loo_errors_ = 0, np.zeros(0), np.zeros(0)
        if self.penalty == "loo":
            left_out = problem.leave_one_out(grid)
            best, self.penalties_, self.loo_errors_ = left_out.best, grid, left_out.errors
        self.penalty_ = np.asarray(grid[best])
        weight = problem.weights(float(grid[best]))
        self.weight_ = weight.astype(np.float32)
        self.bias_ = problem.bias(weight).astype(np.float32)
        self.n_features_in_, self.n_features_target_ = weight.shape
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Carry source rows into the target space: (n, dim_target), float32."""
        return affine(self._check_source(X), self.weight_, self.bias_)
