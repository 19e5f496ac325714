"""What every file format gives: a reader of arrays and a sink for batches of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IdArray
from isthmus.errors import CorruptFileError
from isthmus.spaces.io.asked import Asked
from isthmus.spaces.space import Space

__all__ = [
    "Block",
    "DType",
    "FileFormat",
    "Metadata",
    "Plan",
    "Raw",
    "Sink",
    "Stream",
    "check_plausible",
    "corrupt",
]

DType = Literal["float16", "float32"]
Metadata = Sequence[Mapping[str, Any]]
"""Beside the vectors, one mapping of names to JSON values a row."""

PLAUSIBLE_RATIO = 200
SMALL_BYTES = 1 << 28


@dataclass(frozen=True)
class Raw:
    """What a file holds, before `VectorSet` checks it.

    Parameters
    ----------
    ids : IdArray or sequence of shape (n,)
    vectors : array of shape (n, dim)
        Any numeric type; a `numpy.memmap` where it stays on disk.
    space : Space or None
        None where the file names none.
    partial : mapping of str to JSON values
        What else the file says of its space, such as the model and the metric, where that is less
        than a whole space.
    """

    ids: Any
    vectors: npt.NDArray[Any]
    space: Space | None
    partial: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    """Some rows of a file, before anything is checked: ids, vectors (n, dim) and metadata."""

    ids: list[Any]
    vectors: npt.NDArray[Any]
    metadata: list[dict[str, Any]]


@dataclass(frozen=True)
class Stream:
    """A file that is read block by block.

    Parameters
    ----------
    blocks : iterable of Block
        In the order of the file.
    rows : int or None
        None where only the end of the file tells.
    space, partial
        See `Raw`.
    stored : int
        Bytes on disk.
    taken : str
        Which of its columns or keys are read, in words.
    """

    blocks: Iterable[Block]
    rows: int | None
    space: Space | None
    stored: int
    partial: Mapping[str, Any] = field(default_factory=dict)
    taken: str = ""

    def whole(self, path: Path) -> Raw:
        """Read all blocks into one matrix, whose width the first block gives.

        Raises
        ------
        CorruptFileError
            More or fewer rows than the file says, or a matrix far larger than the file.
        """
        ids: list[Any] = []
        parts: list[npt.NDArray[Any]] = []
        matrix: FloatArray | None = None
        for block in self.blocks:
            start, stop = len(ids), len(ids) + len(block.ids)
            if self.rows is not None and stop > self.rows:
                raise corrupt(path, expected=f"{self.rows:,} rows", got="more")
            with np.errstate(over="ignore"):  # becomes infinity, which the set refuses
                if self.rows is None:
                    parts.append(np.asarray(block.vectors, dtype=np.float32))
                else:
                    matrix = self._matrix(block, path) if matrix is None else matrix
                    matrix[start:stop] = block.vectors
            ids.extend(block.ids)
        if not ids or (self.rows is not None and len(ids) != self.rows):
            raise corrupt(path, expected=f"{self.rows or 1:,} rows", got=f"{len(ids):,}")
        vectors = np.concatenate(parts) if matrix is None else matrix
        return Raw(ids=ids, vectors=vectors, space=self.space, partial=self.partial)

    def _matrix(self, first: Block, path: Path) -> FloatArray:
        shape = (self.rows or 0, first.vectors.shape[1])
        check_plausible(path, unpacked=shape[0] * shape[1] * 2, stored=self.stored)
        return np.empty(shape, dtype=np.float32)


@dataclass(frozen=True)
class Plan:
    """What is known of a file before its first row is written."""

    path: Path
    space: Space
    rows: int
    dtype: DType
    metadata: bool = False

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """Number type on disk: little-endian on every machine."""
        return np.dtype("<f2" if self.dtype == "float16" else "<f4")


class Sink(Protocol):
    """Takes batches in order; its context manager puts the whole file in place, or nothing."""

    def write(self, ids: IdArray, vectors: FloatArray, metadata: Metadata) -> None:
        """Append checked rows: ids (n,), vectors (n, dim) in the number type of the plan.

        ``metadata`` has one mapping a row where the plan says so, else it is empty.
        """


@dataclass(frozen=True)
class FileFormat:
    """One file format.

    Parameters
    ----------
    suffix : str
        Ending of the path, with its dot.
    read : callable (path, asked) -> Raw
        Raises `CorruptFileError` for anything that is not what the format says.
    open_sink : callable (plan) -> context manager of a Sink, or None
        Atomic: leaves the whole file, or what was there before. None: it is only read.
    stream : callable (path, asked) -> Stream, or None
        For formats that hold metadata, or are read block by block.
    memory_maps : bool
        Whether ``read`` can leave the vectors on disk.
    keeps_metadata : bool
        Whether metadata can be written.
    half : bool
        Whether it can hold float16; where not, float32 is written whatever is asked for.
    asks : tuple of str
        What may follow the path: ``theirs.parquet?vector=emb``.
    """

    suffix: str
    read: Callable[[Path, Asked], Raw]
    open_sink: Callable[[Plan], AbstractContextManager[Sink]] | None
    stream: Callable[[Path, Asked], Stream] | None = None
    memory_maps: bool = False
    keeps_metadata: bool = False
    half: bool = True
    asks: tuple[str, ...] = ()


CUT_SHORT = "write or copy the file again; it may have been cut short"


def corrupt(path: Path, *, expected: str, got: str, do: str = CUT_SHORT) -> CorruptFileError:
    """Make the error for a file that does not hold what its format says."""
    return CorruptFileError(
        expected=f"{path.name!r} with {expected}",
        got=got,
        do=do,
    )


def check_plausible(path: Path, *, unpacked: int, stored: int) -> None:
    """Refuse a file that says it unpacks to 200 times its size: embeddings do not compress so.

    Small files pass: a test set of equal rows may.

    Raises
    ------
    CorruptFileError
    """
    if unpacked > SMALL_BYTES and unpacked > PLAUSIBLE_RATIO * stored:
        raise corrupt(
            path,
            expected="vectors about as large as the file",
            got=f"{stored:,} bytes that claim to hold {unpacked:,} bytes of vectors",
        )
