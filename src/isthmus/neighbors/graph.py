"""The links of an HNSW graph as plain arrays, so that it can be kept and put together again.

Faiss trusts what its own reader reads, and follows links without looking where they lead. Arrays
can be checked first: every link that this module accepts leads to a row that exists and that stands
on the layer of the link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus.errors import InputError

__all__ = ["Graph", "export_graph", "import_graph"]


@dataclass(frozen=True)
class Graph:
    """The links of an HNSW graph over n rows.

    Parameters
    ----------
    levels : int32 array of shape (n,)
        On how many layers each row stands, at least 1.
    links : int32 array of shape (n_links,)
        Rows that each row is linked to, layer by layer; -1 for an empty place.
    entry : int
        The row where a search begins, on the highest layer.
    """

    levels: npt.NDArray[np.int32]
    links: npt.NDArray[np.int32]
    entry: int


def export_graph(index: Any) -> Graph:
    """Copy the links of a ``faiss.IndexHNSWFlat``."""
    import faiss

    return Graph(
        levels=faiss.vector_to_array(index.hnsw.levels),
        links=faiss.vector_to_array(index.hnsw.neighbors),
        entry=int(index.hnsw.entry_point),
    )


def import_graph(index: Any, graph: Graph, points: FloatArray) -> None:
    """Fill an empty ``faiss.IndexHNSWFlat`` with points and the links between them.

    Parameters
    ----------
    index : faiss.IndexHNSWFlat
        Made with the same number of connections.
    graph : Graph
    points : FloatArray of shape (n, width)
        Those that the graph was built over.

    Raises
    ------
    InputError
        Links that do not fit; the index is unchanged then.
    """
    import faiss

    places = faiss.vector_to_array(index.hnsw.cum_nneighbor_per_level)
    if not _fits(graph, places, rows=len(points)):
        raise InputError(
            expected=f"an HNSW graph over {len(points):,} rows",
            got="levels or links that lead nowhere",
            do="build the graph anew",
        )
    faiss.downcast_index(index.storage).add(points)
    index.ntotal = len(points)
    starts = np.concatenate([[0], np.cumsum(places[graph.levels])]).astype(np.uint64)
    faiss.copy_array_to_vector(np.ascontiguousarray(graph.levels), index.hnsw.levels)
    faiss.copy_array_to_vector(starts, index.hnsw.offsets)
    faiss.copy_array_to_vector(np.ascontiguousarray(graph.links), index.hnsw.neighbors)
    index.hnsw.entry_point = graph.entry
    index.hnsw.max_level = int(graph.levels[graph.entry]) - 1


def _fits(graph: Graph, places: npt.NDArray[np.int32], *, rows: int) -> bool:
    """Whether every link leads to a row of its layer; ``places`` counts them up to each layer."""
    levels, links = graph.levels, graph.links
    if not (levels.dtype == links.dtype == np.int32 and levels.shape == (rows,)):
        return False
    if levels.min() < 1 or levels.max() >= len(places) or links.ndim != 1:
        return False
    counts = places[levels].astype(np.int64)
    if links.shape != (counts.sum(),) or links.min() < -1 or links.max() >= rows:
        return False
    if not 0 <= graph.entry < rows or levels[graph.entry] != levels.max():
        return False
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    for layer in range(1, int(levels.max())):
        above = starts[levels > layer]
        layer_places = np.arange(places[layer], places[layer + 1])
        targets = links[above[:, None] + layer_places]
        if not ((targets < 0) | (levels[targets] > layer)).all():
            return False
    return True
