"""Headers of numpy's own format, checked against the bytes that follow before any is read."""

from __future__ import annotations

import math
import tokenize
from pathlib import Path
from typing import IO, Any

import numpy as np

from isthmus.spaces.io.base import corrupt

__all__ = ["read_header", "write_header"]

# What numpy's parser of a header may raise; a tokenizer error comes from its support of Python 2.
UNREADABLE = (
    ValueError,
    EOFError,
    TypeError,
    KeyError,
    SyntaxError,
    RecursionError,
    MemoryError,
    tokenize.TokenError,
)
KINDS = {"vectors": "fiu", "ids": "USiu", "space": "US"}
AXES = {"vectors": 2, "ids": 1, "space": 0}


def read_header(
    stream: IO[bytes], *, size: int, what: str, path: Path
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header at the start of ``stream`` and check that ``size`` bytes hold the array.

    numpy allocates what a header claims before it reads: a few hostile bytes could claim
    all memory.

    Parameters
    ----------
    stream : binary file
    size : int
        Bytes from the start of the header to the end of the data.
    what : {"vectors", "ids", "space"}
        Which array this is.
    path : Path
        For the message.

    Returns
    -------
    shape : tuple of int
    fortran_order : bool
    dtype : numpy.dtype

    Raises
    ------
    CorruptFileError
    """
    try:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version}")
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, fortran_order, dtype = read(stream)
    except UNREADABLE as error:
        raise corrupt(
            path, expected=f"an array of {what} in numpy's format", got=_short(error)
        ) from error
    if dtype.kind not in KINDS[what] or dtype.hasobject:
        raise corrupt(
            path,
            expected=f"{what} as {'numbers' if what == 'vectors' else 'text'}",
            got=f"an array of type {dtype}",
        )
    if len(shape) != AXES[what]:
        raise corrupt(
            path, expected=f"{what} with {AXES[what]} axes", got=f"an array of shape {shape}"
        )
    wanted = stream.tell() + math.prod(shape) * dtype.itemsize
    if wanted != size:
        raise corrupt(
            path,
            expected=f"{wanted:,} bytes of {what}, as its header says for shape {shape}",
            got=f"{size:,} bytes",
        )
    return shape, fortran_order, dtype


def _short(error: Exception) -> str:
    """Return the first line of a library's message, without its full stop."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")


def write_header(stream: IO[bytes], *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Write the header of an array in C order."""
    np.lib.format.write_array_header_1_0(
        stream,
        {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape},
    )
