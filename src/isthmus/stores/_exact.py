"""Exact searches of rows that come in blocks: the same scores and order as those of an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from isthmus._types import FloatArray, IntArray, Metric
from isthmus.neighbors import top_k
from isthmus.stores._answers import best, no_rows
from isthmus.stores._connected import Hits
from isthmus.stores._native import NATIVE_SCORES, NativeScore

__all__ = ["nearest", "search_blocks"]


def search_blocks(
    queries: FloatArray, blocks: Iterator[tuple[IntArray, FloatArray]], *, k: int, metric: Metric
) -> tuple[IntArray, FloatArray]:
    """Search many queries in rows that come in blocks: numbers and scores of shape (m, k).

    Examples
    --------
    >>> blocks = iter([(np.array([7, 8]), np.eye(2)), (np.array([9]), np.ones((1, 2)))])
    >>> search_blocks(np.float32([[1, 0]]), blocks, k=2, metric="dot")[0].tolist()
    [[7, 9]]
    """
    numbers, scores = no_rows(len(queries), k)
    for block_numbers, vectors in blocks:
        found = top_k(queries, vectors, k=min(k, len(vectors)), metric=metric)
        numbers, scores = best(
            np.concatenate([numbers, block_numbers[found.rows]], axis=1),
            np.concatenate([scores, found.scores], axis=1),
            k,
        )
    return numbers, scores


def nearest(
    queries: FloatArray,
    blocks: Iterable[tuple[list[str], FloatArray]],
    *,
    k: int,
    metric: Metric,
    native: NativeScore,
) -> Hits:
    """Search in blocks of ids and vectors; equal scores in the order in which the rows come.

    Rows that have no similarity (NaN, infinity; zeros under the cosine) are never found.

    Examples
    --------
    >>> nearest(
    ...     np.float32([[1, 0]]), [(["a", "b"], np.float32([[0, 1], [2, 0]]))],
    ...     k=1, metric="cosine", native="1 - cosine",
    ... )
    [[('b', 0.0)]]
    """
    names: list[str] = []

    def numbered() -> Iterator[tuple[IntArray, FloatArray]]:
        for ids, vectors in blocks:
            usable = np.isfinite(vectors).all(axis=1)
            if metric == "cosine":
                usable &= vectors.any(axis=1)
            places = np.flatnonzero(usable)
            if len(places):
                start = len(names)
                names.extend([ids[place] for place in places.tolist()])
                rows = vectors if len(places) == len(vectors) else vectors[places]
                yield np.arange(start, len(names)), rows

    numbers, scores = search_blocks(queries, numbered(), k=k, metric=metric)
    written = NATIVE_SCORES[native].native(scores.astype(np.float64))
    return [
        [(names[number], score) for number, score in zip(found, values, strict=True) if number >= 0]
        for found, values in zip(numbers.tolist(), written.tolist(), strict=True)
    ]
