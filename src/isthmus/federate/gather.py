"""Gather and propagate: candidates of all sources, compared with the query in other spaces too.

Each distinct document is fetched and mapped once, however many queries found it, so that the cost
of mapping grows with the documents found and not with the queries.

Reference: HVMap, section 3.4.1 ("the retrieved vectors from each spoke are mapped back to the hub
space ... the entire candidate pool is then propagated from the hub to each spoke space in a single
batch, excluding the vectors originally retrieved from that spoke").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isthmus._types import FloatArray, IntArray
from isthmus.federate.similarity import pair_similarity
from isthmus.federate.source import Source
from isthmus.federate.spokes import Spoke
from isthmus.stores.base import Found

__all__ = ["similarities"]


@dataclass(frozen=True)
class _Pool:
    """The distinct candidates of one source: vectors (n, dim), and the row of each candidate."""

    source: int
    space: int
    vectors: FloatArray
    rows: IntArray


def similarities(
    sources: Sequence[Source],
    spokes: Sequence[Spoke],
    space: IntArray,
    *,
    queries: Sequence[FloatArray],
    found: Sequence[Found],
    wanted: Sequence[int],
) -> FloatArray:
    """Return the similarities (n_spaces, m, n_sources x depth) of all candidates.

    Parameters
    ----------
    sources : sequence of Source
    spokes : sequence of Spoke
        The spaces, the hub's first.
    space : IntArray of shape (n_sources,)
        The space of each source.
    queries : sequence of FloatArray of shape (m, dim of that space), one per space
    found : sequence of Found, one per source
    wanted : sequence of int
        Spaces in which the candidates of the other spaces are compared; the rest stays NaN.
    """
    depth = found[0].ids.shape[1]
    shape = (len(spokes), len(queries[0]), len(sources) * depth)
    result = np.full(shape, np.nan, dtype=np.float32)
    for source, one in enumerate(found):
        result[space[source], :, source * depth : (source + 1) * depth] = one.scores
    pools = [
        _Pool(row, int(space[row]), *source.gather(found[row].ids))
        for row, source in enumerate(sources)
        if any(target != space[row] for target in wanted)
    ]
    pools = [pool for pool in pools if len(pool.vectors)]
    in_hub = {
        pool.source: pool.vectors if pool.space == 0 else spokes[pool.space].to_hub(pool.vectors)
        for pool in pools
    }
    for target in wanted:
        guests = [pool for pool in pools if pool.space != target]
        for pool, vectors in zip(
            guests, _land(spokes[target], target, guests, in_hub), strict=True
        ):
            columns = slice(pool.source * depth, (pool.source + 1) * depth)
            result[target, :, columns] = pair_similarity(
                queries[target], vectors, pool.rows, metric=spokes[target].space.metric
            )
    return result


def _land(
    spoke: Spoke, target: int, guests: Sequence[_Pool], in_hub: dict[int, FloatArray]
) -> Sequence[FloatArray]:
    """Carry the gathered candidates of all guests into one space, in a single batch."""
    gathered = [in_hub[pool.source] for pool in guests]
    if target == 0 or not gathered:
        return gathered
    if len(gathered) == 1:  # two stores: spare the copy
        return [spoke.from_hub(gathered[0])]
    ends = np.cumsum([len(rows) for rows in gathered])[:-1]
    return np.split(spoke.from_hub(np.concatenate(gathered)), ends)
