"""Gromov-Wasserstein and fused Gromov-Wasserstein: match distances inside both sides.

    L(alpha) = (1 - alpha) sum of (D_ik - D'_jl)^2 P_ij P_kl + alpha <P, C> - epsilon H(P)

over plans P with uniform marginals, D and D' the cosine distances inside each side over their mean
and C a cost between the sides (AnchorDOT, appendix C.3.3). ``alpha`` 0 needs no pair at all; 1 is
`sinkhorn`. By POT (extra ``ot``): projected gradients, each with a Sinkhorn of its own.

When to use it: as a baseline, and to see whether both sides share distances; the structural term
never helped in the paper. The objective is not convex, so the answer depends on where it starts.
Time grows with the third power of the rows and memory with the second: larger sides are refused.
Shapes: (n_source, dim_source) and (n_target, dim_target) to a plan of (n_source, n_target).
References: Peyré, Cuturi and Solomon (2016); Vayer et al. (2019).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from isthmus._linalg import normalise
from isthmus._optional import require
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray
from isthmus._validate import as_matrix, check_nonzero, check_positive, check_share, check_whole
from isthmus.errors import CountMismatchError, DegenerateVectorsError, ParameterError
from isthmus.transport.cost import Cost, StoredCost
from isthmus.transport.coupling import GOOD_ENOUGH, Coupling
from isthmus.transport.sinkhorn import sinkhorn

__all__ = ["GromovCoupling", "gromov", "gromov_seconds"]

PROBE = 384
"""Rows of the small problem whose parts are timed for an estimate."""

PASSES = 12
"""Passes over the plan in a step of the gradient beside the products and Sinkhorn's own."""

LEAST = 1e-300
"""Smallest entry of a plan, whose logarithm is kept."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GromovCoupling(Coupling):
    """A coupling by distances: of the plan P it keeps ``-epsilon log P``, with potentials of 0.

    Parameters
    ----------
    changes : FloatArray of shape (n,)
        How much the plan changed (Frobenius norm), at the first and every tenth step; none where
        all of the cost lies between the sides.
    tolerance_of_change : float
        That was asked for.
    errors : FloatArray of shape (1,)
        The marginal error of the plan, which is looked at once.
    tolerance : float
        0.01: the last of the inner Sinkhorns comes no nearer in its iterations.
    """

    changes: FloatArray
    tolerance_of_change: float

    @property
    def settled(self) -> bool:
        """Whether the plan no longer changed."""
        return not len(self.changes) or float(self.changes[-1]) <= self.tolerance_of_change

    @property
    def converged(self) -> bool:
        """Whether the plan no longer changed and the marginal error came down to the tolerance."""
        return self.settled and self.error <= self.tolerance

    @property
    def _took(self) -> str:
        if not len(self.changes):
            return super()._took
        return f"{len(self.changes):,} looks, the last at a change of {self.changes[-1]:.1e}"


def gromov(
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    cost: Cost | None = None,
    alpha: float | None = None,
    epsilon: float | None = None,
    eta: float = 0.02,
    max_iterations: int = 100,
    sinkhorn_iterations: int = 100,
    tolerance: float = 1e-6,
    max_rows: int = 2_000,
) -> GromovCoupling:
    """Couple two sides by the distances inside them, and by a cost between them where there is one.

    Parameters
    ----------
    source : array-like of shape (n_source, dim_source)
    target : array-like of shape (n_target, dim_target)
    cost : Cost, optional
        Of shape (n_source, n_target), as `anchor_cost` gives it.
    alpha : float in [0, 1], optional
        Share of that cost: 0.5 by default with a cost, 0 without.
    epsilon : float, optional
        Weight of the entropy. Default: ``eta`` times the median of the gradient at the start, which
        for ``alpha`` 1 is the median cost.
    eta : float, default 0.02
    max_iterations : int, default 100
        Steps of the gradient.
    sinkhorn_iterations : int, default 100
        At most, in each step.
    tolerance : float, default 1e-6
        Change of the plan (Frobenius norm) under which it stops.
    max_rows : int, default 2000
        Largest side that is taken on.

    Returns
    -------
    GromovCoupling
        It has converged where the plan settled with marginals within 0.01.

    Raises
    ------
    MissingExtraError
        Without POT.
    ParameterError
        A side over ``max_rows``, numbers out of range, or an epsilon that float64 cannot solve.
    DegenerateVectorsError
        A side whose rows are all alike.
    CountMismatchError
        A cost of another shape.
    ZeroVectorError, DimensionError, EmptyInputError, InvalidVectorsError

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20, 2))
    >>> gromov(X, X[::-1] @ [[0.0, 1.0], [1.0, 0.0]]).shape  # a reflection
    (20, 20)
    """
    left, right = as_matrix(source, name="source"), as_matrix(target, name="target")
    for rows, name in ((left, "source"), (right, "target")):
        check_nonzero(rows, name=name)
    share = (0.0 if cost is None else 0.5) if alpha is None else alpha
    _check(left, right, cost, share)
    for name, value in (("eta", eta), ("epsilon", epsilon), ("tolerance", tolerance)):
        if value is not None:
            check_positive(value, name=name)
    check_whole(max_iterations, name="max_iterations")
    check_whole(sinkhorn_iterations, name="sinkhorn_iterations")
    if cost is not None and share == 1.0:
        return _plain(sinkhorn(cost, epsilon=epsilon, eta=eta), tolerance)
    _check_rows(len(left), len(right), max_rows, max_iterations, sinkhorn_iterations)
    solver = require("ot.gromov", extra="ot")
    with one_blas_thread():
        inside = _distances(left, "source"), _distances(right, "target")
        between = np.zeros((len(left), len(right)))
        if cost is not None:
            between = cost.tile(slice(None), slice(None)).astype(np.float64)
        if epsilon is None:
            epsilon = eta * float(np.median(_gradient(*inside, between, share)))
        options = {"max_iter": max_iterations, "tol": tolerance, "epsilon": epsilon}
        inner = {"numItermax": sinkhorn_iterations, "stopThr": tolerance, "warn": False}
        plan, record = _solved(
            lambda: solver.entropic_fused_gromov_wasserstein(
                between, *inside, alpha=1 - share, symmetric=True, log=True, **options, **inner
            ),
            epsilon,
        )
    return _coupling(plan, epsilon, record["err"], tolerance)


def gromov_seconds(
    n_source: int, n_target: int, *, max_iterations: int = 100, sinkhorn_iterations: int = 100
) -> float:
    """Return how long `gromov` takes at most, from parts that are timed on this machine.

    A step multiplies the plan by the distances of both sides, n m (n + m) multiplications, and goes
    over the plan 2 times per iteration of Sinkhorn and some twelve times beside. One product and
    one pass are timed at 384 rows, which takes about 50 milliseconds.

    Parameters
    ----------
    n_source, n_target : int
        Rows.
    max_iterations, sinkhorn_iterations : int, default 100
        As in `gromov`; it stops earlier where it settles.

    Examples
    --------
    >>> gromov_seconds(4_000, 4_000) > gromov_seconds(400, 400) > 0
    True
    """
    square = np.random.default_rng(0).random((PROBE, PROBE))
    with one_blas_thread():
        product = _seconds(lambda: square @ square)
        sweep = _seconds(lambda: square @ square[0])
    entries = n_source * n_target
    products = entries * (n_source + n_target) / PROBE**3 * product
    sweeps = entries / PROBE**2 * sweep * (2 * sinkhorn_iterations + 4 * PASSES)
    return max_iterations * (products + sweeps)


def _seconds(work: Callable[[], object]) -> float:
    """Return the least of five timings."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _check(left: FloatArray, right: FloatArray, cost: Cost | None, share: float) -> None:
    check_share(share, name="alpha")
    if cost is None and share > 0:
        raise ParameterError(
            expected="a cost where alpha is over 0", got="none", do="pass anchor_cost, or alpha 0"
        )
    if cost is not None and cost.shape != (len(left), len(right)):
        raise CountMismatchError(
            expected=f"a cost of shape {(len(left), len(right))}, the rows of both sides",
            got=f"{cost.shape}",
            do="make the cost of the same rows, source first",
        )


def _check_rows(n: int, m: int, most: int, steps: int, iterations: int) -> None:
    if max(n, m) > most:
        took = gromov_seconds(n, m, max_iterations=steps, sinkhorn_iterations=iterations)
        raise ParameterError(
            expected=f"at most {most:,} rows a side",
            got=f"{n:,} and {m:,}, which take up to {took:,.0f} seconds and "
            f"{8e-9 * (n * n + m * m + 8 * n * m):.1f} GB",
            do="take a sample of the rows, or raise max_rows",
        )


def _distances(rows: FloatArray, name: str) -> FloatArray:
    """Return cosine distances over their mean: (n, n), float64."""
    unit = normalise(rows).astype(np.float64)
    distances = np.maximum(1 - unit @ unit.T, 0)
    np.fill_diagonal(distances, 0)
    mean = distances.mean()
    if not mean > 1e-6:  # float32 rounds cosines by a tenth of that
        raise DegenerateVectorsError(
            expected=f"rows of several directions in {name}",
            got=f"a mean distance of {mean:.2g}",
            do="check that the vectors were read in the right way",
        )
    scaled: FloatArray = distances / mean
    return scaled


def _gradient(
    inside: FloatArray, other: FloatArray, between: FloatArray, share: float
) -> FloatArray:
    """Return the gradient at the product of uniform marginals: (n, m)."""
    squares = (inside**2).mean(axis=1)[:, None] + (other**2).mean(axis=1)
    structural = 2 * (squares - 2 * np.outer(inside.mean(axis=1), other.mean(axis=1)))
    gradient: FloatArray = (1 - share) * structural + share * between
    return gradient


def _solved(
    solve: Callable[[], tuple[FloatArray, dict[str, list[float]]]], epsilon: float
) -> tuple[FloatArray, dict[str, list[float]]]:
    """Solve, or say that float64 could not."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        plan, record = solve()
    plan = np.asarray(plan)
    if not np.isfinite(plan).all() or abs(plan.sum() - 1) > 0.5:
        raise ParameterError(
            expected="an epsilon that float64 can solve with",
            got=f"{epsilon:.3g}",
            do="raise epsilon or eta",
        )
    return plan, record


def _plain(found: Coupling, tolerance: float) -> GromovCoupling:
    """Return a coupling by the cost alone, whose plan was never a start for another."""
    known = {one.name: getattr(found, one.name) for one in fields(Coupling)}
    return GromovCoupling(**known, changes=np.empty(0), tolerance_of_change=tolerance)


def _coupling(
    plan: FloatArray, epsilon: float, changes: list[float], tolerance: float
) -> GromovCoupling:
    n, m = plan.shape
    off = float(np.abs(plan.sum(axis=1) - 1 / n).sum() + np.abs(plan.sum(axis=0) - 1 / m).sum())
    return GromovCoupling(
        cost=StoredCost(-epsilon * np.log(np.maximum(plan, LEAST))),
        source_potential=np.zeros(n),
        target_potential=np.zeros(m),
        epsilon=epsilon,
        source_mass=np.full(n, 1 / n),
        target_mass=np.full(m, 1 / m),
        errors=np.array([off]),
        tolerance=GOOD_ENOUGH,
        changes=np.asarray(changes, dtype=np.float64),
        tolerance_of_change=tolerance,
    )
