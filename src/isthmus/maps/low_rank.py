"""Low-rank affine map: ridge regression through a narrow waist.

Solves ``min over W, b of sum w |x W + b - y|^2 + a |W|^2`` subject to ``rank(W) <= r``. The answer
is the ridge answer projected on the r target directions in which it fits most: the eigenvectors of
``C^T diag(s^2 / (s^2 + a)) C`` (notation of `_least_squares.py`).

When to use it: where ridge overfits because only part of the target can be predicted from the
source, or where the map must be small. With full rank it is ``Ridge``. Shapes: (n, dim_source) to
(n, dim_target).
References: Izenman (1975); Mukherjee and Zhu (2011), section 2.2, for the ridge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine, eigen_directions, iter_centred
from isthmus._types import FloatArray
from isthmus.errors import ParameterError
from isthmus.maps._fitting import check_fit
from isthmus.maps._least_squares import LeastSquares, LeaveOneOut, resolve_penalties
from isthmus.maps.base import Map

__all__ = ["LowRank"]


class LowRank(Map):
    """An affine map of least squares whose weights have a low rank.

    Parameters
    ----------
    rank : int or "loo", default "loo"
        "loo" picks the rank of least leave-one-out error with the directions held fixed: the ridge
        prediction leaves the pair out exactly, its projection does not.
    penalty : float or "loo", default "loo"
        As in ``Ridge``.
    penalties : tuple of float, optional
        As in ``Ridge``.

    Attributes
    ----------
    down_ : (dim_source, rank) float32
    up_ : (rank, dim_target) float32
        Orthonormal rows.
    bias_ : (dim_target,) float32
    penalty_ : () float64
    penalties_, loo_errors_ : (n_penalties,) float64
        Leave-one-out curve of ridge; empty with a fixed penalty.
    rank_errors_ : (largest rank,) float64
        Leave-one-out error of rank 1, 2, ...; empty with a fixed rank.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 5))
    >>> Y = X[:, :2] @ rng.standard_normal((2, 6))
    >>> LowRank().fit(X, Y).up_.shape
    (2, 6)
    """

    name: ClassVar[str] = "low_rank"
    freedom: ClassVar[int] = 40
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "down": ("source", "rank"),
        "up": ("rank", "target"),
        "bias": ("target",),
        "penalty": (),
        "penalties": ("penalties",),
        "loo_errors": ("penalties",),
        "rank_errors": ("ranks",),
    }

    down_: FloatArray
    up_: FloatArray
    bias_: FloatArray
    penalty_: FloatArray
    penalties_: FloatArray
    loo_errors_: FloatArray
    rank_errors_: FloatArray

    def __init__(
        self,
        *,
        rank: int | Literal["loo"] = "loo",
        penalty: float | Literal["loo"] = "loo",
        penalties: tuple[float, ...] | None = None,
    ) -> None:
        self.rank = rank
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
            A penalty that is not over zero, a rank that the pairs do not have.
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        pairs = check_fit(X, Y, sample_weight)
        problem = LeastSquares.decompose(pairs)
        grid = resolve_penalties(problem, self.penalty, self.penalties)
        best, self.penalties_, self.loo_errors_ = 0, np.zeros(0), np.zeros(0)
        left_out = problem.leave_one_out(grid) if "loo" in (self.penalty, self.rank) else None
        if left_out is not None and self.penalty == "loo":
            best, self.penalties_, self.loo_errors_ = left_out.best, grid, left_out.errors
        directions = _directions(problem, float(grid[best]))
        self.rank_errors_ = np.zeros(0)
        if left_out is not None and self.rank == "loo":
            self.rank_errors_ = _rank_errors(left_out, best, directions)
        rank = self._chosen_rank(directions.shape[1])
        weight = problem.weights(float(grid[best]))
        up = directions[:, :rank].T
        down = weight @ up.T
        self.penalty_ = np.asarray(grid[best])
        self.down_, self.up_ = down.astype(np.float32), up.astype(np.float32)
        bias = problem.mean_target - (problem.mean_source @ down) @ up
        self.bias_ = bias.astype(np.float32)
        self.n_features_in_, self.n_features_target_ = weight.shape
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Carry source rows into the target space: (n, dim_target), float32."""
        return affine(affine(self._check_source(X), self.down_), self.up_, self.bias_)

    def _chosen_rank(self, largest: int) -> int:
        if self.rank == "loo":
            return 1 + int(np.argmin(self.rank_errors_))
        if isinstance(self.rank, str) or not 1 <= self.rank <= largest:
            raise ParameterError(
                expected=f"rank from 1 to {largest}, the rank of what these pairs give, or 'loo'",
                got=f"{self.rank!r}",
                do="lower it, or add pairs",
            )
        return self.rank


def _directions(problem: LeastSquares, penalty: float) -> FloatArray:
    """Return the target directions (dim_target, rank) that the ridge answer fits, most first."""
    kept = problem.singular**2 / (problem.singular**2 + penalty)
    scaled = np.sqrt(kept)[:, None] * problem.coefficients
    if scaled.shape[0] >= scaled.shape[1]:
        return eigen_directions(scaled.T @ scaled)[1]
    values, left = eigen_directions(scaled @ scaled.T)
    return scaled.T @ (left / np.sqrt(values))


def _rank_errors(left_out: LeaveOneOut, best: int, directions: FloatArray) -> FloatArray:
    """Return the leave-one-out error of every rank, with the directions held fixed.

    With every direction p that is kept, the error ``(y - mean without it) . p`` of the pair gives
    way to the leave-one-out residual of ridge along p.
    """
    pairs = left_out.problem.pairs
    n, total = len(pairs), len(pairs) if pairs.weight is None else pairs.weight.sum()
    own = np.full(n, 1 / n) if pairs.weight is None else pairs.weight / total
    mean = left_out.problem.mean_target
    nothing, change = 0.0, np.zeros(directions.shape[1])
    along = directions.astype(np.float32)
    blocks = iter_centred(pairs.target, mean=mean, weight=pairs.weight)
    for (rows, residual), centred in zip(left_out.residuals(best), blocks, strict=True):
        apart = centred / np.maximum(1 - own[rows, None], np.finfo(np.float64).eps)
        slack = left_out.slack[rows, best, None].astype(np.float32)
        nothing += float(np.sum(apart**2))
        before = apart.astype(np.float32) @ along
        after = (residual / slack) @ along
        change += np.sum(after**2 - before**2, axis=0, dtype=np.float64)
    return (nothing + np.cumsum(change)) / total
