"""Writing vectors batch by batch, whole or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IdArray
from isthmus._validate import check_positive
from isthmus.errors import (
    CountMismatchError,
    InvalidVectorsError,
    UnknownNameError,
    UnsupportedOperationError,
)
from isthmus.spaces.ids import check_unique
from isthmus.spaces.io.base import DType, Metadata, Plan, Sink
from isthmus.spaces.io.registry import FORMATS, format_of
from isthmus.spaces.space import Space
from isthmus.spaces.vector_set import VectorSet

__all__ = ["VectorWriter", "open_writer"]

DTYPES = ("float16", "float32")
HALF_LARGEST = float(np.finfo(np.float16).max)
HALF_SMALLEST = float(np.finfo(np.float16).smallest_normal)


class VectorWriter:
    """Takes sets of one space in order; made by `open_writer`."""

    def __init__(self, plan: Plan, sink: Sink) -> None:
        self._plan = plan
        self._sink = sink
        self._ids: list[IdArray] = []
        self._rows = 0

    def write(self, vectors: VectorSet, metadata: Metadata | None = None) -> None:
        """Append the rows of a set.

        Parameters
        ----------
        vectors : VectorSet
        metadata : sequence of mappings of str to JSON values, one a row, optional
            Only for a file that was opened with ``metadata=True``.

        Raises
        ------
        SpaceMismatchError
            Vectors of another space than the file's.
        CountMismatchError
            More rows than were announced.
        InvalidVectorsError
            A value that the number type on disk cannot hold.
        """
        self._plan.space.check(vectors.space, what="vectors for this file")
        beside = self._checked(metadata, rows=len(vectors))
        if self._rows + len(vectors) > self._plan.rows:
            raise CountMismatchError(
                expected=f"{self._plan.rows:,} rows in all",
                got=f"{self._rows + len(vectors):,}",
                do="announce the right number with rows=",
            )
        block = _as_stored(vectors.matrix(), self._plan.numpy_dtype, first_row=self._rows)
        self._sink.write(vectors.ids, block, beside)
        self._ids.append(vectors.ids)
        self._rows += len(vectors)

    def _checked(self, metadata: Metadata | None, *, rows: int) -> Metadata:
        """Return one mapping a row where the file keeps them, else none."""
        if not self._plan.metadata:
            if metadata and any(metadata):
                raise UnsupportedOperationError(
                    expected="vectors alone",
                    got="metadata beside them",
                    do="open the file with metadata=True",
                )
            return ()
        beside = [{} for _ in range(rows)] if metadata is None else metadata
        if len(beside) != rows:
            raise CountMismatchError(
                expected=f"metadata for each of {rows:,} rows",
                got=f"{len(beside):,}",
                do="pass one mapping a row, or none at all",
            )
        return beside

    def finish(self) -> None:
        """Check what can be known only at the end: the count, and ids that came twice."""
        if self._rows != self._plan.rows:
            raise CountMismatchError(
                expected=f"{self._plan.rows:,} rows in all",
                got=f"{self._rows:,}",
                do="write every row before the end, or announce the right number with rows=",
            )
        if len(self._ids) > 1:
            check_unique(np.concatenate(self._ids))


@contextlib.contextmanager
def open_writer(
    path: Path | str,
    space: Space,
    *,
    rows: int,
    dtype: DType = "float16",
    metadata: bool = False,
) -> Iterator[VectorWriter]:
    """Open a file of vectors for writing in batches.

    Memory holds one batch and the ids (``.safetensors`` and ``.faiss`` hold all). The file appears
    only when the block ends well; on any error what was there before stays.

    Parameters
    ----------
    path : path
        The ending names the format, see `VectorSet.load`.
    space : Space
        Written with the vectors; every batch must be of it.
    rows : int
        How many rows will come.
    dtype : {"float16", "float32"}, default "float16"
        Number type on disk; ``.faiss`` and ``.index`` hold float32 whatever is asked for.
    metadata : bool, default False
        Keep metadata beside the vectors: ``.parquet``, ``.jsonl``, ``.ndjson`` and ``.vdf``.

    Raises
    ------
    UnsupportedOperationError
        A format that is only read, or that keeps no metadata.
    UnknownFormatError, UnknownNameError, ParameterError
        Before anything is written.
    CountMismatchError, DuplicateIdError
        At the end, when fewer rows came than announced or an id came twice.
    WriteFailedError

    Examples
    --------
    >>> import tempfile
    >>> space = Space(model="m", dim=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_writer(f"{folder}/v.npz", space, rows=2) as writer:
    ...         writer.write(VectorSet(["a"], [[1, 2]], space))
    ...         writer.write(VectorSet(["b"], [[3, 4]], space))
    ...     VectorSet.load(f"{folder}/v.npz").ids.tolist()
    ['a', 'b']
    """
    path = Path(path)
    form = format_of(path)
    if dtype not in DTYPES:
        raise UnknownNameError.of("number type", str(dtype), DTYPES)
    check_positive(rows, name="rows")
    if form.open_sink is None or (metadata and not form.keeps_metadata):
        able = [name for name, other in FORMATS.items() if other.keeps_metadata or not metadata]
        able = [name for name in able if FORMATS[name].open_sink is not None]
        raise UnsupportedOperationError(
            expected=f"a file to write{' with metadata' if metadata else ''}: {', '.join(able)}",
            got=repr(path.name),
            do="choose one of these endings",
        )
    plan = Plan(path, space, rows, dtype if form.half else "float32", metadata)
    with form.open_sink(plan) as sink:
        writer = VectorWriter(plan, sink)
        yield writer
        writer.finish()


def _as_stored(
    block: FloatArray, dtype: npt.DTypeLike, *, first_row: int
) -> npt.NDArray[np.floating]:
    """Convert to the number type on disk, refusing what half precision would spoil."""
    if np.dtype(dtype).itemsize == 4:
        return np.ascontiguousarray(block, dtype=dtype)
    # Where the first number of a row is large enough for float16, the row cannot vanish in it.
    suspect = np.abs(block[:, 0]) < HALF_SMALLEST
    if suspect.any() or max(block.max(), -block.min()) > HALF_LARGEST:
        _check_half(block, first_row=first_row)
    return np.ascontiguousarray(block, dtype=dtype)


def _check_half(block: FloatArray, *, first_row: int) -> None:
    """Refuse rows that overflow in half precision, or that lie below its normal numbers."""
    largest = np.abs(block).max(axis=1)
    bad = (largest > HALF_LARGEST) | ((largest < HALF_SMALLEST) & (largest > 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidVectorsError(
            expected=f"rows whose largest value is from {HALF_SMALLEST:.2g} to {HALF_LARGEST:g}, "
            "as float16 needs",
            got=f"{largest[row]:.3g} in row {first_row + row:,}",
            do='save with dtype="float32", or normalise the vectors',
        )
