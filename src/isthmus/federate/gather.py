"""Search, gather and propagate: what one source has for the queries, seen from every space.

The candidates of a source are fetched and mapped once each, however many queries found them, so
that the cost of mapping grows with the documents found and not with the queries. Those of a spoke
are gathered in the hub's space and carried from there into the other spokes.

Reference: HVMap, section 3.4.1 ("the retrieved vectors from each spoke are mapped back to the hub
space ... then propagated from the hub to each spoke space ... excluding the vectors originally
retrieved from that spoke"). The paper propagates all sources in one batch; here each source goes
its own way, which gives the same numbers (a transform does not depend on its batch) and lets
sources be searched side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from isthmus._types import FloatArray, IdArray
from isthmus.federate.memory import CarriedRows
from isthmus.federate.similarity import pair_similarity
from isthmus.federate.source import Source
from isthmus.federate.spokes import Spoke
from isthmus.spaces import VectorSet

__all__ = ["Catch", "Task", "run"]

PARALLEL_QUERIES = 32
"""From so many queries on, sources are searched in threads: below it, starting them costs more."""


@dataclass(frozen=True)
class Catch:
    """The candidates of one source.

    Parameters
    ----------
    ids : IdArray of shape (m, depth)
    similarities : FloatArray of shape (n_spaces, m, depth)
        NaN in the spaces that were not asked for.
    """

    ids: IdArray
    similarities: FloatArray


@dataclass(frozen=True)
class Task:
    """What is asked of one source.

    Parameters
    ----------
    source : Source
    space : int
        The space that it holds.
    spokes : sequence of Spoke
        All spaces, the hub's first.
    queries : sequence of FloatArray of shape (m, dim of that space), one per space
    wanted : sequence of int
        Spaces in which its candidates are compared, besides its own.
    depth : int
        Candidates per query.
    carried : sequence of CarriedRows, one per space
        Its candidates in that space, from earlier searches.
    """

    source: Source
    space: int
    spokes: Sequence[Spoke]
    queries: Sequence[FloatArray]
    wanted: Sequence[int]
    depth: int
    carried: Sequence[CarriedRows]

    def __call__(self) -> Catch:
        """Search the source and compare its candidates."""
        found = self.source.search(self.queries[self.space], depth=self.depth)
        similarities = np.full((len(self.spokes), *found.ids.shape), np.nan, dtype=np.float32)
        similarities[self.space] = found.scores
        others = [space for space in self.wanted if space != self.space]
        if others:
            vectors, rows = self.source.gather(found.ids)
            if vectors is not None:
                for space, landed in self._propagate(vectors, others):
                    similarities[space] = pair_similarity(
                        self.queries[space], landed, rows, space=self.spokes[space].space
                    )
        return Catch(found.ids, similarities)

    def _propagate(
        self, vectors: VectorSet, others: Sequence[int]
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield the candidates in each of the other spaces, through the hub's."""
        in_hub = vectors.matrix()
        if self.space != 0:
            in_hub = self.carried[0].carry(vectors.ids, in_hub, self.spokes[self.space].to_hub)
        for space in others:
            if space == 0:
                yield space, in_hub
            else:
                through = self.spokes[space].from_hub
                yield space, self.carried[space].carry(vectors.ids, in_hub, through)


def run(tasks: Sequence[Task]) -> list[Catch]:
    """Return the catch of every task, in their order; the first error in that order is raised."""
    if len(tasks) == 1 or len(tasks[0].queries[0]) < PARALLEL_QUERIES:
        return [task() for task in tasks]
    with ThreadPoolExecutor(len(tasks), thread_name_prefix="isthmus-source") as pool:
        return list(pool.map(Task.__call__, tasks))
