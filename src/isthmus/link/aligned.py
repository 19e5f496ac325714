"""What methods share that bring both clouds into one space, once, and read the links off there.

They see the data once: one view, one vote for every pair they propose. So they know no more of one
pair than of another, and every posterior is the mean of Beta(1 + 1, 1), which is 2/3: a number that
is not calibrated and ranks nothing. A method that knows better says so in its docstring.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from isthmus._linalg import affine, normalise
from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_whole
from isthmus.errors import ParameterError
from isthmus.link.base import Linker, LinkState
from isthmus.link.links import Iteration, Links, LinkVerdict
from isthmus.link.problem import LinkProblem
from isthmus.neighbors import mutual_by_csls

__all__ = [
    "POSTERIOR",
    "AlignedLinker",
    "RowPairs",
    "SingleShot",
    "carry",
    "check_rows",
    "links_of",
    "mutual_argmax",
    "state_of",
]

POSTERIOR = 2 / 3
"""Of a pair that one view out of one proposed: the mean of Beta(1 + 1, 1)."""

THRESHOLD = 0.0
"""What such a method stands for is all that it proposes."""

RowPairs = tuple[IntArray, IntArray]
"""Source rows and target rows of links, one-to-one, by source row."""


class SingleShot(Linker):
    """A method of one step: it proposes its pairs and is done."""

    @abstractmethod
    def propose(self, problem: LinkProblem, *, seed: int) -> RowPairs:
        """Return the links, one-to-one, by source row."""

    def iterate(
        self, problem: LinkProblem, *, seed: int, state: LinkState | None
    ) -> Iterator[LinkState]:
        """Yield the one state there is; nothing where it is already there."""
        if state is None:
            started = time.perf_counter()
            pairs = self.propose(problem, seed=seed)
            yield state_of(
                problem,
                pairs,
                phase=self.name,
                anchors=problem.n_seeds,
                seconds=time.perf_counter() - started,
                done=True,
            )

    def finish(
        self,
        problem: LinkProblem,  # noqa: ARG002 - of the contract
        state: LinkState,
        *,
        seed: int,  # noqa: ARG002 - of the contract
        interrupted: bool,
    ) -> Links:
        """Return the links of the state, all with one posterior."""
        return links_of(state, method=self.name, interrupted=interrupted)


@dataclass(frozen=True, kw_only=True)
class AlignedLinker(SingleShot):
    """A method that learns a map from the seeds: then CSLS and mutual nearest neighbours.

    Parameters
    ----------
    csls_neighborhood : int, default 50
        Neighbours in the local scaling (vector linking, appendix C.2.4).
    """

    csls_neighborhood: int = 50

    def __post_init__(self) -> None:
        check_whole(self.csls_neighborhood, name="csls_neighborhood")

    @abstractmethod
    def align(self, problem: LinkProblem, *, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return all rows of both clouds in one space, with length one, float32."""

    def propose(self, problem: LinkProblem, *, seed: int) -> RowPairs:
        """Return the mutual nearest neighbours by CSLS of the aligned clouds."""
        source, target = self.align(problem, seed=seed)
        found = mutual_by_csls(source, target, neighborhood=self.csls_neighborhood)
        return found.source_rows, found.target_rows


def carry(rows: FloatArray, weight: FloatArray, bias: FloatArray | None = None) -> FloatArray:
    """Return ``rows @ weight + bias`` with rows of length one, float32.

    Examples
    --------
    >>> carry(np.eye(2), np.array([[2.0], [-3.0]])).ravel().tolist()
    [1.0, -1.0]
    """
    return normalise(affine(rows, weight, bias))


def state_of(
    problem: LinkProblem,
    pairs: RowPairs,
    *,
    phase: str,
    anchors: int,
    seconds: float,
    done: bool,
    history: tuple[Iteration, ...] = (),
) -> LinkState:
    """Return the state whose links and candidates are these pairs, with one vote each.

    Parameters
    ----------
    problem : LinkProblem
    pairs : RowPairs
    phase : str
        What the step is called in the history.
    anchors : int
        Pairs that the map was fitted on.
    seconds : float
    done : bool
    history : tuple of Iteration
        Of the steps before.
    """
    source_rows, target_rows = pairs
    count = len(source_rows)
    step = Iteration(
        number=len(history) + 1,
        phase=phase,
        views=1,
        anchors=anchors,
        candidates=count,
        links=count,
        ratio=2 * count / max(len(problem.source), len(problem.target)),
        threshold=THRESHOLD,
        seconds=seconds,
    )
    return LinkState(
        source_rows=source_rows,
        target_rows=target_rows,
        posterior=np.full(count, POSTERIOR),
        pairs=np.column_stack((source_rows, target_rows)),
        votes=np.ones(count, np.int64),
        views=1,
        history=(*history, step),
        done=done,
    )


def links_of(state: LinkState, *, method: str, interrupted: bool) -> Links:
    """Return the links of a state made by `state_of`."""
    return Links(
        source_rows=state.source_rows,
        target_rows=state.target_rows,
        posterior=state.posterior,
        votes=state.votes,
        views=state.views,
        threshold=THRESHOLD,
        method=method,
        history=state.history,
        verdict=LinkVerdict("not_judged"),
        interrupted=interrupted,
    )


def mutual_argmax(plan: FloatArray) -> RowPairs:
    """Return the pairs that are the largest entry of their row and of their column, over zero.

    Equal entries go to the lowest row.

    Examples
    --------
    >>> rows, columns = mutual_argmax(np.array([[0.2, 0.5], [0.1, 0.4], [0.0, 0.0]]))
    >>> rows.tolist(), columns.tolist()
    ([0], [1])
    """
    best, back = plan.argmax(axis=1), plan.argmax(axis=0)
    rows = np.arange(len(plan))
    mutual = np.flatnonzero((back[best] == rows) & (plan[rows, best] > 0))
    return mutual, best[mutual]


def check_rows(problem: LinkProblem, *, method: str, max_rows: int) -> None:
    """Refuse clouds whose transport plan, a full matrix, would not fit the memory.

    Raises
    ------
    ParameterError
    """
    largest = max(len(problem.source), len(problem.target))
    if largest > max_rows:
        raise ParameterError(
            expected=f"at most {max_rows:,} rows a side for {method}, which holds whole n x n "
            "matrices",
            got=f"{largest:,}",
            do="link parts, raise max_rows if the memory is there, or choose another method",
        )
