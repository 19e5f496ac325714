"""Ridge regression with an unpenalised intercept, decomposed once for all penalties.

Rows are ``x~ = sqrt(w) (x - m_x)`` and ``y~ = sqrt(w) (y - m_y)`` with weighted means. With the
thin SVD ``X~ = U S V^T`` and ``C = U^T Y~``, the weights at penalty a are
``V diag(s / (s^2 + a)) C`` and

    residual   Y~ - X~ W = (Y~ - U C) + U diag(f) C,          f = a / (s^2 + a)
    leverage   1 - h_i   = 1 - w_i / sum(w) - |u_i|^2 + sum_j f_j u_ij^2

so that the exact leave-one-out residual of pair i, intercept included, is residual_i / (1 - h_i)
(Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, eq. 7.64; the term
``w_i / sum(w)`` is the leverage of the intercept). The two parts are written so that nothing
cancels: a float32 product per penalty is enough. Where the penalty pulls the weights towards a
matrix P and not towards zero, ``C - U^T X~ P`` is shrunk in place of C and P added to the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isthmus._linalg import (
    BLOCK_ROWS,
    cross_product,
    iter_centred,
    mean_rows,
    right_singular,
    semi_orthogonal,
)
from isthmus._types import FloatArray
from isthmus.errors import ParameterError
from isthmus.maps._fitting import PairedRows

__all__ = ["LeastSquares", "LeaveOneOut", "default_penalties", "resolve_penalties"]

GRID_DECADES = (-9.0, 3.0)
"""The default grid, in powers of ten of the mean squared singular value: from a map that recovers
an exact linear relation to float32 precision up to one that is shrunk to a thousandth."""

GRID_STEPS_PER_DECADE = 2


@dataclass(frozen=True)
class LeastSquares:
    """A decomposed problem; ``decompose`` makes one.

    Attributes
    ----------
    pairs : PairedRows
    mean_source, mean_target : (dim_source,) and (dim_target,) float64
    singular : (rank,) float64
        Singular values of the centred, weighted source, largest first.
    basis : (dim_source, rank) float64
        Right singular vectors V.
    projected : (rank, dim_target) float64
        ``C = U^T Y~``.
    prior : (dim_source, dim_target) float64
        Weights towards which the penalty pulls: zero, or a rotation.
    """

    pairs: PairedRows
    mean_source: FloatArray
    mean_target: FloatArray
    singular: FloatArray
    basis: FloatArray
    projected: FloatArray
    prior: FloatArray

    @classmethod
    def decompose(cls, pairs: PairedRows, *, towards_rotation: bool = False) -> LeastSquares:
        """Centre, weigh and decompose the pairs."""
        weight = pairs.weight
        mean_source = mean_rows(pairs.source, weight=weight)
        mean_target = mean_rows(pairs.target, weight=weight)
        singular, basis = right_singular(pairs.source, mean=mean_source, weight=weight)
        cross = cross_product(
            pairs.source, pairs.target, mean_x=mean_source, mean_y=mean_target, weight=weight
        )
        prior = semi_orthogonal(cross) if towards_rotation else np.zeros_like(cross)
        projected = (basis.T @ cross) / singular[:, None]
        return cls(pairs, mean_source, mean_target, singular, basis, projected, prior)

    @cached_property
    def coefficients(self) -> FloatArray:
        """What is shrunk, (rank, dim_target): ``C``, less what the prior already gives."""
        if not self.prior.any():
            return self.projected
        return self.projected - self.singular[:, None] * (self.basis.T @ self.prior)

    def weights(self, penalty: float) -> FloatArray:
        """Return the (dim_source, dim_target) float64 weights at one penalty."""
        shrunk = self.singular / (self.singular**2 + penalty)
        return self.prior + self.basis @ (shrunk[:, None] * self.coefficients)

    def bias(self, weights: FloatArray) -> FloatArray:
        """Return the (dim_target,) intercept that goes with the weights."""
        return self.mean_target - self.mean_source @ weights

    def leave_one_out(self, penalties: FloatArray) -> LeaveOneOut:
        """Go over the rows once and keep what every penalty needs."""
        n, dim_target = self.pairs.target.shape
        weight = self.pairs.weight
        left = np.empty((n, len(self.singular)), dtype=np.float32)
        rest = np.empty((n, dim_target), dtype=np.float32)
        slack = np.empty((n, len(penalties)))
        own = np.full(n, 1 / n) if weight is None else weight / weight.sum()
        removed = _kept(self.singular, penalties) - 1
        start = 0
        for x, y in zip(
            iter_centred(self.pairs.source, mean=self.mean_source, weight=weight),
            iter_centred(self.pairs.target, mean=self.mean_target, weight=weight),
            strict=True,
        ):
            rows = slice(start, start + len(x))
            u = x @ self.basis / self.singular
            left[rows] = u
            rest[rows] = y - u @ self.projected
            slack[rows] = 1 - own[rows, None] + u**2 @ removed
            start += len(x)
        # A pair that alone decides its own fitted value has slack 0: it must not divide by it.
        return LeaveOneOut(self, penalties, left, rest, np.maximum(slack, SMALLEST_SLACK))


SMALLEST_SLACK = 1e-12


@dataclass(frozen=True)
class LeaveOneOut:
    """Exact leave-one-out residuals at every penalty of a grid.

    Attributes
    ----------
    penalties : (n_penalties,) float64
    left : (n, rank) float32
        Left singular vectors U.
    rest : (n, dim_target) float32
        What no linear map of the source reaches, ``Y~ - U C``.
    slack : (n, n_penalties) float64
        One minus the leverage.
    """

    problem: LeastSquares
    penalties: FloatArray
    left: FloatArray
    rest: FloatArray
    slack: FloatArray

    def residuals(self, place: int) -> Iterator[tuple[slice, FloatArray]]:
        """Yield ``Y~ - X~ W`` at one penalty, block by block with its rows, float32."""
        kept = _kept(self.problem.singular, self.penalties[place]).astype(np.float32)
        shrunk = kept * self.coefficients
        for start in range(0, len(self.left), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            residual = self.left[rows] @ shrunk
            residual += self.rest[rows]
            yield rows, residual

    @cached_property
    def coefficients(self) -> FloatArray:
        """Those of the problem, as float32."""
        return self.problem.coefficients.astype(np.float32)

    @cached_property
    def errors(self) -> FloatArray:
        """Error at every penalty: (n_penalties,) float64.

        The weighted mean of the squared distance between each target and what the map fitted on the
        other pairs says of it.
        """
        errors = np.zeros(len(self.penalties))
        for place in range(len(errors)):
            for rows, residual in self.residuals(place):
                squared = np.einsum("ij,ij->i", residual, residual).astype(np.float64)
                errors[place] += np.sum(squared / self.slack[rows, place] ** 2)
        weight = self.problem.pairs.weight
        return errors / (len(self.left) if weight is None else weight.sum())

    @property
    def best(self) -> int:
        """Place of the penalty of least error; of equals the largest, the more constrained map."""
        return len(self.errors) - 1 - int(np.argmin(self.errors[::-1]))


def _kept(singular: FloatArray, penalties: FloatArray) -> FloatArray:
    """Return ``a / (s^2 + a)``, the share that a penalty takes away: (rank, n_penalties)."""
    squared = singular[:, None] ** 2
    return np.asarray(penalties / (squared + penalties))


def default_penalties(problem: LeastSquares) -> FloatArray:
    """Return 25 penalties, two per decade, around the mean squared singular value."""
    first, last = GRID_DECADES
    steps = int((last - first) * GRID_STEPS_PER_DECADE) + 1
    return float(np.mean(problem.singular**2)) * np.logspace(first, last, steps)


def resolve_penalties(
    problem: LeastSquares, penalty: float | str, penalties: tuple[float, ...] | None
) -> FloatArray:
    """Return the penalties to try: one fixed, the caller's grid or the default grid.

    Raises
    ------
    ParameterError
        ``penalty`` is neither a number over zero nor "loo", or the grid holds another thing.
    """
    if penalty == "loo":
        grid = default_penalties(problem) if penalties is None else np.asarray(penalties, float)
    else:
        try:
            grid = np.asarray([float(penalty)])
        except (TypeError, ValueError):
            grid = np.asarray([np.nan])
    if grid.ndim != 1 or not grid.size or not (np.isfinite(grid) & (grid > 0)).all():
        raise ParameterError(
            expected="penalty over 0 or 'loo', and a grid of penalties over 0",
            got=f"penalty={penalty!r}, penalties={penalties!r}",
            do="pass penalty='loo' and leave the grid out",
        )
    return np.sort(grid)
