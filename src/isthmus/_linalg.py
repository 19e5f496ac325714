"""Closed forms that several rooms share: means, products, rotations, principal axes, whitening.

Row-wise products go through :func:`affine`, so that the numbers of one row do not depend on the
rows around it (how: `_rowwise.py`). Sums over rows are made in float64, block by block, so that a
large matrix is never copied whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isthmus._rowwise import affine, in_row_blocks
from isthmus._types import FloatArray

__all__ = [
    "affine",
    "cross_product",
    "eigen_directions",
    "in_row_blocks",
    "iter_centred",
    "mean_rows",
    "normalise",
    "orthogonal_procrustes",
    "pca",
    "right_singular",
    "row_lengths",
    "semi_orthogonal",
    "singular_directions",
    "whitening",
]

BLOCK_ROWS = 2_048
"""Rows per block in sums: long enough for full speed, small enough to stay in cache."""

RANK_TOLERANCE = 1e-11
"""Directions with less than this share of the largest squared singular value count as empty.

Float32 inputs carry rounding noise of about 1e-7 of the largest singular value, so 1e-14 here;
the float64 sums add about 1e-13. What lies under 1e-11 is noise.
"""


IDENTITY_NUDGE = 1e-12
"""Share of the norm of a cross-product that is added along the identity before its SVD."""


def row_lengths(X: FloatArray) -> FloatArray:
    """Return the Euclidean length of every row of a float32 matrix: (n,) float32.

    Each row is summed alone, in one order: no number depends on the other rows.
    """
    out = np.empty(len(X), dtype=np.float32)
    for start in range(0, len(X), BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS]
        with np.errstate(over="ignore", under="ignore"):
            squares = np.square(block).sum(axis=1)
        lost = ~((squares > 1e-30) & (squares < 1e30))
        if lost.any():  # float32 squares of very small or large numbers are 0 or infinite
            squares = squares.astype(np.float64)
            squares[lost] = np.square(block[lost].astype(np.float64)).sum(axis=1)
        out[start : start + BLOCK_ROWS] = np.sqrt(squares)
    return out


def normalise(X: FloatArray) -> FloatArray:
    """Return rows of length one as float32; rows of zeros stay zeros.

    Parameters
    ----------
    X : FloatArray of shape (n, dim)

    Examples
    --------
    >>> normalise(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    rows = np.asarray(X, dtype=np.float32)
    length = row_lengths(rows)[:, None]
    return rows / np.where(length > 0, length, np.float32(1))


def mean_rows(X: FloatArray, *, weight: FloatArray | None = None) -> FloatArray:
    """Return the (weighted) mean row as float64 of shape (dim,)."""
    total = np.zeros(X.shape[1], dtype=np.float64)
    for start in range(0, len(X), BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS]
        if weight is None:
            total += block.sum(axis=0, dtype=np.float64)
        else:
            total += weight[start : start + BLOCK_ROWS] @ block.astype(np.float64)
    return total / (len(X) if weight is None else weight.sum())


def iter_centred(
    X: FloatArray, *, mean: FloatArray | None = None, weight: FloatArray | None = None
) -> Iterator[FloatArray]:
    """Yield float64 blocks of ``sqrt(weight) * (X - mean)``, each of shape (up to 2,048, dim)."""
    for start in range(0, len(X), BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS].astype(np.float64)
        if mean is not None:
            block -= mean
        if weight is not None:
            block *= np.sqrt(weight[start : start + BLOCK_ROWS, None])
        yield block


def cross_product(
    X: FloatArray,
    Y: FloatArray | None = None,
    *,
    mean_x: FloatArray | None = None,
    mean_y: FloatArray | None = None,
    weight: FloatArray | None = None,
) -> FloatArray:
    """Return the weighted sum over rows of ``(x - mean_x)^T (y - mean_y)`` in float64.

    Parameters
    ----------
    X : FloatArray of shape (n, dim_x)
    Y : FloatArray of shape (n, dim_y), optional
        ``X`` itself when left out, at half the work.
    mean_x, mean_y : FloatArray, optional
        Nothing is subtracted where one is left out.
    weight : FloatArray of shape (n,), optional
        Not negative; all ones when left out.

    Returns
    -------
    FloatArray of shape (dim_x, dim_y)
    """
    left = iter_centred(X, mean=mean_x, weight=weight)
    if Y is None:
        total = np.zeros((X.shape[1], X.shape[1]), dtype=np.float64)
        for block in left:
            total += block.T @ block
        return total
    total = np.zeros((X.shape[1], Y.shape[1]), dtype=np.float64)
    for one, other in zip(left, iter_centred(Y, mean=mean_y, weight=weight), strict=True):
        total += one.T @ other
    return total


def eigen_directions(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues that are not noise, largest first, and their eigenvectors in columns.

    Parameters
    ----------
    gram : FloatArray of shape (dim, dim)
        Symmetric, positive semi-definite.

    Returns
    -------
    values : FloatArray of shape (rank,)
    vectors : FloatArray of shape (dim, rank)
        Each column's largest entry is positive, so that the answer does not depend on the machine.
    """
    from scipy.linalg import eigh

    values, vectors = eigh(gram, driver="evd", check_finite=False)
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int(np.count_nonzero(values > max(values[0], 0.0) * RANK_TOLERANCE))
    values, vectors = values[:rank], vectors[:, :rank]
    largest = np.abs(vectors).argmax(axis=0)
    return values, vectors * np.where(vectors[largest, np.arange(rank)] < 0, -1.0, 1.0)


def right_singular(
    X: FloatArray, *, mean: FloatArray, weight: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the singular values over noise and the right singular vectors of centred rows.

    Of ``sqrt(weight) * (X - mean)``, through the smaller of its two Gram matrices, in float64:
    about a third of the time of an SVD of the rows. Directions with a singular value under 3e-6 of
    the largest are left out; float32 vectors do not carry them.

    Parameters
    ----------
    X : FloatArray of shape (n, dim)
    mean : FloatArray of shape (dim,)
    weight : FloatArray of shape (n,), optional

    Returns
    -------
    singular : FloatArray of shape (rank,)
    basis : FloatArray of shape (dim, rank)
    """
    if len(X) >= X.shape[1]:
        values, basis = eigen_directions(cross_product(X, mean_x=mean, weight=weight))
        return np.sqrt(values), basis
    rows = np.concatenate(list(iter_centred(X, mean=mean, weight=weight)))
    values, left = eigen_directions(rows @ rows.T)
    singular = np.sqrt(values)
    return singular, rows.T @ (left / singular)


def singular_directions(
    cross: FloatArray, rank: int | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the singular vectors and values over noise, through the smaller Gram matrix.

    Parameters
    ----------
    cross : FloatArray of shape (dim_source, dim_target)
    rank : int, optional
        Directions at most, the strongest first.

    Returns
    -------
    left : FloatArray of shape (dim_source, r)
    strength : FloatArray of shape (r,)
    right : FloatArray of shape (dim_target, r)

    Examples
    --------
    >>> singular_directions(np.diag([3.0, 2.0, 0.0]))[1].round(6).tolist()
    [3.0, 2.0]
    """
    if cross.shape[0] > cross.shape[1]:
        right, strength, left = singular_directions(cross.T, rank)
        return left, strength, right
    values, left = eigen_directions(cross @ cross.T)
    values, left = values[:rank], left[:, :rank]
    strength = np.sqrt(values)
    return left, strength, cross.T @ (left / strength)


def semi_orthogonal(cross: FloatArray) -> FloatArray:
    """Return the matrix with orthonormal rows or columns that is nearest to ``cross``.

    The orthogonal factor of the polar decomposition: ``U V^T`` from the SVD ``U S V^T``. In
    directions of which ``cross`` says nothing, the answer is the nearest to the identity that the
    other directions leave. Strong directions come from the eigenvectors of the smaller Gram matrix,
    in half the time of an SVD; only what is too weak for that (see ``STRONG``) goes through one.

    Parameters
    ----------
    cross : FloatArray of shape (dim_source, dim_target)

    Returns
    -------
    FloatArray of shape (dim_source, dim_target), float64
        ``R R^T = I`` to 1e-8 where dim_source <= dim_target, ``R^T R = I`` otherwise.
    """
    from scipy.linalg import eigh

    if cross.shape[0] > cross.shape[1]:
        return semi_orthogonal(cross.T).T
    # Too small to move a direction that float32 pairs determine, large enough against rounding.
    nudged = cross + IDENTITY_NUDGE * np.linalg.norm(cross) * np.eye(*cross.shape)
    values, left = eigh(nudged @ nudged.T, driver="evd", check_finite=False)
    weak = int(np.count_nonzero(values <= STRONG**2 * values[-1]))  # ascending
    if weak > len(values) // 4:
        return _polar_by_svd(nudged)
    strong = left[:, weak:]
    rows = strong.T @ nudged / np.sqrt(values[weak:, None])
    rotation = strong @ rows
    if weak:
        rest = left[:, :weak].T @ nudged
        rest -= (rest @ rows.T) @ rows
        rotation += left[:, :weak] @ _polar_by_svd(rest)
    return np.asarray(rotation)


STRONG = 1e-4
"""Singular values under this share of the largest lose half their digits in a Gram matrix."""


def _polar_by_svd(cross: FloatArray) -> FloatArray:
    from scipy.linalg import svd

    left, _, right = svd(cross, full_matrices=False, check_finite=False)
    return np.asarray(left @ right)


def orthogonal_procrustes(
    X: FloatArray, Y: FloatArray, *, weight: FloatArray | None = None
) -> FloatArray:
    """Return the (semi-)orthogonal R that minimises ``sum of weight * |x R - y|^2``.

    No centring and no scaling. For unequal widths ``R`` has orthonormal rows (to more dimensions)
    or columns (to fewer), and maximises ``trace(R^T X^T Y)``, which is the same problem when
    ``|x R|`` does not depend on R.

    Parameters
    ----------
    X : FloatArray of shape (n, dim_source)
    Y : FloatArray of shape (n, dim_target)
    weight : FloatArray of shape (n,), optional

    Returns
    -------
    FloatArray of shape (dim_source, dim_target), float64

    References
    ----------
    P. H. Schönemann (1966). A generalized solution of the orthogonal Procrustes problem.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> quarter_turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> np.allclose(orthogonal_procrustes(X, X @ quarter_turn), quarter_turn)
    True
    """
    return semi_orthogonal(cross_product(X, Y, weight=weight))


def pca(
    X: FloatArray, n_components: int, *, weight: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean, the first principal directions and their variances.

    Parameters
    ----------
    X : FloatArray of shape (n, dim)
    n_components : int
        At most dim; directions without variance are left out.
    weight : FloatArray of shape (n,), optional

    Returns
    -------
    mean : FloatArray of shape (dim,)
    directions : FloatArray of shape (dim, k)
        Orthonormal columns, the most variance first.
    variances : FloatArray of shape (k,)
    """
    mean = mean_rows(X, weight=weight)
    total = len(X) if weight is None else weight.sum()
    singular, vectors = right_singular(X, mean=mean, weight=weight)
    return mean, vectors[:, :n_components], singular[:n_components] ** 2 / total


def whitening(
    X: FloatArray, *, shrinkage: float = 0.0, weight: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean, the symmetric whitening matrix (ZCA) and its inverse.

    Parameters
    ----------
    X : FloatArray of shape (n, dim)
    shrinkage : float in [0, 1]
        Share of the covariance that is replaced by the mean variance times the identity.
    weight : FloatArray of shape (n,), optional

    Returns
    -------
    mean : FloatArray of shape (dim,)
    matrix, inverse : FloatArray of shape (dim, dim)
        On directions without variance both are zero.
    """
    mean = mean_rows(X, weight=weight)
    total = len(X) if weight is None else weight.sum()
    covariance = cross_product(X, mean_x=mean, weight=weight) / total
    dim = len(covariance)
    covariance = (1 - shrinkage) * covariance + shrinkage * np.trace(covariance) / dim * np.eye(dim)
    values, vectors = eigen_directions(covariance)
    root = np.sqrt(values)
    return mean, (vectors / root) @ vectors.T, (vectors * root) @ vectors.T
