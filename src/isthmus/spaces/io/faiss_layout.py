"""The layout of a FAISS index file, walked before FAISS reads any of it.

FAISS allocates and follows what a file says. Only kinds that are walked here, field by field
against the bytes that are there, are read at all, and of a graph nothing is: its vectors stand in a
flat part of the file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isthmus.errors import CorruptFileError
from isthmus.spaces.io.base import corrupt

__all__ = ["Found", "walk"]

FLAT = {b"IxFI", b"IxF2", b"IxFl"}
ID_MAPS = {b"IxMp", b"IxM2"}
GRAPHS = {b"IHNf", b"IHNs", b"IHNp"}
QUANTIZED = b"IxSQ"
PRODUCT = b"IxPq"
INVERTED = b"IwFl"

DIM_LIMIT = 1 << 20
SCALAR_BITS = {0: 8, 1: 4, 2: 8, 3: 4, 4: 16, 5: 8, 6: 6, 7: 16, 8: 8}
"""Bits a number of the scalar quantizers, by the number of their kind in the file."""
HALF = {4, 7}
"""Those that keep half precision: float16 and bfloat16."""
TRAINED = {0: 2, 1: 2, 6: 2}
"""Numbers a column that those keep which learn a range for each column."""
UNIFORM = {2, 3}
"""Those that learn one range for all."""


@dataclass(frozen=True)
class Found:
    """Where the vectors of an index stand.

    Parameters
    ----------
    kind : {"flat", "lists", "scalar", "product"}
        ``lists``: flat vectors in inverted lists, each with its number.
    rows, dim : int
    start, stop : int
        Bytes of the vectors: raw float32 where the kind is flat, else a whole index of its own.
    ids_start : int or None
        Where the ids, int64, begin; None where rows are numbered.
    loss : str
        What the codes lose, in words; empty where nothing or only half precision is lost.
    lists : tuple of (int, int, int), default ()
        Of each inverted list that is not empty: its rows, and where their vectors and their
        numbers, int64, begin.
    """

    kind: str
    rows: int
    dim: int
    start: int
    stop: int
    ids_start: int | None
    loss: str
    lists: tuple[tuple[int, int, int], ...] = ()


class _Walker:
    """Reads plain fields from the bytes and never goes past their end."""

    def __init__(self, content: memoryview, path: Path) -> None:
        self.content = content
        self.path = path
        self.at = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        """Read fields of a `struct` layout."""
        size = struct.calcsize("<" + layout)
        self._check(size)
        fields = struct.unpack_from("<" + layout, self.content, self.at)
        self.at += size
        return fields

    def mark(self) -> bytes:
        """Read the four letters that name a kind of index."""
        self._check(4)
        found = bytes(self.content[self.at : self.at + 4])
        self.at += 4
        return found

    def skip(self, count: int, width: int) -> int:
        """Pass over an array of ``count`` values; return where it begins."""
        self._check(count * width)
        start = self.at
        self.at += count * width
        return start

    def array(self, width: int, *, expected: int | None = None) -> tuple[int, int]:
        """Pass over a stored array with its count before it; return its begin and its count."""
        (count,) = self.take("Q")
        if expected is not None and count != expected:
            raise self.wrong(f"an array of {expected:,} values", f"{count:,}")
        return self.skip(count, width), count

    def wrong(self, expected: str, got: str) -> CorruptFileError:
        """Make the error for what does not fit."""
        return corrupt(self.path, expected=f"{expected} at byte {self.at:,}", got=got)

    def _check(self, size: int) -> None:
        left = len(self.content) - self.at
        if size > left:
            raise self.wrong(f"{size:,} bytes of an index", f"{left:,}")


def walk(content: memoryview, path: Path) -> Found:
    """Find the vectors and ids of an index, and check every size on the way.

    Raises
    ------
    CorruptFileError
        A kind that is not read here, or sizes that the bytes do not bear out.
    """
    walker = _Walker(content, path)
    mark = walker.mark()
    if mark not in ID_MAPS:
        found = _vectors(walker, mark)
    else:
        dim, rows = _header(walker)
        found = _vectors(walker, walker.mark())
        _check_same(walker, found, rows, dim)
        ids_start, _ = walker.array(8, expected=rows)
        found = replace(found, ids_start=ids_start)
    if walker.at != len(content):
        raise walker.wrong("the end of the file", f"{len(content) - walker.at:,} bytes more")
    return found


def _check_same(walker: _Walker, found: Found, rows: int, dim: int) -> None:
    if (found.dim, found.rows) != (dim, rows):
        raise walker.wrong(f"{rows:,} vectors of {dim} numbers", f"{found.rows:,} of {found.dim}")


def _vectors(walker: _Walker, mark: bytes, *, inside: bool = False) -> Found:
    """Walk one index without ids; inside a graph, one without a graph."""
    if mark in GRAPHS and not inside:
        dim, rows = _header(walker)
        _pass_graph(walker)
        found = _vectors(walker, walker.mark(), inside=True)
        _check_same(walker, found, rows, dim)
        return found
    begin = walker.at - 4
    if mark in FLAT:
        dim, rows = _header(walker)
        start, _ = walker.array(4, expected=rows * dim)
        return Found("flat", rows, dim, start, walker.at, None, "")
    if mark == QUANTIZED:
        dim, rows = _header(walker)
        loss = _pass_scalar(walker, rows, dim)
        return Found("scalar", rows, dim, begin, walker.at, None, loss)
    if mark == PRODUCT:
        dim, rows = _header(walker)
        loss = _pass_product(walker, rows, dim)
        return Found("product", rows, dim, begin, walker.at, None, loss)
    if mark == INVERTED and not inside:
        dim, rows = _header(walker)
        lists = _pass_lists(walker, rows, dim)
        return Found("lists", rows, dim, begin, walker.at, None, "", lists)
    raise corrupt(
        walker.path,
        expected="a FAISS index of the kinds Flat, IDMap, HNSW, IVF with flat lists, SQ or PQ",
        got=f"the mark {mark!r}",
        do="in Python, reconstruct the vectors and save them: "
        "numpy.savez(path, ids=..., vectors=index.reconstruct_n(0, index.ntotal))",
    )


def _header(walker: _Walker) -> tuple[int, int]:
    """Walk the fields that every index begins with; return width and rows."""
    dim, rows, _, _, trained, metric = walker.take("iqqqBi")
    if metric > 1:
        walker.take("f")
    if not 0 < dim <= DIM_LIMIT or not 0 < rows <= len(walker.content) * 8 or trained > 1:
        raise walker.wrong("an index with vectors", f"{rows:,} of {dim:,} numbers")
    return dim, rows


def _pass_graph(walker: _Walker) -> None:
    """Pass over the arrays and numbers of a graph: nothing of it is used."""
    for width in (8, 4, 4, 8, 4):
        walker.array(width)
    walker.take("iiiii")


def _pass_lists(walker: _Walker, rows: int, dim: int) -> tuple[tuple[int, int, int], ...]:
    """Walk an inverted file of flat vectors; return where its lists stand."""
    count, _ = walker.take("QQ")
    if not 0 < count <= len(walker.content):
        raise walker.wrong("an inverted file with lists", f"{count:,} of them")
    centres = walker.mark()
    if centres == INVERTED:
        raise walker.wrong("centres that are no inverted file", repr(centres))
    _vectors(walker, centres)  # nothing of them is used
    (kind,) = walker.take("B")
    walker.array(8)
    if kind > 1:  # a table of numbers and places
        walker.array(16)
    mark, (lists, width) = walker.mark(), walker.take("QQ")
    if (mark, lists, width) != (b"ilar", count, 4 * dim):
        raise walker.wrong(f"{count:,} lists of {dim} numbers", f"{lists:,} of {width:,} bytes")
    sizes = _sizes(walker, count)
    if sum(sizes) != rows:
        raise walker.wrong(f"{rows:,} rows in lists", f"{sum(sizes):,}")
    return tuple((size, walker.skip(size, width), walker.skip(size, 8)) for size in sizes if size)


def _sizes(walker: _Walker, count: int) -> list[int]:
    """Read the sizes of lists: of all, or of those that are not empty, each behind its number."""
    mark = walker.mark()
    expected = {b"full": count, b"sprs": None}
    if mark not in expected:
        raise walker.wrong("the sizes of lists", repr(mark))
    start, stored = walker.array(8, expected=expected[mark])
    values = list(struct.unpack_from(f"<{stored}Q", walker.content, start))
    return values if mark == b"full" else values[1::2]


def _pass_scalar(walker: _Walker, rows: int, dim: int) -> str:
    """Walk a scalar quantizer and its codes; return what it loses."""
    kind, _, _, width, code_size = walker.take("iifQQ")
    bits = SCALAR_BITS.get(kind)
    if bits is None or width != dim or code_size != -(-dim * bits // 8):
        raise walker.wrong("a scalar quantizer of this width", f"kind {kind}, {code_size:,} bytes")
    trained = TRAINED.get(kind, 0) * dim + (2 if kind in UNIFORM else 0)
    walker.array(4, expected=trained)
    walker.array(1, expected=rows * code_size)
    return "" if kind in HALF else f"{bits} bits a number"


def _pass_product(walker: _Walker, rows: int, dim: int) -> str:
    """Walk a product quantizer, its codes and its settings; return what it loses."""
    width, parts, bits = walker.take("QQQ")
    if width != dim or not 0 < parts <= dim or dim % parts or not 0 < bits <= 24:
        raise walker.wrong("a product quantizer of this width", f"{parts:,} parts of {bits} bits")
    walker.array(4, expected=dim << bits)
    code_size = -(-parts * bits // 8)
    walker.array(1, expected=rows * code_size)
    walker.take("iBi")
    return f"{code_size} bytes a vector of {dim} numbers"
