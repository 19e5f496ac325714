"""The candidates of all sources, pooled: who is asked, who failed, what is one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IdArray, IntArray
from isthmus.errors import CountMismatchError, StoreError
from isthmus.federate.asked import in_every_space
from isthmus.federate.budget import Budget
from isthmus.federate.candidates import Candidates, first_columns
from isthmus.federate.common import CommonSpaces
from isthmus.federate.gather import Catch, Count, Task, run
from isthmus.federate.memory import CarriedRows
from isthmus.federate.merging import agreeing_columns
from isthmus.federate.patience import Patience, Problem
from isthmus.federate.source import Source
from isthmus.federate.spokes import Spoke
from isthmus.federate.superseding import newer_of, without_superseded
from isthmus.spaces import VectorSet

__all__ = ["Pool"]

COUNT_FROM = 1_000
"""From this depth on, stores are asked how many rows they have."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The sources of a federation with what is kept between searches.

    Parameters
    ----------
    sources : sequence of Source
    spokes : sequence of Spoke
        All spaces, the hub's first.
    space_of : IntArray of shape (n_sources,)
        The space that each source holds.
    carried : sequence of sequences of CarriedRows
        Per source and space.
    patience : sequence of Patience
        Per source.
    budget : Budget, optional
        None searches every store for every query.
    dedup : str
    dedup_similarity : float
    require_all : bool
    common : CommonSpaces, optional
        Where candidates are compared besides, for a fusion method that asks for it.
    common_carried : sequence of sequences of CarriedRows
        Per source and spoke, in the common space; empty without one.
    """

    sources: Sequence[Source]
    spokes: Sequence[Spoke]
    space_of: IntArray
    carried: Sequence[Sequence[CarriedRows]]
    patience: Sequence[Patience]
    budget: Budget | None
    dedup: str
    dedup_similarity: float
    require_all: bool
    common: CommonSpaces | None = None
    common_carried: Sequence[Sequence[CarriedRows]] = ()

    @cached_property
    def names(self) -> IdArray:
        """Of the sources, shape (n_sources,)."""
        return np.array([source.name for source in self.sources])

    @cached_property
    def newer(self) -> dict[int, list[int]]:
        """The sources that replace a source, by place."""
        return newer_of(self.sources)

    @cached_property
    def fingerprints(self) -> IdArray:
        """Of the space that each source holds, shape (n_sources,)."""
        return np.array([source.store.space.fingerprint for source in self.sources])

    def within_rows(self, k: int, depth: int) -> tuple[int, int]:
        """Return both, no larger than there are rows: what is asked for is also allocated.

        As they are where a store does not say how many it has: it may have that many.
        """
        if depth <= COUNT_FROM:  # counting costs more than empty columns
            return k, depth
        asked = run([Count(source) for source in self.sources], self.patience)
        counts = [one for one in asked if not isinstance(one, Problem)]
        if len(counts) < len(asked):
            return k, depth
        return max(1, min(k, sum(counts))), max(1, min(depth, max(counts)))

    def in_every_space(
        self, queries: VectorSet, native: Mapping[str, VectorSet]
    ) -> list[FloatArray]:
        """Return the queries in every space; see `isthmus.federate.asked`."""
        return in_every_space(
            queries, native, sources=self.sources, space_of=self.space_of, spokes=self.spokes
        )

    def candidates(
        self,
        queries: Sequence[FloatArray],
        *,
        wanted: Sequence[int],
        depth: int,
        k: int,
        explain: bool,
    ) -> Candidates:
        """Search the sources and return all candidates.

        Parameters
        ----------
        queries : sequence of FloatArray of shape (m, dim of that space), one per space
        wanted : sequence of int
            Spaces in which the fusion method compares candidates.
        depth, k : int
        explain : bool
            Whether to compare in all spaces.

        Raises
        ------
        StoreError
            Every store that was asked failed; or one did, and all are required.
        """
        chosen = self._choose(queries, k)
        compared = range(len(self.spokes)) if explain else wanted
        catches, problems = self._search(queries, chosen, compared, depth)
        catches = without_superseded(catches, self.newer)
        self._check(problems, asked=len(catches) if chosen is None else int(chosen.any(0).sum()))
        ids = np.concatenate([catch.ids for catch in catches], axis=1)
        similarities = np.concatenate([catch.similarities for catch in catches], axis=2)
        space = np.repeat(self.space_of, depth)
        if self.dedup == "vector":
            same = agreeing_columns(
                catches,
                self.space_of,
                similarity=self.dedup_similarity,
                metrics=[spoke.space.metric for spoke in self.spokes],
            )
        else:
            same = first_columns(ids, merge=self.dedup == "id")
        return Candidates(
            ids=ids,
            similarities=_only(similarities, wanted, space) if explain else similarities,
            source=np.repeat(np.arange(len(catches)), depth),
            rank=np.tile(np.arange(1, depth + 1), len(catches)),
            space=space,
            same=same,
            outages=tuple(problem.outage for problem in problems),
            explained=similarities if explain else None,
            skipped=None if chosen is None else ~chosen,
            common=None if self.common is None else _common(catches),
            common_directions=None if self.common is None else self.common.directions,
            compared=tuple(wanted),
        )

    def _choose(self, queries: Sequence[FloatArray], k: int) -> npt.NDArray[np.bool_] | None:
        if self.budget is None:
            return None
        chosen = np.asarray(self.budget.choose(queries, spaces=self.space_of, k=k))
        expected = (len(queries[0]), len(self.sources))
        if chosen.shape != expected or chosen.dtype != np.bool_:
            raise CountMismatchError(
                expected=f"a choice of shape {expected} from the budget, True or False",
                got=f"shape {chosen.shape} of {chosen.dtype}",
                do="return one value per query and source",
            )
        return chosen

    def _search(
        self,
        queries: Sequence[FloatArray],
        chosen: npt.NDArray[np.bool_] | None,
        compared: Sequence[int],
        depth: int,
    ) -> tuple[list[Catch], list[Problem]]:
        """Return the catch of every source, an empty one where it was not asked or failed."""
        n_queries = len(queries[0])
        rows_of = [
            np.arange(n_queries) if chosen is None else np.flatnonzero(chosen[:, place])
            for place in range(len(self.sources))
        ]
        asked = [place for place, rows in enumerate(rows_of) if len(rows) or not n_queries]
        common = {} if self.common is None else self.common.project_queries(queries[0])
        tasks = []
        for place in asked:
            rows = slice(None) if len(rows_of[place]) == n_queries else rows_of[place]
            tasks.append(
                Task(
                    self.sources[place],
                    int(self.space_of[place]),
                    self.spokes,
                    [one[rows] for one in queries],
                    compared,
                    depth,
                    self.carried[place],
                    keep_vectors=self.dedup == "vector",
                    common=self.common,
                    common_queries={space: one[rows] for space, one in common.items()},
                    common_carried=self.common_carried[place] if common else (),
                )
            )
        nothing = Catch.nothing(len(self.spokes), n_queries, depth)
        catches = [nothing] * len(self.sources)
        problems = []
        results = run(tasks, [self.patience[place] for place in asked])
        for place, result in zip(asked, results, strict=True):
            if isinstance(result, Problem):
                problems.append(result)
            elif len(rows_of[place]) == n_queries:
                catches[place] = result
            else:
                catches[place] = result.spread(rows_of[place], n_queries)
        return catches, problems

    def _check(self, problems: Sequence[Problem], *, asked: int) -> None:
        if problems and (self.require_all or len(problems) == asked):
            raise StoreError(
                expected="an answer from every store (require_all)"
                if self.require_all
                else "an answer from at least one store",
                got="; ".join(str(problem.outage) for problem in problems),
                do="look after the stores named"
                + (", or search without require_all" if self.require_all else ""),
            ) from problems[0].error


def _common(catches: Sequence[Catch]) -> FloatArray:
    """Return the similarities in the common space, (m, w), NaN where there is no candidate."""
    parts = [
        np.full(catch.ids.shape, np.nan, dtype=np.float32) if catch.common is None else catch.common
        for catch in catches
    ]
    return np.concatenate(parts, axis=1)


def _only(similarities: FloatArray, wanted: Sequence[int], space: IntArray) -> FloatArray:
    """Return the similarities (s, m, w) of the wanted spaces and of each column's own."""
    kept = np.zeros((len(similarities), 1, len(space)), dtype=np.bool_)
    kept[list(wanted)] = True
    kept[space, 0, np.arange(len(space))] = True
    return np.where(kept, similarities, np.float32("nan"))
