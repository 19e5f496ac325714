"""Orthogonal Procrustes on the seeds, once: the least that linking can be.

Solves ``R = argmin |X R - Y|_F`` over orthogonal R, for seed vectors X and Y, in closed form; then
all source rows are turned by R. No centring (appendix C.1.3). When to use it: as the floor, or with
as many seeds as dimensions; `SelfTraining` repeats it and finds far more.

Seeds fewer than dimensions leave most of R open: every completion is a minimum. The paper takes
what its SVD happens to return. Here the open directions are dropped: rows are compared in those
that the seeds determine, so that turning a cloud changes no link.
Shapes: seeds (n_seeds, dim_source) and (n_seeds, dim_target); R is (dim_source, dim_target).
References: Schönemann (1966); Smith et al. (2017); vector linking, appendix C.1.3, "Proc".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from isthmus._linalg import cross_product, semi_orthogonal
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray
from isthmus.errors import ParameterError
from isthmus.link.aligned import AlignedLinker, carry
from isthmus.link.problem import LinkProblem

__all__ = ["Procrustes", "Undetermined", "check_undetermined", "polar_of_rank", "rotation"]

Undetermined = Literal["drop", "identity"]
"""What becomes of directions of which the anchors say nothing."""

RANK_TOLERANCE = 1e-6
"""Singular values under this share of the largest are the rounding of float32 vectors."""


@dataclass(frozen=True, kw_only=True)
class Procrustes(AlignedLinker):
    """A rotation fitted on the seeds, then CSLS and mutual nearest neighbours.

    Parameters
    ----------
    undetermined : {"drop", "identity"}, default "drop"
        Directions that the seeds leave open do not count, or stay as near to where they are as the
        others allow. The second tells much where both encoders come from one checkpoint and share
        their coordinates, and misleads where they do not.
    csls_neighborhood : int, default 50
        Neighbours in the local scaling (vector linking, appendix C.2.4).

    Notes
    -----
    One vote per link; every posterior is 2/3 and not calibrated (`isthmus.link.aligned`).

    Examples
    --------
    >>> from isthmus.link import LinkProblem
    >>> cloud = np.random.default_rng(0).standard_normal((40, 4))
    >>> turned = cloud[::-1] @ np.linalg.qr(cloud[:4])[0]
    >>> problem = LinkProblem.of_rows(cloud, turned, [(row, 39 - row) for row in range(5)])
    >>> links = Procrustes().link(problem)
    >>> len(links), bool((links.source_rows + links.target_rows == 39).all())
    (40, True)
    """

    name: ClassVar[str] = "procrustes"

    undetermined: Undetermined = "drop"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_undetermined(self.undetermined)

    def align(self, problem: LinkProblem, *, seed: int) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002 - nothing is random
        """Return the turned source rows and the target rows."""
        with one_blas_thread():
            turn = rotation(
                problem.seed_source, problem.seed_target, undetermined=self.undetermined
            )
        return carry(problem.source, turn), problem.target


def rotation(
    X: FloatArray,
    Y: FloatArray,
    *,
    mean_x: FloatArray | None = None,
    mean_y: FloatArray | None = None,
    undetermined: Undetermined = "drop",
) -> FloatArray:
    """Return R that turns the rows of X onto those of Y, in the directions they determine.

    Parameters
    ----------
    X : FloatArray of shape (n, dim_source)
    Y : FloatArray of shape (n, dim_target)
    mean_x, mean_y : FloatArray, optional
        Nothing is subtracted where one is left out.
    undetermined : {"drop", "identity"}, default "drop"
        With ``"drop"`` R has the rank of ``X^T Y``, and is orthogonal where that is full.

    Returns
    -------
    FloatArray of shape (dim_source, dim_target), float64

    Examples
    --------
    >>> X = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> rotation(X, X[:, [1, 0, 2]]).round(6).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    if undetermined == "identity" or len(X) >= min(X.shape[1], Y.shape[1]):
        cross = cross_product(X, Y, mean_x=mean_x, mean_y=mean_y)
        return semi_orthogonal(cross) if undetermined == "identity" else polar_of_rank(cross)
    # Few rows: the same in the coordinates of their spans, which is a matrix of n x n.
    source, small_source = np.linalg.qr(_centred(X, mean_x).T)
    target, small_target = np.linalg.qr(_centred(Y, mean_y).T)
    turn: FloatArray = source @ polar_of_rank(small_source @ small_target.T) @ target.T
    return turn


def polar_of_rank(cross: FloatArray) -> FloatArray:
    """Return ``U V^T`` of the SVD ``U S V^T`` without the directions whose S is noise.

    Examples
    --------
    >>> polar_of_rank(np.diag([-5.0, 2.0, 0.0])).round(6).tolist()
    [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    from scipy.linalg import svd

    left, singular, right = svd(cross, full_matrices=False, check_finite=False)
    kept = singular > RANK_TOLERANCE * singular[0]
    return np.asarray(left[:, kept] @ right[kept])


def check_undetermined(value: str) -> None:
    """Refuse another word than the two.

    Raises
    ------
    ParameterError
    """
    if value not in ("drop", "identity"):
        raise ParameterError(
            expected="undetermined as 'drop' or 'identity'", got=repr(value), do="choose one"
        )


def _centred(rows: FloatArray, mean: FloatArray | None) -> FloatArray:
    return rows.astype(np.float64) - (0.0 if mean is None else mean)
