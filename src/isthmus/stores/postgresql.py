"""PostgreSQL with pgvector: a table with a column of vectors, our own or anybody's."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from isthmus._optional import require
from isthmus._types import FloatArray, Metric
from isthmus.errors import IsthmusError, ParameterError
from isthmus.spaces import Space
from isthmus.stores._connected import ConnectedStore, Hits, Page, Rows
from isthmus.stores._record import Record
from isthmus.stores._url import StoreUrl
from isthmus.stores.base import Capabilities, NameRule

if TYPE_CHECKING:
    from isthmus.stores._postgresql_collection import Collection
    from isthmus.stores._postgresql_server import Connection, Server
    from isthmus.stores._postgresql_table import Table

__all__ = ["PostgresqlStore"]

MAX_NAME_BYTES = 63
TYPES = ("vector", "halfvec")
INDEXES = ("", "exact", "hnsw")
EF_SEARCH = 100
HALF_ERROR = 2.0**-11


class PostgresqlStore(ConnectedStore):
    """A table of PostgreSQL; see docs/stores/postgresql.md.

    Options of its URL: ``schema``, ``id`` and ``column`` (of the first vector), ``index``
    (``hnsw``: made with the table; ``none``: exact, although there is one), ``ef_search``, ``type``
    (``halfvec``: float16, of a new table), ``sslmode``.
    """

    scheme: ClassVar[str] = "postgresql"
    options: ClassVar[tuple[str, ...]] = (
        *("schema", "id", "column", "index", "ef_search", "type", "sslmode"),
    )
    place_options: ClassVar[tuple[str, ...]] = ("schema",)
    serial: ClassVar[bool] = False
    capabilities: Capabilities = Capabilities(
        native_scores=MappingProxyType({"cosine": "1 - cosine", "dot": "-dot", "l2": "l2"}),
        stores_raw=True,
        exact_search=True,
        ties_by_insertion=False,
        filters=True,
        scan=True,
        notes="with a batch",
        max_batch=2_000,
        max_id_bytes=2_600,
        names=NameRule(r"(?s)[^\0]{1,63}", "1 to 63 bytes as UTF-8"),
        several_vectors=True,
        switch="rename",
        persistent=True,
        concurrency="many writers",
        proof="real server",
    )

    _server: Server
    _table: Table

    def __init__(self, url: StoreUrl) -> None:
        super().__init__(url)
        self._index = url.choice("index", INDEXES)
        self._type = url.choice("type", TYPES)
        self._ef = url.whole("ef_search", 1, 1_000, EF_SEARCH)
        for name in (url.collection, *(url.options.get(o, "") for o in ("schema", "id", "column"))):
            _check_name(name)

    def take_name(self, name: str, *, former: str = "") -> str:
        """Rename in one transaction; see `Store.take_name`."""
        for one in (name, former):
            _check_name(one)
        led = super().take_name(name, former=former)
        self._ask(self._exists)
        return led

    def notes(self) -> dict[str, str]:
        """Return the notes; see `Store.notes`."""
        return self._ask(self._read_notes)

    # --- what ConnectedStore asks for ---------------------------------------------------------

    def _connect(self) -> None:
        require("psycopg", extra="postgresql")
        self._server = _part("server").Server(self._url, self.timeout)
        with self._server.transaction() as connection:
            _part("schema").find_extension(connection, self._server)

    def _disconnect(self) -> None:
        if hasattr(self, "_server"):
            self._server.close()

    def _settle(self, space: Space | None) -> None:
        super()._settle(space)
        approximate = self.space.metric in self._table.metrics() and self._index != "exact"
        if self._index == "hnsw" and not approximate:
            raise _no_index(self._table, self.space)
        half = self._table.vector.type == "halfvec"
        self.capabilities = replace(
            self.capabilities,
            exact_search=not approximate,
            storage="float16" if half else "float32",
            read_back_error=HALF_ERROR if half else 0.0,
            scan_order="insertion" if self._table.own and not self._further else "key",
        )

    def _exists(self) -> bool:
        with self._server.transaction() as connection:
            found = _part("table").find_table(connection, self._wanted)
        if found is None or isinstance(found, str):
            return False
        self._table = found
        return True

    def _create(self, space: Space) -> None:
        schema = _part("schema")
        options: dict[str, Any] = {"type_": self._type, "index": self._index == "hnsw"}
        with self._changing("make the collection") as connection:
            schema.make_extension(connection, self._server)
            found = _part("table").find_table(connection, self._wanted)
            if isinstance(found, str):
                schema.add_vector(connection, found, self._wanted, space, **options)
            elif found is None and self._further:
                raise schema.missing(self._wanted)
            else:
                record = Record({}).with_space(space, own=True).entries
                schema.create_table(connection, self._wanted, space, record=record, **options)
        self._exists()

    def _describe(self) -> tuple[int | None, Metric | None]:
        metrics = self._table.metrics()
        return self._collection.dim(), metrics.pop() if len(metrics) == 1 else None

    def _read_record(self) -> dict[str, str]:
        self._exists()
        _, there = self._table.vector.record()
        name = self._url.options.get("vector", "")
        entries = {f"{name}:{key}": there[key] for key in ("space", "fingerprint") if key in there}
        for column in self._table.columns:
            if layout := column.record()[1].get("layout"):
                entries[":layout"] = layout
        return entries

    def _write_record(self, entries: dict[str, str]) -> None:
        name = self._url.options.get("vector", "")
        kept = {key: entries[f"{name}:{key}"] for key in ("space", "fingerprint")}
        if not self._further:
            kept |= {"layout": entries[":layout"]} if ":layout" in entries else {}
        with self._changing("write the space into the comment on the column") as connection:
            _part("schema").comment(connection, self._table, kept)
        self._exists()

    def _count(self) -> int:
        return self._collection.count()

    def _write(self, rows: Rows) -> None:
        _part("writing").write(self._collection, rows, {})

    def _write_noted(self, rows: Rows, notes: dict[str, str]) -> None:
        self._ask(_part("writing").write, self._collection, rows, notes)

    def _keep_notes(self, notes: dict[str, str]) -> None:
        self._ask(_part("writing").write, self._collection, None, notes)

    def _remove(self, ids: list[str]) -> None:
        _part("writing").remove(self._collection, ids)

    def _read(self, ids: list[str], *, vectors: bool) -> Rows:
        return self._collection.read(ids, dim=self.space.dim if vectors else 0)

    def _find(self, queries: FloatArray, *, k: int, where: Mapping[str, Any]) -> Hits:
        return self._collection.find(
            queries,
            k=k,
            where=where,
            metric=self.space.metric,
            ef=0 if self.capabilities.exact_search else self._ef,
        )

    def _page(self, after: str, limit: int) -> Page:
        return self._collection.page(after, limit, dim=self.space.dim)

    def _is_transient(self, error: Exception) -> bool:
        return self._server.is_transient(error)

    def _in_our_words(self, error: Exception) -> IsthmusError:
        return self._server.in_our_words(error)

    # --- how it is done -----------------------------------------------------------------------

    @property
    def _further(self) -> bool:
        return "vector" in self._url.options

    @property
    def _wanted(self) -> Any:
        options = self._url.options
        names = (options.get(name, "") for name in ("id", "column", "vector"))
        return _part("table").Wanted(options.get("schema", ""), self._url.collection, *names)

    @property
    def _collection(self) -> Collection:
        made: Collection = _part("collection").Collection(self._server, self._table, self._further)
        return made

    def _read_notes(self) -> dict[str, str]:
        with self._collection.transaction() as connection:
            found: dict[str, str] = _part("notes").read_notes(connection, self._table)
        return found

    def _take_name(self, name: str, former: str) -> str:
        with self._changing("rename the table") as connection:
            led: str = _part("schema").rename(connection, self._table, name, former=former)
        return led

    @contextmanager
    def _changing(self, what: str) -> Iterator[Connection]:
        """Give a connection in a transaction that changes the catalogue."""
        errors = require("psycopg.errors", extra="postgresql")
        try:
            with self._server.transaction() as connection:
                yield connection
        except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction) as error:
            raise _part("server").read_only(error, what) from error


def _part(name: str) -> Any:
    """Import a module that needs the client."""
    return importlib.import_module(f"isthmus.stores._postgresql_{name}")


def _check_name(name: str) -> None:
    if len(name.encode()) > MAX_NAME_BYTES:
        raise ParameterError(
            expected=f"a name of at most {MAX_NAME_BYTES} bytes, as PostgreSQL allows",
            got=f"{name[:40]!r}... ({len(name.encode())} bytes)",
            do="choose another name",
        )


def _no_index(table: Table, space: Space) -> ParameterError:
    from isthmus.stores._postgresql_table import OPERATOR_CLASSES

    operators = f"{table.vector.type}_{OPERATOR_CLASSES[space.metric]}"
    return ParameterError(
        expected="an approximate index on the table, which was there before",
        got="none for this metric",
        do=f"make it without stopping writers: CREATE INDEX CONCURRENTLY ON "
        f"{table.sql.as_string()} USING hnsw ({table.vector.sql.as_string()} {operators})",
    )
