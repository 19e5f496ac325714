"""A store that could not be opened when its federation was: every search tries again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from isthmus.errors import UnsupportedOperationError
from isthmus.federate.source import UnusableAnswerError
from isthmus.stores.base import Batch, Found, Gathered, Store

if TYPE_CHECKING:
    from isthmus._types import FloatArray, IdArray
    from isthmus.spaces import Space, VectorSet

__all__ = ["UnopenedStore"]


class UnopenedStore(Store):
    """Opens the store behind a URL when it is first searched, and passes on what it says.

    Safe to use from several threads: one of them opens it, the others wait for that.

    Parameters
    ----------
    url : str
    space : Space
        What the bridges of its source say that it holds; checked when it is open.
    """

    scheme: ClassVar[str] = "unopened"

    def __init__(self, url: str, space: Space) -> None:
        self._url = url
        self._space = space
        self._store: Store | None = None
        self._lock = threading.Lock()

    @classmethod
    def open(cls, url: str, *, space: Space | None = None) -> Self:
        """Refuse: this is no store of its own."""
        del space
        cls._refuse(url)

    @property
    def space(self) -> Space:
        """The space that its bridges name."""
        return self._space

    @property
    def url(self) -> str:
        """Its URL."""
        return self._url

    def count(self) -> int:
        """Count the vectors."""
        return self._open().count()

    def search(
        self, queries: FloatArray | VectorSet, *, k: int, where: Mapping[str, Any] | None = None
    ) -> Found:
        """Return the k best rows for each query; see `Store.search`."""
        return self._open().search(queries, k=k, where=where)

    def gather(self, ids: IdArray) -> Gathered:
        """Return rows by id where ids repeat."""
        return self._open().gather(ids)

    def fetch(self, ids: Sequence[str]) -> VectorSet:
        """Return rows by id; see `Store.fetch`."""
        return self._open().fetch(ids)

    def fetch_metadata(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return metadata by id; see `Store.fetch_metadata`."""
        return self._open().fetch_metadata(ids)

    def scan(self, *, batch_size: int = 10_000, cursor: str = "") -> Iterator[Batch]:
        """Yield all rows; see `Store.scan`."""
        return self._open().scan(batch_size=batch_size, cursor=cursor)

    def upsert(
        self,
        vectors: VectorSet,
        *,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Refuse: a federation does not write."""
        del vectors, metadata, notes
        self._refuse(self._url)

    def delete(self, ids: Sequence[str]) -> int:
        """Refuse: a federation does not write."""
        del ids
        self._refuse(self._url)

    def close(self) -> None:
        """Close the store, when it is open."""
        with self._lock:
            if self._store is not None:
                self._store.close()

    def _open(self) -> Store:
        if self._store is not None:  # without the lock: the usual case, and one read
            return self._store
        from isthmus.stores.registry import open_store

        with self._lock:
            if self._store is None:
                store = open_store(self._url)
                if store.space.fingerprint != self._space.fingerprint:
                    store.close()
                    raise UnusableAnswerError(
                        expected=f"vectors of {self._space} in the store, as its bridges say",
                        got=f"vectors of {store.space}",
                        do="fit bridges for what it holds now",
                    )
                self._store = store
            return self._store

    @staticmethod
    def _refuse(url: str) -> NoReturn:
        raise UnsupportedOperationError(
            expected="a store that is open", got=url, do="open it with open_store"
        )
