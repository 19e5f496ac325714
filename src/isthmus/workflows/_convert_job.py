"""One conversion: its two stores, its bridge, and what is refused before anything is written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._linalg import normalise
from isthmus._types import FloatArray
from isthmus.bridge import Bridge
from isthmus.errors import (
    AccessDeniedError,
    EmptyInputError,
    MissingCollectionError,
    MissingFileError,
    ParameterError,
    ReadOnlyStoreError,
    SpaceMismatchError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore
from isthmus.stores.base import Batch, Held, Store
from isthmus.workflows._convert_checkpoint import (
    State,
    check_bridge,
    check_notes_or_file,
    refuse_foreign,
)
from isthmus.workflows._copying import place_of_store, written_metadata

__all__ = ["OTHER_FIELDS", "Job", "opened", "opened_job"]

ROUNDING = 1e-5
"""By how much a number may differ, relative to the largest of its row, where a store reads back
bit for bit: another machine adds up the products of a bridge in another order."""


OTHER_FIELDS = (
    "the source was made by another program, and the target is laid out by Isthmus: it lacks "
    "fields, types, indexes and rights of the source, and an application that "
    "uses those by name will fail; make an empty collection with the same fields first, or convert "
    "in place: see docs/convert.md"
)
"""Warning before a conversion and after a cutover."""


@dataclass(frozen=True)
class Job:
    """What is carried where.

    Parameters
    ----------
    source : Store
    store : Store
        The target; for a plan of one that is not there or not recorded yet, an empty one in memory.
    url : str
        Of the target.
    bridge : Bridge or None
        None copies the vectors as they are.
    space : Space
        Of the rows of the target.
    in_place : bool
        Whether the target is a further vector of the source's own rows.
    there : bool, default True
        Whether there is such a target already.
    own : bool, default True
        Whether Isthmus made the target, or will.
    """

    source: Store
    store: Store
    url: str
    bridge: Bridge | None
    space: Space
    in_place: bool
    there: bool = True
    own: bool = True

    def start(self) -> State:
        """Return the state before the first batch."""
        bridge = "" if self.bridge is None else self.bridge.hash
        return State(self.source.url, self.source.space.fingerprint, bridge)

    def record_origin(self) -> None:
        """Record which bridge carries the rows, in a target whose space was recorded without it."""
        if self.store.space.bridged_from != self.space.bridged_from:
            space = replace(self.store.space, bridged_from=self.space.bridged_from)
            with contextlib.suppress(
                UnsupportedOperationError, ReadOnlyStoreError, AccessDeniedError
            ):  # the checkpoint says it in any case
                self.store.record_space(space)

    def carry(self, vectors: VectorSet) -> VectorSet:
        """Return rows as they are in the target."""
        if self.bridge is None:
            return vectors
        return self.bridge.apply(vectors)

    def scan(self, batch_rows: int, cursor: str = "") -> Iterator[Batch]:
        """Yield the rows of the source, carried over."""
        for batch in self.source.scan(batch_size=batch_rows, cursor=cursor):
            yield Batch(self.carry(batch.vectors), batch.cursor, batch.metadata)

    def metadata(self, batch: Batch) -> tuple[list[dict[str, Any]] | None, bool]:
        """Return the metadata to be written, and whether any are left out."""
        return (None, False) if self.in_place else written_metadata(self.store, batch)

    def differing(self, batch: Batch, held: Held) -> tuple[npt.NDArray[np.bool_], ...]:
        """Tell which rows of a carried batch the target lacks, and which it has otherwise.

        Returns
        -------
        missing, changed : boolean arrays of shape (n,)
        """
        places = {text: place for place, text in enumerate(held.ids)}
        at = np.array([places.get(text, -1) for text in batch.vectors.ids.tolist()], np.int64)
        there = at >= 0
        changed = np.zeros(len(at), np.bool_)
        rows = batch.vectors.matrix()[there]
        changed[there] = self._unlike(rows, held.vectors[at[there]])
        if self.store.capabilities.filters and not self.in_place:
            for row in np.flatnonzero(there & ~changed).tolist():
                changed[row] = batch.metadata[row] != held.metadata[at[row]]
        return ~there, changed

    def _unlike(self, expected: FloatArray, found: FloatArray) -> npt.NDArray[np.bool_]:
        """Tell which rows differ by more than what the store declares for reading back."""
        able = self.store.capabilities
        if not able.stores_raw:
            expected, found = normalise(expected), normalise(found)
        limit = max(able.read_back_error, ROUNDING) * np.abs(expected).max(axis=1, initial=0.0)
        near: npt.NDArray[np.bool_] = np.abs(expected - found).max(axis=1, initial=0.0) <= limit
        return ~near  # NaN is near nothing


@contextlib.contextmanager
def opened(store: Store | str, *, space: Space | None = None) -> Iterator[Store]:
    """Give a store, opened from its URL and closed again, or as it was handed over."""
    if isinstance(store, Store):
        if space is not None:
            store.space.check(space, what="vectors for the target")
        yield store
        return
    from isthmus.stores.registry import open_store

    with open_store(store, space=space) as found:
        yield found


@contextlib.contextmanager
def opened_job(
    source: Store | str,
    target: Store | str,
    bridge: Bridge | Path | str | None,
    *,
    create: bool,
    checkpoint: Path | str | None = None,
    needs_notes: bool = True,
) -> Iterator[Job]:
    """Open both sides, after refusing what cannot be converted.

    Parameters
    ----------
    source, target : Store or URL
    bridge : Bridge, path of its folder, or None
    create : bool
        Whether to make the target where it is not there.
    checkpoint : path, optional
        Of the file that is kept in place of notes.
    needs_notes : bool, default True
        Whether to refuse a target that keeps none, where there is no such file.

    Raises
    ------
    ParameterError, SpaceMismatchError, WrongDirectionError, UnsupportedOperationError
    EmptyInputError
    """
    fitted = Bridge.load(bridge) if isinstance(bridge, Path | str) else bridge
    if fitted is not None:
        fitted.check_lands_in_target()
    in_place = _check_apart(source, target)
    with opened(source) as read:
        space = _space_of_target(read, fitted)
        if not read.count():
            raise EmptyInputError(
                expected="rows in the source", got=f"none in {read.url}", do="check its name"
            )
        with contextlib.ExitStack() as stack:
            if isinstance(target, str) and needs_notes:
                _check_scheme(target, checkpoint)
            found = _open_target(target, space, stack, create=create)
            check_bridge(found.store, "" if fitted is None else fitted.hash, checkpoint)
            found.store.space.check(space, what="vectors for the target")
            yield Job(read, found.store, found.url, fitted, space, in_place, found.there, found.own)


def _check_apart(source: Store | str, target: Store | str) -> bool:
    """Refuse to write into what is read; return whether both are vectors of the same rows."""
    here, there = (
        place_of_store(one if isinstance(one, str) else one.url) if _lasts(one) else None
        for one in (source, target)
    )
    if source is target or (here is not None and here == there):
        raise ParameterError(
            expected="a target of its own, next to the source",
            got="the source itself",
            do="name a new collection, or, where the store has several vectors, a new vector of "
            "the same one: &vector=NAME",
        )
    return here is not None and there is not None and here[0] == there[0]


def _lasts(store: Store | str) -> bool:
    return isinstance(store, str) or store.capabilities.persistent


def _space_of_target(source: Store, bridge: Bridge | None) -> Space:
    if not source.recorded:
        raise SpaceMismatchError(
            expected="a source whose space is known",
            got=f"{source.url}, of which nobody recorded which model made it",
            do="if you know it, say so: isthmus store record URL --model NAME",
        )
    return source.space if bridge is None else bridge.space_of_applied(source.space)


def _check_scheme(url: str, checkpoint: Path | str | None) -> None:
    """Refuse a target without a place for the cursor before it is made."""
    from isthmus.stores.registry import scheme_of, store_class

    check_notes_or_file(store_class(scheme_of(url)), checkpoint)


@dataclass(frozen=True)
class _Target:
    """The target, or what stands in for it in a plan; the rest is as in `Job`."""

    store: Store
    url: str
    there: bool
    own: bool


def _open_target(
    target: Store | str, space: Space, stack: contextlib.ExitStack, *, create: bool
) -> _Target:
    """Open the target; make it, and record its space, only where it is to be written."""
    found, there = _find(target, stack)
    url = found.url if found is not None else str(target)
    own = found.own if found is not None else not there
    if found is not None and not found.recorded:
        found = _to_be_recorded(found, space, create=create)
    elif found is None and create:
        found = stack.enter_context(opened(target, space=space))
    return _Target(found or MemoryStore(space), url, there or create, own)


def _find(target: Store | str, stack: contextlib.ExitStack) -> tuple[Store | None, bool]:
    """Open the target where it can be opened; return also whether it is there. Make nothing."""
    try:
        return stack.enter_context(opened(target)), True
    except (MissingCollectionError, MissingFileError):
        return None, False
    except EmptyInputError:  # of another program, and nobody knows yet how long its vectors will be
        return None, True


def _to_be_recorded(target: Store, space: Space, *, create: bool) -> Store | None:
    """Record the space of an empty collection of another program; None where only a plan is made.

    Raises
    ------
    ParameterError
        It holds rows, of which nobody said which model made them.
    SpaceMismatchError
        The database has another dimension or metric.
    """
    if count := target.count():
        raise refuse_foreign(count)
    if create:
        target.record_space(space)
        return target
    have, wanted = ((one.dim, one.metric) for one in (target.space, space))
    if have != wanted:
        raise SpaceMismatchError(
            expected=f"a target of dimension {wanted[0]} and metric {wanted[1]}",
            got=f"dimension {have[0]} and metric {have[1]} in {target.url}",
            do="make it for vectors of that length",
        )
    return None
