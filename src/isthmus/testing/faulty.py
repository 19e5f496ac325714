"""A store that goes wrong on purpose: for tests of whatever must live with real databases."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from isthmus._types import FloatArray, IdArray
from isthmus.errors import UnknownIdError, UnknownNameError, UnsupportedOperationError
from isthmus.spaces import Space, VectorSet
from isthmus.stores.base import Batch, Found, Gathered, Held, Store

__all__ = ["Fault", "FaultKind", "FaultyStore"]

FaultKind = Literal["delay", "error", "nan", "shape", "short", "gone", "duplicate"]
Operation = Literal["search", "gather", "scan", "upsert"]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that goes wrong.

    Parameters
    ----------
    kind : {"delay", "error", "nan", "shape", "short", "gone", "duplicate"}
        ``delay``: the call takes ``seconds`` more. ``error``: it raises ``error``. ``nan``: the
        best score of the first query is NaN. ``shape``: one column is missing. ``short``: only the
        best hit of each query is given. ``gone``: the best hit of the first query is found, and
        cannot be fetched until the next search. ``duplicate``: the second hit of each query has the
        id of its best one.
    calls : collection of int, optional
        Which calls of that operation, from 1; default: all.
    operation : {"search", "gather", "scan", "upsert"}, default "search"
        Where it happens; only ``delay`` and ``error`` happen in the others. Each batch of a scan
        is a call.
    seconds : float, default 0.0
    error : Exception, default ConnectionError("the connection was lost")

    Raises
    ------
    UnknownNameError
        Another kind.
    """

    kind: FaultKind
    calls: Collection[int] | None = None
    operation: Operation = "search"
    seconds: float = 0.0
    error: Exception | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(FaultKind):
            raise UnknownNameError.of("fault", str(self.kind), get_args(FaultKind))


class FaultyStore(Store):
    """Another store, with faults.

    Parameters
    ----------
    inner : Store
        Does the work.
    plan : sequence of Fault, default none
        Those of one call happen in their order.
    sleep : callable, default `time.sleep`
        Takes the seconds of a delay; a test hands over one that does not sleep, or that blocks.

    Attributes
    ----------
    calls : dict of str to int
        How often ``search``, ``gather`` and ``upsert`` were called, and batches of a ``scan`` read.

    Examples
    --------
    >>> from isthmus.stores import MemoryStore
    >>> inner = MemoryStore(Space(model="m", dim=2))
    >>> inner.upsert(VectorSet(["a", "b"], [[1, 0], [0, 2]], inner.space))
    >>> store = FaultyStore(inner, [Fault(kind="short", calls=[2])])
    >>> [store.search([[0, 1]], k=2).ids.tolist() for _ in range(2)]
    [[['b', 'a']], [['b', '']]]
    """

    scheme: ClassVar[str] = "faulty"

    def __init__(
        self,
        inner: Store,
        plan: Sequence[Fault] = (),
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inner = inner
        self._plan = tuple(plan)
        self._sleep = sleep
        self._hidden: set[str] = set()
        self.capabilities = inner.capabilities
        self.calls = {"search": 0, "gather": 0, "scan": 0, "upsert": 0}

    @classmethod
    def open(cls, url: str, *, space: Space | None = None) -> Self:
        """Refuse: a faulty store is made around another one.

        Raises
        ------
        UnsupportedOperationError
        """
        del space
        raise UnsupportedOperationError(
            expected="a store to go wrong",
            got=f"a URL, {url!r}",
            do="call FaultyStore(store, plan)",
        )

    @property
    def space(self) -> Space:
        """The space of the inner store."""
        return self._inner.space

    @property
    def url(self) -> str:
        """The URL of the inner store."""
        return self._inner.url

    def count(self) -> int:
        """Count the vectors."""
        return self._inner.count()

    def upsert(
        self,
        vectors: VectorSet,
        *,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Write rows, or go wrong before anything is written."""
        self._before("upsert")
        self._inner.upsert(vectors, metadata=metadata, notes=notes)

    def delete(self, ids: Sequence[str]) -> int:
        """Remove rows by id; return how many were there."""
        return self._inner.delete(ids)

    def fetch(self, ids: Sequence[str]) -> VectorSet:
        """Return rows by id; see `Store.fetch`."""
        self._refuse_hidden(np.array(list(ids), np.str_))
        return self._inner.fetch(ids)

    def fetch_metadata(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return metadata by id; see `Store.fetch_metadata`."""
        return self._inner.fetch_metadata(ids)

    def gather(self, ids: IdArray) -> Gathered:
        """Return rows by id where ids repeat, or go wrong."""
        self._before("gather")
        self._refuse_hidden(np.asarray(ids))
        return self._inner.gather(ids)

    def search(
        self, queries: FloatArray | VectorSet, *, k: int, where: Mapping[str, Any] | None = None
    ) -> Found:
        """Return the k best rows for each query, or go wrong."""
        faults = self._before("search")
        self._hidden = set()
        found = self._inner.search(queries, k=k, where=where)
        for fault in faults:
            if fault.kind == "gone":
                self._hidden = {str(found.ids[0, 0])}
            elif fault.kind not in ("delay", "error"):
                found = ALTER[fault.kind](found)
        return found

    def scan(self, *, batch_size: int = 10_000, cursor: str = "") -> Iterator[Batch]:
        """Yield all rows, or go wrong before a batch."""
        batches = self._inner.scan(batch_size=batch_size, cursor=cursor)
        while True:
            self._before("scan")
            batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def held(self, ids: Sequence[str]) -> Held:
        """Return the rows that the inner store has."""
        return self._inner.held(ids)

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Keep notes in the inner store."""
        self._inner.write_notes(notes)

    def notes(self) -> dict[str, str]:
        """Return the notes of the inner store."""
        return self._inner.notes()

    def close(self) -> None:
        """Close the inner store."""
        self._inner.close()

    def _before(self, operation: str) -> list[Fault]:
        """Count the call, let its delays and errors happen, and return all faults of it."""
        self.calls[operation] += 1
        number = self.calls[operation]
        faults = [
            fault
            for fault in self._plan
            if fault.operation == operation and (fault.calls is None or number in fault.calls)
        ]
        for fault in faults:
            if fault.kind == "delay":
                self._sleep(fault.seconds)
            if fault.kind == "error":
                raise fault.error or ConnectionError("the connection was lost")
        return faults

    def _refuse_hidden(self, ids: IdArray) -> None:
        gone = self._hidden.intersection(np.unique(ids).tolist())
        if gone:
            raise UnknownIdError(
                expected=f"ids of {self.url}", got=", ".join(sorted(gone)), do="search again"
            )


def _with_nan(found: Found) -> Found:
    scores = found.scores.copy()
    scores[0, 0] = np.nan
    return replace(found, scores=scores)


def _without_a_column(found: Found) -> Found:
    return Found(found.ids[:, 1:], found.native_scores[:, 1:], found.scores[:, 1:])


def _only_the_best(found: Found) -> Found:
    rest = np.arange(found.ids.shape[1]) > 0
    nothing = np.float32("nan")
    return Found(
        np.where(rest, "", found.ids),
        np.where(rest, nothing, found.native_scores),
        np.where(rest, nothing, found.scores),
    )


def _with_a_repeated_id(found: Found) -> Found:
    ids = found.ids.copy()
    ids[:, 1:2] = ids[:, :1]
    return replace(found, ids=ids)


ALTER: Mapping[str, Callable[[Found], Found]] = MappingProxyType(
    {
        "nan": _with_nan,
        "shape": _without_a_column,
        "short": _only_the_best,
        "duplicate": _with_a_repeated_id,
    }
)
