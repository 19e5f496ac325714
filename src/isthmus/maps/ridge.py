"""Ridge regression with a bias: the best linear map, shrunk as the pairs themselves ask for.

Solves ``min over W, b of sum w |x W + b - y|^2 + a |W|^2``; the bias is not penalised. The penalty
``a`` is chosen by exact leave-one-out over a log grid, all from one decomposition, or is given.

When to use it: with some hundred pairs or more, and where the spaces differ by more than a rotation
(unequal widths, different training). It reconstructs best and may reorder near-ties; with fewer
pairs use ``Procrustes``, where few directions of the target can be predicted ``LowRank``. Shapes:
(n, dim_source) to (n, dim_target).
References: Hoerl and Kennard (1970); Hastie, Tibshirani and Friedman (2009), eq. 7.64.
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

__all__ = ["Ridge"]


class Ridge(Map):
    """An affine map of least squares with a penalty on its weights.

    Parameters
    ----------
    penalty : float or "loo", default "loo"
        In units of the weighted sum of squares of the source; "loo" picks the one of the grid with
        the least leave-one-out error.
    penalties : tuple of float, optional
        The grid. Default: 25 values, two per decade, from 1e-9 to 1e3 of the mean squared singular
        value of the centred source.

    Attributes
    ----------
    weight_ : (dim_source, dim_target) float32
    bias_ : (dim_target,) float32
    penalty_ : () float64
    penalties_, loo_errors_ : (n_penalties,) float64
        The leave-one-out curve: weighted mean squared distance to the target. With a fixed penalty
        the curve is empty: it was not computed.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 1.0]])
    >>> Y = X @ np.array([[2.0], [3.0]]) + 1
    >>> Ridge().fit(X, Y).transform([[3.0, 2.0]]).round(3)
    array([[13.]], dtype=float32)
    """

    name: ClassVar[str] = "ridge"
    freedom: ClassVar[int] = 50
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
        """Learn the weights from pairs X (n, dim_source) and Y (n, dim_target).

        Raises
        ------
        ParameterError
            A penalty that is not over zero.
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        pairs = check_fit(X, Y, sample_weight)
        problem = LeastSquares.decompose(pairs)
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
