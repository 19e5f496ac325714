"""Carry a file of vectors into another space, batch by batch."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from isthmus._files import check_file_writable
from isthmus._progress import Track, silent
from isthmus._threads import one_blas_thread
from isthmus._validate import check_positive
from isthmus.bridge import Bridge, ScopeReport
from isthmus.errors import ParameterError
from isthmus.spaces import Space, VectorSet
from isthmus.spaces.io import VectorWriter, format_of, open_writer
from isthmus.workflows._scope_notes import scope_notes

__all__ = ["Applied", "apply_bridge"]

BATCH_ROWS = 1_920
"""Four blocks of a product (`isthmus._rowwise`), or 6 MB at 768 columns: what lies between the
steps stays in the cache."""
MAX_THREADS = 8
AHEAD = 3
"""Batches mapped ahead of the writing, so that neither waits for the other's hiccups."""
MOST_EXAMINED = 100_000


@dataclass(frozen=True)
class Applied:
    """What came of an apply.

    Parameters
    ----------
    path : Path
        The file that was written.
    space : Space
        Of the rows in it: the target's, or the comparison space, with ``bridged_from``.
    rows : int
        Rows that were carried.
    scope : ScopeReport
        How many rows lie outside the scope, and whether their kind differs from the pairs'. All
        rows are looked at, or, of more than 100,000, about that many in batches at even distances:
        their share is within .003 of that of all, unless like rows stand together. Rows of the
        target side are not looked at: the scope is the source's.
    seconds : float
    """

    path: Path
    space: Space
    rows: int
    scope: ScopeReport
    seconds: float

    @property
    def share_outside(self) -> float:
        """Share of the rows outside the scope, from 0 to 1."""
        return self.scope.share_outside

    @property
    def kind_differs(self) -> bool:
        """Whether the rows are of another kind than the pairs."""
        return self.scope.kind_differs

    @property
    def notes(self) -> tuple[str, ...]:
        """What should be known before the bridge's report is believed for these rows."""
        return tuple(scope_notes("rows", self.scope))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "path": str(self.path),
            "rows": self.rows,
            "examined": self.scope.rows,
            "outside": self.scope.outside,
            "share_outside": self.share_outside,
            "kind": self.scope.kind,
            "pairs_kind": self.scope.pairs_kind,
            "kind_differs": self.kind_differs,
            "space": self.space.to_dict(),
            "seconds": self.seconds,
        }


def apply_bridge(
    bridge: Bridge | Path | str,
    source: VectorSet | Path | str,
    out: Path | str,
    *,
    dtype: Literal["float16", "float32"] = "float16",
    batch_rows: int = BATCH_ROWS,
    track: Track[VectorSet] = silent,
) -> Applied:
    """Carry vectors over, from file to file: of the source space into the target space.

    Through a bridge that lands in a comparison space, vectors of either side are carried there.

    Memory holds a few batches and the ids: ``.npy`` files are mapped, others are read whole. The
    numbers do not depend on ``batch_rows``.

    Parameters
    ----------
    bridge : Bridge, or path of its folder
    source : VectorSet, or path of its file
    out : path
        The ending names the format, see `VectorSet.save`; it appears when all rows are written.
    dtype : {"float16", "float32"}, default "float16"
        Number type on disk.
    batch_rows : int, default 1,920
    track : Track, default silent
        One step per batch.

    Returns
    -------
    Applied
        With the share of rows outside the scope; such rows are carried like all others.

    Raises
    ------
    SpaceMismatchError, WrongDirectionError
        See `Bridge.apply`; before anything is written.
    ParameterError
        ``out`` is the source file.
    MissingFileError, UnknownFormatError
    WriteFailedError
        Before anything is mapped, unless the disk fills up.
    """
    start = time.monotonic()
    fitted = bridge if isinstance(bridge, Bridge) else Bridge.load(bridge)
    vectors, path = _open(source, Path(out)), Path(out)
    check_positive(batch_rows, name="batch_rows")
    space, forward = fitted.space_of_applied(vectors.space), fitted.starts_from(vectors.space)
    format_of(path)
    check_file_writable(path)
    steps = -(-len(vectors) // batch_rows)
    with open_writer(path, space, rows=len(vectors), dtype=dtype) as writer:
        batches = track(vectors.iter_batches(batch_rows), "applying", steps)
        every = max(1, steps * batch_rows // MOST_EXAMINED) if forward else None
        examined, outside = _carry(fitted, batches, writer, examine_every=every)
    pairs_kind = fitted.scope.kind if forward else fitted.provenance.target_kind
    scope = ScopeReport(examined, outside, vectors.space.kind, pairs_kind)
    return Applied(path, space, len(vectors), scope, time.monotonic() - start)


def _carry(
    bridge: Bridge, batches: Iterable[VectorSet], writer: VectorWriter, *, examine_every: int | None
) -> tuple[int, int]:
    """Map and write every batch in order; return rows examined and rows outside the scope.

    Each thread takes a batch through all the steps, while another batch is written.
    """

    def carry(batch: VectorSet, *, examine: bool) -> tuple[VectorSet, int, int]:
        if not examine:
            return bridge.apply(batch), 0, 0
        outside = int(np.count_nonzero(bridge.outside(batch.vectors)))
        return bridge.apply(batch), len(batch), outside

    def write(done: Future[tuple[VectorSet, int, int]]) -> tuple[int, int]:
        mapped, rows, outside = done.result()
        writer.write(mapped)
        return rows, outside

    counts = []
    waiting: deque[Future[tuple[VectorSet, int, int]]] = deque()
    with one_blas_thread() as found, ThreadPoolExecutor(threads := min(found, MAX_THREADS)) as pool:
        for place, batch in enumerate(batches):
            waiting.append(pool.submit(carry, batch, examine=_is_due(place, examine_every)))
            if len(waiting) > threads + AHEAD:
                counts.append(write(waiting.popleft()))
        counts += [write(done) for done in waiting]
    return sum(rows for rows, _ in counts), sum(outside for _, outside in counts)


def _is_due(place: int, every: int | None) -> bool:
    return every is not None and place % every == 0


def _open(source: VectorSet | Path | str, out: Path) -> VectorSet:
    """Open the source, on disk where its format allows; refuse to overwrite it."""
    if isinstance(source, VectorSet):
        return source
    path = Path(source)
    if out.exists() and path.exists() and out.samefile(path):
        raise ParameterError(
            expected="another file to write to than the one that is read",
            got=repr(out.name),
            do="write to a new file; the source vectors cannot be computed back",
        )
    return VectorSet.load(path, memory_map=format_of(path).memory_maps)
