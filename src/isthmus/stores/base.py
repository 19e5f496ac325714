"""The contract of every store: a collection of vectors in one space, kept by a database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

import numpy as np

from isthmus._types import FloatArray, IdArray, IntArray, Metric
from isthmus.errors import UnsupportedOperationError
from isthmus.spaces import Space, VectorSet

__all__ = ["Batch", "Capabilities", "Found", "Gathered", "Store"]


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a store declares once; tests, the docs table and error texts are derived from it.

    Parameters
    ----------
    metrics : tuple of Metric
        Metrics it can search by.
    higher_is_better : mapping of Metric to bool
        Direction of the native score per metric.
    stores_raw : bool
        Whether the vectors are kept as given (True) or normalised (False).
    exact_read_back : bool
        Whether ``fetch`` gives back float32 bit for bit.
    exact_search : bool
        Whether ``search`` gives what the reference gives, ties included; otherwise it may miss
        some of the best.
    filters : bool
        Whether it keeps metadata, and ``search`` takes ``where``.
    scan : bool
        Whether ``scan`` can be resumed from a cursor.
    notes : bool
        Whether notes commit together with a batch.
    persistent : bool
        Whether the URL opens the same collection again, later and in another process.
    concurrency : {"one process", "one writer, many readers", "many writers"}
    max_batch : int or None
        Rows that one ``upsert`` call commits together; larger calls are split. None: every call is
        one transaction, whatever its size.
    """

    metrics: tuple[Metric, ...]
    higher_is_better: Mapping[Metric, bool]
    stores_raw: bool
    exact_read_back: bool
    exact_search: bool
    filters: bool
    scan: bool
    notes: bool
    persistent: bool
    concurrency: Literal["one process", "one writer, many readers", "many writers"]
    max_batch: int | None


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


class Store(ABC):
    """A collection of vectors in one space.

    Class attributes
    ----------------
    scheme : str
        Scheme of its URL, for example ``sqlite``.
    capabilities : Capabilities
        Of the class; an object that was opened with options may declare less.
    """

    scheme: ClassVar[str]
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
            space differs. When not, it must exist.

        Raises
        ------
        MissingCollectionError, SpaceMismatchError, CorruptStoreError
        """

    @property
    @abstractmethod
    def space(self) -> Space:
        """The space that is recorded with the collection."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL that opens this collection again."""

    @abstractmethod
    def count(self) -> int:
        """Count the vectors."""

    @abstractmethod
    def upsert(
        self,
        vectors: VectorSet,
        *,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Write rows, replacing those with the same id: all of them or, on an error, none.

        A row that is replaced keeps its place in the order of insertion and loses the metadata it
        had.

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
        """Remove rows by id; return how many were there."""

    @abstractmethod
    def fetch(self, ids: Sequence[str]) -> VectorSet:
        """Return rows by id, in the order asked for; `UnknownIdError` when one is not there."""

    @abstractmethod
    def fetch_metadata(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return the metadata of rows by id, in the order asked for; ids may repeat."""

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
        self, queries: FloatArray, *, k: int, where: Mapping[str, Any] | None = None
    ) -> Found:
        """Return the k best rows for each query vector; ties by order of insertion.

        Parameters
        ----------
        queries : FloatArray of shape (n_queries, dim)
        k : int
            At least 1.
        where : mapping of str to str, int, float, bool or None, optional
            Only rows whose metadata have these values: numbers are equal as numbers, true and false
            are not numbers, and None is a null that was written.
        """

    @abstractmethod
    def scan(self, *, batch_size: int = 10_000, cursor: str = "") -> Iterator[Batch]:
        """Yield all rows in a stable order, from the start or from an earlier batch's cursor."""

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

    def info(self) -> dict[str, Any]:
        """Return url, count, space and capabilities as plain JSON values."""
        return {
            "url": self.url,
            "count": self.count(),
            "space": self.space.to_dict(),
            "fingerprint": self.space.fingerprint,
            "capabilities": {
                **vars(self.capabilities),
                "metrics": list(self.capabilities.metrics),
                "higher_is_better": dict(self.capabilities.higher_is_better),
            },
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
