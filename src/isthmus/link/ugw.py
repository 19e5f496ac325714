"""Unbalanced Gromov-Wasserstein: match the distances inside one cloud to those inside the other.

Solves, for distances D, D' inside each side and weights w, w' of rows, the lower bound of

    min over P of  sum of (D_ik - D'_jl)^2 P_ij P_kl + rho KL(P 1 | w)^2 + rho KL(P^T 1 | w')^2
                   + epsilon KL(P | w w'^T)^2

with KL^2 between product measures, alternating over two copies of P, by POT. Links are entries of P
that are the largest of their row and column. The seeds only say where it starts. When to use it:
as the paper's baseline, or to link without trust in any map. Time grows with n^3, memory with n^2:
clouds over ``max_rows`` are refused.
Shapes: P is (n_source, n_target).
References: Séjourné, Vialard and Peyré (2021); vector linking, appendix C.1.3, "UGW".
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import numpy as np

from isthmus._optional import require
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_positive, check_whole
from isthmus.errors import ParameterError
from isthmus.link.aligned import RowPairs, SingleShot, check_rows, mutual_argmax
from isthmus.link.problem import LinkProblem

__all__ = ["UGW"]

DOUBLINGS = 14
"""Of epsilon, until no row of the kernel is zero: POT does not solve in the log domain."""


@dataclass(frozen=True, kw_only=True)
class UGW(SingleShot):
    """Unbalanced Gromov-Wasserstein from a coupling of the seeds, then mutual argmax.

    Needs the extra ``ot``.

    Parameters
    ----------
    epsilon : float, default 1e-3
        Entropic regularisation; distances have mean 1. Doubled as often as float64 asks for.
    relaxation : float, default 1e-2
        rho, what it costs to leave mass behind; lower leaves more rows without a partner.
    seed_mass : float in [0, 1), default 0.5
        Share of the starting coupling that lies on the seed pairs; the rest is uniform.
    max_iter : int, default 10
        Alternations.
    max_iter_ot : int, default 50
        Iterations of Sinkhorn in each.
    max_rows : int, default 5000
        Largest side that is taken on: about 150 bytes per entry of the plan, so 4 GB at 5,000.

    Notes
    -----
    The paper gives none of the numbers; these were chosen on 520 rows of Climate-FEVER. Seeds from
    elsewhere are added to both clouds and taken out of the plan again. One vote per link; every
    posterior is 2/3 and not calibrated (`isthmus.link.aligned`).

    Examples
    --------
    >>> from isthmus.link import LinkProblem
    >>> cloud = np.random.default_rng(0).standard_normal((40, 9))
    >>> problem = LinkProblem.of_rows(cloud, cloud[:, ::-1], [(row, row) for row in range(10)])
    >>> len(UGW().link(problem))
    40
    """

    name: ClassVar[str] = "ugw"

    epsilon: float = 1e-3
    relaxation: float = 1e-2
    seed_mass: float = 0.5
    max_iter: int = 10
    max_iter_ot: int = 50
    max_rows: int = 5_000

    def __post_init__(self) -> None:
        check_positive(self.epsilon, name="epsilon")
        check_positive(self.relaxation, name="relaxation")
        if not 0 <= self.seed_mass < 1:  # NaN, too
            raise ParameterError(
                expected="seed_mass from 0 to under 1", got=f"{self.seed_mass}", do="change it"
            )
        for name in ("max_iter", "max_iter_ot", "max_rows"):
            check_whole(getattr(self, name), name=name)

    def propose(self, problem: LinkProblem, *, seed: int) -> RowPairs:  # noqa: ARG002 - nothing is random
        """Return the mutual argmax of the plan."""
        check_rows(problem, method=self.name, max_rows=self.max_rows)
        plan = self.plan(problem)
        return mutual_argmax(plan)

    def plan(self, problem: LinkProblem) -> FloatArray:
        """Return the transport plan between the two clouds.

        Parameters
        ----------
        problem : LinkProblem

        Returns
        -------
        FloatArray of shape (n_source, n_target), float64

        Raises
        ------
        MissingExtraError
            Without POT.
        ParameterError
            No epsilon up to 16,384 times the one asked for gives finite numbers.
        """
        gromov = require("ot.gromov", extra="ot")
        source, target, seeds = _with_seeds(problem)
        with one_blas_thread():
            distances = _distances(source), _distances(target)
            start = _start(len(source), len(target), seeds, self.seed_mass)
            for doubled in range(DOUBLINGS + 1):
                plan = self._solve(gromov, distances, start, self.epsilon * 2**doubled)
                if plan is not None:
                    return plan[: len(problem.source), : len(problem.target)]
        raise ParameterError(
            expected="an epsilon that float64 can solve with",
            got=f"{self.epsilon:g}, and no better with {2**DOUBLINGS:,} times as much",
            do="raise epsilon or lower relaxation",
        )

    def _solve(
        self,
        gromov: ModuleType,
        distances: tuple[FloatArray, FloatArray],
        start: FloatArray,
        epsilon: float,
    ) -> FloatArray | None:
        """Return the plan, or None where the kernel underflows."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", message="Numerical errors")
            try:
                plan, _ = gromov.fused_unbalanced_gromov_wasserstein(
                    *distances,
                    reg_marginals=self.relaxation,
                    epsilon=epsilon,
                    unbalanced_solver="sinkhorn_log",
                    init_pi=start,
                    max_iter=self.max_iter,
                    max_iter_ot=self.max_iter_ot,
                )
            except UserWarning:
                return None
            except ValueError as error:  # POT says it in two ways
                if "NaN in coupling" in str(error):
                    return None
                raise
        return np.asarray(plan) if np.isfinite(plan).all() else None


def _with_seeds(problem: LinkProblem) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return both clouds and the seeds as rows of them, added at the end if they are not in."""
    if problem.seed_rows is not None:
        return problem.source, problem.target, problem.seed_rows
    each = np.arange(problem.n_seeds)
    return (
        np.concatenate((problem.source, problem.seed_source)),
        np.concatenate((problem.target, problem.seed_target)),
        np.column_stack((len(problem.source) + each, len(problem.target) + each)),
    )


def _distances(cloud: FloatArray) -> FloatArray:
    """Return cosine distances (n, n) over their mean, float64."""
    rows = cloud.astype(np.float64)
    distances = np.maximum(1 - rows @ rows.T, 0)
    np.fill_diagonal(distances, 0)
    distances /= distances.mean()
    return distances


def _start(n_source: int, n_target: int, seeds: IntArray, seed_mass: float) -> FloatArray:
    """Return a coupling of mass 1: uniform but for the share that lies on the seeds."""
    start = np.full((n_source, n_target), (1 - seed_mass) / (n_source * n_target))
    start[seeds[:, 0], seeds[:, 1]] += seed_mass / len(seeds)
    return start
