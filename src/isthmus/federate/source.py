"""A source of a federation: a store, its name, and the bridges between the hub's space and its."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isthmus._types import FloatArray, IdArray, IntArray
from isthmus.errors import (
    ParameterError,
    SpaceMismatchError,
    StoreError,
    UnsupportedOperationError,
    WrongDirectionError,
)

if TYPE_CHECKING:
    from isthmus.bridge import Bridge
    from isthmus.spaces import Space, VectorSet
    from isthmus.stores.base import Found, Store

__all__ = ["Source", "check_bridge"]


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

    def search(self, queries: FloatArray, *, depth: int) -> Found:
        """Return the ``depth`` best rows per query, checked: a store may be at fault.

        Raises
        ------
        StoreError
            Arrays of another shape than (n_queries, depth), or a hit without a finite score.
        """
        with self.noting():
            found = self.store.search(queries, k=depth)
        expected = (len(queries), depth)
        for what in (found.ids, found.scores):
            if what.shape != expected:
                raise StoreError(
                    expected=f"arrays of shape {expected} from the store of source {self.name!r}",
                    got=f"shape {what.shape}",
                    do="report it to the maintainers of that store",
                )
        bad = (found.ids != "") & ~np.isfinite(found.scores)
        if bad.any():
            row, place = (int(at[0]) for at in np.nonzero(bad))
            raise StoreError(
                expected=f"finite scores from the store of source {self.name!r}",
                got=f"{found.scores[row, place]} for id {str(found.ids[row, place])!r}",
                do="look for NaN or infinity in its vectors, and replace them",
            )
        return found

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
        """
        with self.noting():
            gathered = self.store.gather(ids)
        return gathered.vectors, gathered.rows

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Say in a note of whatever is raised inside which source it was."""
        try:
            yield
        except Exception as error:
            error.add_note(f"in source {self.name!r}, {self.store.url}")
            raise


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
