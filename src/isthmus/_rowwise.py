"""Row-wise products whose numbers do not depend on the batch or on the number of threads.

A plain ``X @ W`` gives a row other last bits when other rows stand around it: matrix libraries
pick kernels by shape, by the place of a row and by the number of threads, and each sums in another
order. Here one row and a million give the same bits, by the first of three plans that passes a
probe on this machine's library (once per shape and process):

1. blocks of rows in multiples of 12, one library thread per block, our own threads over blocks;
2. the same in column panels with eight unused columns on both sides: the AVX2 kernels of OpenBLAS
   sum the outer columns of a panel in another order;
3. exact sums: both sides are rounded to so few bits that a float64 product holds every partial sum
   without rounding, and no order matters. About half the speed of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np

from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray

__all__ = ["affine", "in_row_blocks"]

ROW_UNIT = 12
"""Rows per kernel call of OpenBLAS on AVX2; other kernels take multiples of 12 as well."""

BLOCK_ROWS = 480
"""Rows per block: input, product and packed weights stay in a core's cache."""

LEAST_WORK = 2_000_000
"""Multiplications per block at least: OpenBLAS takes other kernels under a million."""

CHAIN_ROWS = 4_800
"""Rows per block of a chain of steps."""

DOUBLE_BITS = 53


@dataclass(frozen=True)
class _Plan:
    """Column panels of at most ``width`` with ``edge`` unused columns on both sides."""

    width: int
    edge: int


PLANS = (_Plan(width=1 << 30, edge=0), _Plan(width=304, edge=8))


def affine(
    X: FloatArray,
    weight: FloatArray,
    bias: FloatArray | None = None,
    *,
    scale: float = 1.0,
) -> FloatArray:
    """Return ``scale * (X @ weight) + bias``; a row's bits do not depend on the other rows.

    Parameters
    ----------
    X : FloatArray of shape (n, dim_in)
        Any float type; taken as float32, block by block.
    weight : FloatArray of shape (dim_in, dim_out)
    bias : FloatArray of shape (dim_out,), optional
    scale : float, default 1
        Multiplied into the weight.

    Returns
    -------
    FloatArray of shape (n, dim_out), float32

    Examples
    --------
    >>> affine(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 20.0]))
    array([[11., 22.],
           [13., 24.]], dtype=float32)
    """
    matrix = np.asarray(weight, dtype=np.float32)
    if scale != 1.0:
        matrix = matrix * np.float32(scale)
    offset = None if bias is None else np.asarray(bias, dtype=np.float32)
    product = _plan_product(matrix)
    out = np.empty((len(X), matrix.shape[1]), dtype=np.float32)

    def fill(start: int, stop: int) -> None:
        product(X[start:stop], out[start:stop])
        if offset is not None:
            out[start:stop] += offset

    _over_blocks(fill, len(X), BLOCK_ROWS)
    return out


def in_row_blocks(carry: Callable[[FloatArray], FloatArray], X: FloatArray) -> FloatArray:
    """Return ``carry(X)`` for a function of each row alone, block by block on all threads.

    What lies between the steps of the function stays small.

    Parameters
    ----------
    carry : callable
        Takes (m, dim_in), gives (m, dim_out), float32.
    X : FloatArray of shape (n, dim_in)
        At least one row.
    """
    if len(X) <= CHAIN_ROWS:
        return carry(X)
    first = carry(X[:1])
    out = np.empty((len(X), first.shape[1]), dtype=np.float32)

    def fill(start: int, stop: int) -> None:
        out[start:stop] = carry(X[start:stop])

    _over_blocks(fill, len(X), CHAIN_ROWS)
    return out


# --- threads -----------------------------------------------------------------------------------


def _over_blocks(fill: Callable[[int, int], None], n: int, rows: int) -> None:
    """Call ``fill(start, stop)`` for every block of rows, on as many threads as BLAS had."""
    starts = range(0, n, rows)
    with one_blas_thread() as threads:
        if threads == 1 or len(starts) <= 1:
            for start in starts:
                fill(start, min(start + rows, n))
            return
        with ThreadPoolExecutor(min(threads, len(starts))) as pool:
            for done in [pool.submit(fill, start, min(start + rows, n)) for start in starts]:
                done.result()


# --- products ----------------------------------------------------------------------------------


def _plan_product(matrix: FloatArray) -> Callable[[FloatArray, FloatArray], None]:
    """Return a function that writes ``X @ matrix`` into its second argument."""
    place = _first_steady_plan(*matrix.shape)
    return _exact_product(matrix) if place is None else _panel_product(matrix, PLANS[place])


def _panel_product(matrix: FloatArray, plan: _Plan) -> Callable[[FloatArray, FloatArray], None]:
    dim_in, dim_out = matrix.shape
    panels = []
    count = math.ceil(dim_out / plan.width)
    for part in np.array_split(np.arange(dim_out), count):
        columns = slice(int(part[0]), int(part[-1]) + 1)
        width = _ceil(len(part), 16) + 2 * plan.edge
        if width == dim_out and matrix.flags.c_contiguous:
            padded = matrix
        else:
            padded = np.zeros((dim_in, width), dtype=np.float32)
            padded[:, plan.edge : plan.edge + len(part)] = matrix[:, columns]
        panels.append((columns, padded))
    least = _ceil(math.ceil(LEAST_WORK / (dim_in * panels[-1][1].shape[1])), ROW_UNIT)

    def product(X: FloatArray, out: FloatArray) -> None:
        whole = max(_ceil(len(X), ROW_UNIT), least) == len(X) and X.dtype == np.float32
        if whole and X.flags.c_contiguous:
            rows = X
            if panels[0][1].shape[1] == dim_out and out.flags.c_contiguous:
                np.matmul(rows, panels[0][1], out=out)
                return
        else:
            rows = np.zeros((max(_ceil(len(X), ROW_UNIT), least), dim_in), np.float32)
            rows[: len(X)] = X
        for columns, padded in panels:
            width = columns.stop - columns.start
            out[:, columns] = (rows @ padded)[: len(X), plan.edge : plan.edge + width]

    return product


def _exact_product(matrix: FloatArray) -> Callable[[FloatArray, FloatArray], None]:
    """Round both sides to whole numbers of few bits per row and column, so that sums are exact."""
    bits = (DOUBLE_BITS - math.ceil(math.log2(len(matrix) + 1))) // 2
    columns, column_scale = _whole_numbers(matrix.T, bits)
    columns = np.ascontiguousarray(columns.T)

    def product(X: FloatArray, out: FloatArray) -> None:
        rows, row_scale = _whole_numbers(X.astype(np.float32, copy=False), bits)
        np.copyto(out, (rows @ columns) * row_scale * column_scale.T, casting="same_kind")

    return product


def _whole_numbers(rows: FloatArray, bits: int) -> tuple[FloatArray, FloatArray]:
    """Return float64 whole numbers of at most ``bits`` bits and the power of two of each row."""
    largest = np.abs(rows).max(axis=1, keepdims=True).astype(np.float64)
    scale = np.exp2(np.frexp(largest)[1] - float(bits))
    return np.rint(rows / scale), scale


@cache
def _first_steady_plan(dim_in: int, dim_out: int) -> int | None:
    """Return the place in ``PLANS`` of the first that gives equal rows equal bits, or None."""
    trials = [_probe(dim_in, dim_out, seed) for seed in range(min(16, math.ceil(128 / dim_out)))]
    with one_blas_thread():
        for place, plan in enumerate(PLANS):
            if all(_is_steady(matrix, row, plan) for matrix, row in trials):
                return place
    return None


def _probe(dim_in: int, dim_out: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return a matrix and a row whose product shows every change in the order of its sums."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((dim_in, min(dim_out, 512)))[:, np.arange(dim_out) % 512]
    row = rng.standard_normal((1, dim_in))
    columns = matrix[:, : min(dim_in - 1, 8)]
    if columns.size:  # what cancels leaves the rounding of every partial sum
        row -= (columns @ np.linalg.lstsq(columns, row[0], rcond=None)[0])[None]
    return matrix.astype(np.float32), row.astype(np.float32)


def _is_steady(matrix: FloatArray, row: FloatArray, plan: _Plan) -> bool:
    product = _panel_product(matrix, plan)
    alone = np.empty((1, matrix.shape[1]), dtype=np.float32)
    many = np.empty((BLOCK_ROWS, matrix.shape[1]), dtype=np.float32)
    product(row, alone)
    product(np.repeat(row, BLOCK_ROWS, axis=0), many)
    return bool((many == alone).all())


def _ceil(number: int, unit: int) -> int:
    return -(-number // unit) * unit
