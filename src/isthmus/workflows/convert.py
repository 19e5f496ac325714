"""Convert a collection: carry all its rows into another space, in a new collection beside it.

The rows are read, mapped and written batch by batch; the cursor is kept with the target after each
batch, so that the same command goes on where an earlier run was stopped, whatever stopped it. Ids
stay, so that what is written twice is there once. A second pass compares both sides and catches
what was written to the source meanwhile. The source is never written to.

Nothing here is decided by a clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isthmus._progress import Counting, uncounted
from isthmus._validate import check_whole
from isthmus.bridge import Bridge
from isthmus.errors import ParameterError, StoreBusyError
from isthmus.spaces import Space
from isthmus.stores.base import Batch, Store
from isthmus.workflows._convert_checkpoint import SWITCH, Checkpoint, State, refuse_foreign
from isthmus.workflows._convert_job import Job, opened_job
from isthmus.workflows._copying import read_ahead

__all__ = ["BATCH_ROWS", "Converted", "convert"]

BATCH_ROWS = 4_800
"""Rows that are mapped in one go (`isthmus._rowwise`); 15 MB at 768 columns, three at a time."""


@dataclass(frozen=True)
class Converted:
    """What came of one run of a conversion.

    Parameters
    ----------
    source, target : str
        URLs.
    space : Space
        Of the target.
    rows, source_rows : int
        Of the target and of the source, at the end.
    copied : int
        Rows that the first pass of this run wrote.
    resumed : bool
        Whether an earlier run had begun it.
    added, changed, removed : int
        What the second pass found: rows of the source that the target lacked, or had otherwise,
        and rows of the target that the source does not have any more. The first two are in the
        target now.
    removed_too : bool
        Whether the removed ones were removed from the target as well.
    metadata_dropped : bool
        Whether a row had metadata that the target cannot hold.
    seconds : float
    """

    source: str
    target: str
    space: Space
    rows: int
    source_rows: int
    copied: int
    resumed: bool
    added: int
    changed: int
    removed: int
    removed_too: bool
    metadata_dropped: bool
    seconds: float

    @property
    def settled(self) -> bool:
        """Whether the second pass found nothing, and both sides count the same rows."""
        found = self.added or self.changed or self.removed
        return not found and self.rows == self.source_rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**vars(self), "space": self.space.to_dict(), "settled": self.settled}


def convert(
    source: Store | str,
    target: Store | str,
    *,
    bridge: Bridge | Path | str | None = None,
    batch_rows: int = BATCH_ROWS,
    checkpoint: Path | str | None = None,
    remove: bool = False,
    counting: Counting = uncounted,
) -> Converted:
    """Carry all rows of one collection into another one, and then what was written meanwhile.

    The same call again goes on where an earlier one was stopped; after it came to its end, the same
    call compares both sides once more. Call it until `Converted.settled`. Memory holds three
    batches.

    Parameters
    ----------
    source, target : Store, or URL
        The target is made where it is not there. It may be a further vector of the source's own
        rows (``&vector=NAME``), where the store has several.
    bridge : Bridge, or path of its folder, optional
        From the source's space to the target's. Without one the vectors are copied as they are.
    batch_rows : int, default 4,800
    checkpoint : path, optional
        File for the cursor, in place of notes of the target: for stores that keep none.
    remove : bool, default False
        Whether rows that the source does not have any more are removed from the target. Never from
        the source, also where the target is a further vector of its rows.
    counting : Counting, default uncounted
        Shows progress.

    Raises
    ------
    ParameterError
        The target is the source, holds rows of another origin, or another conversion, or is in use
        (`cut_over`).
    SpaceMismatchError, WrongDirectionError, UnsupportedOperationError
        A source or target in another space; a bridge that lands in a comparison space; a target
        that keeps no notes, without a checkpoint file.
    EmptyInputError
        A source without rows.
    StoreBusyError
        A later run into the same target took over.
    StoreError
        Whatever the stores raise: run it again when they are well.

    Examples
    --------
    >>> from isthmus import Space, VectorSet
    >>> from isthmus.stores import MemoryStore
    >>> space = Space(model="m", dim=2)
    >>> old, new = MemoryStore(space), MemoryStore(space)
    >>> old.upsert(VectorSet(["a", "b"], [[1, 0], [0, 2]], space), metadata=[{"n": 1}, {}])
    >>> done = convert(old, new)
    >>> done.copied, done.settled, new.fetch_metadata(["a"])
    (2, True, [{'n': 1}])
    """
    check_whole(batch_rows, name="batch_rows")
    start = time.monotonic()
    with opened_job(source, target, bridge, create=True, checkpoint=checkpoint) as job:
        kept = Checkpoint.of(job.store, checkpoint)
        state, resumed = _begin(job, kept)
        run = _Run(job, kept, state, batch_rows, counting)
        try:
            copied = run.copy() if run.state.stage == "copy" else 0
            run.compare(remove=remove and not job.in_place)
        except StoreBusyError:  # another run goes on
            raise
        except BaseException as error:
            error.add_note(run.told())
            raise
        return Converted(
            source=job.source.url,
            target=job.store.url,
            space=job.space,
            rows=job.store.count(),
            source_rows=job.source.count(),
            copied=copied,
            resumed=resumed,
            added=run.state.added,
            changed=run.state.changed,
            removed=run.state.removed,
            removed_too=remove and not job.in_place,
            metadata_dropped=run.dropped,
            seconds=time.monotonic() - start,
        )


def _begin(job: Job, kept: Checkpoint) -> tuple[State, bool]:
    """Read how far an earlier run has come; refuse a target that holds anything else."""
    found, fresh = check_target(job, kept), job.start()
    state = fresh if found is None else found.taken_over()
    if not job.source.capabilities.scan:
        # No cursor leads into the middle of it; what is written twice is there once.
        state = replace(state, cursor="", rows=0)
    if state.stage == "done":
        state = replace(state, stage="compare", cursor="", rows=0, added=0, changed=0, removed=0)
    job.record_origin()
    kept.keep(state)
    return state, found is not None


def check_target(job: Job, kept: Checkpoint) -> State | None:
    """Return the state of an earlier run of this conversion, None before the first.

    Raises
    ------
    ParameterError, CorruptStoreError
    """
    found = kept.state()
    if found is None:
        if count := job.store.count():
            raise refuse_foreign(count)
        return None
    if kept.read(SWITCH):
        raise ParameterError(
            expected="a target that no application uses yet",
            got="one that a name was moved to: what is written to it now may be newer",
            do="roll back first, if it is to be converted again",
        )
    if differences := found.differences(job.start()):
        raise ParameterError(
            expected="a new collection, or that of an earlier run of the same conversion",
            got=f"that of another one: {'; '.join(differences)}",
            do="give what it was begun with, or name a new collection",
        )
    return found


@dataclass
class _Run:
    """One run: its state moves on with every batch."""

    job: Job
    kept: Checkpoint
    state: State
    batch_rows: int
    counting: Counting
    dropped: bool = False
    total: int = 0

    def told(self) -> str:
        """Say how far it is, for whoever finds it stopped."""
        again = "the same command goes on from there"
        if self.state.stage == "copy":
            whole = f" of {self.total:,}" if self.total else ""
            return f"{self.state.rows:,}{whole} rows are written; {again}"
        return f"all rows are written, {self.state.rows:,} of them compared; {again}"

    def copy(self) -> int:
        """Write what the first pass has still to write; return how many rows."""
        before = self.state.rows
        begun, spent = time.monotonic(), self.state.seconds
        for batch in self._batches("converting" if self.job.bridge else "copying"):
            rows = self.state.rows + len(batch.vectors)
            self._write(
                batch,
                replace(
                    self.state,
                    cursor=batch.cursor,
                    rows=rows,
                    copied=rows,
                    seconds=spent + time.monotonic() - begun,
                ),
            )
        copied = self.state.rows - before
        self._move_on(replace(self.state, stage="compare", cursor="", rows=0))
        return copied

    def compare(self, *, remove: bool) -> None:
        """Find what differs between both sides, and write it."""
        for batch in self._batches("comparing"):
            held = self.job.store.held(batch.vectors.ids.tolist())
            missing, changed = self.job.differing(batch, held)
            state = replace(
                self.state,
                cursor=batch.cursor,
                rows=self.state.rows + len(batch.vectors),
                added=self.state.added + int(missing.sum()),
                changed=self.state.changed + int(changed.sum()),
            )
            if (rows := missing | changed).any():
                self._write(_chosen(batch, rows), state)
            else:
                self._move_on(state)
        removed = self._removed(remove=remove)
        passes = self.state.passes + 1
        self._move_on(replace(self.state, stage="done", cursor="", removed=removed, passes=passes))

    def _removed(self, *, remove: bool) -> int:
        """Count the rows of the target that the source does not have any more."""
        job = self.job
        if job.in_place or job.store.count() <= job.source.count():
            return 0  # rows that came meanwhile may hide some that went: the next pass finds those
        removed = 0
        for batch in job.store.scan(batch_size=self.batch_rows):
            ids = batch.vectors.ids.tolist()
            known = set(job.source.held(ids).ids)
            gone = [text for text in ids if text not in known]
            removed += len(gone)
            if gone and remove:
                self.kept.check_owner(self.state)
                job.store.delete(gone)
        return removed

    def _batches(self, what: str) -> Iterator[Batch]:
        done, self.total = self.state.rows, self.job.source.count()
        carried = self.job.scan(self.batch_rows, self.state.cursor)
        with self.counting(what, done, self.total) as advance:
            for batch in read_ahead(carried):
                yield batch
                advance(len(batch.vectors))

    def _write(self, batch: Batch, state: State) -> None:
        metadata, dropped = self.job.metadata(batch)
        self.dropped |= dropped
        self.kept.check_owner(self.state)
        self.kept.commit(batch.vectors, metadata, state)
        self.state = state

    def _move_on(self, state: State) -> None:
        self.kept.check_owner(self.state)
        self.kept.keep(state)
        self.state = state


def _chosen(batch: Batch, rows: Any) -> Batch:
    """Return some rows of a batch."""
    metadata = tuple(
        one for one, chosen in zip(batch.metadata, rows.tolist(), strict=True) if chosen
    )
    return Batch(batch.vectors.select(rows), batch.cursor, metadata)
