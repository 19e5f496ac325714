"""Redis or Valkey with a search module: an index over hashes, our own or anybody's."""

from __future__ import annotations

import bisect
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from isthmus._optional import require
from isthmus._types import FloatArray, Metric
from isthmus.errors import (
    IsthmusError,
    ParameterError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
)
from isthmus.spaces import Space
from isthmus.stores._asking import unreachable
from isthmus.stores._checks import as_number
from isthmus.stores._client_errors import gone, not_an_alias
from isthmus.stores._connected import ConnectedStore, Hits, Page, Rows
from isthmus.stores._redis_errors import WORDS
from isthmus.stores._redis_filter import filter_of
from isthmus.stores._redis_hashes import TOKENS, VECTOR, list_keys, piped, read_rows
from isthmus.stores._redis_index import Index, own_prefix, read_index
from isthmus.stores._redis_search import search
from isthmus.stores._redis_writing import order_key, record_key, remove, write
from isthmus.stores._url import StoreUrl
from isthmus.stores.base import Capabilities

__all__ = ["RedisStore"]

METRICS: Mapping[Metric, str] = MappingProxyType({"cosine": "COSINE", "dot": "IP", "l2": "L2"})
INDEXES = ("exact", "hnsw")
KINDS = {"exact": "FLAT", "hnsw": "HNSW"}


class RedisStore(ConnectedStore):
    """A search index over hashes; see docs/stores/redis.md.

    Options of its URL: ``index`` (``flat``, exact, or ``hnsw``, of a new one), ``ef_search``,
    ``field`` (of the vectors, where an index has several), ``tls``.
    """

    scheme: ClassVar[str] = "redis"
    options: ClassVar[tuple[str, ...]] = ("index", "ef_search", "field", "tls")
    serial: ClassVar[bool] = False
    capabilities: Capabilities = Capabilities(
        native_scores=MappingProxyType(
            {"cosine": "1 - cosine", "dot": "1 - dot", "l2": "squared l2"}
        ),
        stores_raw=True,
        exact_search=True,
        ties_by_insertion=False,
        filters=True,
        scan=True,
        notes="with a batch",
        max_batch=2_000,
        switch="alias",
        persistent=True,
        concurrency="many writers",
        proof="real server",
    )

    _index: Index

    def __init__(self, url: StoreUrl) -> None:
        super().__init__(url)
        self._client: Any = None
        self._errors: Any = None
        self._keys: list[bytes] = []
        self._settled = False
        self._kind = KINDS[url.choice("index", INDEXES)]
        self._ef = url.whole("ef_search", 1, 100_000, 100)
        self._tls = url.flag("tls")

    def info(self) -> dict[str, Any]:
        """Return the facts of `Store.info`, and how many hashes the index could not take in."""
        self._ask(self._exists)
        return {**super().info(), "not_indexed": self._index.failures}

    # --- what ConnectedStore asks for ---------------------------------------------------------

    def _connect(self) -> None:
        redis = require("redis", extra="redis")
        self._errors = redis.exceptions
        host, port = self._url.address(6379)
        if self._url.path not in ("", "0"):
            raise _bad("database", "0, the only one that is searched", self._url.path)
        self._client = redis.Redis(
            host=host,
            port=port,
            username=self._url.user or None,
            password=self._secret,
            ssl=self._tls,
            protocol=2,
            socket_timeout=max(self.timeout, 0.001),
            socket_connect_timeout=max(self.timeout, 0.001),
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
            redis_connect_func=self._on_connect,
        )
        self._client.ping()

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()

    def _settle(self, space: Space | None) -> None:
        super()._settle(space)
        self.capabilities = replace(
            self.capabilities,
            exact_search=self._index.exact,
            storage=self._index.storage,
            read_back_error=self._index.read_back_error,
            scan_order="insertion" if self._index.own else "key",
        )

    def _exists(self) -> bool:
        found = self._info(self._url.collection)
        if found is None:
            return False
        self._index = read_index(found, self._url.options.get("field", ""))
        return True

    def _create(self, space: Space) -> None:
        name = self._url.collection
        if self._client.exists(order_key(name)) and not self._exists():
            raise ParameterError(
                expected=f"a name that is free: {name!r}",
                got="rows of an index that somebody dropped",
                do=f"choose another, or remove {order_key(name)!r} and all keys that begin with "
                f"{own_prefix(name)!r}",
            )
        parts = ["TYPE", "FLOAT32", "DIM", space.dim, "DISTANCE_METRIC", METRICS[space.metric]]
        vector = [VECTOR, "VECTOR", self._kind, len(parts), *parts]
        prefix = ["ON", "HASH", "PREFIX", 1, own_prefix(name)]
        try:
            with self._writing():
                self._client.execute_command(
                    "FT.CREATE", name, *prefix, "SCHEMA", *vector, TOKENS, "TAG"
                )
        except self._errors.ResponseError as error:
            if "already exists" not in str(error):
                raise
        self._exists()

    def _describe(self) -> tuple[int, Metric | None]:
        return self._index.dim, self._index.metric

    def _read_record(self) -> dict[str, str]:
        found = self._client.hgetall(record_key(self._index))
        return {key.decode(): value.decode() for key, value in found.items()}

    def _write_record(self, entries: dict[str, str]) -> None:
        with self._writing(), self._client.pipeline(transaction=True) as pipe:
            pipe.delete(record_key(self._index))
            if entries:
                pipe.hset(record_key(self._index), mapping=entries)
            pipe.execute()

    def _count(self) -> int:
        if self._index.own:
            return int(self._client.zcard(order_key(self._index.name)))
        lengths = piped(
            self._client, "HSTRLEN", list_keys(self._client, self._index), self._index.vector.name
        )
        return sum(length > 0 for length in lengths)

    def _write(self, rows: Rows) -> None:
        self._write_all(rows, {})

    def _write_noted(self, rows: Rows, notes: dict[str, str]) -> None:
        self._ask(self._write_all, rows, notes)

    def _keep_notes(self, notes: dict[str, str]) -> None:
        self._ask(self._write_all, None, notes)

    def _write_all(self, rows: Rows | None, notes: dict[str, str]) -> None:
        with self._writing():
            write(self._client, self._index, rows, notes)

    def _remove(self, ids: list[str]) -> None:
        with self._writing():
            remove(self._client, self._index, ids)

    def _read(self, ids: list[str], *, vectors: bool) -> Rows:
        keys = [self._index.key(text) for text in ids]
        return read_rows(self._client, self._index, keys, vectors=vectors)

    def _find(self, queries: FloatArray, *, k: int, where: Mapping[str, Any]) -> Hits:
        chosen = filter_of(self._index, where)
        if chosen is None:
            return [[] for _ in queries]
        self._wait_for_the_index()
        ef = 0 if self._index.exact else max(self._ef, k)
        return search(self._client, self._index, queries, k=k, chosen=chosen, ef=ef)

    def _page(self, after: str, limit: int) -> Page:
        if self._index.own:
            return self._page_in_order(after, limit)
        key = after.encode()
        if not after:
            self._keys = list_keys(self._client, self._index)
        rows = Rows([], np.empty((0, self._index.dim), np.float32), [])
        while not rows.ids:  # hashes without a vector are no rows
            keys = self._keys[bisect.bisect(self._keys, key) if key else 0 :][:limit]
            if not keys:
                self._keys = list_keys(
                    self._client, self._index
                )  # what came since, or the first page after a break
                keys = self._keys[bisect.bisect(self._keys, key) if key else 0 :][:limit]
            if not keys:
                break
            rows = read_rows(self._client, self._index, keys, vectors=True)
            key = keys[-1]
        return Page(rows, key.decode())

    def _is_transient(self, error: Exception) -> bool:
        names = ("ConnectionError", "TimeoutError", "BusyLoadingError", "TryAgainError")
        kinds = tuple(getattr(self._errors, name) for name in names)
        refused = (self._errors.AuthenticationError, self._errors.AuthorizationError)
        return isinstance(error, kinds) and not isinstance(error, refused)

    def _in_our_words(self, error: Exception) -> IsthmusError:
        said = str(error)
        secret = self._secret
        said = said.replace(secret, "***") if secret else said
        for words, kind, expected, do in WORDS:
            if any(word in said or word == type(error).__name__ for word in words):
                return kind(expected=expected, got=said[:200] or type(error).__name__, do=do)
        if self._is_transient(error) or not isinstance(error, self._errors.ResponseError):
            return unreachable(error, where=f"redis at {self._url.place!r}")
        return StoreError(
            expected=f"an answer of redis at {self._url.place!r}",
            got=said[:200],
            do="see what the log of the server says",
        )

    # --- how it is done -----------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Say of a right that is missing that it is the right to write."""
        try:
            yield
        except self._errors.NoPermissionError as error:
            raise ReadOnlyStoreError(
                expected="the right to write to the collection",
                got="a user who does not have it",
                do="open it as a user who may write: ACL SETUSER",
            ) from error

    def _on_connect(self, connection: Any) -> None:
        """Notice a new connection: after a restart the index may still take rows in."""
        self._settled = False
        connection.on_connect()

    def _wait_for_the_index(self) -> None:
        """Wait until the index has taken in what was there: until then it misses rows."""
        end = time.monotonic() + self.timeout
        while not self._settled:
            self._settled = True  # before asking: a new connection would take it back
            if not self._exists():
                raise gone(self._url.collection)
            if not self._index.busy:
                return
            self._settled = False
            if time.monotonic() > end:
                raise StoreBusyError(
                    expected=f"an index {self._index.name!r} that is complete",
                    got="one that still takes rows in",
                    do="wait until FT.INFO says indexing 0, or raise &timeout=SECONDS",
                )
            time.sleep(0.05)

    def _info(self, name: str) -> Any:
        try:
            return self._client.execute_command("FT.INFO", name)
        except self._errors.ResponseError as error:
            if "unknown index name" in str(error).lower() or "no such index" in str(error).lower():
                return None
            raise

    def _take_name(self, name: str, former: str) -> str:
        del former
        found = self._info(name)
        led = "" if found is None else found[1].decode()
        if led == name:
            raise not_an_alias(name)
        with self._writing():
            self._client.execute_command("FT.ALIASUPDATE", name, self._index.name)
        return led

    def _page_in_order(self, after: str, limit: int) -> Page:
        """Read the next rows of our own collection, in the order in which they first came."""
        number = as_number(after)
        ids: list[tuple[bytes, float]] = []
        rows = read_rows(self._client, self._index, [], vectors=True)
        while not rows.ids:
            ids = self._client.zrangebyscore(
                order_key(self._index.name),
                f"({number}",
                "+inf",
                start=0,
                num=limit,
                withscores=True,
            )
            if not ids:
                break
            number = int(ids[-1][1])
            keys = [self._index.prefix.encode() + text for text, _ in ids]
            rows = read_rows(self._client, self._index, keys, vectors=True)
        return Page(rows, str(number))


def _bad(option: str, expected: str, got: str) -> ParameterError:
    return ParameterError(
        expected=f"{option} as {expected}", got=repr(got[:40]), do="change the URL"
    )
