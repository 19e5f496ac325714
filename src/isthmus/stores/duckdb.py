"""Tables of a DuckDB file: exact searches, everything else in SQL."""

# ruff: noqa: S608 - names are quoted, and values are parameters

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

from isthmus._optional import require
from isthmus._types import FloatArray, Metric
from isthmus.errors import (
    InvalidIdError,
    IsthmusError,
    ParameterError,
    ReadOnlyStoreError,
)
from isthmus.spaces import Space
from isthmus.stores._columns import (
    Given,
    check_ids,
    no_first_collection,
    not_the_first,
)
from isthmus.stores._connected import ConnectedStore, Hits, Page, Rows
from isthmus.stores._duckdb_errors import in_our_words
from isthmus.stores._duckdb_file import DuckdbFile
from isthmus.stores._duckdb_rows import rows_of, table_of
from isthmus.stores._duckdb_table import (
    ASKED,
    FIELDS,
    INCOMING,
    Columns,
    find_columns,
    quoted,
)
from isthmus.stores._duckdb_write import write_statements
from isthmus.stores._exact import nearest
from isthmus.stores._record import Record
from isthmus.stores._url import StoreUrl
from isthmus.stores.base import Capabilities

__all__ = ["DuckdbStore"]

OWN_VECTOR = "embedding"
BATCH_ROWS = 10_000
BLOCK_ROWS = 16_384
# A scan in SQL reads no vectors into Python; it is the faster way for so many queries.
FEW_QUERIES = 4
# More candidates than asked for: the scores that decide are rounded to float32.
SPARE = 16
DISTANCES: Mapping[Metric, str] = {
    "cosine": "array_cosine_distance",
    "dot": "array_negative_inner_product",
    "l2": "array_distance",
}
RECORD = re.compile(r"(?:\A|\n)isthmus: (\{.*\})\Z", re.DOTALL)


class DuckdbStore(ConnectedStore):
    """A table in a DuckDB file. Made by `open`.

    Parameters
    ----------
    url : StoreUrl

    Examples
    --------
    >>> import tempfile
    >>> from isthmus.spaces import VectorSet
    >>> space = Space(model="m", dim=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     url = f"duckdb:///{folder}/one.duckdb?collection=docs"
    ...     with DuckdbStore.open(url, space=space) as store:
    ...         store.upsert(VectorSet(["a", "b"], [[1, 0], [0, 2]], space))
    ...         found = store.search([[0, 1]], k=1)
    >>> found.ids.tolist(), found.scores.tolist()
    ([['b']], [[1.0]])
    """

    scheme: ClassVar[str] = "duckdb"
    options: ClassVar[tuple[str, ...]] = ("id", "column", "metadata")
    capabilities: Capabilities = Capabilities(
        native_scores=MappingProxyType({"cosine": "1 - cosine", "dot": "-dot", "l2": "l2"}),
        stores_raw=True,
        exact_search=True,
        ties_by_insertion=False,
        scan_order="key",
        filters=True,
        scan=True,
        notes="with a batch",
        max_batch=BATCH_ROWS,
        several_vectors=True,
        switch="rename",
        persistent=True,
        concurrency="one process",
    )

    def __init__(self, url: StoreUrl) -> None:
        super().__init__(url)
        self._file = DuckdbFile(url.file().absolute())
        self._columns: Columns

    # --- the file -----------------------------------------------------------------------------

    def _connect(self) -> None:
        require("duckdb", extra="duckdb")
        if self._file.path.exists():
            self._file.connection()

    def _disconnect(self) -> None:
        self._file.close()

    def _is_transient(self, error: Exception) -> bool:
        signs = ("Could not set lock", "write-write conflict", "Conflict on", "Duplicate key")
        return any(sign in str(error) for sign in signs)

    def _in_our_words(self, error: Exception) -> IsthmusError:
        if type(error).__name__ in {"FatalException", "InternalException"}:
            self._disconnect()  # it answers nothing more; the next request opens the file again
        return in_our_words(error, str(self._file.path))

    # --- the table ----------------------------------------------------------------------------

    @property
    def _table(self) -> str:
        return f"main.{quoted(self._url.collection)}"

    def _exists(self) -> bool:
        if not self._file.is_there():
            return False
        types = self._file.columns(self._url.collection)
        wanted = self._url.options.get("vector")
        if not types or (wanted and wanted not in types):
            return False
        self._look(types)
        return True

    def _look(self, types: dict[str, str]) -> None:
        """Find out which column is what, and that the ids are some."""
        entries = self._read_record()
        further = {key.removesuffix(":space") for key in entries if key.endswith(":space")} - {""}
        keys = self._file.unique_columns(self._url.collection)
        given = Given(types, self._url.options, own=OWN_VECTOR if ":layout" in entries else "")
        columns = find_columns(given, keys, further=further)
        if "vector" in given.options and ":space" in entries:
            options = {key: text for key, text in given.options.items() if key != "vector"}
            first = ""
            with contextlib.suppress(ParameterError):  # which is the first, may be open here
                first = find_columns(replace(given, options=options), keys, further=further).vector
            if first == columns.vector:
                raise not_the_first(first)
        if columns.key not in keys:
            self._check_ids(columns)
        self._columns = columns

    def _check_ids(self, columns: Columns) -> None:
        key = quoted(columns.key)
        ((rows, there, different),) = self._file.rows(
            f"SELECT count(*), count({key}), count(DISTINCT {key}) FROM {self._table}"
        )
        check_ids(columns.key, rows=rows, there=there, different=different, url=self.url)

    def _create(self, space: Space) -> None:
        options, named = self._url.options, self._url.options.get("vector")
        if named:
            if not self._file.is_there() or not self._file.columns(self._url.collection):
                raise no_first_collection(self.url)
            column = f"{quoted(named)} FLOAT[{space.dim}]"
            statement = f"ALTER TABLE {self._table} ADD COLUMN IF NOT EXISTS {column}"
        else:
            key, fields = options.get("id", "id"), options.get("metadata", FIELDS)
            vector = options.get("column", OWN_VECTOR)
            statement = (
                f"CREATE TABLE IF NOT EXISTS {self._table} ({quoted(key)} VARCHAR PRIMARY KEY, "
                f"{quoted(vector)} FLOAT[{space.dim}], {quoted(fields)} JSON)"
            )
        self._file.run(statement)
        self._look(self._file.columns(self._url.collection))

    def _describe(self) -> tuple[int | None, Metric | None]:
        dim = self._columns.dim
        if dim is None:
            column = quoted(self._columns.vector)
            ((found,),) = self._file.rows(f"SELECT any_value(len({column})) FROM {self._table}")
            dim = int(found) if found else None
        return dim, None

    def _read_record(self) -> dict[str, str]:
        found = RECORD.search(self._file.comment(self._url.collection))
        return dict(json.loads(found[1])) if found else {}

    def _check_table(self) -> None:
        if self._file.is_view(self._url.collection):
            raise ReadOnlyStoreError(
                expected=f"a table for {self.url}",
                got="a view, which is only read",
                do="open the table behind it",
            )

    def _write_record(self, entries: dict[str, str]) -> None:
        self._check_table()
        theirs = RECORD.sub("", self._file.comment(self._url.collection))
        text = "\n".join([*([theirs] if theirs else []), f"isthmus: {json.dumps(entries)}"])
        escaped = text.replace("'", "''")
        self._file.run(f"COMMENT ON TABLE {self._table} IS '{escaped}'")

    # --- the rows -----------------------------------------------------------------------------

    def _count(self) -> int:
        query = f"SELECT count({quoted(self._columns.vector)}) FROM {self._table}"
        return int(self._file.rows(query)[0][0])

    def _write(self, rows: Rows) -> None:
        self._write_whole(rows, {})

    def _write_noted(self, rows: Rows, notes: dict[str, str]) -> None:
        self._ask(self._write_whole, rows, notes)

    def _write_whole(self, rows: Rows, notes: dict[str, str]) -> None:
        self._check_table()
        columns, first = self._columns, "vector" not in self._url.options
        table = table_of(rows, columns)
        with self._file.registered(INCOMING, table):
            if columns.key_type != "VARCHAR":
                self._check_key_type(columns)
            with self._file.transaction():
                for statement in write_statements(self._table, columns, table, first=first):
                    self._file.run(statement)
                if notes:
                    record = Record(self._read_record(), self._url.options.get("vector", ""))
                    self._write_record(dict(record.with_notes(notes).entries))

    def _check_key_type(self, columns: Columns) -> None:
        """Refuse ids that the column would not give back as they are."""
        kind = columns.key_type
        found = self._file.rows(
            f"SELECT id FROM {INCOMING} "
            f"WHERE CAST(TRY_CAST(id AS {kind}) AS VARCHAR) IS DISTINCT FROM id LIMIT 1"
        )
        if found:
            raise InvalidIdError(
                expected=f"ids as the column {columns.key!r} of type {kind} has them",
                got=repr(found[0][0][:80]),
                do="write ids of that type",
            )

    def _remove(self, ids: list[str]) -> None:
        self._check_table()
        columns = self._columns
        with self._asked(ids):
            which = columns.among(ASKED)
            if "vector" in self._url.options:
                change = f"UPDATE {self._table} SET {quoted(columns.vector)} = NULL"
            else:
                change = f"DELETE FROM {self._table}"
            self._file.run(f"{change} WHERE {which}")

    def _asked(self, ids: list[str]) -> contextlib.AbstractContextManager[None]:
        arrow = require("pyarrow", extra="duckdb")
        return self._file.registered(ASKED, arrow.table({"id": arrow.array(ids, arrow.string())}))

    def _read(self, ids: list[str], *, vectors: bool) -> Rows:
        columns = self._columns
        with self._asked(ids):
            table = self._file.table(
                f"SELECT {columns.selected(vectors=vectors, metadata=True)} "
                f"FROM {self._table} WHERE {columns.has_vector} AND {columns.among(ASKED)}"
            )
        return rows_of(table, self.space.dim)

    def _page(self, after: str, limit: int) -> Page:
        columns, key = self._columns, quoted(self._columns.key)
        later = f" AND {key} > CAST($after AS {columns.key_type})" if after else ""
        table = self._file.table(
            f"SELECT {columns.selected(vectors=True, metadata=True)} FROM {self._table} "
            # by the column: its name alone would be the text that is selected under it
            f"WHERE {columns.has_vector}{later} ORDER BY {self._table}.{key} LIMIT {int(limit)}",
            {"after": after[1:]} if after else None,
        )
        rows = rows_of(table, self.space.dim)
        return Page(rows, f"={rows.ids[-1]}" if rows.ids else after)

    def _find(self, queries: FloatArray, *, k: int, where: Mapping[str, Any]) -> Hits:
        """Search few queries in SQL, many in blocks; both end in the same scores."""
        columns = self._columns
        which, values = columns.matching(where)
        select = (
            f"SELECT {columns.selected(vectors=True, metadata=False)} FROM {self._table} "
            f"WHERE {which}"
        )
        if len(queries) <= FEW_QUERIES and columns.dim is not None:
            try:
                return self._in_sql(queries, select, values, k)
            except Exception as error:
                if "contain NULL" not in str(error):
                    raise
        return self._nearest(queries, self._blocks(select, values), k)

    def _in_sql(self, queries: FloatArray, select: str, values: Mapping[str, Any], k: int) -> Hits:
        """Let DuckDB find some more candidates than asked for, and score those."""
        kind = f"DOUBLE[{self._columns.dim}]"
        vector = f"CAST({quoted(self._columns.vector)} AS {kind})"
        distance = f"{DISTANCES[self.space.metric]}({vector}, CAST($query AS {kind}))"
        ordered = f"{select} ORDER BY {distance}, {quoted(self._columns.key)} LIMIT {k + SPARE}"
        hits: Hits = []
        for query in queries:
            candidates = self._file.table(ordered, {**values, "query": query.tolist()})
            rows = rows_of(candidates, self.space.dim)
            hits += self._nearest(query[None, :], iter([(rows.ids, rows.vectors)]), k)
        return hits

    def _nearest(
        self, queries: FloatArray, blocks: Iterator[tuple[list[str], FloatArray]], k: int
    ) -> Hits:
        metric = self.space.metric
        native = self.capabilities.native_scores[metric]
        return nearest(queries, blocks, k=k, metric=metric, native=native)

    def _blocks(
        self, select: str, values: Mapping[str, Any]
    ) -> Iterator[tuple[list[str], FloatArray]]:
        arrow = require("pyarrow", extra="duckdb")
        for batch in self._file.batches(select, values, rows=BLOCK_ROWS):
            rows = rows_of(arrow.Table.from_batches([batch]), self.space.dim).checked()
            yield rows.ids, rows.vectors

    # --- names --------------------------------------------------------------------------------

    def _take_name(self, name: str, former: str) -> str:
        if name == self._url.collection:
            return ""
        taken = bool(self._file.columns(name))
        if taken and self._file.columns(former):
            raise ParameterError(
                expected="a free name for the collection that is called so now",
                got=f"{former!r}, which exists",
                do="choose another former name",
            )
        with self._file.transaction():
            if taken:
                self._file.run(f"ALTER TABLE main.{quoted(name)} RENAME TO {quoted(former)}")
            self._file.run(f"ALTER TABLE {self._table} RENAME TO {quoted(name)}")
        return former if taken else ""
