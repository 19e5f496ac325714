"""What it costs to move a source row to a target row, tile by tile and never as a whole.

``anchor_cost`` compares rows by their similarities to anchor pairs (AnchorDOT, equations 5 and 6):

    phi(x) = A M^(-gamma/2) x,  M = A^T A / N,  C(x, y) = 1 - cosine(phi(x), phi(y))

with the anchors of one side as the rows of A. Shapes: (n_source, dim_source) and
(n_target, dim_target) to a cost of shape (n_source, n_target), float32.
References: AnchorDOT, section 3.2 and appendix B.1; Moschella et al. (2023).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine, in_row_blocks, normalise, row_lengths
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray
from isthmus._validate import as_matrix, check_nonzero, check_pairs
from isthmus.errors import DimensionError, ParameterError

__all__ = [
    "AnchorProfile",
    "Cost",
    "Rows",
    "SimilarityCost",
    "StoredCost",
    "anchor_cost",
    "cosine_cost",
]

Rows = slice | IntArray
"""Rows of one side: a slice, or their numbers."""

CLIP = 1e-6
"""Smallest eigenvalue of M, as a share of their mean (AnchorDOT, appendix B.1)."""

MOST_STORED = 100_000_000
"""Entries of a cost that is kept as a matrix: 400 MB."""

CARRIED = 960
"""Rows that are carried over at once, per thread: what lies between the steps stays small."""

SAMPLED = 1_024
"""Rows of each side whose costs stand for all in a median: a million costs."""


class Cost(Protocol):
    """Costs between the rows of two sides.

    Whoever needs them all asks for them tile by tile.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of the source side and of the target side."""

    def tile(self, rows: Rows, columns: Rows) -> FloatArray:
        """Return the costs of some rows with some columns, float32."""

    def write(self, rows: slice, factor: float, offset: FloatArray, out: FloatArray) -> None:
        """Write ``factor * cost + offset`` of rows with all columns, with one offset per column."""

    def transpose(self) -> Cost:
        """Return the same costs from the target side to the source side."""


@dataclass(frozen=True, eq=False)
class SimilarityCost:
    """One minus the inner product of a source row with a target row.

    Parameters
    ----------
    source : FloatArray of shape (n, width), float32
    target : FloatArray of shape (m, width), float32
        Rows whose inner products are the similarities.

    Examples
    --------
    >>> SimilarityCost(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)).tile(
    ...     slice(None), slice(None))
    array([[0., 1.],
           [1., 0.]], dtype=float32)
    """

    source: FloatArray
    target: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of the source side and of the target side."""
        return len(self.source), len(self.target)

    def tile(self, rows: Rows, columns: Rows) -> FloatArray:
        """Return the costs of some rows with some columns, float32."""
        product: FloatArray = self.source[rows] @ self.target[columns].T
        return np.subtract(np.float32(1), product, out=product)

    def write(self, rows: slice, factor: float, offset: FloatArray, out: FloatArray) -> None:
        """Write ``factor * cost + offset`` of rows with all columns, with one offset per column."""
        np.matmul(self.source[rows] * np.float32(-factor), self.target.T, out=out)
        out += (offset + factor).astype(np.float32)

    def transpose(self) -> SimilarityCost:
        """Return the same costs from the target side to the source side."""
        return SimilarityCost(self.target, self.source)


@dataclass(frozen=True, eq=False)
class StoredCost:
    """Costs that are kept as a matrix: for small problems and costs that no product gives.

    Parameters
    ----------
    matrix : FloatArray of shape (n, m), float32

    Raises
    ------
    ParameterError
        More than 100 million entries.
    DimensionError, EmptyInputError, InvalidVectorsError
    """

    matrix: FloatArray

    def __post_init__(self) -> None:
        checked = as_matrix(self.matrix, name="the cost")
        check_stored(checked.shape)
        object.__setattr__(self, "matrix", checked.astype(np.float32, copy=False))

    @classmethod
    def of(cls, shape: tuple[int, int], fill: Callable[[slice], FloatArray], *, rows: int) -> Self:
        """Keep what a function gives for blocks of rows, on all threads.

        Raises
        ------
        ParameterError
            More than 100 million entries: before any work.
        """
        check_stored(shape)
        matrix = np.empty(shape, dtype=np.float32)

        def keep(start: int) -> None:
            block = slice(start, min(start + rows, shape[0]))
            matrix[block] = fill(block)

        with one_blas_thread() as threads, ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(keep, range(0, shape[0], rows)):
                pass
        return cls(matrix)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of the source side and of the target side."""
        n, m = self.matrix.shape
        return n, m

    def tile(self, rows: Rows, columns: Rows) -> FloatArray:
        """Return the costs of some rows with some columns, float32."""
        return self.matrix[rows][:, columns]

    def write(self, rows: slice, factor: float, offset: FloatArray, out: FloatArray) -> None:
        """Write ``factor * cost + offset`` of rows with all columns, with one offset per column."""
        np.multiply(self.matrix[rows], np.float32(factor), out=out)
        out += offset.astype(np.float32)

    def transpose(self) -> StoredCost:
        """Return the same costs from the target side to the source side."""
        return StoredCost(np.ascontiguousarray(self.matrix.T))


def check_stored(shape: tuple[int, ...]) -> None:
    """Refuse to keep a cost that is too large.

    Raises
    ------
    ParameterError
    """
    if shape[0] * shape[1] > MOST_STORED:
        raise ParameterError(
            expected=f"at most {MOST_STORED:,} costs where all of them are kept",
            got=f"{shape[0]:,} x {shape[1]:,}",
            do="take a sample of both sides, or anchor_cost, which keeps none",
        )


def cosine_cost(source: npt.ArrayLike, target: npt.ArrayLike) -> SimilarityCost:
    """Return one minus the cosine, between rows of one width.

    Parameters
    ----------
    source : array-like of shape (n_source, dim)
    target : array-like of shape (n_target, dim)

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError, ZeroVectorError

    Examples
    --------
    >>> cosine_cost([[3.0, 4.0]], [[6.0, 8.0]]).tile(slice(None), slice(None)).round(6)
    array([[0.]], dtype=float32)
    """
    left = as_matrix(source, name="source")
    right = as_matrix(target, name="target", dim=left.shape[1])
    for rows, name in ((left, "source"), (right, "target")):
        check_nonzero(rows, name=name)
    return SimilarityCost(normalise(left), normalise(right))


@dataclass(frozen=True, eq=False)
class AnchorProfile:
    """Similarities of the rows of one side to its anchors: phi(x) = A M^(-gamma/2) x.

    Parameters
    ----------
    anchors : FloatArray of shape (n_anchors, dim), float32
        Of length one: A.
    power : FloatArray of shape (dim, dim), float64
        M^(-gamma/2), with the eigenvalues of M clipped from below at 1e-6 of their mean.

    Examples
    --------
    >>> profile = AnchorProfile.of([[1.0, 0.0], [0.0, 1.0]], gamma=0.0)
    >>> profile.transform([[3.0, 4.0]])
    array([[0.6, 0.8]], dtype=float32)
    """

    anchors: FloatArray
    power: FloatArray

    @classmethod
    def of(cls, anchors: npt.ArrayLike, *, gamma: float = 1.0) -> Self:
        """Make the profile of a side from its anchors, which are brought to length one.

        Parameters
        ----------
        anchors : array-like of shape (n_anchors, dim)
        gamma : float in [0, 2], default 1
            How far directions that many anchors share are held back (equation 5): 0 is the plain
            cosine; 1 keeps inner products as they were where M can be inverted; 2 whitens.

        Raises
        ------
        ParameterError, ZeroVectorError, DimensionError, EmptyInputError, InvalidVectorsError
        """
        if not 0.0 <= gamma <= 2.0:
            raise ParameterError(expected="gamma from 0 to 2", got=f"{gamma}", do="use 1")
        rows = as_matrix(anchors, name="anchors")
        check_nonzero(rows, name="anchors")
        unit = normalise(rows)
        double = unit.astype(np.float64)
        values, vectors = np.linalg.eigh(double.T @ double / len(double))
        values = np.maximum(values, CLIP * values.mean())
        return cls(unit, (vectors * values ** (-gamma / 2)) @ vectors.T)

    @property
    def matrix(self) -> FloatArray:
        """Return M^(-gamma/2) A^T, which takes unit rows to profiles: (dim, n_anchors), float64."""
        return self.power @ self.anchors.T.astype(np.float64)

    def transform(self, rows: npt.ArrayLike) -> FloatArray:
        """Return the profiles of rows (n, dim): (n, n_anchors), float32.

        Raises
        ------
        DimensionError, EmptyInputError, InvalidVectorsError
        """
        checked = as_matrix(rows, name="rows", dim=self.anchors.shape[1])
        matrix = self.matrix
        return in_row_blocks(lambda block: affine(normalise(block), matrix), checked)


def anchor_cost(
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    anchors_source: npt.ArrayLike,
    anchors_target: npt.ArrayLike,
    *,
    gamma: float = 1.0,
) -> SimilarityCost:
    """Return one minus the cosine of the anchor-relative profiles (AnchorDOT, equation 6).

    The inner product of two profiles is ``x^T K y`` with one matrix K of rank at most the smallest
    of both dimensions and the number of anchors: where that is less than the number of anchors, the
    rows are kept in that many coordinates, with the same products.

    Parameters
    ----------
    source : array-like of shape (n_source, dim_source)
    target : array-like of shape (n_target, dim_target)
    anchors_source : array-like of shape (n_anchors, dim_source)
    anchors_target : array-like of shape (n_anchors, dim_target)
        Row k of both is one anchor pair.
    gamma : float in [0, 2], default 1
        See `AnchorProfile.of`.

    Raises
    ------
    ParameterError, ZeroVectorError, CountMismatchError, DimensionError, EmptyInputError,
    InvalidVectorsError

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, turn = rng.standard_normal((9, 3)), np.linalg.qr(rng.standard_normal((3, 3)))[0]
    >>> cost = anchor_cost(X, X @ turn, X[:4], X[:4] @ turn)
    >>> cost.tile(slice(None), slice(None)).argmin(axis=1).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8]
    """
    left, right = as_matrix(source, name="source"), as_matrix(target, name="target")
    ours = as_matrix(anchors_source, name="anchors_source", dim=left.shape[1])
    theirs = as_matrix(anchors_target, name="anchors_target", dim=right.shape[1])
    check_pairs(ours, theirs, minimum=1)
    for rows, name in ((left, "source"), (right, "target")):
        check_nonzero(rows, name=name)
    with one_blas_thread():  # small decompositions, whose threads wait for each other
        matrices = [AnchorProfile.of(side, gamma=gamma).matrix for side in (ours, theirs)]
        factors = _fold(*matrices)
        lengths = [_fold(matrix, matrix)[0] for matrix in matrices]
    sides = zip((left, right), factors, lengths, strict=True)
    return SimilarityCost(*(_carry(*side) for side in sides))


def _fold(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return matrices with the same ``left @ right.T``, of as few columns as that has rank."""
    if left.shape[1] <= min(left.shape[0], right.shape[0]):
        return left, right
    vectors, values, others = np.linalg.svd(left @ right.T, full_matrices=False)
    root = np.sqrt(values)
    return vectors * root, others.T * root


def _carry(rows: FloatArray, factor: FloatArray, length_of: FloatArray) -> FloatArray:
    """Carry rows over and divide them by the length of their profile."""

    def carry(block: FloatArray) -> FloatArray:
        out = np.empty((len(block), factor.shape[1]), dtype=np.float32)
        for start in range(0, len(block), CARRIED):
            some = slice(start, start + CARRIED)
            unit = normalise(block[some])
            length = row_lengths(affine(unit, length_of))[:, None]
            out[some] = affine(unit, factor)
            out[some] /= np.where(length > 0, length, np.float32(1))
        return out

    return in_row_blocks(carry, rows)


def sample_costs(cost: Cost, *, seed: int) -> FloatArray:
    """Return the costs of up to 1,024 random rows of each side: a million stand for all.

    Raises
    ------
    DimensionError
        A side without rows.
    """
    n, m = cost.shape
    if not n or not m:
        raise DimensionError(
            expected="rows on both sides", got=f"a cost of shape {n} x {m}", do="pass vectors"
        )
    rng = np.random.default_rng(seed)
    rows, columns = (
        np.sort(rng.choice(count, min(count, SAMPLED), replace=False)) for count in (n, m)
    )
    return cost.tile(rows, columns)
