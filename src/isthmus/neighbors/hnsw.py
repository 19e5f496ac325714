"""Approximate nearest neighbours by a navigable small-world graph (HNSW), when asked for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, Metric
from isthmus.neighbors.exact import Neighbors, as_excluded, best, check_k
from isthmus.neighbors.graph import Graph, export_graph, import_graph
from isthmus.neighbors.similarity import Similarity, as_rows

__all__ = ["Hnsw"]

# Faiss builds serially when it is given at most this many rows, and then the graph does not depend
# on the number of threads.
ADD_AT_ONCE = 100


class Hnsw:
    """A graph over a database for fast approximate search; scores and ties as in `top_k`.

    It may miss neighbours; those that it finds carry the exact score. The same database gives the
    same graph whatever the number of threads, so it is built by one thread.

    Parameters
    ----------
    database : array-like of shape (n, dim)
        Kept as it is; it must not change while this object is used.
    metric : {"cosine", "dot", "l2"}, default "cosine"
        For ``dot`` the rows get one more coordinate that makes them equally long (Bachrach et al.
        2014), because graphs need a distance.
    connections : int, default 32
        Edges per row (M of Malkov and Yashunin 2018; the default of faiss).
    build_effort : int, default 80
        Candidates kept while building (efConstruction). Recall hardly grows beyond it on sentence
        embeddings (benchmarks/neighbors_speed.py).
    graph : Graph, optional
        Links that were built over the same database with the same connections (`graph`), instead
        of building them again.

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError, ZeroVectorError, UnknownNameError
    ParameterError
    InputError
        A graph whose links do not fit the database.

    Examples
    --------
    >>> index = Hnsw([[0.0, 1.0], [1.0, 0.0]])
    >>> index.search([[2.0, 0.1]], k=1).rows.tolist()
    [[1]]
    """

    def __init__(
        self,
        database: npt.ArrayLike,
        *,
        metric: Metric = "cosine",
        connections: int = 32,
        build_effort: int = 80,
        graph: Graph | None = None,
    ) -> None:
        import faiss

        check_k(connections, name="connections")
        check_k(build_effort, name="build_effort")
        self.database = as_rows(database, name="database")
        self._similarity = Similarity(self.database, metric)
        width = self.database.shape[1] + (metric == "dot")
        self._graph = faiss.IndexHNSWFlat(width, connections, faiss.METRIC_L2)
        self._graph.hnsw.efConstruction = build_effort
        if graph is not None:
            import_graph(self._graph, graph, self._prepare(0, len(self)))
            return
        for start in range(0, len(self), ADD_AT_ONCE):
            self._graph.add(self._prepare(start, min(start + ADD_AT_ONCE, len(self))))

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.database)

    @property
    def graph(self) -> Graph:
        """The links, to be kept: see the parameter of the same name."""
        return export_graph(self._graph)

    def search(
        self,
        queries: npt.ArrayLike,
        *,
        k: int,
        effort: int = 128,
        exclude: npt.ArrayLike | None = None,
    ) -> Neighbors:
        """Find k near rows for each query.

        Parameters
        ----------
        queries : array-like of shape (m, dim)
        k : int
        effort : int, default 128
            Candidates kept while searching (efSearch); at least k are.
        exclude : array-like of int of shape (m,), optional
            As in `top_k`.

        Returns
        -------
        Neighbors

        Raises
        ------
        DimensionError, EmptyInputError, InvalidVectorsError, ZeroVectorError, ParameterError
        CountMismatchError
        """
        import faiss

        check_k(k)
        check_k(effort, name="effort")
        matrix = as_rows(queries, name="queries", dim=self.database.shape[1])
        own = as_excluded(exclude, queries=len(matrix), rows=len(self))
        lengths = self._similarity.measure_queries(matrix)
        points = self._as_points(self._similarity.prepare_queries(matrix, lengths), database=False)
        wanted = min(len(self), k + 1)
        settings = faiss.SearchParametersHNSW(  # type: ignore[attr-defined]  # not in its stubs
            efSearch=max(effort, wanted)
        )
        _, found = self._graph.search(points, wanted, params=settings)
        rows = np.full((len(matrix), max(k, wanted)), -1, np.int64)
        rows[:, :wanted] = found
        if own is not None:
            rows[rows == own[:, None]] = -1
        rows, scores = best(rows, self._similarity.score(matrix, lengths, rows), k)
        scores[rows < 0] = np.nan
        return Neighbors(rows=rows, scores=scores)

    def _prepare(self, start: int, stop: int) -> FloatArray:
        return self._as_points(self._similarity.prepare_rows(start, stop), database=True)

    def _as_points(self, prepared: FloatArray, *, database: bool) -> FloatArray:
        """Turn vectors prepared for inner products into points whose distances order the same."""
        dim = self.database.shape[1]
        if self._similarity.metric == "l2":
            points = prepared[:, :dim] if database else prepared[:, :dim] / prepared[:, dim:]
            return np.ascontiguousarray(points)
        if self._similarity.metric == "dot":
            rest = np.zeros(len(prepared), np.float32)
            if database:
                squares = np.einsum("nd,nd->n", prepared, prepared, dtype=np.float64)
                rest = np.sqrt(np.maximum(1.0 - squares, 0.0)).astype(np.float32)
            return np.concatenate([prepared, rest[:, None]], axis=1)
        return prepared
