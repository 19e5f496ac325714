"""Integrate the stores of a federation in one new store: the way that a federation avoids.

``ec`` (embedding conversion) carries every stored vector through its bridge; ``mig`` (migration)
takes vectors that the target's model made of the same documents, from files. Either writes one new
store in one space, which any query of that space's model then searches natively. The stores that
are read are never written to.

References: HVMap, sections 3.2 (MIG) and 5.1.4 (EC).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from isthmus._progress import Track, silent
from isthmus._validate import check_whole
from isthmus.errors import (
    DuplicateIdError,
    ParameterError,
    StoreError,
    UnknownNameError,
)
from isthmus.federate import Federation
from isthmus.spaces import Space, VectorSet
from isthmus.stores.base import Batch, Store
from isthmus.workflows._copying import parse_note, place_of_store, read_ahead, written_metadata
from isthmus.workflows._integration import Ids, Integration, Plan

__all__ = ["Integrated", "integrate"]

BATCH_ROWS = 10_000
NOTE = "integrate"
"""Note of the new store: what it is made of, and how far it has come."""


@dataclass(frozen=True)
class Integrated:
    """What came of an integration.

    Parameters
    ----------
    url : str
        Of the new store.
    method : str
    space : Space
        Of all its vectors.
    rows : dict of str to int
        Rows from each source.
    mapped : int
        Rows that were carried through a bridge.
    resumed : bool
        Whether an earlier run had begun it.
    metadata_dropped : bool
        Whether a row had metadata that the new store cannot hold.
    seconds : float
    """

    url: str
    method: Integration
    space: Space
    rows: dict[str, int]
    mapped: int
    resumed: bool
    metadata_dropped: bool
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**vars(self), "space": self.space.to_dict()}


def integrate(
    federation: Federation | Path | str,
    into: str,
    *,
    method: Integration = "ec",
    space: str | None = None,
    native: Mapping[str, VectorSet | Path | str] | None = None,
    ids: Ids = "prefix",
    batch_rows: int = BATCH_ROWS,
    track: Track[Any] = silent,
) -> Integrated:
    """Write the vectors of all sources into one new store, in one space.

    Memory holds one batch at a time. A run that was stopped goes on where it was, when the new
    store keeps notes; otherwise it has to be started again, with another new store.

    Parameters
    ----------
    federation : Federation, or path of its file
    into : str
        URL of the new store: no collection yet, an empty one, or that of an earlier run of the
        same integration.
    method : {"ec", "mig"}, default "ec"
        ``ec``: vectors of other spaces go through their bridges. ``mig``: they are replaced by
        vectors that the target's model made, from ``native``.
    space : str, optional
        Name of the source whose space is the target; default: the hub's space.
    native : mapping of source name to VectorSet, or path of its file, optional
        For ``mig``: the documents of each source of another space, by the target's model, under the
        same ids. Further ids are left out.
    ids : {"prefix", "keep"}, default "prefix"
        ``prefix``: ``NAME/id``, so that no two sources collide. ``keep``: as they are; an id that
        two sources hold is refused.
    batch_rows : int, default 10,000
    track : Track, default silent
        One step per batch.

    Raises
    ------
    UnknownNameError, ParameterError
        An unknown method, source or way with ids; a new store that is one of the sources, or that
        holds something else.
    ConfigError
        ``ec`` and no bridge that leads there.
    CountMismatchError
        ``mig`` and a file that lacks documents of its source, or has another space's vectors.
    DuplicateIdError
        ``keep``, and an id in two sources.
    StoreError
        The new store does not hold as many rows at the end as were written.
    """
    for what, value, known in (
        ("way to integrate", method, get_args(Integration)),
        ("way with ids", ids, get_args(Ids)),
    ):
        if value not in known:
            raise UnknownNameError.of(what, str(value), known)
    check_whole(batch_rows, name="batch_rows")
    if not isinstance(federation, Federation):
        with Federation.load(
            federation, require_all=True, budget="uniform", calibration=None
        ) as opened:
            return integrate(
                opened,
                into,
                method=method,
                space=space,
                native=native,
                ids=ids,
                batch_rows=batch_rows,
                track=track,
            )
    start = time.monotonic()
    plan = Plan.make(federation, method, space, native or {}, ids)
    _check_apart(federation, into)
    from isthmus.stores.registry import open_store

    with open_store(into, space=plan.target) as store:
        progress = _Progress.read(store, plan)
        resumed = progress.source > 0 or bool(progress.cursor)
        dropped = _write(plan, store, progress, batch_rows=batch_rows, track=track)
        rows = {source.name: source.store.count() for source in federation.sources}
        if store.count() != sum(rows.values()):
            raise StoreError(
                expected=f"{sum(rows.values()):,} rows in the new store, as many as were read",
                got=f"{store.count():,}",
                do="do not use it; if a source was changed meanwhile, start again with a new store",
            )
        mapped = sum(rows[name] for name in plan.converted) if method == "ec" else 0
        return Integrated(
            store.url,
            method,
            plan.target,
            rows,
            mapped,
            resumed,
            dropped,
            time.monotonic() - start,
        )


@dataclass(frozen=True)
class _Progress:
    """How far an integration has come: the source it is at, the scan's cursor, the rows written."""

    source: int = 0
    cursor: str = ""
    written: int = 0

    @classmethod
    def read(cls, store: Store, plan: Plan) -> _Progress:
        """Read the note of an earlier run; refuse a store that holds anything else."""
        note = store.notes().get(NOTE) if store.capabilities.notes else None
        if note is None:
            if count := store.count():
                raise ParameterError(
                    expected="a new store to integrate into: nothing in it is ever replaced",
                    got=f"one with {count:,} rows",
                    do="name a new collection",
                )
            return cls()
        found = parse_note(
            note,
            {"plan": dict, "source": int, "cursor": str, "written": int},
            what="the note of an earlier integration in the new store",
            do="name a new collection",
        )
        if found["plan"] != plan.describe():
            raise ParameterError(
                expected="a new store, or that of an earlier run of the same integration",
                got="that of another one: other sources, bridges, method or ids",
                do="name a new collection",
            )
        return cls(found["source"], found["cursor"], found["written"])

    def note(self, plan: Plan) -> dict[str, str]:
        """Return it as a note."""
        return {NOTE: json.dumps({"plan": plan.describe(), **vars(self)})}


def _write(
    plan: Plan, store: Store, progress: _Progress, *, batch_rows: int, track: Track[Any]
) -> bool:
    """Write every batch; return whether metadata were dropped."""
    sources = plan.federation.sources
    steps = sum(-(-source.store.count() // batch_rows) for source in sources)
    dropped = False
    batches = _batches(plan, progress, batch_rows)
    for place, batch in track(read_ahead(batches), "integrating", steps):
        made = batch.vectors
        metadata, left_out = written_metadata(store, batch)
        dropped |= left_out
        progress = _Progress(place, batch.cursor, progress.written + len(made))
        notes = progress.note(plan) if store.capabilities.notes else None
        store.upsert(made, metadata=metadata, notes=notes)
        if store.count() != progress.written:
            raise DuplicateIdError(
                expected="ids that no two sources share",
                got=f"{progress.written - store.count():,} in a batch of source "
                f"{sources[place].name!r} that are there already",
                do='take ids "prefix", and a new store: this one is incomplete',
            )
    return dropped


def _batches(plan: Plan, progress: _Progress, batch_rows: int) -> Iterator[tuple[int, Batch]]:
    """Yield what is still to be written, carried over, with the place of its source."""
    for place, source in enumerate(plan.federation.sources):
        if place < progress.source:
            continue
        cursor = progress.cursor if place == progress.source else ""
        with source.noting():
            for batch in source.store.scan(batch_size=batch_rows, cursor=cursor):
                if len(batch.vectors):
                    made = plan.carry(source, batch.vectors)
                    yield place, Batch(made, batch.cursor, batch.metadata)


def _check_apart(federation: Federation, into: str) -> None:
    """Refuse to write into a store that is read."""
    here = place_of_store(into)
    for source in federation.sources:
        there = place_of_store(source.store.url)
        if there is not None and there == here:
            raise ParameterError(
                expected="a new store to integrate into",
                got=f"that of source {source.name!r}",
                do="name another collection: sources are only read",
            )
