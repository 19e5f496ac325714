"""The same document in two stores: found by its id or by its vector, merged into one hit.

By vector, two candidates of one query are one document when each is the other's nearest among the
two lists and they are similar enough. In their own space, where both stores hold the same one,
copies are equal but for rounding. In the hub's space, where a map has moved at least one of them,
different documents may lie as near as copies; but a copy is nearer than all others by far. There
the cosine and its lead, the distance to the next best for either of the two, are added up:

    cos(x, y) + min(0.15, cos(x, y) - max(cos(x, y'), cos(x', y))) >= dedup_similarity

At one precision that finds about twice as many copies as a threshold on the cosine alone; a larger
share of the lead finds hardly more. In spaces whose metric is not the cosine two vectors must have
the same length too: in place of the cosine stands 1 - |x - y|^2 / (|x|^2 + |y|^2), which is the
cosine for rows of one length.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isthmus._linalg import normalise
from isthmus._types import FloatArray, IntArray, Metric

if TYPE_CHECKING:
    from isthmus.federate.candidates import Candidates
    from isthmus.federate.gather import Catch

__all__ = ["DEDUP_SIMILARITY", "EQUAL", "agreeing_columns", "keep_best", "merged_places", "order"]

DEDUP_SIMILARITY = 0.9
"""Cosine and lead in the hub's space from which on two candidates are one document. Chosen for a
precision of .95 on splits that are not reported (``benchmarks/federate_dedup.py``, seeds 100 to
102)."""

EQUAL = 1 - 1e-6
"""Cosine from which on two vectors of one space are equal but for rounding."""

MOST_LEAD = np.float32(0.15)
"""More of a lead is not counted, so that there is a least cosine."""

BLOCK_BYTES = 2**24

NOTHING = np.float32(-4)
"""In place of a cosine where there is no candidate; with a lead it still agrees with none."""


def agreeing_columns(
    catches: Sequence[Catch],
    space_of: IntArray,
    *,
    similarity: float,
    metrics: Sequence[Metric] | None = None,
) -> IntArray:
    """Return, per candidate, the first column of its row that holds the same document.

    Parameters
    ----------
    catches : sequence of Catch
        With their vectors; all of one shape (m, depth).
    space_of : IntArray of shape (n_sources,)
    similarity : float
        Cosine and lead in the hub's space, from which on candidates of different spaces are one
        document.
    metrics : sequence of {"cosine", "dot", "l2"}, optional
        Of all spaces, the hub's first; default: the cosine. Where lengths mean something, they have
        to agree as well.

    Returns
    -------
    IntArray of shape (m, n_sources x depth)
    """
    queries, depth = catches[0].ids.shape
    columns = np.arange(len(catches) * depth, dtype=np.int64)
    same = np.tile(columns, (queries, 1))
    found: list[npt.NDArray[np.int64]] = []
    for first, second in combinations(range(len(catches)), 2):
        one, other = catches[first].vectors, catches[second].vectors
        if one is None or other is None:
            continue
        led = space_of[first] != space_of[second]
        vectors = (one.in_hub, other.in_hub) if led else (one.native, other.native)
        least, space = (similarity, 0) if led else (EQUAL, int(space_of[first]))
        by_angle = metrics is None or metrics[space] == "cosine"
        here, there = map(normalise, vectors) if by_angle else _scaled(*vectors)
        row, left, right = _mutual(
            (here, there), (one.rows, other.rows), least, with_lead=led, by_angle=by_angle
        )
        found.append(np.stack([row, left + first * depth, right + second * depth]))
    if found:
        _join(same, np.concatenate(found, axis=1))
    return same


def _mutual(
    vectors: Sequence[FloatArray],
    rows: Sequence[IntArray],
    least: float,
    *,
    with_lead: bool,
    by_angle: bool,
) -> tuple[IntArray, IntArray, IntArray]:
    """Return query, place here and place there of mutual nearest candidates, near enough."""
    here, there = vectors
    half = [np.einsum("ij,ij->i", each, each) / 2 for each in vectors]
    queries, depth = rows[0].shape
    step = max(1, BLOCK_BYTES // (4 * depth * (here.shape[1] * 2 + depth)))
    parts = []
    for start in range(0, queries, step):
        one, other = (each[start : start + step] for each in rows)
        one_at, other_at = (np.maximum(each, 0) for each in (one, other))
        near = here[one_at] @ there[other_at].transpose(0, 2, 1)
        if not by_angle:
            size = half[0][one_at][:, :, None] + half[1][other_at][:, None, :]
            near = np.divide(near, size, out=np.ones_like(near), where=size > 0)
        near[(one < 0)[:, :, None] | (other < 0)[:, None, :]] = NOTHING
        best = near.argmax(axis=2)
        back = np.take_along_axis(near.argmax(axis=1), best, axis=1)
        score = np.take_along_axis(near, best[:, :, None], axis=2)[:, :, 0]
        if with_lead and depth > 1:
            score = score + _lead(near, best, score)
        query, place = np.nonzero((back == np.arange(depth)) & (score >= least))
        parts.append((query + start, place, best[query, place]))
    row, place, other_place = (np.concatenate(each) for each in zip(*parts, strict=True))
    return row, place, other_place


def _lead(near: FloatArray, best: IntArray, score: FloatArray) -> FloatArray:
    """Return by how much each best exceeds the next best of either side, 0 where there is none."""
    next_here = np.partition(near, -2, axis=2)[:, :, -2]
    next_there = np.take_along_axis(np.partition(near, -2, axis=1)[:, -2, :], best, axis=1)
    rival = np.maximum(next_here, next_there)
    lead: FloatArray = np.where(rival > NOTHING, np.minimum(MOST_LEAD, score - rival), 0)
    return lead


def _scaled(one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both over their largest number, so that no square leaves the range of float32."""
    largest = np.float32(max(np.abs(each).max(initial=0) for each in (one, other)) or 1)
    return one / largest, other / largest


def _join(same: IntArray, links: IntArray) -> None:
    """Give the columns that links (row, column, column) join their first column, in place."""
    row, one, other = links
    while True:
        low = np.minimum(same[row, one], same[row, other])
        if (same[row, one] == low).all() and (same[row, other] == low).all():
            return
        np.minimum.at(same, (row, one), low)
        np.minimum.at(same, (row, other), low)


def order(scores: FloatArray) -> IntArray:
    """Return the columns best first, ties in the order of the columns, NaN last."""
    return np.argsort(-scores, axis=1, kind="stable")


def keep_best(scores: FloatArray, same: IntArray) -> FloatArray:
    """Return the scores with NaN for all but the best candidate of each document."""
    width = scores.shape[1]
    rows = np.arange(len(scores))[:, None]
    place = np.argsort(order(scores), axis=1)
    best = np.full(scores.shape, width, dtype=np.int64)
    np.minimum.at(best, (rows, same), place)
    return np.where(place == best[rows, same], scores, np.float32("nan"))


def merged_places(
    candidates: Candidates, kept: FloatArray, best: IntArray, names: Sequence[str]
) -> dict[tuple[int, int], tuple[tuple[str, str], ...]]:
    """Return, per row and place of the ranking, the store and id of the candidates merged into it.

    Parameters
    ----------
    candidates : Candidates
    kept : FloatArray of shape (m, w)
        NaN for what is merged into another candidate.
    best : IntArray of shape (m, k)
        The columns of the ranking.
    names : sequence of str
        Of the sources.
    """
    also: dict[tuple[int, int], tuple[tuple[str, str], ...]] = {}
    others = candidates.found & np.isnan(kept)
    for row in np.flatnonzero(others.any(axis=1)).tolist():
        same = candidates.same[row]
        places = {
            int(same[column]): place
            for place, column in enumerate(best[row].tolist())
            if not np.isnan(kept[row, column])
        }
        for column in np.flatnonzero(others[row]).tolist():
            place = places.get(int(same[column]))
            if place is not None:
                hit = (str(names[candidates.source[column]]), str(candidates.ids[row, column]))
                also[row, place] = (*also.get((row, place), ()), hit)
    return also
