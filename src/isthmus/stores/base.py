"""The contract of every store: a collection of vectors in one space, kept by a database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

import numpy as np

from isthmus._types import FloatArray, IdArray, IntArray, Metric
from isthmus.errors import UnknownIdError, UnsupportedOperationError
from isthmus.spaces import Space, VectorSet
from isthmus.stores._native import NativeScore

__all__ = ["Batch", "Capabilities", "Found", "Gathered", "Held", "NameRule", "Store", "Unchecked"]


@dataclass(frozen=True)
class NameRule:
    """Which names a database allows.

    Parameters
    ----------
    pattern : str
        Regular expression that the whole name matches.
    words : str
        The same in words, for the documentation and the error.
    """

    pattern: str
    words: str


ANY_NAME = NameRule(r"(?s)[^\0]{1,255}", "1 to 255 characters of any kind")


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a store declares once; tests, the docs table and error texts are derived from it.

    Parameters
    ----------
    native_scores : mapping of Metric to NativeScore
        Metrics that it can search by, and how the database writes the score of each.
    stores_raw : bool
        Whether the vectors are kept as given (True) or normalised (False).
    storage : str, default "float32"
        Number type of the stored vectors.
    read_back_error : float, default 0.0
        Largest error of a number that is read back, relative to the largest number of its row.
        0.0: float32 comes back bit for bit.
    exact_search : bool
        Whether ``search`` misses no row that is better than one it gives.
    ties_by_insertion : bool, default True
        Whether equal scores are ordered by insertion, as in the reference; otherwise in any order.
    scan_order : {"insertion", "key"}, default "insertion"
        ``insertion``: rows that are written during a scan come at its end. ``key``: in an order of
        the database's own, in which a new row may fall before the cursor and be missed.
    filters : bool
        Whether it keeps metadata, and ``search`` takes ``where``.
    scan : bool
        Whether ``scan`` can be resumed from a cursor.
    notes : {"with a batch", "after a batch"} or None
        Whether notes commit together with the rows of their call, or right after them (a crash in
        between leaves the rows and the older notes). None: it keeps none. Notes are for one job at
        a time: where they are kept after a batch, of two jobs that note at once the last wins, and
        may take what the other one noted.
    atomic : bool, default True
        Whether the rows that one request carries are written as a whole or not at all, whatever
        happens to the database meanwhile.
    max_batch : int or None
        Rows that one request carries; larger calls are split. None: every call is one transaction,
        whatever its size.
    max_id_bytes, max_metadata_bytes : int or None, default None
        What the database allows for one row, as UTF-8; more is refused before it is sent.
    names : NameRule, default any
        Of collections.
    several_vectors : bool, default False
        Whether ``&vector=NAME`` gives the rows of a collection a further vector, beside the first.
    switch : {"alias", "rename", "two renames"} or None, default None
        How `Store.take_name` moves a name: at one instant, or nearly (``two renames``); None: it
        cannot.
    persistent : bool
        Whether the URL opens the same collection again, later and in another process.
    concurrency : {"one process", "one writer, many readers", "many writers"}
    proof : {"in process", "real server", "protocol fake"}, default "in process"
        What the conformance suite runs against in the tests of this project.
    """

    native_scores: Mapping[Metric, NativeScore]
    stores_raw: bool
    storage: str = "float32"
    read_back_error: float = 0.0
    exact_search: bool
    ties_by_insertion: bool = True
    scan_order: Literal["insertion", "key"] = "insertion"
    filters: bool
    scan: bool
    notes: Literal["with a batch", "after a batch"] | None
    atomic: bool = True
    max_batch: int | None
    max_id_bytes: int | None = None
    max_metadata_bytes: int | None = None
    names: NameRule = ANY_NAME
    several_vectors: bool = False
    switch: Literal["alias", "rename", "two renames"] | None = None
    persistent: bool
    concurrency: Literal["one process", "one writer, many readers", "many writers"]
    proof: Literal["in process", "real server", "protocol fake"] = "in process"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Metrics that the store can search by."""
        return tuple(self.native_scores)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            **vars(self),
            "native_scores": dict(self.native_scores),
            "metrics": list(self.metrics),
            "names": self.names.words,
        }


@dataclass(frozen=True)
class Found:
    """What a search gives: arrays of shape (n_queries, k), best first.

    Rows with fewer than k answers end in the empty id and NaN scores.

    Parameters
    ----------
    ids : IdArray of shape (n_queries, k)
    native_scores : FloatArray of shape (n_queries, k)
        As the database gives them.
    scores : FloatArray of shape (n_queries, k)
        Canonical similarity, higher is better: the cosine for ``cosine``, the inner product for
        ``dot``, minus the (unsquared) distance for ``l2``.
    """

    ids: IdArray
    native_scores: FloatArray
    scores: FloatArray


@dataclass(frozen=True)
class Batch:
    """One step of a scan.

    Parameters
    ----------
    vectors : VectorSet
    cursor : str
        From here the scan goes on after these rows.
    metadata : tuple of dict, one per row
        Empty where a row, or the store, has none.
    """

    vectors: VectorSet
    cursor: str
    metadata: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Unchecked:
    """One step of a scan that looks at whatever is there: for a diagnosis.

    Parameters
    ----------
    ids : list of str
    vectors : FloatArray of shape (n, dim)
        May hold NaN, infinity, zeros and lengths that the space denies.
    cursor : str
    others : tuple of (str, float), default ()
        Id and number of numbers of each row whose vector is longer or shorter than ``dim``: no
        number is in ``vectors``. Not whole where the database keeps bytes, and some are missing.
    """

    ids: list[str]
    vectors: FloatArray
    cursor: str
    others: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Gathered:
    """Rows for ids that repeat: each row once, and where each id finds its own.

    Parameters
    ----------
    vectors : VectorSet or None
        Each row that was asked for, once; None when no id was asked for.
    rows : IntArray, of the shape of the ids
        Row of ``vectors``; -1 for the empty id.
    """

    vectors: VectorSet | None
    rows: IntArray


@dataclass(frozen=True)
class Held:
    """The rows of some ids that a store has.

    Parameters
    ----------
    ids : list of str
        Each once, in any order.
    vectors : FloatArray of shape (len(ids), dim)
    metadata : list of dict, one per row
        Empty where a row, or the store, has none.
    """

    ids: list[str]
    vectors: FloatArray
    metadata: list[dict[str, Any]]


class Store(ABC):
    """A collection of vectors in one space.

    Class attributes
    ----------------
    scheme : str
        Scheme of its URL, for example ``sqlite``.
    capabilities : Capabilities
        Of the class; an object that was opened with options may declare less.
    place_options : tuple of str, default ()
        Options of its URL that say where the rows are, for example ``schema``. Together with
        ``vector``, ``column`` and ``field``, which say which vector of the rows is meant, they tell
        one collection from another; all others say how it is opened.
    """

    scheme: ClassVar[str]
    place_options: ClassVar[tuple[str, ...]] = ()
    capabilities: Capabilities

    @classmethod
    @abstractmethod
    def open(cls, url: str, *, space: Space | None = None) -> Self:
        """Open the collection that ``url`` names.

        Parameters
        ----------
        url : str
            ``scheme:///path?collection=NAME``.
        space : Space, optional
            When given, the collection is created if it is not there, and refused if its recorded
            space differs; where no space is recorded (another program made the collection), this
            one is recorded, after its dimension and metric were compared with the database's. When
            not given, the collection must exist; if it has no recorded space, it gets one that no
            vectors of elsewhere match: see `Store.recorded`.

        Raises
        ------
        InputError, UnknownNameError, ParameterError, ConfigError
            The URL: what it is, its options, their values, the variable of its secret.
        MissingExtraError
            The client of the database is not installed.
        EmptyInputError
            Nobody knows the dimension: no space is given or recorded, and there is no row.
        MissingCollectionError, SpaceMismatchError, CorruptStoreError
        StoreUnreachableError, AccessDeniedError
        """

    @property
    @abstractmethod
    def space(self) -> Space:
        """The space that is recorded with the collection."""

    @property
    def recorded(self) -> bool:
        """Whether the space is recorded in the database.

        Where it is not, nobody knows which model made the vectors: they can be read, diagnosed and
        exported, but not meet vectors of any other space.
        """
        return True

    @property
    def own(self) -> bool:
        """Whether Isthmus made the collection; one of another program has fields of its own."""
        return True

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL that opens this collection again."""

    @abstractmethod
    def count(self) -> int:
        """Count the rows that have the vector."""

    @abstractmethod
    def upsert(
        self,
        vectors: VectorSet,
        *,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Write rows, replacing those with the same id; all are checked before any is written.

        What is refused leaves nothing behind. More rows than ``capabilities.max_batch`` go in
        several requests, each a whole; see there for what a failure of the database leaves.

        A row that is replaced keeps its place in the order of insertion and its other vectors, and
        loses the metadata it had. Where the URL names a further vector (``&vector=NAME``), the
        metadata of the row stay unless others are given.

        Parameters
        ----------
        vectors : VectorSet
            Checked against the store's space before anything is written.
        metadata : sequence of mappings, one per row, optional
            JSON values, for ``where``.
        notes : mapping of str to str, optional
            Texts kept with the collection, committed together with the rows: a job that can be
            resumed notes here how far it has come. The empty text removes a note.

        Raises
        ------
        SpaceMismatchError, CountMismatchError, InputError, UnsupportedOperationError
        """

    @abstractmethod
    def delete(self, ids: Sequence[str]) -> int:
        """Remove rows by id; return how many were there.

        Where the URL names a further vector (``&vector=NAME``), that vector is removed, and the
        row stays with its others. Ids that are not there do not matter.
        """

    @abstractmethod
    def fetch(self, ids: Sequence[str]) -> VectorSet:
        """Return rows by id, in the order asked for; `UnknownIdError` when one is not there."""

    @abstractmethod
    def fetch_metadata(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return the metadata of rows by id, in the order asked for; ids may repeat.

        Empty where a row has none. Whole numbers over 64 bits, which other programs may write, come
        as floats, and what no float holds as text.

        Raises
        ------
        UnknownIdError
        UnsupportedOperationError
            The store declares that it keeps none.
        """

    def held(self, ids: Sequence[str]) -> Held:
        """Return the rows of those of these ids that are there, each with its metadata.

        For comparing two stores, where an id that is missing is an answer and no error.

        Parameters
        ----------
        ids : sequence of str
            All different; may be none.
        """
        texts = list(ids)
        try:
            found = self.fetch(texts) if texts else None
        except UnknownIdError:
            if len(texts) == 1:
                return Held([], np.empty((0, self.space.dim), np.float32), [])
            middle = len(texts) // 2
            one, two = self.held(texts[:middle]), self.held(texts[middle:])
            vectors = np.concatenate([one.vectors, two.vectors])
            return Held(one.ids + two.ids, vectors, one.metadata + two.metadata)
        if found is None:
            return Held([], np.empty((0, self.space.dim), np.float32), [])
        filters = self.capabilities.filters
        metadata = self.fetch_metadata(texts) if filters else [{} for _ in texts]
        return Held(texts, found.matrix(), metadata)

    def gather(self, ids: IdArray) -> Gathered:
        """Return rows by id where ids repeat: the candidates of many searches at once.

        Parameters
        ----------
        ids : IdArray of any shape
            The empty id stands for no row.

        Raises
        ------
        UnknownIdError
        """
        asked = np.asarray(ids, dtype=np.str_)
        unique, inverse = np.unique(asked, return_inverse=True)
        rows = inverse.reshape(asked.shape).astype(np.int64)
        if unique.size and unique[0] == "":
            unique, rows = unique[1:], rows - 1
        vectors = self.fetch(unique.tolist()) if unique.size else None
        return Gathered(vectors=vectors, rows=rows)

    @abstractmethod
    def search(
        self, queries: FloatArray | VectorSet, *, k: int, where: Mapping[str, Any] | None = None
    ) -> Found:
        """Return the k best rows for each query vector; ties by order of insertion.

        Parameters
        ----------
        queries : FloatArray of shape (n_queries, dim), or VectorSet
            The space of a set is checked; of a bare array nobody knows it.
        k : int
            At least 1.
        where : mapping of str to str, int, float, bool or None, optional
            Only rows whose metadata have these values: numbers are equal as numbers, true and false
            are not numbers, and None is a null that was written.

        Raises
        ------
        DimensionError, InvalidVectorsError, ZeroVectorError, EmptyInputError, ParameterError
        UnsupportedOperationError
            ``where`` in a store that keeps no metadata.
        """

    @abstractmethod
    def scan(self, *, batch_size: int = 10_000, cursor: str = "") -> Iterator[Batch]:
        """Yield all rows in a stable order, from the start or from an earlier batch's cursor.

        Parameters
        ----------
        batch_size : int, default 10_000
            At most so many rows in a batch; a database may give fewer.
        cursor : str, default ""
            Of an earlier batch of this collection: the scan goes on after it, also in another
            process.

        Raises
        ------
        ParameterError
            A cursor of another store, or a size below 1.
        InputError
            A row that no `VectorSet` may hold (NaN, zero where the cosine is asked for); see
            `scan_unchecked`.
        """

    def scan_unchecked(self, *, batch_size: int = 10_000, cursor: str = "") -> Iterator[Unchecked]:
        """Yield all rows as they lie in the database, also those that no `VectorSet` may hold.

        This default goes through `scan`, which refuses such rows: a store whose collections others
        write, too, gives its own.
        """
        for batch in self.scan(batch_size=batch_size, cursor=cursor):
            yield Unchecked(batch.vectors.ids.tolist(), batch.vectors.matrix(), batch.cursor)

    def take_name(self, name: str, *, former: str = "") -> str:
        """Make ``name`` lead to this collection at one instant, and return where it led before.

        ``capabilities.switch`` says how. ``alias``: ``name`` is an alias or free; it leads here
        from now on, and the collection it led to keeps its own name, which is returned (empty:
        none). ``rename``: this collection is called ``name`` from now on, and the one that was
        called so is called ``former``, which is returned. ``two renames``: the same, but between
        the two no collection has the name; a call that was cut short there ends when it is
        repeated. Nothing is deleted, and the same call on the other collection goes back.

        Parameters
        ----------
        name : str
            That applications use.
        former : str, default ""
            Free name for what had it; only for renames.

        Raises
        ------
        UnsupportedOperationError
            The store has no such switch.
        ParameterError
            ``name`` is a collection where only an alias can move, or ``former`` is taken.
        """
        del name, former
        raise UnsupportedOperationError(
            expected="a store that can move a name at one instant",
            got=f"a {self.scheme} store",
            do="point the application at the new collection, in two steps: see docs/convert.md",
        )

    def notes(self) -> dict[str, str]:
        """Return the notes that were committed with batches.

        Raises
        ------
        UnsupportedOperationError
            When the store declares that it has none.
        """
        raise UnsupportedOperationError(
            expected="a store that keeps notes",
            got=f"a {self.scheme} store",
            do="keep the cursor of the job in a file of your own, written after each batch",
        )

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Keep notes without rows; the empty text removes one.

        Raises
        ------
        UnsupportedOperationError
            When the store declares that it has none.
        """
        del notes
        self.notes()  # refuses in a store that has none
        raise UnsupportedOperationError(
            expected="a store that keeps notes without rows",
            got=f"a {self.scheme} store, which keeps them with rows only",
            do="keep them in a file of your own",
        )

    def record_space(self, space: Space) -> None:
        """Record another space for the vectors that are there, where the one recorded is wrong.

        Dimension and metric must be the same, and no row is touched: this says which model made
        the vectors, it does not change them.

        Raises
        ------
        UnsupportedOperationError
            A store of this process, whose collections only Isthmus fills.
        SpaceMismatchError
            Another dimension or metric.
        """
        raise UnsupportedOperationError(
            expected="a store whose collections other programs fill",
            got=f"a {self.scheme} store, which holds what its space says",
            do=f"write the vectors to a new collection, with {space} as their space",
        )

    def info(self) -> dict[str, Any]:
        """Return url, count, space and capabilities as plain JSON values."""
        return {
            "url": self.url,
            "count": self.count(),
            "space": self.space.to_dict(),
            "fingerprint": self.space.fingerprint,
            "recorded": self.recorded,
            "capabilities": self.capabilities.to_dict(),
        }

    def close(self) -> None:  # noqa: B027 - a store in memory has nothing to let go of
        """Let go of files and connections; closing twice does nothing."""

    def __enter__(self) -> Self:
        """Return the store, to be closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the store."""
        self.close()
