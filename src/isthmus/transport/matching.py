"""Four ways to rank the rows of one side for every row of the other, on one cost.

With similarities s = -C, a row i of the asking side and a row j of the other side (the gallery):

    nearest           s_ij
    inverted_softmax  s_ij / epsilon - log sum over i of exp(s_ij / epsilon)
    csls              2 s_ij - r_i - r_j,  r: the mean of the k highest similarities of a row
    sinkhorn          s_ij / epsilon + f_i + g_j, the logarithm of the plan of `sinkhorn`

All are the cost times one number, plus one number per row and per column: the cost is gone through
tile by tile and memory grows as n + m. The inverted softmax normalises the gallery alone, so it
ranks by other scores in the two directions; the others by the same (AnchorDOT, section 4, "Hubness
reduction", and appendix B.2).
References: Smith et al. (2017); Lample et al. (2018), equation 3; Cuturi (2013).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_positive, check_whole
from isthmus.errors import CountMismatchError, UnknownNameError
from isthmus.transport._ranking import best_columns, log_sums
from isthmus.transport.cost import Cost
from isthmus.transport.coupling import Coupling
from isthmus.transport.sinkhorn import default_epsilon, sinkhorn

__all__ = ["Matching", "Rule", "match"]

Rule = Literal["nearest", "inverted_softmax", "csls", "sinkhorn"]
"""How rows are ranked."""

TILE = 1 << 20
"""Entries of a tile in memory, per thread: 4 MB, and four times as much to rank them."""


@dataclass(frozen=True, eq=False)
class Matching:
    """The best rows of each side for every row of the other.

    Parameters
    ----------
    rule : {"nearest", "inverted_softmax", "csls", "sinkhorn"}
    target_rows : IntArray of shape (n, k)
        Of each source row, the best first; equal ones by their number.
    target_scores : FloatArray of shape (n, k), float32
    source_rows : IntArray of shape (m, k)
        Of each target row.
    source_scores : FloatArray of shape (m, k), float32
    """

    rule: Rule
    target_rows: IntArray
    target_scores: FloatArray
    source_rows: IntArray
    source_scores: FloatArray


def match(
    cost: Cost,
    rule: Rule,
    *,
    k: int = 10,
    epsilon: float | None = None,
    eta: float = 0.02,
    neighborhood: int = 10,
    coupling: Coupling | None = None,
    seed: int = 0,
) -> Matching:
    """Rank the rows of both sides for each other.

    Parameters
    ----------
    cost : Cost
        Of shape (n_source, n_target).
    rule : {"nearest", "inverted_softmax", "csls", "sinkhorn"}
    k : int, default 10
        Rows that are kept of each ranking; all there are where there are fewer.
    epsilon, eta, seed
        As in `sinkhorn`; for the inverted softmax and for Sinkhorn.
    neighborhood : int, default 10
        Rows in the mean of CSLS (Lample et al. 2018, section 2.3).
    coupling : Coupling, optional
        Of this cost, if it is known: for Sinkhorn.

    Raises
    ------
    UnknownNameError, ParameterError, DegenerateVectorsError
    CountMismatchError
        A coupling of another shape.

    Examples
    --------
    >>> from isthmus.transport import StoredCost
    >>> cost = StoredCost(np.array([[0.1, 0.2], [0.1, 0.9]]))  # the first target is a hub
    >>> match(cost, "nearest", k=1).target_rows.ravel().tolist()
    [0, 0]
    >>> match(cost, "sinkhorn", k=1).target_rows.ravel().tolist()
    [1, 0]
    """
    if rule not in get_args(Rule):
        raise UnknownNameError.of("rule", str(rule), get_args(Rule))
    check_whole(k, name="k")
    check_whole(neighborhood, name="neighborhood")
    back = cost.transpose()
    none = np.zeros(cost.shape[0]), np.zeros(cost.shape[1])
    if rule == "nearest":
        sides = _ranked(cost, -1.0, none, k), _ranked(back, -1.0, none[::-1], k)
    elif rule == "csls":
        near = _mean_similarity(cost, neighborhood), _mean_similarity(back, neighborhood)
        offsets = -near[0], -near[1]
        sides = _ranked(cost, -2.0, offsets, k), _ranked(back, -2.0, offsets[::-1], k)
    elif rule == "inverted_softmax":
        factor = -1.0 / _epsilon(cost, epsilon, eta, seed)
        sums = _log_sums(cost, factor), _log_sums(back, factor)
        sides = (
            _ranked(cost, factor, (none[0], -sums[1]), k),
            _ranked(back, factor, (none[1], -sums[0]), k),
        )
    else:
        plan = coupling or sinkhorn(cost, epsilon=epsilon, eta=eta, seed=seed)
        _check_shape(plan, cost)
        factor = -1.0 / plan.epsilon
        offsets = plan.source_potential, plan.target_potential
        sides = _ranked(cost, factor, offsets, k), _ranked(back, factor, offsets[::-1], k)
    return Matching(rule, *sides[0], *sides[1])


def _epsilon(cost: Cost, epsilon: float | None, eta: float, seed: int) -> float:
    if epsilon is None:
        return default_epsilon(cost, eta=eta, seed=seed)
    check_positive(epsilon, name="epsilon")
    return epsilon


def _check_shape(plan: Coupling, cost: Cost) -> None:
    if plan.shape != cost.shape:
        raise CountMismatchError(
            expected=f"a coupling of shape {cost.shape}",
            got=f"{plan.shape}",
            do="give the coupling of this cost, or none",
        )


Offsets = tuple[FloatArray, FloatArray]
"""What is added to each row and to each column, float64."""


def _ranked(cost: Cost, factor: float, offsets: Offsets, k: int) -> tuple[IntArray, FloatArray]:
    """Return the best columns of every row by ``factor * cost + offsets``, and their scores."""
    kept = min(k, cost.shape[1])
    rows = np.empty((cost.shape[0], kept), dtype=np.int64)
    scores = np.empty((cost.shape[0], kept), dtype=np.float32)

    def rank(block: slice, tile: FloatArray) -> None:
        rows[block] = best_columns(tile, kept)
        scores[block] = np.take_along_axis(tile, rows[block], axis=1)
        scores[block] += offsets[0][block, None].astype(np.float32)

    _over_tiles(cost, factor, offsets[1], rank)
    return rows, scores


def _mean_similarity(cost: Cost, neighborhood: int) -> FloatArray:
    """Return the mean similarity of every row to its most similar columns: (n,) float64."""
    kept = min(neighborhood, cost.shape[1])
    means = np.empty(cost.shape[0])

    def average(block: slice, tile: FloatArray) -> None:
        tile.partition(cost.shape[1] - kept, axis=1)
        means[block] = tile[:, cost.shape[1] - kept :].mean(axis=1, dtype=np.float64)

    _over_tiles(cost, -1.0, np.zeros(cost.shape[1]), average)
    return means


def _log_sums(cost: Cost, factor: float) -> FloatArray:
    """Return the logarithm of the sum of ``exp(factor * cost)`` of every row: (n,) float64."""
    sums = np.empty(cost.shape[0])

    def add(block: slice, tile: FloatArray) -> None:
        sums[block] = log_sums(tile)

    _over_tiles(cost, factor, np.zeros(cost.shape[1]), add)
    return sums


def _over_tiles(
    cost: Cost, factor: float, offset: FloatArray, work: Callable[[slice, FloatArray], None]
) -> None:
    """Call ``work(rows, factor * cost + offset)`` for every block of rows, on all threads."""
    n, m = cost.shape
    step = max(1, min(n, TILE // m))

    def call(start: int) -> None:
        block = slice(start, min(start + step, n))
        tile = np.empty((block.stop - start, m), dtype=np.float32)
        cost.write(block, factor, offset, tile)
        work(block, tile)

    with one_blas_thread() as threads, ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(call, range(0, n, step)):
            pass
