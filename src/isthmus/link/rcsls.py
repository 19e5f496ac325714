"""RCSLS: a map trained for what CSLS will ask of it.

Minimises over orthogonal R, with the seeds x_i, y_i and k neighbours among the seeds,

    mean over i of  -2 x_i R y_i + (1/k) sum of x_i R y_j over the k nearest y_j of x_i R
                                 + (1/k) sum of x_j R y_i over the k nearest x_j R of y_i,

by gradient steps from the Procrustes solution; after each the nearest orthogonal matrix is taken. A
step that raises the loss is taken back, and the next is half as long. When to use it: with hundreds
of seeds; with fifteen, the neighbours among the seeds say little.
Shapes: R is (dim_source, dim_target), of the rank that the seeds determine (as in `Procrustes`).
References: Joulin et al. (2018), equation 4; vector linking, appendix C.1.3, "RCSLS".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_positive, check_whole
from isthmus.link.aligned import AlignedLinker, carry
from isthmus.link.problem import LinkProblem
from isthmus.link.procrustes import polar_of_rank
from isthmus.neighbors import top_k

__all__ = ["RCSLS"]


@dataclass(frozen=True, kw_only=True)
class RCSLS(AlignedLinker):
    """A rotation trained on the RCSLS loss, then CSLS and mutual nearest neighbours.

    Parameters
    ----------
    neighbors : int, default 10
        k in the loss (Joulin et al. 2018, section 4); at most the other seeds.
    learning_rate : float, default 1.0
        Of the first step (the authors' code); halved where the loss rises.
    epochs : int, default 10
        Steps over all seeds (the same).
    csls_neighborhood : int, default 50
        Neighbours in the local scaling (vector linking, appendix C.2.4).

    Notes
    -----
    Joulin et al. take the neighbours from all words; vector linking says "on the seed pairs", and
    so does this. One vote per link; every posterior is 2/3 and not calibrated
    (`isthmus.link.aligned`).

    Examples
    --------
    >>> from isthmus.link import LinkProblem
    >>> cloud = np.random.default_rng(0).standard_normal((40, 4))
    >>> problem = LinkProblem.of_rows(cloud, cloud[:, ::-1], [(row, row) for row in range(20)])
    >>> len(RCSLS(neighbors=3).link(problem))
    40
    """

    name: ClassVar[str] = "rcsls"

    neighbors: int = 10
    learning_rate: float = 1.0
    epochs: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self.neighbors, name="neighbors")
        check_positive(self.learning_rate, name="learning_rate")
        check_whole(self.epochs, name="epochs")

    def align(self, problem: LinkProblem, *, seed: int) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002 - nothing is random
        """Return the turned source rows and the target rows."""
        turn, _ = fit_rcsls(
            problem.seed_source,
            problem.seed_target,
            neighbors=min(self.neighbors, problem.n_seeds - 1),
            learning_rate=self.learning_rate,
            epochs=self.epochs,
        )
        return carry(problem.source, turn), problem.target


def fit_rcsls(
    X: FloatArray, Y: FloatArray, *, neighbors: int, learning_rate: float, epochs: int
) -> tuple[FloatArray, FloatArray]:
    """Return R and the losses of the start and of every step that was kept.

    Parameters
    ----------
    X : FloatArray of shape (n, dim_source)
    Y : FloatArray of shape (n, dim_target)
    neighbors : int
    learning_rate : float
    epochs : int

    Returns
    -------
    rotation : FloatArray of shape (dim_source, dim_target), float64
    losses : FloatArray of shape (1 + kept steps,)
        Falling.
    """
    with one_blas_thread():
        # All gradients lie in the spans of the seeds: with few seeds those are small spaces.
        source_basis, source = _span(X)
        target_basis, target = _span(Y)
        turn = polar_of_rank(source.T @ target)
        loss, gradient = _loss(source, target, turn, neighbors)
        losses = [loss]
        for _ in range(epochs):
            trial = polar_of_rank(turn - learning_rate * gradient)
            new_loss, new_gradient = _loss(source, target, trial, neighbors)
            if new_loss > loss:
                learning_rate /= 2
                continue
            turn, loss, gradient = trial, new_loss, new_gradient
            losses.append(loss)
        return source_basis @ turn @ target_basis.T, np.asarray(losses)


def _span(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return an orthonormal basis (dim, r) of rows and their coordinates (n, r), r at most n."""
    exact = rows.astype(np.float64)
    if exact.shape[0] >= exact.shape[1]:
        return np.eye(exact.shape[1]), exact
    basis, coordinates = np.linalg.qr(exact.T)
    return basis, coordinates.T


def _loss(
    source: FloatArray, target: FloatArray, turn: FloatArray, neighbors: int
) -> tuple[float, FloatArray]:
    """Return the loss and its gradient with the neighbours held fast.

    Both are linear in ``C``, the (n, n) sparse matrix of what each ``x_i R y_j`` counts:
    loss ``= sum of C * (X R Y^T)``, gradient ``= X^T C Y``.
    """
    turned = source @ turn
    counts = _counts(
        top_k(turned, target, k=neighbors, metric="dot").rows,
        top_k(target, turned, k=neighbors, metric="dot").rows,
    )
    weighted = counts @ target
    return float(np.sum(turned * weighted)), source.T @ weighted


def _counts(forward: IntArray, back: IntArray) -> Any:
    """Return C: -2 for a pair with itself and 1/k per neighbour, over n."""
    from scipy.sparse import csr_array

    n, k = forward.shape
    each, asking = np.arange(n), np.repeat(np.arange(n), k)
    rows = np.concatenate((each, asking, back.ravel()))
    columns = np.concatenate((each, forward.ravel(), asking))
    values = np.concatenate((np.full(n, -2.0), np.full(2 * n * k, 1 / k))) / n
    return csr_array((values, (rows, columns)), shape=(n, n))
