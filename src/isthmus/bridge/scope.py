"""Scope: which rows lie where the bridge was learned.

A map that is linear, or nearly so, is bound only along the directions that its pairs span. The
scope keeps the leading principal directions of the paired source rows and a radius: the squared
length of what those directions leave of a row. A row that leaves more lies outside.

The radius is a quantile of rows that were left out (five folds), so that about 3 % of new rows of
the same kind lie outside. See docs/bridges.md for how this rule was chosen among others: it costs
one thin product per row, is a few kilobytes, and tells other data sets apart as well as the nearest
pair does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from isthmus._rowwise import affine, in_row_blocks
from isthmus._types import FloatArray
from isthmus._validate import as_matrix
from isthmus.errors import MalformedArtifactError, TooFewPairsError

__all__ = ["Scope", "ScopeReport"]

INSIDE = 0.97
"""Share of new rows of the same kind that lies inside."""

MAX_DIRECTIONS = 32
ROWS_PER_DIRECTION = 8
FOLDS = 5
MIN_PAIRS = 2
ROUNDING = 1e-5
"""Least radius, as a share of the mean squared length: under it there is only float32 rounding."""
MAX_FIT_ROWS = 10_000
"""More rows than this, evenly taken, do not move a quantile that matters."""


@dataclass(frozen=True, eq=False)
class Scope:
    """Where the paired source rows lie.

    Parameters
    ----------
    center : FloatArray of shape (dim_source,), float32
    directions : FloatArray of shape (dim_source, k), float32
        Orthonormal columns, the leading principal directions.
    radius : float
        Largest squared length that a row inside leaves beside the directions.
    unit_rows : bool
        Whether rows are brought to length one first: for the cosine, where length says nothing.
    kind : str
        ``query`` or ``passage``: kind of the paired source rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 8))
    >>> scope = Scope.fit(pairs, unit_rows=False, kind="passage")
    >>> bool(scope.outside(rng.normal(size=(50, 8))).all())
    True
    """

    center: FloatArray
    directions: FloatArray
    radius: float
    unit_rows: bool
    kind: str

    @classmethod
    def fit(cls, X: npt.ArrayLike, *, unit_rows: bool, kind: str) -> Self:
        """Learn the scope of paired source rows (n, dim_source).

        Raises
        ------
        TooFewPairsError
            Fewer than 2 rows.
        """
        taken = _evenly(as_matrix(X, name="X"), MAX_FIT_ROWS)
        rows = _prepared(taken, unit_rows=unit_rows)
        n = len(rows)
        if n < MIN_PAIRS:
            raise TooFewPairsError(
                expected=f"at least {MIN_PAIRS} pairs to learn a scope", got=f"{n}", do="add pairs"
            )
        left = np.empty(n)
        folds = min(FOLDS, n)
        for fold in range(folds):
            held_out = np.arange(n) % folds == fold
            center, directions = _leading(rows[~held_out], k=_count(n, rows.shape[1]))
            left[held_out] = _squared_rest(rows[held_out], center, directions)
        floor = ROUNDING * float(np.square(rows).sum(axis=1).mean())
        place = min(n, int(np.ceil(INSIDE * (n + 1)))) - 1
        center, directions = _leading(rows, k=_count(n, rows.shape[1]))
        return cls(
            center.astype(np.float32),
            directions.astype(np.float32),
            max(float(np.sort(left)[place]), floor),
            unit_rows,
            kind,
        )

    @property
    def dim(self) -> int:
        """Width of the source rows."""
        return len(self.center)

    def outside(self, X: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which source rows (n, dim_source) lie outside, as booleans of shape (n,)."""
        rest = in_row_blocks(self._left_over, as_matrix(X, name="X", dim=self.dim))
        outside: npt.NDArray[np.bool_] = rest[:, 0] > self.radius
        return outside

    def _left_over(self, rows: FloatArray) -> FloatArray:
        """Return |x-c|^2 - |(x-c)V|^2 as (n, 1) from one thin product."""
        rows = rows.astype(np.float32, copy=False)
        products = affine(rows, np.column_stack([self.directions, self.center]))
        lengths = np.einsum("ij,ij->i", rows, rows)
        if self.unit_rows:
            scale = 1 / np.sqrt(np.maximum(lengths, np.finfo(np.float32).tiny))
            products *= scale[:, None]
            lengths *= np.square(scale)
        along = products[:, :-1] - self.center @ self.directions
        rest = lengths - 2 * products[:, -1] + self.center @ self.center
        rest -= np.einsum("ij,ij->i", along, along)
        return np.asarray(rest[:, None])

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name."""
        return {"center": self.center, "directions": self.directions}

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the arrays as plain JSON values."""
        return {
            "method": "principal_residual",
            "radius": self.radius,
            "inside": INSIDE,
            "unit_rows": self.unit_rows,
            "kind": self.kind,
        }

    @classmethod
    def from_dict(
        cls, fields: Mapping[str, Any], tensors: Mapping[str, npt.NDArray[Any]], *, dim: int
    ) -> Self:
        """Read what `to_dict` and `tensors` gave, and check that the shapes fit.

        Raises
        ------
        MalformedArtifactError
        """
        center, directions = tensors["center"], tensors["directions"]
        if (
            {center.dtype, directions.dtype} != {np.dtype(np.float32)}
            or center.shape != (dim,)
            or directions.ndim != 2
            or len(directions) != dim
        ):
            raise MalformedArtifactError(
                expected=f"a scope of float32 with center ({dim},) and directions ({dim}, k)",
                got=f"{center.dtype} {center.shape} and {directions.dtype} {directions.shape}",
                do="ask its maker for a new copy; SPEC.md has the rules",
            )
        return cls(center, directions, fields["radius"], fields["unit_rows"], fields["kind"])


@dataclass(frozen=True)
class ScopeReport:
    """How many rows of a set lie outside the scope of a bridge, and whether their kind differs.

    Parameters
    ----------
    rows : int
        Rows that were looked at.
    outside : int
    kind, pairs_kind : str
        Kind of these rows, and of the rows the bridge was fitted on.
    """

    rows: int
    outside: int
    kind: str
    pairs_kind: str

    @property
    def share_outside(self) -> float:
        """From 0 to 1; about .03 for new rows of the same kind; 0 where none was looked at."""
        return self.outside / max(self.rows, 1)

    @property
    def kind_differs(self) -> bool:
        """Whether, say, queries came through a bridge that was fitted on passages."""
        return self.kind != self.pairs_kind


def _evenly(rows: FloatArray, most: int) -> FloatArray:
    """Take at most ``most`` rows at even distances."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _prepared(rows: FloatArray, *, unit_rows: bool) -> npt.NDArray[np.float64]:
    wide = rows.astype(np.float64)
    if unit_rows:
        wide /= np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), np.finfo(float).tiny)
    return wide


def _count(rows: int, dim: int) -> int:
    """Return how many directions this many pairs can name: none when there are too few."""
    return min(MAX_DIRECTIONS, rows // ROWS_PER_DIRECTION, dim // 2)


def _leading(
    rows: npt.NDArray[np.float64], *, k: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the mean and the k leading principal directions as columns (dim, k)."""
    center = rows.mean(axis=0)
    if k == 0:
        return center, np.empty((len(center), 0))
    from scipy.linalg import eigh

    centered = rows - center
    dim = len(center)
    _, vectors = eigh(centered.T @ centered, subset_by_index=[dim - k, dim - 1])
    return center, vectors[:, ::-1]


def _squared_rest(
    rows: npt.NDArray[np.float64],
    center: npt.NDArray[np.float64],
    directions: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    centered = rows - center
    along = centered @ directions
    rest: npt.NDArray[np.float64] = np.square(centered).sum(axis=1) - np.square(along).sum(axis=1)
    return rest
