"""A source of a federation: a store, its name, and the bridges between the hub's space and its."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus._types import FloatArray, IdArray, IntArray
from isthmus.errors import (
    InputError,
    ParameterError,
    SpaceMismatchError,
    StoreError,
    UnknownIdError,
    UnsupportedOperationError,
    WrongDirectionError,
)
from isthmus.federate.candidates import first_columns

if TYPE_CHECKING:
    from isthmus.bridge import Bridge
    from isthmus.spaces import Space, VectorSet
    from isthmus.stores.base import Store

__all__ = ["Source", "UnusableAnswerError", "check_bridge", "check_common"]

IN_PROCESS = frozenset({"memory", "sqlite"})
"""Schemes of stores that compute in this process: a time limit would only abandon, not end it."""


class UnusableAnswerError(StoreError):
    """An answer that breaks the contract of stores: it is not asked for again."""


@dataclass(frozen=True)
class Source:
    """One store of a federation.

    Parameters
    ----------
    name : str
        What its hits are called by; each name once in a federation.
    store : Store
    to_store : Bridge, optional
        From the hub's space to the store's.
    to_hub : Bridge, optional
        From the store's space to the hub's. Both are left out where the store holds the hub's
        space, or where another source of the same space has them.
    supersedes : str, optional
        Name of another source whose ids mean the same documents and which this one replaces: what
        both give for a query counts from here, and once. For a migration under way.
    common : Bridge, optional
        Between the hub's space and the store's, fitted with ``cca`` or another method that lands in
        a comparison space: for fusion ``cca``, and for ``score`` where every spoke has one.
    timeout : float, optional
        Seconds for one search of this store, see `Federation`; default: that of the federation, and
        none for the stores that compute in this process (``memory``, ``sqlite``).

    Raises
    ------
    ParameterError
        An empty name.
    WrongDirectionError
        The two bridges, or the ends of one, are exchanged.
    SpaceMismatchError
        A bridge whose end is not the store's space.
    UnsupportedOperationError
        A bridge that lands in a comparison space: no store can be searched there.
    """

    name: str
    store: Store
    to_store: Bridge | None = None
    to_hub: Bridge | None = None
    timeout: float | None = None
    common: Bridge | None = None
    supersedes: str | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise ParameterError(
                expected="a name for each source", got="an empty one", do="name the store"
            )
        space = self.store.space
        if self.to_store is not None:
            check_bridge(self.to_store, target=space, name=f"to_store of source {self.name!r}")
        if self.to_hub is not None:
            check_bridge(self.to_hub, source=space, name=f"to_hub of source {self.name!r}")
        if self.common is not None:
            check_common(self.common, target=space, name=f"common of source {self.name!r}")

    @property
    def in_process(self) -> bool:
        """Say whether its store computes in this process, or will when it can be opened."""
        from isthmus.federate.unopened import UnopenedStore
        from isthmus.stores.registry import scheme_of

        if isinstance(self.store, UnopenedStore):
            return scheme_of(self.store.url) in IN_PROCESS
        return self.store.scheme in IN_PROCESS

    def search(self, queries: FloatArray, *, depth: int) -> tuple[IdArray, FloatArray]:
        """Return ids and canonical scores of the ``depth`` best rows per query, both (m, depth).

        They are checked: a store may be at fault. An id that comes twice for one query keeps its
        first place, the others become empty.

        Raises
        ------
        UnusableAnswerError
            What are not arrays of shape (n_queries, depth), of text and of numbers; a hit without a
            finite score.
        """
        with self.noting():
            found = self.store.search(queries, k=depth)
        self._check_array(found, "ids", "U", (len(queries), depth))
        self._check_array(found, "scores", "f", (len(queries), depth))
        bad = (found.ids != "") & ~np.isfinite(found.scores)
        if bad.any():
            row, place = (int(at[0]) for at in np.nonzero(bad))
            raise UnusableAnswerError(
                expected=f"finite scores from the store of source {self.name!r}",
                got=f"{found.scores[row, place]} for id {str(found.ids[row, place])!r}",
                do="look for NaN or infinity in its vectors, and replace them",
            )
        return _once(found.ids, np.where(found.ids == "", np.float32("nan"), found.scores))

    def _check_array(self, found: object, name: str, kind: str, shape: tuple[int, int]) -> None:
        what: Any = getattr(found, name, None)
        array = isinstance(what, np.ndarray)
        if array and what.shape == shape and what.dtype.kind == kind:
            return
        raise UnusableAnswerError(
            expected=f"{name} of shape {shape} from the store of source {self.name!r}",
            got=f"shape {what.shape} of {what.dtype}" if array else f"a {type(what).__name__}",
            do="report it to the maintainers of that store",
        )

    def gather(self, ids: IdArray) -> tuple[VectorSet | None, IntArray]:
        """Return the distinct rows of these ids, and where each id finds its own.

        Parameters
        ----------
        ids : IdArray of shape (m, depth)
            The empty id for no candidate.

        Returns
        -------
        vectors : VectorSet of n rows, or None where there is no candidate at all
        rows : IntArray of shape (m, depth)
            -1 for the empty id.

        Raises
        ------
        UnknownIdError
            A row that was removed since the search.
        UnusableAnswerError
            Rows that are not those of the ids; vectors of another space, or that are no vectors.
        """
        try:
            with self.noting():
                gathered = self.store.gather(ids)
        except UnknownIdError:
            raise
        except (InputError, SpaceMismatchError) as error:  # the ids are its own, not the caller's
            raise UnusableAnswerError(
                expected=f"the vectors of what the store of source {self.name!r} found",
                got=str(error),
                do="look for damaged vectors in it, and replace them",
            ) from error
        vectors, rows = gathered.vectors, gathered.rows
        n_vectors = 0 if vectors is None else len(vectors)
        if (
            not isinstance(rows, np.ndarray)
            or rows.shape != ids.shape
            or rows.dtype.kind != "i"
            or ((rows < 0) != (ids == "")).any()
            or (rows.size and rows.max() >= n_vectors)
            or not (vectors is None or self._holds(vectors.space))
            or not (vectors is None or (vectors.ids[rows] == ids)[rows >= 0].all())
        ):
            raise UnusableAnswerError(
                expected=f"one row of its space per id from the store of source {self.name!r}",
                got=f"{n_vectors:,} vectors and rows of shape {np.shape(rows)} for ids of shape "
                f"{ids.shape}, or vectors of other ids",
                do="report it to the maintainers of that store",
            )
        return vectors, rows

    def _holds(self, space: Space) -> bool:
        own = self.store.space
        return space is own or space.fingerprint == own.fingerprint

    def without_gone(self, ids: IdArray) -> IdArray:
        """Return the ids (m, depth), empty where the store has no such row, found by halving."""
        gone = self._gone(np.unique(ids[ids != ""]))
        return np.where(np.isin(ids, gone), "", ids)

    def _gone(self, ids: IdArray) -> list[str]:
        if not len(ids):
            return []
        try:
            self.gather(ids)
        except UnknownIdError:
            middle = len(ids) // 2
            if middle == 0:
                return [str(ids[0])]
            return [*self._gone(ids[:middle]), *self._gone(ids[middle:])]
        return []

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Say in a note of whatever is raised inside which source it was."""
        try:
            yield
        except Exception as error:
            note = f"in source {self.name!r}, {self.store.url}"
            if note not in getattr(error, "__notes__", ()):  # the same error, tried again
                error.add_note(note)
            raise


def _once(ids: IdArray, scores: FloatArray) -> tuple[IdArray, FloatArray]:
    """Return both with all but the first place of each id in its row empty."""
    in_order = np.sort(ids, axis=1)
    repeated = in_order[:, 1:] == in_order[:, :-1]
    if not (repeated.any() and (repeated & (in_order[:, 1:] != "")).any()):
        return ids, scores
    again = first_columns(ids, merge=True) != np.arange(ids.shape[1])
    return np.where(again, "", ids), np.where(again, np.float32("nan"), scores)


def check_bridge(
    bridge: Bridge, *, name: str, source: Space | None = None, target: Space | None = None
) -> None:
    """Refuse a bridge that does not lead from ``source`` or not to ``target``, where given.

    Parameters
    ----------
    bridge : Bridge
    name : str
        What it is, for the message.
    source, target : Space, optional
        Where it must start and end.

    Raises
    ------
    WrongDirectionError, SpaceMismatchError, UnsupportedOperationError
    """
    if bridge.lands_in != "target":
        raise UnsupportedOperationError(
            expected=f"a bridge that lands in its target space as {name}",
            got=f"one that lands in a comparison space ({bridge.method})",
            do="fit it with a method that lands in the target: auto, procrustes, low_rank, ridge",
        )
    _check_ends(bridge, name=name, source=source, target=target)


def check_common(
    bridge: Bridge, *, name: str, source: Space | None = None, target: Space | None = None
) -> None:
    """Refuse a bridge that lands in its target, or that does not join the two spaces, where given.

    Raises
    ------
    WrongDirectionError, SpaceMismatchError, UnsupportedOperationError
    """
    if bridge.lands_in != "comparison":
        raise UnsupportedOperationError(
            expected=f"a bridge that lands in a comparison space as {name}",
            got=f"one that lands in its target space ({bridge.method})",
            do="fit it with --method cca",
        )
    _check_ends(bridge, name=name, source=source, target=target)


def _check_ends(bridge: Bridge, *, name: str, source: Space | None, target: Space | None) -> None:
    for side, wanted, here, there in (
        ("starts in", source, bridge.source, bridge.target),
        ("ends in", target, bridge.target, bridge.source),
    ):
        if wanted is None or wanted.fingerprint == here.fingerprint:
            continue
        problem = {
            "expected": f"a bridge that {side} {wanted} as {name}",
            "got": f"a bridge from {bridge.source} to {bridge.target}",
        }
        if wanted.fingerprint == there.fingerprint:
            raise WrongDirectionError(**problem, do="exchange the two bridges")
        raise SpaceMismatchError(
            **problem, do="fit a bridge between the hub's space and the store's, each way"
        )
