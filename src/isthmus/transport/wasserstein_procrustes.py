"""Wasserstein Procrustes: a rotation and a matching of two clouds, without a single pair.

    min over orthogonal R and plans P of  sum of P_ij |x_i R - y_j|^2

It starts from a convex relaxation, ``min over doubly stochastic P of |K_X P - P K_Y|^2`` by
Frank-Wolfe steps with exact assignment, and goes on with batches: a Sinkhorn plan for the rotation,
the rotation nearest to the sum of it and of what the plan asks for (Procrustes). Batches double.
K holds the squared inner products of the rows of a side: those of centred rows sum to zero, which
leaves the uniform P without an error.

When to use it: as a baseline that shows what a few pairs are worth. It finds rotations between
clouds that are nearly isometric and fails without notice elsewhere. Sides of unequal widths are
brought to the smaller one by PCA.
Shapes: (n_source, dim_source) and (n_target, dim_target) to a rotation of the smaller width.
References: Grave, Joulin and Berthet (2019), sections 3 and 4.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from isthmus._linalg import semi_orthogonal
from isthmus._types import FloatArray
from isthmus._validate import check_positive, check_whole
from isthmus.transport.alignment import Alignment
from isthmus.transport.cost import SimilarityCost
from isthmus.transport.coupling import Coupling
from isthmus.transport.sinkhorn import sinkhorn

__all__ = ["wasserstein_procrustes"]

SETTLED = 0.02
"""Change of the transport cost over the last doubling, as a share, under which it has settled."""


def wasserstein_procrustes(
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    relaxed_rows: int = 500,
    relaxed_steps: int = 50,
    batch: int = 200,
    doublings: int = 3,
    steps: int = 100,
    eta: float = 0.05,
    seed: int = 0,
) -> Alignment:
    """Rotate one cloud onto another.

    Parameters
    ----------
    source : array-like of shape (n_source, dim_source)
    target : array-like of shape (n_target, dim_target)
    relaxed_rows : int, default 500
        Rows of each side in the convex relaxation; the paper takes 2,000, at 64 times the time.
    relaxed_steps : int, default 50
        Frank-Wolfe steps; 0 starts from the principal axes.
    batch : int, default 200
        Rows of each side in a first batch.
    doublings : int, default 3
        Times the batch is doubled, with a quarter of the steps each (at least 4).
    steps : int, default 100
        Batches of the first size. The paper takes some thousands.
    eta : float, default 0.05
        Epsilon of a batch, as a share of its median cost.
    seed : int, default 0
        Of the samples.

    Returns
    -------
    Alignment
        Its curve holds the mean cost of the plans of each size of batch.

    Raises
    ------
    DegenerateVectorsError, ParameterError, ZeroVectorError, DimensionError, EmptyInputError,
    InvalidVectorsError

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(120, 3)) * [3, 2, 1]
    >>> turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    >>> found = wasserstein_procrustes(X, X @ turn, relaxed_steps=20, doublings=0, steps=9)
    >>> cost = found.cost(X, X @ turn).tile(slice(None), slice(None))
    >>> float((cost.argmin(axis=1) == np.arange(120)).mean()) > 0.9
    True
    """
    for name, value in (("relaxed_rows", relaxed_rows), ("batch", batch), ("steps", steps)):
        check_whole(value, name=name)
    check_whole(relaxed_steps, name="relaxed_steps", minimum=0)
    check_whole(doublings, name="doublings", minimum=0, maximum=20)
    check_positive(eta, name="eta")
    found = Alignment.of(source, target)
    X, Y = found.source.carry(source), found.target.carry(target)
    rng = np.random.default_rng(seed)
    few = min(relaxed_rows, len(X), len(Y))
    rotation = found.rotation
    if relaxed_steps:
        rotation = _relaxed(_some(X, few, rng), _some(Y, few, rng), relaxed_steps)
    curve = []
    for doubled in range(doublings + 1):
        costs = []
        for _ in range(max(4, steps // 4**doubled)):
            x, y = (_some(side, batch * 2**doubled, rng) for side in (X, Y))
            plan = _plan(x, y, rotation, eta)
            entries = plan.block(slice(None), slice(None)).astype(np.float64)
            costs.append(float((entries * plan.cost.tile(slice(None), slice(None))).sum()))
            # times the width: for a perfect plan of rows without a main axis, the rotation itself
            rotation = semi_orthogonal(rotation + x.T @ (entries @ y) * x.shape[1])
        curve.append(float(np.mean(costs[len(costs) // 2 :])))
    settled = len(curve) > 1 and abs(curve[-1] - curve[-2]) <= SETTLED * curve[-2]
    return replace(found, rotation=rotation, curve=np.asarray(curve), converged=settled)


def _some(rows: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Return some rows without repeats, all in their order where there are no more, float64."""
    if count >= len(rows):
        return rows.astype(np.float64)
    return rows[rng.choice(len(rows), count, replace=False)].astype(np.float64)


def _plan(x: FloatArray, y: FloatArray, rotation: FloatArray, eta: float) -> Coupling:
    cost = SimilarityCost((x @ rotation).astype(np.float32), y.astype(np.float32))
    return sinkhorn(cost, eta=eta, tolerance=0.01, max_iterations=100)


def _relaxed(x: FloatArray, y: FloatArray, steps: int) -> FloatArray:
    """Return the rotation that the convex relaxation of the matching asks for."""
    from scipy.optimize import linear_sum_assignment

    kernels = [(side @ side.T) ** 2 for side in (x, y)]
    left, right = (kernel / np.linalg.norm(kernel) for kernel in kernels)
    left_twice, right_twice = left @ left, right @ right
    plan = np.full(left.shape, 1 / len(left))
    for step in range(steps):
        gradient = left_twice @ plan + plan @ right_twice - 2 * left @ plan @ right
        rows, columns = linear_sum_assignment(gradient)
        plan *= step / (2 + step)
        plan[rows, columns] += 2 / (2 + step)
    return semi_orthogonal(x.T @ plan @ y)
