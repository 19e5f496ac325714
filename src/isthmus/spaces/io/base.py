"""What every file format gives: a reader of arrays and a sink for batches of arrays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IdArray
from isthmus.errors import CorruptFileError
from isthmus.spaces.space import Space

__all__ = ["DType", "FileFormat", "Plan", "Raw", "Sink", "check_plausible", "corrupt"]

DType = Literal["float16", "float32"]

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
    """

    ids: Any
    vectors: npt.NDArray[Any]
    space: Space | None


@dataclass(frozen=True)
class Plan:
    """What is known of a file before its first row is written."""

    path: Path
    space: Space
    rows: int
    dtype: DType

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """Number type on disk: little-endian on every machine."""
        return np.dtype("<f2" if self.dtype == "float16" else "<f4")


class Sink(Protocol):
    """Takes batches in order; its context manager puts the whole file in place, or nothing."""

    def write(self, ids: IdArray, vectors: FloatArray) -> None:
        """Append checked rows: ids (n,), vectors (n, dim) in the number type of the plan."""


@dataclass(frozen=True)
class FileFormat:
    """One file format.

    Parameters
    ----------
    suffix : str
        Ending of the path, with its dot.
    read : callable (path, memory_map) -> Raw
        Raises `CorruptFileError` for anything that is not what the format says.
    open_sink : callable (plan) -> context manager of a Sink
        Atomic: leaves the whole file, or what was there before.
    memory_maps : bool
        Whether ``read`` can leave the vectors on disk.
    """

    suffix: str
    read: Callable[[Path, bool], Raw]
    open_sink: Callable[[Plan], AbstractContextManager[Sink]]
    memory_maps: bool = False


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
