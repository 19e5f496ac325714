"""What transport finds: a coupling of two sides, known everywhere from its potentials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from isthmus._matched import MatchedRows
from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_share, check_whole
from isthmus.errors import NotConvergedError
from isthmus.transport._ranking import best_columns, log_sums
from isthmus.transport.cost import Cost, Rows

__all__ = ["Coupling", "Side"]

Side = Literal["source", "target"]

TILE = 1 << 20
"""Entries of the plan in memory at once: 4 MB, and four times as much to rank them."""

LEAST = np.float32(-80)
"""Logarithm of the smallest share that an entropy counts: below, float32 gets slow."""

GOOD_ENOUGH = 0.01
"""Largest marginal error of a plan that `Coupling.require` lets pass: a hundredth of the mass."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Coupling:
    """An entropic transport plan, ``P_ij = exp(f_i + g_j - C_ij / epsilon)``.

    Only the potentials are kept; entries are made on demand (AnchorDOT, equation 9).

    Parameters
    ----------
    cost : Cost
        Of shape (n, m).
    source_potential : FloatArray of shape (n,), float64
        f, in units of epsilon.
    target_potential : FloatArray of shape (m,), float64
        g, in units of epsilon.
    epsilon : float
    source_mass, target_mass : FloatArray of shape (n,) and (m,), float64
        Marginals that were asked for.
    errors : FloatArray of shape (n_iterations,)
        Marginal error after each iteration: the sum of absolute differences, as a share of the
        mass.
    tolerance : float
        The error that was asked for.
    """

    cost: Cost
    source_potential: FloatArray
    target_potential: FloatArray
    epsilon: float
    source_mass: FloatArray
    target_mass: FloatArray
    errors: FloatArray
    tolerance: float

    def __repr__(self) -> str:
        n, m = self.shape
        return (
            f"Coupling({n:,} x {m:,}, epsilon {self.epsilon:.3g}, {self._took}, "
            f"error {self.error:.1e})"
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of the source side and of the target side."""
        return self.cost.shape

    @property
    def error(self) -> float:
        """The marginal error that is left, as a share of the mass."""
        return float(self.errors[-1])

    @property
    def converged(self) -> bool:
        """Whether the marginal error came down to the tolerance."""
        return self.error <= self.tolerance

    @property
    def _took(self) -> str:
        return f"{len(self.errors):,} iterations"

    def require(self, error: float = GOOD_ENOUGH) -> None:
        """Refuse a plan whose marginals are further off than ``error``.

        Raises
        ------
        NotConvergedError
        """
        if not self.error <= error:
            raise NotConvergedError(
                expected=f"marginals within {error:g} of the mass",
                got=f"{self.error:.2g} after {self._took} at epsilon {self.epsilon:.3g}",
                do="raise epsilon (or eta), or max_iterations",
            )

    def transpose(self) -> Coupling:
        """Return the same plan from the target side to the source side."""
        return replace(
            self,
            cost=self.cost.transpose(),
            source_potential=self.target_potential,
            target_potential=self.source_potential,
            source_mass=self.target_mass,
            target_mass=self.source_mass,
        )

    def log_block(self, rows: Rows, columns: Rows) -> FloatArray:
        """Return the logarithm of the plan at some rows and columns, float32."""
        tile = self.cost.tile(rows, columns)
        tile = tile * np.float32(-1 / self.epsilon)
        tile += self.target_potential[columns].astype(np.float32)
        tile += self.source_potential[rows].astype(np.float32)[:, None]
        return tile

    def block(self, rows: Rows, columns: Rows) -> FloatArray:
        """Return the plan at some rows and columns, float32."""
        tile = self.log_block(rows, columns)
        return np.exp(tile, out=tile)

    def rows(self, rows: npt.ArrayLike) -> FloatArray:
        """Return rows of the plan: (k, m), float32."""
        return self.block(np.asarray(rows), slice(None))

    def columns(self, columns: npt.ArrayLike) -> FloatArray:
        """Return columns of the plan: (n, k), float32."""
        return self.block(slice(None), np.asarray(columns))

    def tiles(self, side: Side = "source") -> Iterator[tuple[slice, FloatArray]]:
        """Yield blocks of rows of a side with their part of the plan, float32."""
        for rows, logs in self._log_tiles(side):
            yield rows, np.exp(logs, out=logs)

    def mass(self, side: Side = "source") -> FloatArray:
        """Return the mass that the plan gives each row of a side: (n,) or (m,), float64."""
        parts = [tile.sum(axis=1, dtype=np.float64) for _, tile in self.tiles(side)]
        return np.concatenate(parts)

    def entropy(self, side: Side = "source") -> FloatArray:
        """Return how undecided each row of a side is: (n,), float64.

        The entropy of its share of each row of the other side, over the logarithm of their number:
        0 where all its mass goes to one row, 1 where all rows get the same.
        """
        parts = []
        for _, logs in self._log_tiles(side):
            shares = logs - log_sums(logs)[:, None].astype(np.float32)
            np.maximum(shares, LEAST, out=shares)
            parts.append(-np.einsum("ij,ij->i", np.exp(shares), shares, dtype=np.float64))
        others = self.shape[1 if side == "source" else 0]
        entropy: FloatArray = np.concatenate(parts) / max(np.log(others), 1e-12)
        return entropy

    def nearest(self, k: int, side: Side = "source") -> tuple[IntArray, FloatArray]:
        """Return the k rows of the other side that get most of each row's mass, and their shares.

        Returns
        -------
        rows : IntArray of shape (n, k)
            The one with most first; equal ones by their number.
        shares : FloatArray of shape (n, k), float32
        """
        check_whole(k, name="k")
        k = min(k, self.shape[1 if side == "source" else 0])
        found, shares = [], []
        for _, logs in self._log_tiles(side):  # entries that float32 cannot hold are ranked too
            best = best_columns(logs, k)
            values = np.take_along_axis(logs, best, axis=1)
            found.append(best)
            shares.append(np.exp(values - log_sums(logs)[:, None]).astype(np.float32))
        return np.concatenate(found), np.concatenate(shares)

    def matched_rows(self, threshold: float = 0.5) -> MatchedRows:
        """Return the rows that are each other's largest share.

        Parameters
        ----------
        threshold : float in [0, 1], default 0.5
            The smaller of the two shares, of the row's and of the column's mass, has to reach it:
            over one half, a row can match no other. It is no posterior.

        Raises
        ------
        ParameterError
        """
        check_share(threshold, name="threshold")
        there, share = self.nearest(1)
        back, share_back = self.nearest(1, side="target")
        rows = np.arange(len(there))
        partner = there[:, 0]
        confidence = np.minimum(share[:, 0], share_back[partner, 0])
        kept = (back[partner, 0] == rows) & (confidence >= threshold)
        return MatchedRows(rows[kept], partner[kept], confidence[kept])

    def _log_tiles(self, side: Side) -> Iterator[tuple[slice, FloatArray]]:
        of = self if side == "source" else self.transpose()
        n, m = of.shape
        step = max(1, TILE // m)
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            yield rows, of.log_block(rows, slice(None))
