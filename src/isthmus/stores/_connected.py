"""What all connectors share: checks, batches, tries, records, canonical scores.

A connector is a subclass that knows one database: how to connect, and a handful of small requests.
None of these checks what it is given, splits it, or tries again: all of that happens here, once.
"""

from __future__ import annotations

import contextlib
import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, ParamSpec, Self, TypeVar

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, Metric
from isthmus._validate import check_positive
from isthmus.errors import (
    EmptyInputError,
    InputError,
    InvalidIdError,
    IsthmusError,
    MissingCollectionError,
    ParameterError,
    SpaceMismatchError,
    StoreUnreachableError,
    UnknownIdError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.spaces.ids import name_few
from isthmus.stores._asking import asked, unreachable
from isthmus.stores._checks import (
    as_queries,
    as_texts,
    check_collection,
    check_notes,
    check_where,
    from_json,
    to_json,
)
from isthmus.stores._client_errors import chain, is_lost, not_understood
from isthmus.stores._native import to_canonical
from isthmus.stores._record import Record, unrecorded
from isthmus.stores._rows import Rows, stacked
from isthmus.stores._url import StoreUrl, as_seconds
from isthmus.stores.base import Batch, Found, Held, Store, Unchecked

__all__ = ["ConnectedStore", "Hits", "Page", "Rows", "stacked"]

COMMON_OPTIONS = ("secret", "timeout", "vector")
TIMEOUT_SECONDS = "10"
BATCH_ROWS = 10_000
QUERIES = 1_000
CURSOR = "after:"

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Page:
    """Rows of a scan, and where it goes on.

    Parameters
    ----------
    rows : Rows
        None at all only at the end.
    after : str
        What ``_page`` takes to go on.
    """

    rows: Rows
    after: str


Hits = list[list[tuple[str, float]]]
"""For each query, ids and native scores, best first, at most k of them."""


class ConnectedStore(Store):
    """A collection of a database behind a client library.

    Subclasses give ``scheme``, ``capabilities``, ``options`` and the requests below. Each request
    is one round trip or a few, may be repeated without harm, and raises whatever its client raises.

    Parameters
    ----------
    url : StoreUrl
    """

    scheme: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ()
    """Options of its URL, apart from ``collection``, ``secret``, ``timeout`` and ``vector``."""
    serial: ClassVar[bool] = True
    """Whether the client serves one thread at a time, so that others must wait."""

    def __init__(self, url: StoreUrl) -> None:
        self._url = url
        self._secret = url.secret()  # as it was read: the variable may go, the secret stays one
        self._lock = threading.RLock()
        self._space: Space
        self._recorded = False
        self._own = False

    # --- what a connector says of its database ------------------------------------------------

    @abstractmethod
    def _connect(self) -> None:
        """Make the client; called once, before any other request."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Let go of the client; also after a `_connect` that failed, and twice."""

    @abstractmethod
    def _exists(self) -> bool:
        """Whether the collection is there, and in it the vector that the URL names."""

    @abstractmethod
    def _create(self, space: Space) -> None:
        """Make the collection, or the vector in it; nothing where another process was faster."""

    @abstractmethod
    def _describe(self) -> tuple[int | None, Metric | None]:
        """Return the dimension and the metric that the database itself knows.

        Where it declares no dimension, that of a row; None where there is no row, either. No
        metric: it can search by any.
        """

    @abstractmethod
    def _read_record(self) -> dict[str, str]:
        """Return the entries of the record; none where another program made the collection."""

    @abstractmethod
    def _write_record(self, entries: dict[str, str]) -> None:
        """Replace the entries of the record."""

    @abstractmethod
    def _count(self) -> int:
        """Count the rows that have the vector."""

    @abstractmethod
    def _write(self, rows: Rows) -> None:
        """Replace rows by id: at most ``max_batch``."""

    def _write_noted(self, rows: Rows, notes: dict[str, str]) -> None:
        """Replace rows by id, then keep notes; for override where one transaction does both."""
        self._ask(self._write, rows)
        self._keep_notes(notes)

    def _keep_notes(self, notes: dict[str, str]) -> None:
        """Keep notes, in the record; for override where they have a place of their own."""
        self._change_record(lambda record: record.with_notes(notes))

    @abstractmethod
    def _remove(self, ids: list[str]) -> None:
        """Remove rows by id; those that are not there do not matter."""

    @abstractmethod
    def _read(self, ids: list[str], *, vectors: bool) -> Rows:
        """Return the rows of these ids that are there, in any order, with all their metadata."""

    @abstractmethod
    def _find(self, queries: FloatArray, *, k: int, where: Mapping[str, Any]) -> Hits:
        """Search by the metric of the space."""

    @abstractmethod
    def _page(self, after: str, limit: int) -> Page:
        """Return the next rows behind ``after`` (empty: from the start), at most ``limit``."""

    @abstractmethod
    def _is_transient(self, error: Exception) -> bool:
        """Whether the same request may succeed a moment later: connection lost, time out, busy."""

    def _take_name(self, name: str, former: str) -> str:
        """Move a name as ``capabilities.switch`` says; see `Store.take_name`."""
        return super().take_name(name, former=former)

    def _in_our_words(self, error: Exception) -> IsthmusError:
        """Say what an error of the client means for the caller."""
        return unreachable(error, where=self._where)

    # --- the contract -------------------------------------------------------------------------

    @classmethod
    def open(cls, url: str, *, space: Space | None = None) -> Self:
        """Open a collection; see `Store.open`."""
        parsed = StoreUrl.parse(url, options=(*cls.options, *COMMON_OPTIONS))
        cls._check_name(parsed.collection)
        if parsed.options.get("vector") and not cls.capabilities.several_vectors:
            raise UnsupportedOperationError(
                expected="a store whose rows can have several vectors",
                got=f"&vector= for {cls.scheme}",
                do="use a collection of its own for the second space",
            )
        store = cls(parsed)
        try:
            store._ask(store._connect)
            store._settle(space)
        except BaseException:
            store.close()
            raise
        return store

    @property
    def timeout(self) -> float:
        """Seconds that one request may take: ``&timeout=``, 10 by default."""
        return as_seconds(self._url.options.get("timeout", TIMEOUT_SECONDS))

    @property
    def space(self) -> Space:
        """The space of the collection."""
        return self._space

    @property
    def recorded(self) -> bool:
        """Whether the database records the space; see `Store.recorded`."""
        return self._recorded

    @property
    def own(self) -> bool:
        """Whether Isthmus made the collection; see `Store.own`."""
        return self._own

    @property
    def url(self) -> str:
        """The URL that opens the collection again."""
        return str(self._url)

    @property
    def native_score(self) -> str:
        """How the database writes the scores of this collection."""
        return self.capabilities.native_scores[self.space.metric]

    def count(self) -> int:
        """Count the vectors."""
        return self._ask(self._count)

    def upsert(
        self,
        vectors: VectorSet,
        *,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Write rows batch by batch, then notes; see `Store.upsert`."""
        self._check_space(vectors.space)
        if metadata is not None and not self.capabilities.filters:
            raise self._refused("metadata")
        texts = to_json(metadata, rows=len(vectors))
        checked = check_notes(notes)
        if checked and self.capabilities.notes is None:
            super().notes()  # refuses
        self._check_sizes(vectors.ids.tolist(), texts)
        start = 0
        for batch in vectors.iter_batches(self._batch_rows):
            stop = start + len(batch)
            rows = Rows(batch.ids.tolist(), batch.vectors, texts[start:stop])
            if checked and stop == len(vectors):
                self._write_noted(rows, checked)
            else:
                self._ask(self._write, rows)
            start = stop

    def delete(self, ids: Sequence[str]) -> int:
        """Remove rows by id; return how many were there."""
        removed = 0
        for some in self._in_batches(as_texts(ids)):
            there = self._ask(self._read, some, vectors=False).ids
            if there:
                self._ask(self._remove, there)
            removed += len(there)
        return removed

    def fetch(self, ids: Sequence[str]) -> VectorSet:
        """Return rows by id; see `Store.fetch`."""
        texts = as_texts(ids)
        rows, places = self._look_up(texts, vectors=True)
        vectors = rows.vectors[places] if len(texts) else np.empty((0, self.space.dim), np.float32)
        return VectorSet(np.array(texts, np.str_), vectors, self.space)

    def fetch_metadata(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return metadata by id; see `Store.fetch_metadata`."""
        if not self.capabilities.filters:
            raise self._refused("metadata")
        rows, places = self._look_up(as_texts(ids), vectors=False)
        return [from_json(rows.metadata[place], rows.ids[place]) for place in places]

    def held(self, ids: Sequence[str]) -> Held:
        """Return the rows that are there; see `Store.held`."""
        batches = self._in_batches(list(ids))
        parts = [self._ask(self._read, some, vectors=True).checked() for some in batches]
        vectors = [part.vectors for part in parts] or [np.empty((0, self.space.dim), np.float32)]
        return Held(
            [text for part in parts for text in part.ids],
            np.concatenate(vectors),
            [fields for part in parts for fields in map(from_json, part.metadata, part.ids)],
        )

    def search(
        self, queries: FloatArray | VectorSet, *, k: int, where: Mapping[str, Any] | None = None
    ) -> Found:
        """Return the k best rows for each query; see `Store.search`."""
        matrix = as_queries(queries, self.space, k=k)
        if where is not None and not self.capabilities.filters:
            raise self._refused("where")
        asked_for = check_where(where)
        hits: Hits = []
        for start in range(0, len(matrix), QUERIES):
            some = matrix[start : start + QUERIES]
            hits += self._ask(self._find, some, k=k, where=asked_for)
        return self._found(hits, k)

    def scan(self, *, batch_size: int = BATCH_ROWS, cursor: str = "") -> Iterator[Batch]:
        """Yield all rows; see `Store.scan`. Each batch is read when it is asked for."""
        for page in self._pages(batch_size, cursor):
            rows = page.rows.checked()
            vectors = VectorSet(np.array(rows.ids, np.str_), rows.vectors, self.space)
            yield Batch(
                vectors, CURSOR + page.after, tuple(map(from_json, rows.metadata, rows.ids))
            )

    def scan_unchecked(
        self, *, batch_size: int = BATCH_ROWS, cursor: str = ""
    ) -> Iterator[Unchecked]:
        """Yield all rows as they lie there; see `Store.scan_unchecked`."""
        for page in self._pages(batch_size, cursor):
            yield _unchecked(page.rows, CURSOR + page.after)

    def record_space(self, space: Space) -> None:
        """Record another space; see `Store.record_space`."""
        have = (self.space.dim, self.space.metric)
        if have != (space.dim, space.metric):
            raise SpaceMismatchError(
                expected=f"a space of dimension {have[0]} and metric {have[1]}, as {self.url} has",
                got=f"dimension {space.dim} and metric {space.metric}",
                do="give the space of the model that made the collection",
            )
        self._change_record(lambda record: record.with_space(space, own=record.own))
        self._space, self._recorded = space, True

    def notes(self) -> dict[str, str]:
        """Return the notes; see `Store.notes`."""
        if self.capabilities.notes is None:
            return super().notes()
        return self._record().notes()

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Keep notes without rows; see `Store.write_notes`."""
        if self.capabilities.notes is None:
            super().notes()  # refuses
        self._keep_notes(check_notes(notes))

    def take_name(self, name: str, *, former: str = "") -> str:
        """Make a name lead here; see `Store.take_name`."""
        switch = self.capabilities.switch
        if switch is None:
            return super().take_name(name, former=former)
        for one in (name,) if switch == "alias" else (name, former):
            self._check_name(check_collection(one))
        led = self._ask(self._take_name, name, former)
        if switch != "alias":
            self._url = replace(self._url, collection=name)
        return led

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._disconnect()

    # --- how it is done -----------------------------------------------------------------------

    def _ask(self, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Send a request, three times more when it fails for a moment."""

        def one() -> T:
            with self._lock if self.serial else contextlib.nullcontext():
                return action(*args, **kwargs)

        try:
            return asked(one, transient=self._is_transient, in_our_words=self._meaning)
        except IsthmusError as error:
            if self._tells_the_secret(error.__cause__):
                error.__cause__ = error.__context__ = None  # nor may a traceback show it
            raise

    def _meaning(self, error: Exception) -> IsthmusError:
        """Say what an error means; only a lost connection means that the database is away."""
        found = self._in_our_words(error)
        away = isinstance(found, StoreUnreachableError)
        if away and not self._is_transient(error) and not is_lost(error):
            return not_understood(error, where=self._where, secret=self._secret)
        return found

    @property
    def _where(self) -> str:
        return f"{self.scheme} at {self._url.place or self._url.path!r}"

    def _tells_the_secret(self, error: BaseException | None) -> bool:
        """Whether what a client says holds the secret, in an error or in one behind it."""
        if not self._secret or error is None:
            return False
        return any(self._secret in f"{one} {one!r}" for one in chain(error))

    def _settle(self, space: Space | None) -> None:
        """Find out the space of the collection, or make the collection."""
        if not self._ask(self._exists):
            if space is None:
                raise MissingCollectionError(
                    expected=f"the collection of {self.url}",
                    got="none of that name",
                    do="check the name; with a space (in Python: space=), it is created",
                )
            self._check_metric(space.metric)
            first = "vector" not in self._url.options
            self._ask(self._create, space)
            self._change_record(lambda record: record.with_space(space, own=first or record.own))
        record = self._record()
        there = record.space()
        self._own = record.own
        if there is not None:
            if space is not None:
                there.check(space, what=f"for {self.url} a space")
            self._check_metric(there.metric)
        else:
            described = self._described(space)
            if space is None:
                self._space = described
                return
            self._check_metric(space.metric)
            self._change_record(lambda record: record.with_space(space, own=record.own))
            there = space
        self._space, self._recorded = there, True

    def _described(self, space: Space | None) -> Space:
        """Return the space that the database knows of, once it agrees with the one given."""
        dim, metric = self._ask(self._describe)
        if dim is None and space is None:
            raise EmptyInputError(
                expected=f"a row, a declared dimension or a recorded space in {self.url}",
                got="none of them: nobody knows how long its vectors will be",
                do="say which model will fill it: isthmus store record URL --model NAME --dim N "
                "(in Python: open it with space=)",
            )
        if space is None:
            return unrecorded(self.url, dim or 0, metric or "cosine")
        if (dim or space.dim, metric or space.metric) != (space.dim, space.metric):
            raise SpaceMismatchError(
                expected=f"a space of {f'dimension {dim}' if dim else 'any dimension'} and "
                f"{f'metric {metric}' if metric else 'any metric'}, as the database has for "
                f"{self.url}",
                got=f"dimension {space.dim} and metric {space.metric}",
                do="give the space of the model that made the collection",
            )
        return space

    def _check_space(self, space: Space) -> None:
        """Refuse vectors of another space, and of any where none is recorded."""
        if not self._recorded:
            raise SpaceMismatchError(
                expected=f"vectors of the space of {self.url}, which is not recorded",
                got=f"vectors of {space}",
                do="if that model made the collection, say so: isthmus store record URL --model "
                "NAME (in Python: open it with space=)",
            )
        self.space.check(space)

    def _record(self) -> Record:
        options = self._url.options
        named = options.get("vector", options.get("field", ""))  # each vector has its own space
        return Record(self._ask(self._read_record), named)

    def _change_record(self, change: Callable[[Record], Record]) -> None:
        entries = dict(change(self._record()).entries)
        self._ask(self._write_record, entries)

    @classmethod
    def _check_name(cls, name: str) -> None:
        rule = cls.capabilities.names
        if not re.fullmatch(rule.pattern, name):
            raise ParameterError(
                expected=f"a collection name as {cls.scheme} allows: {rule.words}",
                got=repr(name[:80]),
                do="choose another name",
            )

    def _check_metric(self, metric: Metric) -> None:
        if metric not in self.capabilities.metrics:
            raise UnsupportedOperationError(
                expected=f"a metric that {self.scheme} searches by: "
                + ", ".join(self.capabilities.metrics),
                got=metric,
                do="use another store, or a space of another metric",
            )

    @property
    def _batch_rows(self) -> int:
        return self.capabilities.max_batch or BATCH_ROWS

    def _in_batches(self, texts: list[str]) -> Iterator[list[str]]:
        for start in range(0, len(texts), self._batch_rows):
            yield texts[start : start + self._batch_rows]

    def _check_sizes(self, ids: list[str], texts: list[str | None]) -> None:
        """Refuse ids and metadata that the database would cut or refuse."""
        limit = self.capabilities.max_id_bytes
        if limit is not None and (long := [text for text in ids if len(text.encode()) > limit]):
            raise InvalidIdError(
                expected=f"ids of at most {limit:,} bytes, as {self.scheme} allows",
                got=f"{len(long):,} longer ones, the first {long[0][:40]!r}...",
                do="use shorter ids",
            )
        limit = self.capabilities.max_metadata_bytes
        for row, text in enumerate(texts if limit is not None else ()):
            if text is not None and limit is not None and len(text.encode()) > limit:
                raise InputError(
                    expected=f"metadata of at most {limit:,} bytes a row, as {self.scheme} allows",
                    got=f"{len(text.encode()):,} bytes in row {row}",
                    do="keep long texts elsewhere, under the same id",
                )

    def _look_up(self, texts: list[str], *, vectors: bool) -> tuple[Rows, list[int]]:
        """Read rows by id; return them, and the place of each id."""
        unique = list(dict.fromkeys(texts))
        batches = self._in_batches(unique)
        parts = [self._ask(self._read, some, vectors=vectors).checked() for some in batches]
        ids = [text for part in parts for text in part.ids]
        places = {text: place for place, text in enumerate(ids)}
        if missing := [text for text in unique if text not in places]:
            raise UnknownIdError(
                expected=f"ids of {self.url}",
                got=f"{len(missing):,} of {len(unique):,} that it does not have: "
                + name_few(np.array(missing, np.str_)),
                do="check that both come from the same collection",
            )
        matrix = (
            np.concatenate([part.vectors for part in parts])
            if parts
            else np.empty((0, self.space.dim if vectors else 0), np.float32)
        )
        rows = Rows(ids, matrix, [text for part in parts for text in part.metadata])
        return rows, [places[text] for text in texts]

    def _found(self, hits: Hits, k: int) -> Found:
        ids: npt.NDArray[np.object_] = np.full((len(hits), k), "", object)
        native = np.full((len(hits), k), np.nan, np.float64)
        for query, found in enumerate(hits):
            for place, (text, score) in enumerate(found[:k]):
                ids[query, place], native[query, place] = text, score
        name = self.capabilities.native_scores[self.space.metric]
        return Found(ids.astype(np.str_), native.astype(np.float32), to_canonical(native, name))

    def _pages(self, batch_size: int, cursor: str) -> Iterator[Page]:
        check_positive(batch_size, name="batch_size")
        if cursor and not cursor.startswith(CURSOR):
            raise ParameterError(
                expected="the cursor of a batch of this store, or the empty text",
                got=repr(cursor[:40]),
                do="pass what the last batch gave",
            )
        after = cursor.removeprefix(CURSOR)
        while True:
            page = self._ask(self._page, after, batch_size)
            if not page.rows.ids:
                return
            yield page
            after = page.after

    def _refused(self, what: str) -> UnsupportedOperationError:
        return UnsupportedOperationError(
            expected=f"a store that keeps {what}",
            got=f"a {self.scheme} store",
            do="use another store, or keep them under the same ids elsewhere",
        )


def _unchecked(rows: Rows, cursor: str) -> Unchecked:
    """Set rows of another length apart."""
    if rows.other is None:
        return Unchecked(rows.ids, rows.vectors, cursor)
    lengths = rows.other.lengths
    fits = lengths == rows.vectors.shape[1]
    others = zip(rows.ids, lengths.tolist(), strict=True)
    return Unchecked(
        [text for text, fit in zip(rows.ids, fits, strict=True) if fit],
        rows.vectors[fits],
        cursor,
        tuple(one for one, fit in zip(others, fits, strict=True) if not fit),
    )
