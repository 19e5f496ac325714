"""Entropic optimal transport by Sinkhorn's algorithm, tile by tile.

    minimise over P  <P, C> + epsilon KL(P | mu nu^T),   P 1 = mu,  P^T 1 = nu

which is AnchorDOT's equation 7: where the marginals are met, KL is -H(P) but for a constant. It is
solved in the log domain, with a cost that is never stored: memory grows as n + m. One pass over the
cost makes both half-steps, as a block of rows is scaled before its columns are summed. The steps
are over-relaxed as far as the rate at which the error falls asks for: several times fewer do.
``relaxation`` lets marginals give way (unbalanced transport), for collections that do not match.

When to use it: to match two clouds of rows whose costs say little one by one. Shapes: a cost of
(n_source, n_target) to potentials (n_source,) and (n_target,).
References: AnchorDOT, section 3.3; Cuturi (2013); Peyré and Cuturi (2019), remark 4.23 for the log
domain; Chizat, Peyré, Schmitzer and Vialard (2018) for unbalanced marginals; Thibault, Chizat,
Dossal and Papadakis (2021) for over-relaxation.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from isthmus._progress import current_track
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_positive, check_share, check_whole
from isthmus.errors import CountMismatchError, DegenerateVectorsError, ParameterError
from isthmus.transport.cost import Cost, sample_costs
from isthmus.transport.coupling import Coupling

__all__ = ["default_epsilon", "sinkhorn"]

TILE = 1 << 21
"""Entries of the plan in memory per thread: 8 MB."""
LEAST_ROWS, MOST_ROWS = 16, 512
"""Rows of a block: enough for the speed of a matrix product, few enough to share out."""

AHEAD = 16
"""Blocks that are handed to the threads at once."""

FLOOR = np.float32(-60)
"""Logarithm of the smallest share of a row's largest entry that is counted: 1e-26. Below, float32
leaves its normal range, where processors are a hundred times slower."""
FINEST = 1e-6
"""Smallest epsilon as a share of the largest cost: entries are then right to a tenth."""

LARGEST = 80.0
"""Logarithm of the largest weight of a row: float32 ends at 88."""
LOST = 1e-15
"""Share of its mass under which a column is summed again in the log domain."""

WATCHED, MOST_RELAXED = 5, 1.98
"""Iterations over which the rate of the error is looked at; the largest over-relaxation."""

MOST_HALVINGS = 20
"""From an epsilon a million times as large."""
LARGEST_START = 1e7
"""Of potentials to start from, in units of epsilon: more than any cost has at the finest one."""
LEAST_MASS, MOST_MASS = 1e-30, 1e30
"""Of a row: float32 holds the plan between."""

ROUNDING = 1e-6
"""Share of the mass by which two marginals may differ and still balance."""


def sinkhorn(
    cost: Cost,
    *,
    epsilon: float | None = None,
    eta: float = 0.02,
    source_mass: npt.ArrayLike | None = None,
    target_mass: npt.ArrayLike | None = None,
    relaxation: float | None = None,
    tolerance: float = 1e-4,
    max_iterations: int = 1_000,
    start: Coupling | None = None,
    scaling: int = 0,
    seed: int = 0,
) -> Coupling:
    """Couple two sides.

    Parameters
    ----------
    cost : Cost
        Of shape (n_source, n_target).
    epsilon : float, optional
        Weight of the entropy, in units of the cost. Default: ``eta`` times the median cost. Costs
        are float32, so entries of the plan are right to about 1e-7 of the largest cost over it.
    eta : float, default 0.02
        Half and five times as much serve as well on ChEBI-20 (seeds over 99).
    source_mass, target_mass : array-like of shape (n_source,) and (n_target,), optional
        Marginals, over 0; uniform with a sum of 1 by default. Both must have one sum, unless
        ``relaxation`` lets them give way.
    relaxation : float, optional
        What it costs to leave a marginal, by the Kullback-Leibler divergence, in units of the cost
        (rho): rows that fit nothing then get less mass. Default: marginals are met.
    tolerance : float, default 1e-4
        Marginal error, as a share of the mass, at which it stops (AnchorDOT, table 8). With
        ``relaxation`` the difference to the marginals that the potentials ask for.
    max_iterations : int, default 1000
        AnchorDOT, table 8. A plan that is further off comes back all the same:
        `Coupling.converged`, `Coupling.require`.
    start : Coupling, optional
        Potentials to start from, of the same shape: of a close cost or another epsilon.
    scaling : int, default 0
        Times to solve with twice the epsilon before: so many halvings lead to ``epsilon``.
    seed : int, default 0
        Of the sample that the median is taken from.

    Raises
    ------
    ParameterError
        Marginals with a zero or another sum, numbers out of range, an epsilon under a millionth of
        the largest cost.
    CountMismatchError
        Marginals or a start of another length.
    DegenerateVectorsError
        No median cost over 0: all rows are the same to the cost.

    Examples
    --------
    >>> from isthmus.transport import cosine_cost
    >>> plan = sinkhorn(cosine_cost(np.eye(3), np.eye(3)[::-1]), epsilon=0.1)
    >>> plan.matched_rows().target_rows.tolist()
    [2, 1, 0]
    """
    check_positive(eta, name="eta")
    for name, value in (("epsilon", epsilon), ("relaxation", relaxation)):
        if value is not None:
            check_positive(value, name=name)
    check_share(tolerance, name="tolerance")
    check_whole(max_iterations, name="max_iterations")
    check_whole(scaling, name="scaling", minimum=0, maximum=MOST_HALVINGS)
    mu, nu = _masses(cost.shape, source_mass, target_mass, balanced=relaxation is None)
    costs = sample_costs(cost, seed=seed)
    epsilon = eta * _median(costs) if epsilon is None else float(epsilon)
    _check_precision(costs, epsilon)
    solver = _Solver(cost, mu, nu, relaxation, tolerance)
    potentials: Potentials = np.log(mu), np.log(nu)
    if start is not None:
        _check_start(start, cost.shape)
        before = start.source_potential, start.target_potential
        potentials = _rescale(before, (mu, nu), start.epsilon / epsilon)
    errors: list[float] = []
    with one_blas_thread() as threads, ThreadPoolExecutor(threads) as pool:
        for halvings in range(scaling, -1, -1):
            now = epsilon * 2.0**halvings
            if halvings < scaling:
                potentials = _rescale(potentials, (mu, nu), 2.0)
            left = max_iterations - len(errors)
            few = left if not halvings else min(left - 1, WATCHED)
            if few > 0:
                potentials, seen = solver.run(now, potentials, few, pool)
                errors += seen
    return Coupling(
        cost=cost,
        source_potential=potentials[0],
        target_potential=potentials[1],
        epsilon=epsilon,
        source_mass=mu,
        target_mass=nu,
        errors=np.asarray(errors),
        tolerance=tolerance,
    )


Potentials = tuple[FloatArray, ...]
"""Of the source side and of the target side, float64, in units of epsilon."""


@dataclass(frozen=True)
class _Step:
    """One iteration: epsilon, how much of a marginal is enforced, and the over-relaxation."""

    epsilon: float
    give: float
    omega: float


@dataclass(eq=False)
class _Solver:
    """One problem; the state of a run is handed from pass to pass."""

    cost: Cost
    mu: FloatArray
    nu: FloatArray
    relaxation: float | None
    tolerance: float
    _blocks: list[slice] = field(init=False)

    def __post_init__(self) -> None:
        n, m = self.cost.shape
        step = min(MOST_ROWS, max(LEAST_ROWS, TILE // m // LEAST_ROWS * LEAST_ROWS))
        self._blocks = [slice(at, min(at + step, n)) for at in range(0, n, step)]

    def run(
        self, epsilon: float, potentials: Potentials, most: int, pool: ThreadPoolExecutor
    ) -> tuple[Potentials, list[float]]:
        """Iterate until the error is small enough; return the potentials and the error curve."""
        give = 1.0 if self.relaxation is None else self.relaxation / (self.relaxation + epsilon)
        f, g = potentials
        errors: list[float] = []
        speed = _Speed()
        for number in current_track()(range(most), "coupling", most):
            step = _Step(epsilon, give, speed.omega)
            new_f, full_f, log_sums, sums = self._pass((f, g), step, pool)
            wanted = self._wanted(g, give)
            error = float(np.abs(sums - wanted).sum() / self.nu.sum())
            errors.append(error)
            if error <= self.tolerance or number == most - 1:
                return (full_f, g), errors
            speed.watch(error)
            f = new_f
            g = g + step.omega * (np.log(self.nu) - give * (log_sums - g) - g)
        return (f, g), errors

    def _wanted(self, g: FloatArray, give: float) -> FloatArray:
        """Return the column sums that the potentials ask for: nu, but for marginals that give."""
        if give == 1.0:
            return self.nu
        wanted: FloatArray = self.nu * _exp((np.log(self.nu) - g) * (1 - give) / give)
        return wanted

    def _pass(
        self, potentials: Potentials, step: _Step, pool: ThreadPoolExecutor
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Scale the rows, and sum the columns of what comes out.

        Returns
        -------
        new_f : FloatArray of shape (n,)
        full_f : FloatArray of shape (n,)
            After a step without over-relaxation, whose rows are exact.
        log_sums : FloatArray of shape (m,)
            Logarithms of the column sums of the plan of ``new_f`` and ``g``.
        full_sums : FloatArray of shape (m,)
            Column sums of the plan of ``full_f`` and ``g``: they say how far off it is.
        """
        f, g = potentials
        epsilon, give, omega = step.epsilon, step.give, step.omega
        new_f, full_f = np.empty_like(f), np.empty_like(f)
        both = np.zeros((2, len(g)))

        def scale(rows: slice) -> FloatArray:
            tile = np.empty((rows.stop - rows.start, len(g)), dtype=np.float32)
            self.cost.write(rows, -1 / epsilon, g, tile)
            top = tile.max(axis=1)
            tile -= top[:, None]
            np.maximum(tile, FLOOR, out=tile)
            np.exp(tile, out=tile)
            log_sum = np.log(tile.sum(axis=1).astype(np.float64)) + top
            full_f[rows] = np.log(self.mu[rows]) - give * log_sum
            new_f[rows] = f[rows] + omega * (full_f[rows] - f[rows])
            logs = np.stack((new_f[rows], full_f[rows])) + top
            weights = np.exp(np.minimum(logs, LARGEST)).astype(np.float32)
            part: FloatArray = (weights @ tile).astype(np.float64)
            return part

        for start in range(0, len(self._blocks), AHEAD):
            # in order, so that sums do not depend on threads; a few, so that none pile up
            for part in pool.map(scale, self._blocks[start : start + AHEAD]):
                both += part
        sums, full_sums = both
        lost = np.flatnonzero(~(sums > LOST * self.nu))
        sums[lost] = 1.0
        log_sums = np.log(sums)
        if len(lost):
            log_sums[lost] = self._sum_lost(lost, epsilon, new_f, g)
        return new_f, full_f, log_sums, full_sums

    def _sum_lost(self, lost: IntArray, epsilon: float, f: FloatArray, g: FloatArray) -> FloatArray:
        """Sum those columns in the log domain whose entries float32 has lost."""
        top = np.full(len(lost), -1e300)
        total = np.zeros(len(lost))
        for rows in self._blocks:
            logs = self.cost.tile(rows, lost).astype(np.float64) / -epsilon + f[rows][:, None]
            higher = np.maximum(top, logs.max(axis=0))
            total = total * np.exp(top - higher) + np.exp(logs - higher).sum(axis=0)
            top = higher
        log_sums: FloatArray = np.log(total) + top + g[lost]
        return log_sums


def _exp(logs: FloatArray) -> FloatArray:
    """Return the exponentials, up to where float64 ends."""
    values: FloatArray = np.exp(np.minimum(logs, 700.0))
    return values


class _Speed:
    """The over-relaxation, from the rate at which the error falls.

    Steps with w that shrink the error by a factor s are plain steps with a rate r of
    ``(s + w - 1)^2 / (w^2 s)``, for which 2 / (1 + sqrt(1 - r)) is the best w (Young 1954). A rate
    seen early is too good, so w grows as long as the rate asks for more; where the error rises,
    plain steps bring it back.
    """

    def __init__(self) -> None:
        self.omega = 1.0
        self._seen: list[float] = []

    def watch(self, error: float) -> None:
        """Take note of an error, and choose the next step."""
        seen = self._seen = [*self._seen[-2 * WATCHED :], error]
        if len(seen) <= 2 * WATCHED:
            return
        if error >= seen[-1 - WATCHED]:
            self.omega, self._seen = 1.0, []
            return
        # no factor under w - 1 belongs to any rate
        shrunk = max((error / seen[-1 - WATCHED]) ** (1 / WATCHED), self.omega - 1)
        rate = min((shrunk + self.omega - 1) ** 2 / (self.omega**2 * shrunk), 1.0)
        omega = min(MOST_RELAXED, 2 / (1 + float(np.sqrt(1 - rate))))
        if omega > self.omega + 0.01:
            self.omega, self._seen = omega, []


def default_epsilon(cost: Cost, *, eta: float, seed: int) -> float:
    """Return ``eta`` times the median cost (AnchorDOT, appendix D).

    Raises
    ------
    DegenerateVectorsError
        No median cost over 0.
    """
    check_positive(eta, name="eta")
    return eta * _median(sample_costs(cost, seed=seed))


def _median(costs: FloatArray) -> float:
    median = float(np.median(costs))
    if not median > 1e-6:
        raise DegenerateVectorsError(
            expected="a median cost over 0, of which epsilon is a share",
            got=f"{median:.3g}",
            do="look for rows or anchors that are all alike, or set epsilon",
        )
    return median


def _check_precision(costs: FloatArray, epsilon: float) -> None:
    """Refuse an epsilon that is lost in the rounding of the costs."""
    largest = float(np.abs(costs).max())
    if epsilon < FINEST * largest:
        raise ParameterError(
            expected=f"epsilon of at least {FINEST * largest:.2g}, as costs reach {largest:.3g} "
            "and have seven digits",
            got=f"{epsilon:.3g}",
            do="raise epsilon, or subtract from the costs what they have in common",
        )


def _masses(
    shape: tuple[int, int],
    source: npt.ArrayLike | None,
    target: npt.ArrayLike | None,
    *,
    balanced: bool,
) -> tuple[FloatArray, FloatArray]:
    mu, nu = _mass(source, shape[0], "source_mass"), _mass(target, shape[1], "target_mass")
    if source is None and target is not None:
        mu = mu * nu.sum()
    if target is None and source is not None:
        nu = nu * mu.sum()
    if balanced and abs(mu.sum() - nu.sum()) > ROUNDING * max(mu.sum(), nu.sum()):
        raise ParameterError(
            expected="marginals of one mass, so that they can balance",
            got=f"{mu.sum():.6g} on the source side and {nu.sum():.6g} on the target side",
            do="scale one of them, or set relaxation",
        )
    return mu, nu


def _mass(given: npt.ArrayLike | None, n: int, name: str) -> FloatArray:
    if given is None:
        return np.full(n, 1 / n)
    try:
        mass = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            expected=f"numbers in {name}", got=f"{type(given).__name__}", do="give one per row"
        ) from error
    if mass.shape != (n,):
        raise CountMismatchError(
            expected=f"{name} of shape ({n},)", got=f"{mass.shape}", do="give one number per row"
        )
    if not ((mass >= LEAST_MASS) & (mass <= MOST_MASS)).all():
        raise ParameterError(
            expected=f"numbers over 0 in {name}, from {LEAST_MASS:g} to {MOST_MASS:g}",
            got=f"from {mass.min():g} to {mass.max():g}",
            do="leave rows without mass out, and scale the others",
        )
    return mass


def _check_start(start: Coupling, shape: tuple[int, int]) -> None:
    if start.shape != shape:
        raise CountMismatchError(
            expected=f"a start of shape {shape}", got=f"{start.shape}", do="start without one"
        )
    for potential in (start.source_potential, start.target_potential):
        spread = float(np.ptp(potential))
        if not spread <= LARGEST_START:
            raise ParameterError(
                expected=f"a start whose potentials lie within {LARGEST_START:g}",
                got=f"{spread:g}",
                do="start without one",
            )


def _rescale(
    potentials: Potentials, masses: tuple[FloatArray, FloatArray], factor: float
) -> Potentials:
    """Return potentials for another epsilon, in its units.

    Only what lies beyond the logarithms of the masses grows with 1 / epsilon, and what one side
    has more in common, and the other less, is left out: float32 would lose the costs beside it.
    """
    (f, g), (mu, nu) = potentials, masses
    ours, theirs = factor * (f - np.log(mu)), factor * (g - np.log(nu))
    offset = float(theirs.mean())
    return np.log(mu) + ours + offset, np.log(nu) + theirs - offset
