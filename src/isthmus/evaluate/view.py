"""Held-out rows seen from both sides: what every preservation measure looks at.

The native side (the target's own vectors searching the target's collection) is worked out once and
shared by all maps under comparison; the mapped side is searched once and shared by all measures.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray, Metric
from isthmus._validate import as_matrix, check_pairs
from isthmus.errors import CountMismatchError, ParameterError
from isthmus.evaluate.k_means import cluster_count, cluster_rows, ready_rows
from isthmus.neighbors import Exact, Neighbors
from isthmus.neighbors.exact import as_excluded

__all__ = ["NATIVE_DEPTH", "SEARCH_DEPTH", "Native", "View"]

# Native neighbours whose order is compared (rank_corr).
NATIVE_DEPTH = 100
# Neighbours of each mapped row that are kept, besides the row itself.
SEARCH_DEPTH = 10


class Native:
    """The native side: target rows and their neighbours in the target's own collection.

    Parameters
    ----------
    target : array-like of shape (m, dim_target)
        Native vectors of the held-out rows.
    collection : array-like of shape (n, dim_target), optional
        What they search; the held-out rows themselves by default.
    own_rows : array-like of int of shape (m,), optional
        Row of the collection that is the held-out row itself, -1 for none. By default each row's
        own place without a collection, and none with one (queries against documents).
    metric : {"cosine", "dot", "l2"}, default "cosine"
    depth : int, default 100
        Native neighbours to keep, besides the row itself; fewer where the collection is smaller.

    Attributes
    ----------
    found : Neighbors of shape (m, depth + 1)
        What the native rows find, themselves included.
    neighbors : Neighbors of shape (m, depth)
        The same without themselves.

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError, ZeroVectorError, CountMismatchError
    ParameterError, UnknownNameError

    Examples
    --------
    >>> native = Native([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], depth=2)
    >>> native.neighbors.rows.tolist()
    [[1, 2], [0, 2], [1, 0]]
    """

    def __init__(
        self,
        target: npt.ArrayLike,
        collection: npt.ArrayLike | None = None,
        *,
        own_rows: npt.ArrayLike | None = None,
        metric: Metric = "cosine",
        depth: int = NATIVE_DEPTH,
    ) -> None:
        self.target = as_matrix(target, name="target")
        self.metric: Metric = metric
        self.index = Exact(self.target if collection is None else collection, metric=metric)
        if own_rows is None:
            own_rows = np.arange(len(self.target)) if collection is None else _nobody(self.target)
        own = as_excluded(own_rows, queries=len(self.target), rows=len(self.index))
        self.own_rows: IntArray = _nobody(self.target) if own is None else own
        self.found = self.index.search(self.target, k=min(depth + 1, len(self.index)))
        self.neighbors = without_own(self.found, self.own_rows, keep=depth)
        self._clusters: dict[int, tuple[IntArray, IntArray]] = {}

    def clusters(self, *, seed: int) -> tuple[IntArray, IntArray]:
        """Return clusters of the native rows and the rows they started from, worked out once."""
        if seed not in self._clusters:
            rows = ready_rows(self.target, self.metric)
            self._clusters[seed] = cluster_rows(rows, cluster_count(len(rows)), seed=seed)
        return self._clusters[seed]


class View:
    """Held-out rows through one map, beside their native side.

    Parameters
    ----------
    mapped : array-like of shape (m, dim)
        Source rows of the held-out pairs, mapped into the comparison space.
    native : Native
    target, collection : array-like of shape (m, dim) and (n, dim), optional
        The target side in the comparison space, where the map moves it; the native vectors by
        default.
    depth : int, default 10
        Neighbours of the mapped rows to look at.

    Attributes
    ----------
    found : Neighbors of shape (m, depth + 1)
        What the mapped rows find in the collection, their own target rows included.
    neighbors : Neighbors of shape (m, depth)
        The same without their own target rows.
    mapped_scores : FloatArray of shape (m, native depth)
        Similarity of the mapped row to the native neighbours, beside ``native.neighbors.scores``.
    own_scores : FloatArray of shape (m,)
        Similarity of the mapped row to its own target row.

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError, ZeroVectorError, CountMismatchError

    Examples
    --------
    >>> rows = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]
    >>> View(rows, Native(rows), depth=1).neighbors.rows.tolist()
    [[1], [0], [1]]
    """

    def __init__(
        self,
        mapped: npt.ArrayLike,
        native: Native,
        *,
        target: npt.ArrayLike | None = None,
        collection: npt.ArrayLike | None = None,
        depth: int = SEARCH_DEPTH,
    ) -> None:
        self.native = native
        self.depth = depth
        self.target = native.target if target is None else as_matrix(target, name="target")
        self.index = self._index_of(collection)
        if len(self.index) != len(native.index):
            raise CountMismatchError(
                expected=f"the {len(native.index)} rows of the native collection",
                got=f"{len(self.index)}",
                do="carry the whole collection into the comparison space, in the same order",
            )
        dim = self.index.database.shape[1]
        self.mapped = as_matrix(mapped, name="mapped", dim=dim)
        check_pairs(self.mapped, self.target, minimum=1)
        check_pairs(self.mapped, native.target, minimum=1)

    def _index_of(self, collection: npt.ArrayLike | None) -> Exact:
        native = self.native
        if collection is None and not np.array_equal(self.target, native.target):
            if native.index.database is not native.target:
                raise ParameterError(
                    expected="the collection in the comparison space, as the target rows are moved",
                    got="none",
                    do="carry the collection there too",
                )
            collection = self.target
        if collection is None or collection is native.index.database:
            return native.index
        return Exact(collection, metric=native.metric)

    @cached_property
    def found(self) -> Neighbors:
        """Search the collection, own rows included."""
        return self.index.search(self.mapped, k=min(self.depth + 1, len(self.index)))

    @cached_property
    def neighbors(self) -> Neighbors:
        """What was found, without own rows."""
        return without_own(self.found, self.native.own_rows, keep=self.depth)

    @cached_property
    def mapped_scores(self) -> FloatArray:
        """Score the native neighbours from the mapped rows."""
        return self.index.score(self.mapped, self.native.neighbors.rows)

    @cached_property
    def own_scores(self) -> FloatArray:
        """Score each mapped row's own target row."""
        own = np.arange(len(self.mapped))[:, None]
        index = Exact(self.target, metric=self.native.metric, keep=False)
        return index.score(self.mapped, own)[:, 0]


def view_of(
    mapped: npt.ArrayLike,
    target: npt.ArrayLike,
    collection: npt.ArrayLike | None,
    own_rows: npt.ArrayLike | None,
    metric: Metric,
    *,
    depth: int = SEARCH_DEPTH,
    native_depth: int = NATIVE_DEPTH,
) -> View:
    """Make a view whose target side does not move, as the measures by themselves take it."""
    native = Native(target, collection, own_rows=own_rows, metric=metric, depth=native_depth)
    return View(mapped, native, depth=depth)


def without_own(found: Neighbors, own_rows: IntArray, *, keep: int) -> Neighbors:
    """Drop each query's own row, close the gap, and keep at most ``keep`` neighbours."""
    mine = found.rows == own_rows[:, None]
    order = np.argsort(mine, axis=1, kind="stable")
    rows = np.take_along_axis(np.where(mine, -1, found.rows), order, axis=1)
    scores = np.take_along_axis(np.where(mine, np.nan, found.scores), order, axis=1)
    return Neighbors(rows=rows[:, :keep], scores=scores[:, :keep])


def _nobody(target: FloatArray) -> IntArray:
    return np.full(len(target), -1, np.int64)
