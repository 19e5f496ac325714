"""The candidates of a federated search, as arrays: one row per query, one column per place.

Each source fills ``depth`` columns of its own, best first, so that a column says which source and
which place in that source's list; the source's name, its space and the rank are kept once per
column, not once per candidate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IdArray, IntArray
from isthmus.errors import ParameterError
from isthmus.rankings import Outage

__all__ = ["Candidates", "first_columns"]


@dataclass(frozen=True)
class Candidates:
    """What the sources gave for a batch of queries, and how similar it is in every space.

    Shapes: m queries, w = sources x depth columns, s spaces (the hub's is space 0).

    Parameters
    ----------
    ids : IdArray of shape (m, w)
        The empty id where a source gave fewer than ``depth``.
    similarities : FloatArray of shape (s, m, w)
        Canonical similarity of query and candidate in each space, higher is better: native in the
        candidate's own space, after mapping in the others; NaN where there is no candidate, and in
        the spaces that the fusion method did not ask for.
    source : IntArray of shape (w,)
        Which source each column comes from.
    rank : IntArray of shape (w,)
        Place of each column in its source's list, from 1.
    space : IntArray of shape (w,)
        The space that each column's source holds.
    same : IntArray of shape (m, w)
        The first column of the row that holds the same document: the column itself, unless
        documents were merged.
    outages : tuple of Outage, default ()
        Sources that gave nothing, and why.
    explained : FloatArray of shape (s, m, w), optional
        As ``similarities``, in every space, when that was asked for.
    skipped : boolean array of shape (m, n_sources), optional
        Sources that the budget left out; None where it left out none.
    common : FloatArray of shape (m, w), optional
        Similarity in a common space, when the fusion method asked for it.
    common_directions : int, optional
        How many directions of it count in ``common``, at most.
    compared : tuple of int, optional
        Spaces in which the candidates of all other spaces were compared; None: in all.

    Examples
    --------
    >>> found = Candidates(
    ...     ids=np.array([["a", "b"]]),
    ...     similarities=np.array([[[0.9, 0.4]], [[0.7, 0.8]]], dtype=np.float32),
    ...     source=np.array([0, 1]), rank=np.array([1, 1]), space=np.array([0, 1]),
    ...     same=np.array([[0, 1]]),
    ... )
    >>> found.native.tolist() == np.array([[0.9, 0.8]], dtype=np.float32).tolist()
    True
    >>> found.mapped.tolist() == np.array([[0.7, 0.4]], dtype=np.float32).tolist()
    True
    """

    ids: IdArray
    similarities: FloatArray
    source: IntArray
    rank: IntArray
    space: IntArray
    same: IntArray
    outages: tuple[Outage, ...] = ()
    explained: FloatArray | None = None
    skipped: npt.NDArray[np.bool_] | None = None
    common: FloatArray | None = None
    common_directions: int | None = None
    compared: tuple[int, ...] | None = None

    def __repr__(self) -> str:
        """Say how many candidates there are; the arrays may be long."""
        many = int(np.count_nonzero(self.ids != ""))
        return (
            f"Candidates({many:,} for {len(self.ids):,} queries, {self.n_spaces} spaces, "
            f"{len(self.outages)} outages)"
        )

    @cached_property
    def found(self) -> npt.NDArray[np.bool_]:
        """Where there is a candidate, shape (m, w)."""
        return np.asarray(self.ids != "")

    @cached_property
    def native(self) -> FloatArray:
        """Similarity in each candidate's own space, shape (m, w)."""
        columns = np.arange(len(self.space))
        native: FloatArray = self.similarities[self.space, :, columns].T
        return native

    @cached_property
    def mapped(self) -> FloatArray:
        """Mean similarity over the other spaces, shape (m, w); NaN where none was asked for."""
        if len(self.similarities) == 2:
            columns = np.arange(len(self.space))
            other: FloatArray = self.similarities[1 - self.space, :, columns].T
            return other
        others = self.similarities.copy()
        others[self.space, :, np.arange(len(self.space))] = np.nan
        known = np.isfinite(others)
        count = known.sum(axis=0)
        total = np.where(known, others, np.float32(0)).sum(axis=0)
        mean = np.full(total.shape, np.nan, dtype=np.float32)
        np.divide(total, count, out=mean, where=count > 0)
        return mean

    @property
    def n_spaces(self) -> int:
        """Count the spaces, the hub's included."""
        return len(self.similarities)

    def check_compared(self, spaces: Iterable[int]) -> None:
        """Refuse candidates that were not compared in one of these spaces, where it counts.

        Raises
        ------
        ParameterError
        """
        if self.compared is None:
            return
        missing = [
            space for space in spaces if space not in self.compared and (self.space != space).any()
        ]
        if missing:
            raise ParameterError(
                expected="candidates that were compared in every space that the method looks at",
                got=f"those of another fusion method, which lack space {missing[0]}",
                do="take them from a federation with this fusion method, or one with score",
            )

    def total(self, values: FloatArray) -> FloatArray:
        """Sum values of shape (m, w) over the columns of one document, at each of its columns."""
        rows = np.arange(len(self.same))[:, None]
        sums = np.zeros(self.same.shape, dtype=np.float64)
        np.add.at(sums, (rows, self.same), np.where(self.found, values, 0.0))
        return np.asarray(sums[rows, self.same])


def first_columns(ids: IdArray, *, merge: bool) -> IntArray:
    """Return, per id, the first column of its row that holds the same id, shape of ``ids``.

    Parameters
    ----------
    ids : IdArray of shape (m, w)
    merge : bool
        When False every column stands for itself.

    Examples
    --------
    >>> first_columns(np.array([["a", "b", "a", ""]]), merge=True).tolist()
    [[0, 1, 0, 3]]
    """
    columns = np.broadcast_to(np.arange(ids.shape[1], dtype=np.int64), ids.shape)
    if not merge:
        return columns
    order = np.argsort(ids, axis=1, kind="stable")
    in_order = np.take_along_axis(ids, order, axis=1)
    starts = np.zeros(ids.shape, dtype=np.int64)  # where each run of equal ids begins
    starts[:, 1:] = np.where(in_order[:, 1:] != in_order[:, :-1], columns[:, 1:], 0)
    np.maximum.accumulate(starts, axis=1, out=starts)
    first = np.empty(ids.shape, dtype=np.int64)
    np.put_along_axis(first, order, np.take_along_axis(order, starts, axis=1), axis=1)
    return np.where(ids == "", columns, first)
