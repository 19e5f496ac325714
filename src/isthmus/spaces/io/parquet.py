"""Parquet: columns ``id`` and ``vector``; the space in the metadata of the schema."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isthmus._files import atomic_path
from isthmus._types import FloatArray, IdArray
from isthmus.errors import IsthmusError
from isthmus.spaces.io.base import FileFormat, Plan, Raw, check_plausible, corrupt
from isthmus.spaces.io.space_json import dump_space, parse_space
from isthmus.spaces.space import Space

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["PARQUET"]

BATCH_ROWS = 16_384


def _read(path: Path, memory_map: bool) -> Raw:  # noqa: FBT001 - the registry's call
    del memory_map
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            _check_schema(file.schema_arrow, path)
            space = _space_of(file.schema_arrow, path)
            ids, vectors = _read_rows(file, path)
    except IsthmusError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        message = (str(error).splitlines() or [type(error).__name__])[0]
        raise corrupt(path, expected="a whole parquet file", got=message[:200]) from error
    return Raw(ids=ids, vectors=vectors, space=space)


def _check_schema(schema: pa.Schema, path: Path) -> None:
    """Refuse other columns, or other types, before any row is read."""
    from pyarrow import types

    missing = [name for name in ("id", "vector") if schema.names.count(name) != 1]
    if missing:
        raise corrupt(
            path,
            expected="the columns 'id' and 'vector', once each",
            got=f"the columns {', '.join(map(repr, schema.names[:8]))[:200]}",
        )
    kind = schema.field("id").type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind)):
        raise corrupt(path, expected="the column 'id' as text", got=f"type {kind}")
    kind = schema.field("vector").type
    lists = (types.is_fixed_size_list, types.is_list, types.is_large_list)
    if not any(is_kind(kind) for is_kind in lists) or not (
        types.is_floating(kind.value_type) or types.is_integer(kind.value_type)
    ):
        raise corrupt(path, expected="the column 'vector' as lists of numbers", got=f"type {kind}")


def _space_of(schema: pa.Schema, path: Path) -> Space | None:
    text = (schema.metadata or {}).get(b"space")
    return None if text is None else parse_space(text.decode(errors="replace"), path)


def _read_rows(file: pq.ParquetFile, path: Path) -> tuple[list[Any], FloatArray]:
    """Read batch by batch into one matrix whose width the first batch gives."""
    count = file.metadata.num_rows
    ids: list[Any] = []
    matrix: FloatArray | None = None
    for batch in file.iter_batches(BATCH_ROWS, columns=["id", "vector"]):
        if not batch.num_rows:
            continue
        block = _as_block(batch.column("vector"), path, first_row=len(ids))
        if matrix is None:
            check_plausible(path, unpacked=count * block.shape[1] * 2, stored=path.stat().st_size)
            matrix = np.empty((count, block.shape[1]), dtype=np.float32)
        if block.shape[1] != matrix.shape[1]:
            raise _uneven(path, first_row=len(ids))
        with np.errstate(over="ignore"):  # becomes infinity, which the set refuses
            matrix[len(ids) : len(ids) + len(block)] = block
        ids.extend(batch.column("id").to_pylist())
    if matrix is None or len(ids) != count:
        raise corrupt(path, expected=f"{max(count, 1):,} rows", got=f"{len(ids):,}")
    return ids, matrix


def _as_block(column: pa.Array, path: Path, *, first_row: int) -> npt.NDArray[Any]:
    """Return a column of lists as a matrix; an empty cell or uneven lists are refused."""
    values = column.flatten()
    if column.null_count or values.null_count:
        raise corrupt(
            path,
            expected="a number in every place of 'vector'",
            got=f"empty cells after row {first_row:,}",
        )
    lengths = column.value_lengths().unique()
    if len(lengths) != 1 or not lengths[0].as_py():
        raise _uneven(path, first_row=first_row)
    block: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False).reshape(len(column), -1)
    return block


def _uneven(path: Path, *, first_row: int) -> Exception:
    return corrupt(
        path,
        expected="lists of one length under 'vector'",
        got=f"several lengths, or an empty list, after row {first_row:,}",
    )


class _Sink:
    """Writes each batch as one row group."""

    def __init__(self, writer: pq.ParquetWriter, schema: pa.Schema, dim: int) -> None:
        self._writer = writer
        self._schema = schema
        self._dim = dim

    def write(self, ids: IdArray, vectors: FloatArray) -> None:
        """Append one batch."""
        import pyarrow as pa

        column = pa.FixedSizeListArray.from_arrays(
            pa.array(vectors.reshape(-1)), type=self._schema.field("vector").type
        )
        self._writer.write_batch(
            pa.record_batch([pa.array(ids.tolist(), pa.string()), column], schema=self._schema)
        )


@contextlib.contextmanager
def _open_sink(plan: Plan) -> Iterator[_Sink]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = pa.float16() if plan.dtype == "float16" else pa.float32()
    schema = pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field(
                "vector",
                pa.list_(pa.field("element", number, nullable=False), plan.space.dim),
                nullable=False,
            ),
        ],
        metadata={"space": dump_space(plan.space)},
    )
    with (
        atomic_path(plan.path) as temporary,
        pq.ParquetWriter(temporary, schema, use_dictionary=False) as writer,
    ):
        yield _Sink(writer, schema, plan.space.dim)


PARQUET = FileFormat(suffix=".parquet", read=_read, open_sink=_open_sink)
