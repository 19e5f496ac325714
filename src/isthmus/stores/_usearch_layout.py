"""The layout of a USearch index file, read without USearch, which trusts what a file says.

A matrix of vectors comes first, one row per slot; then a head of 64 bytes; then the graph, whose
nodes begin with the keys of the slots. Every size is compared with the bytes that are there.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, Metric
from isthmus.errors import CorruptStoreError, NotAStoreError, UnsupportedOperationError

__all__ = ["KINDS", "UsearchIndex", "read_usearch"]

MAGIC = b"usearch"
HEAD = struct.Struct("<7s3H4B3Q?")
HEAD_BYTES = 64
GRAPH = struct.Struct("<5Q")
NODE_HEAD = 8 + 2
U64, U32 = 14, 15
FREE = np.uint64(2**64 - 1)
METRICS: MappingProxyType[int, Metric] = MappingProxyType(
    {ord("c"): "cosine", ord("i"): "dot", ord("e"): "l2"}
)
KINDS = MappingProxyType({10: "float64", 11: "float32", 12: "float16", 4: "bfloat16"})
"""Number types that can be read, by their number in the file."""
TYPES = MappingProxyType({"float64": "<f8", "float32": "<f4", "float16": "<f2", "bfloat16": "<u2"})


@dataclass(frozen=True)
class UsearchIndex:
    """What an index holds.

    Parameters
    ----------
    keys : array of uint64 of shape (n,)
    vectors : FloatArray of shape (n, dim)
    metric : Metric
    storage : str
        Number type of the vectors in the file.
    """

    keys: npt.NDArray[np.uint64]
    vectors: FloatArray
    metric: Metric
    storage: str


def read_usearch(content: bytes | memoryview, name: str) -> UsearchIndex:
    """Read an index.

    Raises
    ------
    NotAStoreError, CorruptStoreError
    UnsupportedOperationError
        Of a metric or a number type that is not read here; codes of 8 bits and of one are not.
    """
    rows, width = _unpack(struct.Struct("<II"), content, 0, name)
    start = 8 + rows * width
    if bytes(content[start : start + len(MAGIC)]) != MAGIC:
        raise NotAStoreError(
            expected=f"an index of USearch at {name!r}",
            got="a file without its mark",
            do="check the path; save the index with Index.save",
        )
    _, *_, metric, kind, key, slot, there, gone, dim, multi = _unpack(HEAD, content, start, name)
    _check_kinds(name, metric, kind, key, slot, multi=multi)
    storage = KINDS[kind]
    if width != dim * np.dtype(TYPES[storage]).itemsize or there + gone != rows:
        raise _broken(name, f"{there:,} rows of {dim:,} numbers in a matrix of another size")
    keys = _keys(content, start + HEAD_BYTES, rows, name)
    present = keys != FREE
    if int(present.sum()) != there or len(np.unique(keys[present])) != there:
        raise _broken(name, f"keys that are not those of {there:,} rows")
    matrix = np.frombuffer(content, TYPES[storage], rows * dim, 8).reshape(rows, dim)
    vectors = _as_float32(matrix if present.all() else matrix[present], storage)
    return UsearchIndex(keys[present], vectors, METRICS[metric], storage)


def _keys(content: bytes | memoryview, start: int, rows: int, name: str) -> npt.NDArray[np.uint64]:
    """Walk the graph: the sizes of its nodes follow from their levels."""
    size, connectivity, base, _, _ = _unpack(GRAPH, content, start, name)
    levels_at = start + GRAPH.size
    nodes_at = levels_at + 2 * rows
    if size != rows or nodes_at > len(content) or max(connectivity, base) > 2**16:
        raise _broken(name, f"a graph of {size:,} nodes, not {rows:,}")
    levels = np.frombuffer(content, "<i2", rows, levels_at).astype(np.int64)
    sizes = NODE_HEAD + 4 * (base + 1) + 4 * (connectivity + 1) * levels
    if (levels < 0).any() or nodes_at + int(sizes.sum()) != len(content):
        raise _broken(name, "nodes that do not fill the file")
    begins = nodes_at + np.cumsum(sizes) - sizes
    flat = np.frombuffer(content, np.uint8)
    return np.ascontiguousarray(flat[begins[:, None] + np.arange(8)]).view("<u8").reshape(rows)


def _as_float32(matrix: npt.NDArray[Any], storage: str) -> FloatArray:
    if storage == "bfloat16":  # the upper half of a float32
        return (matrix.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(over="ignore"):  # infinity is refused where rows are checked
        return np.asarray(matrix, np.float32)


def _check_kinds(name: str, metric: int, kind: int, key: int, slot: int, *, multi: bool) -> None:
    if metric not in METRICS:
        raise _unread(name, "a metric that is the cosine, the inner product or L2", str(metric))
    if kind not in KINDS:
        raise _unread(
            name,
            f"numbers of type {', '.join(sorted(KINDS.values()))}",
            f"codes of kind {kind}: what 8 bits or fewer keep of a vector is of no use for mapping",
        )
    if (key, slot) != (U64, U32) or multi:
        raise _unread(name, "one vector per key, and keys that are numbers", f"{key}, {slot}")


def _unread(name: str, expected: str, got: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        expected=f"an index at {name!r} with {expected}",
        got=got,
        do="make it again from the vectors as the model gave them, with dtype='f32'",
    )


def _unpack(
    layout: struct.Struct, content: bytes | memoryview, start: int, name: str
) -> tuple[Any, ...]:
    if start + layout.size > len(content):
        raise _broken(name, f"a file that ends at byte {len(content):,}")
    return layout.unpack_from(content, start)


def _broken(name: str, got: str) -> CorruptStoreError:
    return CorruptStoreError(
        expected=f"a whole index of USearch at {name!r}", got=got, do="restore it from a copy"
    )
