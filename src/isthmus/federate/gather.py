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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from isthmus._types import FloatArray, IdArray, IntArray
from isthmus.errors import UnknownIdError
from isthmus.federate.call import Call, CallApart, Work
from isthmus.federate.common import CommonSpaces
from isthmus.federate.memory import CarriedRows, Marked
from isthmus.federate.patience import Patience, Problem
from isthmus.federate.similarity import pair_similarity
from isthmus.federate.source import Source, UnusableAnswerError
from isthmus.federate.spokes import Spoke
from isthmus.spaces import VectorSet

__all__ = ["Catch", "Count", "Fetched", "Task", "Vectors", "run"]

T = TypeVar("T")

PARALLEL_QUERIES = 32
"""From so many queries on, sources are searched in threads: below it, starting them costs more."""


@dataclass(frozen=True)
class Fetched:
    """What a store gave: ids and scores (m, depth), their distinct vectors and the rows in these.

    ``vectors`` is None where there are none, or none are needed.
    """

    ids: IdArray
    scores: FloatArray
    vectors: VectorSet | None
    rows: IntArray | None


@dataclass(frozen=True)
class Vectors:
    """The distinct candidates of one source, and where they stand.

    Parameters
    ----------
    native : FloatArray of shape (n, dim)
        In the source's own space.
    in_hub : FloatArray of shape (n, dim of the hub's space)
    rows : IntArray of shape (m, depth)
        Row in these of each candidate, -1 for none.
    """

    native: FloatArray
    in_hub: FloatArray
    rows: IntArray


@dataclass(frozen=True)
class Catch:
    """The candidates of one source.

    Parameters
    ----------
    ids : IdArray of shape (m, depth)
    similarities : FloatArray of shape (n_spaces, m, depth)
        NaN in the spaces that were not asked for.
    vectors : Vectors, optional
        When they were to be kept and there are any.
    common : FloatArray of shape (m, depth), optional
        Similarity in the common space, when that was asked for.
    """

    ids: IdArray
    similarities: FloatArray
    vectors: Vectors | None = None
    common: FloatArray | None = None

    @classmethod
    def nothing(cls, n_spaces: int, queries: int, depth: int) -> Catch:
        """Return the catch of a source that gave nothing."""
        return cls(
            np.full((queries, depth), "", dtype="<U1"),
            np.full((n_spaces, queries, depth), np.nan, dtype=np.float32),
        )

    def spread(self, chosen: IntArray, queries: int) -> Catch:
        """Return it for all queries, when only those at the rows ``chosen`` were searched."""
        whole = self.nothing(len(self.similarities), queries, self.ids.shape[1])
        ids = whole.ids.astype(self.ids.dtype)
        ids[chosen] = self.ids
        whole.similarities[:, chosen] = self.similarities
        vectors = self.vectors
        if vectors is not None:
            rows = np.full(ids.shape, -1, dtype=np.int64)
            rows[chosen] = vectors.rows
            vectors = replace(vectors, rows=rows)
        common = None
        if self.common is not None:
            common = np.full(ids.shape, np.nan, dtype=np.float32)
            common[chosen] = self.common
        return Catch(ids, whole.similarities, vectors, common)


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
    keep_vectors : bool, default False
        Whether the catch holds the vectors themselves.
    common : CommonSpaces, optional
        Where its candidates are compared besides.
    common_queries : mapping of int to FloatArray of shape (m, directions)
        The queries in the common space of each spoke.
    common_carried : sequence of CarriedRows, one per space
        As ``carried``, in the common space of each spoke.
    """

    source: Source
    space: int
    spokes: Sequence[Spoke]
    queries: Sequence[FloatArray]
    wanted: Sequence[int]
    depth: int
    carried: Sequence[CarriedRows]
    keep_vectors: bool = False
    common: CommonSpaces | None = None
    common_queries: Mapping[int, FloatArray] = field(default_factory=dict)
    common_carried: Sequence[CarriedRows] = ()

    @property
    def n_queries(self) -> int:
        """Count the queries."""
        return len(self.queries[0])

    def fetch(self) -> Fetched:
        """Ask the store: the part that waits for it.

        A row that is gone between search and gather is searched for once more; what is still gone
        then is left out.
        """
        ids, scores = self.source.search(self.queries[self.space], depth=self.depth)
        others = any(space != self.space for space in self.wanted)
        if not (others or self.keep_vectors or self.common):
            return Fetched(ids, scores, None, None)
        try:
            return Fetched(ids, scores, *self.source.gather(ids))
        except UnknownIdError:
            ids, scores = self.source.search(self.queries[self.space], depth=self.depth)
        try:
            return Fetched(ids, scores, *self.source.gather(ids))
        except UnknownIdError:
            ids = self.source.without_gone(ids)
        scores = np.where(ids == "", np.float32("nan"), scores)
        return Fetched(ids, scores, *self.source.gather(ids))

    def compare(self, fetched: Fetched) -> Catch:
        """Compare what was fetched with the queries, in every space that is wanted."""
        similarities = np.full((len(self.spokes), *fetched.ids.shape), np.nan, dtype=np.float32)
        similarities[self.space] = fetched.scores
        if fetched.vectors is None or fetched.rows is None:
            return Catch(fetched.ids, similarities)
        vectors, rows = fetched.vectors, fetched.rows
        native = in_hub = vectors.matrix()
        others = [space for space in self.wanted if space != self.space]
        marked = Marked.of(vectors.ids, native)
        if self.space != 0 and (others or self.keep_vectors):
            in_hub = self.carried[0].carry(marked, native, self.spokes[self.space].to_hub)
        for space in others:
            landed = in_hub
            if space != 0:
                through = self.spokes[space].from_hub
                landed = self.carried[space].carry(marked, in_hub, through)
            similarities[space] = pair_similarity(
                self.queries[space], landed, rows, space=self.spokes[space].space
            )
        kept = Vectors(native, in_hub, rows) if self.keep_vectors else None
        common = None
        if self.common is not None:
            common = self.common.compare(
                self.common_queries,
                native,
                rows,
                space=self.space,
                marked=marked,
                carried=self.common_carried,
            )
        return Catch(fetched.ids, similarities, kept, common)


@dataclass(frozen=True)
class Count:
    """How many rows a source has."""

    source: Source
    n_queries: int = 1

    def fetch(self) -> int:
        """Ask the store.

        Raises
        ------
        UnusableAnswerError
            What is no number of rows.
        """
        with self.source.noting():
            count = self.source.store.count()
        if not isinstance(count, int | np.integer) or count < 0:
            raise UnusableAnswerError(
                expected=f"a number of rows from the store of source {self.source.name!r}",
                got=f"{count!r}"[:80],
                do="report it to the maintainers of that store",
            )
        return int(count)

    def compare(self, count: int) -> int:
        """Return the number."""
        return count


def run(tasks: Sequence[Work[T]], patience: Sequence[Patience]) -> list[T | Problem]:
    """Return what came of every task, or why nothing did, in their order.

    Stores that are timed, and all of them for many queries, are searched side by side.

    Raises
    ------
    Exception
        The first error, in the order of the tasks, that is not the fault of a store.
    """
    many = len(tasks) > 1 and tasks[0].n_queries >= PARALLEL_QUERIES
    calls = [
        (CallApart if many or one.timeout is not None else Call)(task, one)
        for task, one in zip(tasks, patience, strict=True)
    ]
    try:
        for call in sorted(calls, key=lambda one: not isinstance(one, CallApart)):
            call.start()
        return [call.outcome() for call in calls]
    finally:
        for call in calls:
            call.let_go()
