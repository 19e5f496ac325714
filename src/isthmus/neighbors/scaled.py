"""Mutual nearest neighbours by CSLS, fast: what linking asks hundreds of times of the same rows.

Exact up to the rounding of float32: every similarity is made by a matrix product and none is made
again in float64, which is what `csls` does. Blocks have one size whatever the number of threads,
each is multiplied on one thread, and so the answer depends on the two matrices alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray
from isthmus.neighbors.mutual import MutualPairs

__all__ = ["LocalScaling", "local_scaling", "mutual_by_csls", "nearest_similarities"]

T = TypeVar("T")

# Similarities of one block: 4 MB of float32, which stays in a core's cache.
BLOCK_NUMBERS = 2**20


@dataclass(frozen=True)
class LocalScaling:
    """How near each row is to its neighbours on the other side, which CSLS subtracts.

    Parameters
    ----------
    source : FloatArray of shape (n_source,), float32
        Mean similarity of each source row to its nearest target rows.
    target : FloatArray of shape (n_target,), float32
    """

    source: FloatArray
    target: FloatArray


def local_scaling(source: FloatArray, target: FloatArray, *, neighborhood: int) -> LocalScaling:
    """Return the mean similarity of every row to its nearest rows on the other side.

    Parameters
    ----------
    source : FloatArray of shape (n_source, dim), float32
        Rows of length one: similarities are inner products.
    target : FloatArray of shape (n_target, dim), float32
    neighborhood : int
        Rows in the mean; fewer where there are fewer.

    Examples
    --------
    >>> side = np.eye(2, dtype=np.float32)
    >>> local_scaling(side, side, neighborhood=2).source.tolist()
    [0.5, 0.5]
    """
    source_side = _nearest(source, target, neighborhood)
    target_side = _nearest(target, source, neighborhood)
    return LocalScaling(source=_means(source_side), target=_means(target_side))


def nearest_similarities(
    source: FloatArray, target: FloatArray, *, depth: int
) -> tuple[FloatArray, FloatArray]:
    """Return the highest similarities of every row to the rows of the other side, highest first.

    Parameters
    ----------
    source : FloatArray of shape (n_source, dim), float32
        Rows of length one.
    target : FloatArray of shape (n_target, dim), float32
    depth : int
        At most; fewer columns where the other side has fewer rows.

    Returns
    -------
    of_source : FloatArray of shape (n_source, up to depth)
    of_target : FloatArray of shape (n_target, up to depth)

    Examples
    --------
    >>> side = np.eye(2, dtype=np.float32)
    >>> nearest_similarities(side, side, depth=5)[0].tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    sides = _nearest(source, target, depth), _nearest(target, source, depth)
    for side in sides:
        side.sort(axis=1)
    return sides[0][:, ::-1], sides[1][:, ::-1]


def mutual_by_csls(
    source: FloatArray,
    target: FloatArray,
    *,
    neighborhood: int,
    scaling: LocalScaling | None = None,
) -> MutualPairs:
    """Find the pairs of rows that are each other's nearest by CSLS.

    CSLS(x, y) = 2 x.y - r(x) - r(y) with `local_scaling` (Lample et al. 2018, equation 3). Equal
    scores go to the lowest row.

    Parameters
    ----------
    source : FloatArray of shape (n_source, dim), float32
        Rows of length one.
    target : FloatArray of shape (n_target, dim), float32
    neighborhood : int
        Neighbours in both means; unused where ``scaling`` is given.
    scaling : LocalScaling, optional
        Of these two matrices, if it is known.

    Returns
    -------
    MutualPairs
        A row is in at most one pair.

    Examples
    --------
    >>> side = np.eye(2, dtype=np.float32)
    >>> pairs = mutual_by_csls(side, side[::-1], neighborhood=1)
    >>> pairs.source_rows.tolist(), pairs.target_rows.tolist(), pairs.scores.tolist()
    ([0, 1], [1, 0], [0.0, 0.0])
    """
    known = scaling or local_scaling(source, target, neighborhood=neighborhood)

    def best(block: slice) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
        scores = source[block] @ target.T
        scores *= 2.0
        scores -= known.target
        scores -= known.source[block, None]
        forward, back = scores.argmax(axis=1), scores.argmax(axis=0)
        return (
            forward,
            np.take_along_axis(scores, forward[:, None], axis=1)[:, 0],
            back + block.start,
            np.take_along_axis(scores, back[None, :], axis=0)[0],
        )

    nearest = np.empty(len(source), np.int64)
    scores = np.empty(len(source), np.float32)
    from_target = np.zeros(len(target), np.int64)
    highest = np.full(len(target), -np.inf, np.float32)
    start = 0
    for forward, forward_scores, back, back_scores in _over_blocks(best, len(source), len(target)):
        stop = start + len(forward)
        nearest[start:stop], scores[start:stop] = forward, forward_scores
        better = back_scores > highest
        from_target[better], highest[better] = back[better], back_scores[better]
        start = stop
    mutual = np.flatnonzero(from_target[nearest] == np.arange(len(source)))
    return MutualPairs(source_rows=mutual, target_rows=nearest[mutual], scores=scores[mutual])


def _nearest(rows: FloatArray, others: FloatArray, depth: int) -> FloatArray:
    """Return the highest similarities of every row, in no order."""
    kept = min(depth, len(others))

    def nearest(block: slice) -> FloatArray:
        similar = rows[block] @ others.T
        similar.partition(len(others) - kept, axis=1)
        return similar[:, len(others) - kept :].copy()  # not a view, which would keep the block

    return np.concatenate(list(_over_blocks(nearest, len(rows), len(others))))


def _means(similar: FloatArray) -> FloatArray:
    means: FloatArray = similar.mean(axis=1, dtype=np.float64)
    return means.astype(np.float32)


def _over_blocks(work: Callable[[slice], T], rows: int, others: int) -> Iterator[T]:
    """Yield the work of every block of rows in their order, a few blocks ahead on many threads."""
    at_once = max(16, BLOCK_NUMBERS // others)
    blocks = [slice(start, min(start + at_once, rows)) for start in range(0, rows, at_once)]
    with one_blas_thread() as threads:
        if threads == 1 or len(blocks) == 1:
            yield from map(work, blocks)
            return
        with ThreadPoolExecutor(threads) as pool:
            ahead = deque[Future[T]]()
            for block in blocks:
                ahead.append(pool.submit(work, block))
                if len(ahead) > 2 * threads:  # what waits is as wide as the other side
                    yield ahead.popleft().result()
            yield from (done.result() for done in ahead)
