"""Tables of a LanceDB folder: columnar files, exact searches, or those of an index of the table."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isthmus._optional import require
from isthmus._types import FloatArray, Metric
from isthmus.errors import (
    InvalidIdError,
    IsthmusError,
    NotAStoreError,
    ParameterError,
)
from isthmus.spaces import Space
from isthmus.stores._columns import check_ids, no_first_collection, not_the_first
from isthmus.stores._connected import ConnectedStore, Hits, Page, Rows
from isthmus.stores._exact import nearest
from isthmus.stores._lancedb_columns import (
    FIELDS,
    NO_ROWS,
    TOKENS,
    Columns,
    find_columns,
    quoted,
)
from isthmus.stores._lancedb_errors import CONFLICT, in_our_words
from isthmus.stores._lancedb_rows import rows_of, table_of
from isthmus.stores._lock import locked
from isthmus.stores._url import EXACT_WORDS, StoreUrl
from isthmus.stores.base import Capabilities, NameRule

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LancedbStore"]

OWN_VECTOR = "vector"
BATCH_ROWS = 10_000
BLOCK_ROWS = 8_192
RECORD = "isthmus"
SPARE = 16
ALL_ROWS = 2**31 - 1
HALF_ERROR = 2.0**-11


class _MovedError(Exception):
    """Another writer moved rows between two requests."""


class LancedbStore(ConnectedStore):
    """A table in a folder of LanceDB. Made by `open`.

    Parameters
    ----------
    url : StoreUrl

    Examples
    --------
    >>> import tempfile
    >>> from isthmus.spaces import VectorSet
    >>> space = Space(model="m", dim=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LancedbStore.open(f"lancedb:///{folder}?collection=docs", space=space) as store:
    ...         store.upsert(VectorSet(["a", "b"], [[1, 0], [0, 2]], space))
    ...         found = store.search([[0, 1]], k=1)
    >>> found.ids.tolist(), found.scores.tolist()
    ([['b']], [[1.0]])
    """

    scheme: ClassVar[str] = "lancedb"
    options: ClassVar[tuple[str, ...]] = ("id", "column", "index")
    capabilities: Capabilities = Capabilities(
        native_scores=MappingProxyType(
            {"cosine": "1 - cosine", "dot": "1 - dot", "l2": "squared l2"}
        ),
        stores_raw=True,
        exact_search=True,
        ties_by_insertion=False,
        scan_order="key",
        filters=True,
        scan=True,
        notes="after a batch",
        max_batch=BATCH_ROWS,
        names=NameRule(
            r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}",
            "1 to 200 letters, digits, underscores, hyphens and periods, no period first",
        ),
        several_vectors=True,
        persistent=True,
        concurrency="many writers",
    )

    def __init__(self, url: StoreUrl) -> None:
        super().__init__(url)
        self._folder = url.file().absolute()
        self._database: Any = None
        self._opened: Any = None
        self._columns: Columns
        self._counted = (-1, 0)  # version, rows that have the vector
        if url.options.get("index") not in EXACT_WORDS and url.flag("index"):
            self.capabilities = replace(self.capabilities, exact_search=False)

    # --- the folder ---------------------------------------------------------------------------

    def _connect(self) -> None:
        require("lancedb", extra="lancedb")
        if self._folder.is_file():
            raise NotAStoreError(
                expected=f"a folder of LanceDB at {str(self._folder)!r}",
                got="a file",
                do="give the folder that holds NAME.lance",
            )

    def _client(self) -> Any:
        if self._database is None:
            client = require("lancedb", extra="lancedb")
            fresh = timedelta(0)  # what others wrote is seen at once
            self._database = client.connect(str(self._folder), read_consistency_interval=fresh)
        return self._database

    def _table(self) -> Any:
        if self._opened is None:
            self._opened = self._client().open_table(self._url.collection)
        return self._opened

    def _disconnect(self) -> None:
        self._database = self._opened = None

    @property
    def _lock_file(self) -> Path:
        return self._folder / f".{self._url.collection}.isthmus-lock"

    def _is_transient(self, error: Exception) -> bool:
        return isinstance(error, _MovedError) or any(sign in str(error) for sign in CONFLICT)

    def _in_our_words(self, error: Exception) -> IsthmusError:
        self._disconnect()  # the next request opens the folder again
        return in_our_words(error, repr(str(self._folder)))

    # --- the table ----------------------------------------------------------------------------

    def _exists(self) -> bool:
        if not (self._folder / f"{self._url.collection}.lance").is_dir():
            return False
        schema, named = self._table().schema, self._url.options.get("vector")
        if named is not None and named not in schema.names:
            return False
        self._look(schema)
        return True

    def _look(self, schema: pa.Schema) -> None:
        """Find out which column is what, and that the ids are some."""
        entries = _entries(schema)
        further = {key.removesuffix(":space") for key in entries if key.endswith(":space")} - {""}
        options, own = dict(self._url.options), OWN_VECTOR if ":layout" in entries else ""
        columns = find_columns(schema, options, further, own=own)
        if options.pop("vector", None) and ":space" in entries:
            first = ""
            with contextlib.suppress(ParameterError):  # which is the first, may be open here
                first = find_columns(schema, options, further, own=own).vector.name
            if first == columns.vector.name:
                raise not_the_first(first)
        if ":layout" not in entries:
            self._check_ids(columns)
        if pa.types.is_float16(columns.vector.type.value_type):
            self.capabilities = replace(
                self.capabilities, storage="float16", read_back_error=HALF_ERROR
            )
        self._columns = columns

    def _check_ids(self, columns: Columns) -> None:
        ids = self._table().search().select([columns.key.name]).to_arrow()[columns.key.name]
        different = len(pc.unique(ids.drop_null()))
        there = len(ids) - ids.null_count
        check_ids(columns.key.name, rows=len(ids), there=there, different=different, url=self.url)

    def _create(self, space: Space) -> None:
        named = self._url.options.get("vector")
        vectors = pa.list_(pa.float32(), space.dim)
        if named is not None:
            self._add_vector(named, vectors)
        else:
            self._folder.mkdir(parents=True, exist_ok=True)
            schema = pa.schema(
                [
                    pa.field(self._url.options.get("id", "id"), pa.string(), nullable=False),
                    pa.field(self._url.options.get("column", OWN_VECTOR), vectors),
                    pa.field(FIELDS, pa.string()),
                    pa.field(TOKENS, pa.list_(pa.string())),
                ]
            )
            self._client().create_table(self._url.collection, schema=schema, exist_ok=True)
        self._look(self._table().schema)

    def _add_vector(self, name: str, kind: pa.DataType) -> None:
        if not (self._folder / f"{self._url.collection}.lance").is_dir():
            raise no_first_collection(self.url)
        if not name.isidentifier():
            raise ParameterError(
                expected="the name of a column: letters, digits and underscores",
                got=repr(name[:80]),
                do="choose another name for &vector=",
            )
        with locked(self._lock_file, seconds=self.timeout):
            if name not in self._table().schema.names:
                self._table().add_columns([pa.field(name, kind)])

    def _describe(self) -> tuple[int | None, Metric | None]:
        dim = self._columns.dim
        if dim is None:
            name = self._columns.vector.name
            some = self._table().search().where(f"{quoted(name)} IS NOT NULL").select([name])
            found = pc.list_value_length(some.limit(1).to_arrow()[name]).to_pylist()
            dim = int(found[0]) if found else None
        return dim, self._metric_of_index()

    def _metric_of_index(self) -> Metric | None:
        """Return the metric of an index of the vectors, None where there is none."""
        table = self._table()
        for index in table.list_indices():
            if index.columns == [self._columns.vector.name]:
                said = table.index_stats(index.name).distance_type
                known: dict[str, Metric] = {"l2": "l2", "cosine": "cosine", "dot": "dot"}
                return known.get(str(said).lower())
        return None

    def _read_record(self) -> dict[str, str]:
        return _entries(self._table().schema)

    def _write_record(self, entries: dict[str, str]) -> None:
        """Keep the entries of this vector with its column."""
        mine = f"{self._url.options.get('vector', '')}:"
        text = json.dumps({key: one for key, one in entries.items() if key.startswith(mine)})
        self._table().update_field_metadata(
            {"path": self._columns.vector.name, "metadata": {RECORD: text}}
        )

    # --- the rows -----------------------------------------------------------------------------

    def _count(self) -> int:
        table, vector = self._table(), self._columns.vector
        if not vector.nullable:
            return int(table.count_rows())
        version = table.version
        if self._counted[0] != version:
            self._counted = version, int(table.count_rows(f"{quoted(vector.name)} IS NOT NULL"))
        return self._counted[1]

    def _write(self, rows: Rows) -> None:
        columns, first = self._columns, "vector" not in self._url.options
        if wrong := [one for one in rows.ids if not columns.is_id(one)]:
            raise InvalidIdError(
                expected=f"ids as the column {columns.key.name!r} of type {columns.key.type}",
                got=repr(wrong[0][:80]),
                do="write ids of that type",
            )
        with locked(self._lock_file, seconds=self.timeout):
            partial = any(rows.metadata) or not first
            kept = self._metadata_of(rows.ids) if partial and columns.metadata else {}
            incoming = table_of(rows, columns, kept, first=first)
            merge = self._table().merge_insert(columns.key.name)
            merge.when_matched_update_all().when_not_matched_insert_all().execute(incoming)

    def _metadata_of(self, ids: list[str]) -> dict[str, dict[str, Any]]:
        key = self._columns.key.name
        table = self._select(self._columns.among(ids), [key, *self._columns.metadata])
        names = pc.cast(table[key], pa.string()).to_pylist()
        read = table.drop_columns([key]).to_pylist()
        return dict(zip(names, read, strict=True))

    def _remove(self, ids: list[str]) -> None:
        which = self._columns.among(ids)
        if which == NO_ROWS:
            return
        with locked(self._lock_file, seconds=self.timeout):
            if "vector" in self._url.options:
                name = self._columns.vector.name
                self._table().update(where=which, values_sql={name: "NULL"})
            else:
                self._table().delete(which)

    def _select(self, which: str | None, names: Sequence[str]) -> pa.Table:
        """Return columns of the rows that pass a filter."""
        query = self._table().search().select(list(names))
        if which == NO_ROWS:
            return query.limit(1).to_arrow().slice(0, 0)
        return (query if which is None else query.where(which)).limit(ALL_ROWS).to_arrow()

    def _names(self) -> list[str]:
        columns = self._columns
        return [columns.key.name, columns.vector.name, *columns.metadata]

    def _read(self, ids: list[str], *, vectors: bool) -> Rows:
        table = self._select(self._columns.among(ids), self._names())
        return rows_of(table, self._columns, self.space.dim, vectors=vectors)

    def _page(self, after: str, limit: int) -> Page:
        """Return rows in the order of their ids; those without a vector are passed over."""
        parts: list[pa.Table] = []
        found = 0
        while found < limit:
            table = self._next(after, limit - found)
            if not len(table):
                break
            after = "=" + str(table[self._columns.key.name][-1].as_py())
            table = table.filter(pc.is_valid(table[self._columns.vector.name]))
            found += len(table)
            parts.append(table)
        if not parts:
            return Page(Rows([], np.empty((0, self.space.dim), np.float32), []), after)
        return Page(rows_of(pa.concat_tables(parts), self._columns, self.space.dim), after)

    def _next(self, after: str, limit: int) -> pa.Table:
        """Sort ids only, and take the rows by their numbers."""
        ordering = require("lancedb.query", extra="lancedb").ColumnOrdering
        key, table = self._columns.key.name, self._table()
        query = table.search().select([key]).with_row_id(with_row_id=True)
        if after:
            if not self._columns.is_id(after[1:]):
                raise ParameterError(
                    expected="the cursor of a batch of this store, or the empty text",
                    got=repr(after[:40]),
                    do="pass what the last batch gave",
                )
            query = query.where(f"{quoted(key)} > {self._columns.literal(after[1:])}")
        page = query.order_by([ordering(column_name=key)]).limit(limit).to_arrow()
        if not len(page):
            return page
        taken = (
            table.take_row_ids(sorted(page["_rowid"].to_pylist())).select(self._names()).to_arrow()
        )
        places = pc.index_in(page[key], value_set=taken[key].combine_chunks())
        if places.null_count:
            raise _MovedError("rows moved while they were read")
        return taken.take(places)

    # --- searches -----------------------------------------------------------------------------

    def _find(self, queries: FloatArray, *, k: int, where: Mapping[str, Any]) -> Hits:
        """Read the vectors in blocks, or ask the index for candidates; score both alike."""
        which = self._columns.matching(where)
        if which == NO_ROWS:
            return [[] for _ in queries]
        if self.capabilities.exact_search:
            return self._nearest(queries, self._blocks(which), k)
        return [hit for query in queries for hit in self._by_index(query, which, k)]

    def _by_index(self, query: FloatArray, which: str | None, k: int) -> Hits:
        columns = self._columns
        search = self._table().search(query, vector_column_name=columns.vector.name)
        search = search.distance_type(self.space.metric).limit(k + SPARE)
        search = search.select([columns.key.name, columns.vector.name, "_distance"])
        table = (search if which is None else search.where(which)).to_arrow()
        rows = rows_of(table, columns, self.space.dim)
        return self._nearest(query[None, :], iter([(rows.ids, rows.vectors)]), k)

    def _blocks(self, which: str | None) -> Iterator[tuple[list[str], FloatArray]]:
        columns = self._columns
        query = self._table().search().select([columns.key.name, columns.vector.name])
        query = query if which is None else query.where(which)
        for batch in query.limit(ALL_ROWS).to_batches(BLOCK_ROWS):
            rows = rows_of(pa.Table.from_batches([batch]), columns, self.space.dim).checked()
            yield rows.ids, rows.vectors

    def _nearest(
        self, queries: FloatArray, blocks: Iterator[tuple[list[str], FloatArray]], k: int
    ) -> Hits:
        metric = self.space.metric
        native = self.capabilities.native_scores[metric]
        return nearest(queries, blocks, k=k, metric=metric, native=native)


def _entries(schema: pa.Schema) -> dict[str, str]:
    """Return the entries of the record, which are kept with the columns of the vectors."""
    found: dict[str, str] = {}
    for field in schema:
        text = (field.metadata or {}).get(RECORD.encode())
        found |= json.loads(text) if text else {}
    return found
