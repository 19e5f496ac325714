"""Parquet: columns ``id``, ``vector`` and ``metadata`` (JSON); the space in the schema's metadata.

Of what others wrote, the columns are found by their names and types, and every other column is
metadata of the row.
"""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from isthmus._files import atomic_path
from isthmus._types import FloatArray, IdArray
from isthmus.errors import CorruptFileError, IsthmusError
from isthmus.spaces.io.asked import Asked
from isthmus.spaces.io.base import (
    Block,
    FileFormat,
    Metadata,
    Plan,
    Raw,
    Stream,
    check_plausible,
    corrupt,
)
from isthmus.spaces.io.jsonable import clean, dump_metadata, joined, parse_object
from isthmus.spaces.io.names import looks_like_vector, pick_id, pick_vector
from isthmus.spaces.io.space_json import dump_space, parse_space
from isthmus.spaces.space import Space

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["PARQUET", "blocks_of", "open_file"]

BATCH_ROWS = 16_384
BATCH_NUMBERS = 2_000_000
"""A batch has fewer rows where they are wide: what reads lists needs several times their size."""
OPENED = ("metadata", "payload", "properties")
"""Columns that hold the metadata of a row as one object, which is opened."""
PANDAS_INDEX = "__index_level_"


@dataclass(frozen=True)
class _Columns:
    """Which columns are read for what."""

    id: str
    vector: str
    others: tuple[str, ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        left = f"; left out: {', '.join(self.left)}" if self.left else ""
        return f"ids from the column {self.id!r}, vectors from {self.vector!r}{left}"


def _read(path: Path, asked: Asked) -> Raw:
    return _stream(path, asked, metadata=False).whole(path)


def _stream(path: Path, asked: Asked, *, metadata: bool = True) -> Stream:
    with open_file(path) as file:
        space, rows = _space_of(file.schema_arrow, path), file.metadata.num_rows
        columns = _checked_columns(file, asked, path)
    blocks = blocks_of(path, asked, metadata=metadata)
    stored = path.stat().st_size
    return Stream(blocks=blocks, rows=rows, space=space, stored=stored, taken=str(columns))


@contextlib.contextmanager
def open_file(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a parquet file; what the library says of a damaged one becomes our error."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:  # it would hold all groups
            yield file
    except IsthmusError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        message = (str(error).splitlines() or [type(error).__name__])[0]
        raise corrupt(path, expected="a whole parquet file", got=message[:200]) from error


def _checked_columns(file: pq.ParquetFile, asked: Asked, path: Path) -> _Columns:
    columns = _columns(file.schema_arrow, asked, path)
    _check_schema(file.schema_arrow, columns, path)
    _check_size(file, columns.vector, path)
    return columns


def _columns(schema: pa.Schema, asked: Asked, path: Path) -> _Columns:
    """Find the columns: ``id`` and ``vector`` in a file of ours, which names its space."""
    names = schema.names
    ours = b"space" in (schema.metadata or {}) and {"id", "vector"} <= set(names)
    lists = [field.name for field in schema if _holds_lists(field.type)]
    picked = pick_id(names, asked.id or ("id" if ours else ""), path=path, what="column")
    wanted = asked.vector or ("vector" if ours else "")
    vector = pick_vector(
        [name for name in lists if name != picked],
        wanted,
        names=names,
        path=path,
        what="column",
        told=[f"{field.name!r} ({field.type})" for field in schema],
    )
    rest = [name for name in names if name not in {picked, vector}]
    rest = [name for name in rest if not name.startswith(PANDAS_INDEX)]
    left = [name for name in rest if name in lists and looks_like_vector(name) and not ours]
    return _Columns(picked, vector, tuple(n for n in rest if n not in left), tuple(left))


def _holds_lists(kind: pa.DataType) -> bool:
    from pyarrow import types

    lists = (types.is_fixed_size_list, types.is_list, types.is_large_list)
    return any(is_kind(kind) for is_kind in lists) and (
        types.is_floating(kind.value_type) or types.is_integer(kind.value_type)
    )


def _check_schema(schema: pa.Schema, columns: _Columns, path: Path) -> None:
    """Refuse other types, and names that stand twice, before any row is read."""
    from pyarrow import types

    twice = [name for name, count in Counter(schema.names).items() if count > 1]
    if twice:
        raise corrupt(
            path,
            expected=f"the columns {columns.id!r} and {columns.vector!r}, every name once",
            got=f"several columns {', '.join(map(repr, twice))[:200]}",
        )
    kind = schema.field(columns.id).type
    if types.is_dictionary(kind):
        kind = kind.value_type
    able = (
        types.is_string,
        types.is_large_string,
        types.is_string_view,
        types.is_integer,
        _is_uuid,
    )
    if not any(is_kind(kind) for is_kind in able):
        raise corrupt(
            path,
            expected=f"the column {columns.id!r} as text, whole numbers or uuids",
            got=f"type {kind}",
            do="cast the column to text",
        )
    kind = schema.field(columns.vector).type
    if not _holds_lists(kind):
        raise corrupt(
            path,
            expected=f"the column {columns.vector!r} as lists of numbers",
            got=f"type {kind}",
            do="cast the column to lists of numbers",
        )


def _is_uuid(kind: pa.DataType) -> bool:
    return getattr(kind, "extension_name", "") == "arrow.uuid"


def _check_size(file: pq.ParquetFile, name: str, path: Path) -> None:
    """Refuse a column of vectors that says it unpacks to far more than the file holds."""
    numbers = file.metadata.num_rows * _width(file, name)
    check_plausible(path, unpacked=numbers * 2, stored=path.stat().st_size)


def _width(file: pq.ParquetFile, name: str) -> int:
    """Count the numbers in the first row.

    The sizes in the footer tell, too, but what reads them ends the whole process where they are
    damaged.
    """
    first = next((batch for batch in file.iter_batches(1, columns=[name]) if batch.num_rows), None)
    return 0 if first is None else len(first.column(0).flatten())


def _space_of(schema: pa.Schema, path: Path) -> Space | None:
    text = (schema.metadata or {}).get(b"space")
    return None if text is None else parse_space(text.decode(errors="replace"), path)


def blocks_of(path: Path, asked: Asked, *, metadata: bool) -> Iterator[Block]:
    """Yield the rows of a file batch by batch."""
    with open_file(path) as file:
        columns = _checked_columns(file, asked, path)
        names = [columns.id, columns.vector, *(columns.others if metadata else ())]
        row, width = 0, 0
        size = min(BATCH_ROWS, max(1, BATCH_NUMBERS // max(1, _width(file, columns.vector))))
        for batch in file.iter_batches(size, columns=names):
            if not batch.num_rows:
                continue
            block = _as_block(batch.column(columns.vector), path, columns.vector, first_row=row)
            if block is None or (width and block.shape[1] != width):
                raise _uneven(file, path, columns.vector)
            width = block.shape[1]
            row += len(block)
            yield Block(
                ids=_ids(batch.column(columns.id)),
                vectors=block,
                metadata=_metadata(batch.select(columns.others)) if metadata else [],
            )


def _ids(column: pa.Array) -> list[Any]:
    """Return ids as Python values; uuids as text."""
    return [str(each) if isinstance(each, uuid.UUID) else each for each in column.to_pylist()]


def _metadata(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the other columns as one mapping a row, without empty cells.

    A column that holds an object, or JSON of one, is opened where its name says that it holds the
    metadata; what it holds counts as it is, nulls too.
    """
    if not batch.num_columns:
        return [{} for _ in range(batch.num_rows)]
    made = []
    for row in batch.to_pylist():
        opened: dict[str, Any] = {}
        for name in OPENED:
            inside = row.get(name)
            parsed = inside if isinstance(inside, dict) else parse_object(inside)
            if parsed is not None:
                del row[name]
                opened |= clean(parsed) if isinstance(inside, dict) else parsed
        made.append(joined(clean(row), opened))
    return made


def _as_block(
    column: pa.Array, path: Path, name: str, *, first_row: int
) -> npt.NDArray[Any] | None:
    """Return a column of lists as a matrix; None for uneven lists. An empty cell is refused."""
    values = column.flatten()
    if column.null_count or values.null_count:
        raise corrupt(
            path,
            expected=f"a number in every place of {name!r}",
            got=f"empty cells after row {first_row:,}",
            do="drop the rows without a vector",
        )
    lengths = column.value_lengths().unique()
    if len(lengths) != 1 or not lengths[0].as_py():
        return None
    block: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False).reshape(len(column), -1)
    return block


def _uneven(file: pq.ParquetFile, path: Path, name: str) -> CorruptFileError:
    """Count the lengths in the whole column and name them."""
    counts: Counter[int] = Counter()
    for batch in file.iter_batches(BATCH_ROWS, columns=[name]):
        counts.update(batch.column(name).value_lengths().to_pylist())
    most = counts.most_common(4)
    told = ", ".join(f"{length} numbers in {count:,} rows" for length, count in most)
    return corrupt(
        path,
        expected=f"lists of one length, at least 1, under {name!r}",
        got=told + (f" and {len(counts) - 4:,} more lengths" if len(counts) > 4 else ""),
        do="put the vectors of each model in a file of their own",
    )


class _Sink:
    """Writes each batch as one row group."""

    def __init__(self, writer: pq.ParquetWriter, schema: pa.Schema) -> None:
        self._writer = writer
        self._schema = schema

    def write(self, ids: IdArray, vectors: FloatArray, metadata: Metadata) -> None:
        """Append one batch."""
        import pyarrow as pa

        column = pa.FixedSizeListArray.from_arrays(
            pa.array(vectors.reshape(-1)), type=self._schema.field("vector").type
        )
        columns = [pa.array(ids.tolist(), pa.string()), column]
        if "metadata" in self._schema.names:
            columns.append(pa.array([dump_metadata(row) for row in metadata], pa.string()))
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))


@contextlib.contextmanager
def _open_sink(plan: Plan) -> Iterator[_Sink]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = pa.float16() if plan.dtype == "float16" else pa.float32()
    vector = pa.list_(pa.field("element", number, nullable=False), plan.space.dim)
    columns = [
        pa.field("id", pa.string(), nullable=False),
        pa.field("vector", vector, nullable=False),
        *([pa.field("metadata", pa.string(), nullable=False)] if plan.metadata else ()),
    ]
    schema = pa.schema(columns, metadata={"space": dump_space(plan.space)})
    with (
        atomic_path(plan.path) as temporary,
        pq.ParquetWriter(temporary, schema, use_dictionary=False) as writer,
    ):
        yield _Sink(writer, schema)


PARQUET = FileFormat(
    suffix=".parquet",
    read=_read,
    stream=_stream,
    open_sink=_open_sink,
    keeps_metadata=True,
    asks=("id", "vector"),
)
