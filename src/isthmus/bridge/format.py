"""Tensors of an artifact: a strict reader and writer of safetensors.

The header is checked against the size of the file before any tensor is made. The rules are written
down in SPEC.md, section 4.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from isthmus.bridge.reading import (
    LIMITS,
    check_size,
    cut_short,
    malformed,
    open_plain,
    parse_json,
)
from isthmus.errors import OversizedArtifactError, UnsafePathError

__all__ = [
    "DTYPES",
    "Tensors",
    "as_stored",
    "check_tensor_name",
    "read_tensors",
    "tensor_hash",
    "tensor_record",
    "write_tensors",
]

Tensors = Mapping[str, npt.NDArray[Any]]
"""Arrays by name."""

DTYPES = {
    "BOOL": np.dtype("?"),
    "U8": np.dtype("u1"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
"""Number types that an artifact may hold, by their safetensors name; all little-endian."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@()=,+-]*(/[A-Za-z0-9_][A-Za-z0-9_.@()=,+-]*)*")
_MAX_NAME = 200
_LENGTH_BYTES = 8


def check_tensor_name(name: str) -> None:
    """Refuse names that could be taken for a path out of the folder, or that are not plain.

    Raises
    ------
    UnsafePathError
        A name with ``..``, a backslash, or a slash at its start.
    MalformedArtifactError
        Other characters than SPEC.md allows.

    Examples
    --------
    >>> check_tensor_name("map/inner/weight")
    """
    if name.startswith("/") or "\\" in name or ".." in name.split("/"):
        raise UnsafePathError(
            expected="names of tensors that lead nowhere", got=repr(name[:80]), do="do not use it"
        )
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise malformed("names of tensors of plain characters, split by slashes", repr(name[:80]))


def write_tensors(path: Path, tensors: Tensors) -> None:
    """Write tensors as safetensors, little-endian, sorted by name.

    Raises
    ------
    MalformedArtifactError
        A name or a number type that an artifact cannot hold.
    """
    from safetensors.numpy import save

    plain = {}
    for name in sorted(tensors):
        check_tensor_name(name)
        plain[name] = as_stored(tensors[name], name=name)
    # not save_file: its files are private to the user, and it has its own error for a full disk
    path.write_bytes(save(plain))


def as_stored(array: npt.NDArray[Any], *, name: str) -> npt.NDArray[Any]:
    """Return an array in C order and little-endian, as it is stored and hashed."""
    little = array.dtype.newbyteorder("<")
    if little not in DTYPES.values():
        raise malformed(f"tensor {name!r} as {', '.join(DTYPES)}", f"{array.dtype}")
    return np.asarray(array, dtype=little, order="C")


def tensor_hash(array: npt.NDArray[Any]) -> str:
    """Return the SHA-256 of the bytes of a tensor as it is stored, 64 hexadecimal digits.

    Examples
    --------
    >>> tensor_hash(np.zeros(2, np.float32)) == hashlib.sha256(bytes(8)).hexdigest()
    True
    """
    stored = as_stored(array, name="")
    return hashlib.sha256(stored.tobytes()).hexdigest()


def tensor_record(array: npt.NDArray[Any], *, name: str) -> dict[str, Any]:
    """Return what the manifest says of a tensor: number type, shape, hash.

    Examples
    --------
    >>> tensor_record(np.zeros((2, 3), np.float32), name="w")["dtype"]
    'F32'
    """
    stored = as_stored(array, name=name)
    dtype = next(known for known, candidate in DTYPES.items() if candidate == stored.dtype)
    return {"dtype": dtype, "shape": list(stored.shape), "sha256": tensor_hash(stored)}


def read_tensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read a safetensors file after its header was checked against its size.

    Raises
    ------
    CorruptFileError
        A file that is shorter than its header says.
    OversizedArtifactError, MalformedArtifactError, UnsafePathError, MissingFileError
        See SPEC.md, section 4.
    """
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        check_size(path.name, size, LIMITS.weights)
        header = _read_header(file, size=size, name=path.name)
        entries = [
            _Entry.parse(name, fields) for name, fields in header.items() if name != "__metadata__"
        ]
        start = file.tell()
        _check_layout(entries, start=start, size=size, name=path.name)
        tensors = {}
        for entry in sorted(entries, key=lambda entry: entry.begin):
            file.seek(start + entry.begin)
            content = file.read(entry.end - entry.begin)
            if len(content) != entry.end - entry.begin:  # cut while it was being read
                raise cut_short(path.name, expected=start + entry.end, size=file.tell())
            tensors[entry.name] = entry.array(content)
    return tensors


def _read_header(file: BinaryIO, *, size: int, name: str) -> dict[str, Any]:
    length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if size < _LENGTH_BYTES:
        raise cut_short(name, expected=_LENGTH_BYTES, size=size)
    check_size(f"the header of {name}", length, LIMITS.header)
    if _LENGTH_BYTES + length > size:
        raise cut_short(name, expected=_LENGTH_BYTES + length, size=size)
    header = parse_json(file.read(length), name=f"the header of {name}")
    if len(header) > LIMITS.tensors:
        raise OversizedArtifactError(
            expected=f"at most {LIMITS.tensors:,} tensors", got=f"{len(header):,}", do="do not use"
        )
    return header


@dataclass(frozen=True)
class _Entry:
    """One tensor of a header: where its bytes are and what they are."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int

    @classmethod
    def parse(cls, name: str, fields: Any) -> _Entry:
        """Read one entry of a header; every value is checked before it is used."""
        check_tensor_name(name)
        if not isinstance(fields, dict) or set(fields) != {"dtype", "shape", "data_offsets"}:
            raise malformed(f"dtype, shape and data_offsets of tensor {name!r}", str(fields)[:80])
        dtype, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise malformed(f"tensor {name!r} as {', '.join(DTYPES)}", repr(dtype)[:80])
        if not _are_sizes(shape) or len(shape) > LIMITS.axes:
            raise malformed(
                f"a shape of at most {LIMITS.axes} sizes for tensor {name!r}", repr(shape)[:80]
            )
        if not _are_sizes(offsets) or len(offsets) != 2:
            raise malformed(f"two offsets of tensor {name!r}", repr(offsets)[:80])
        entry = cls(name, DTYPES[dtype], tuple(shape), *offsets)
        if entry.end - entry.begin != math.prod(entry.shape) * entry.dtype.itemsize:
            raise malformed(
                f"as many bytes as shape {entry.shape} of {dtype} takes for tensor {name!r}",
                f"offsets {entry.begin:,} to {entry.end:,}",
            )
        return entry

    def array(self, content: bytes) -> npt.NDArray[Any]:
        """Make the array, read-only and in the machine's byte order."""
        if self.dtype.kind == "b" and content.translate(None, b"\x00\x01"):
            raise malformed(f"0 and 1 in the boolean tensor {self.name!r}", "other bytes")
        array = np.frombuffer(content, dtype=self.dtype).reshape(self.shape)
        return array.astype(self.dtype.newbyteorder("="), copy=False)


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**48
        for value in values
    )


def _check_layout(entries: list[_Entry], *, start: int, size: int, name: str) -> None:
    """Refuse gaps, overlaps, and bytes that belong to no tensor."""
    place = 0
    for entry in sorted(entries, key=lambda entry: (entry.begin, entry.end)):
        if entry.begin != place:
            raise malformed(
                f"tensor {entry.name!r} of {name} at byte {place:,}, without gap or overlap",
                f"byte {entry.begin:,}",
            )
        place = entry.end
    if start + place > size:
        raise cut_short(name, expected=start + place, size=size)
    if start + place < size:
        raise malformed(f"{start + place:,} bytes in {name}, as its header says", f"{size:,} bytes")
