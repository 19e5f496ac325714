"""What a conversion will do, before it does anything: counts, bytes, time, what will be kept."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from isthmus.bridge import Bridge, ScopeReport
from isthmus.bridge.retention import NAME as RETENTION
from isthmus.evaluate import Value
from isthmus.spaces import Space, VectorSet
from isthmus.stores.base import Store
from isthmus.workflows._convert_checkpoint import Checkpoint, State
from isthmus.workflows._convert_job import OTHER_FIELDS, Job, opened_job
from isthmus.workflows._scope_notes import scope_notes
from isthmus.workflows.convert import check_target

__all__ = ["ConversionPlan", "plan_conversion"]

SAMPLE_ROWS = 4_800
BYTES = MappingProxyType({"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2})
ENOUGH = ("bridge", "pre_aligned")


@dataclass(frozen=True)
class ConversionPlan:
    """What a conversion will do; nothing was written to find out.

    Parameters
    ----------
    source, target : str
        URLs.
    source_space, space : Space
        Of both sides.
    exists, in_place : bool
        Whether the target is there already, and whether it is a further vector of the source's own
        rows.
    rows : int
        Of the source.
    done : int
        Rows that an earlier run has written.
    vector_bytes, text_bytes : int
        Numbers of the vectors, and ids with metadata, still to be written; without what the
        database adds of its own. Texts are estimated from the sample, and none in place, where they
        stay as they are.
    sampled : int
        Rows that were read and mapped for the estimates: the first of the source.
    read_seconds, map_seconds : float
        For all rows that are still to be written, at the rate of the sample.
    seconds : float or None
        Of the whole, writing included, at the rate of the earlier run; None before one: a plan
        writes nothing, so it does not know how fast the target writes.
    status : str or None
        Verdict of the bridge; None for a copy.
    reason : str
    retention : Value or None
        Share of the native top ten that the bridge keeps, as its report estimates it.
    scope : ScopeReport or None
        How many of the sampled rows lie outside what the bridge was made for.
    warnings : tuple of str
    """

    source: str
    target: str
    source_space: Space
    space: Space
    exists: bool
    in_place: bool
    rows: int
    done: int
    vector_bytes: int
    text_bytes: int
    sampled: int
    read_seconds: float
    map_seconds: float
    seconds: float | None
    status: str | None
    reason: str
    retention: Value | None
    scope: ScopeReport | None
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        kept = self.retention
        return {
            **vars(self),
            "source_space": self.source_space.to_dict(),
            "space": self.space.to_dict(),
            "retention": None if kept is None else [kept.mean, kept.low, kept.high],
            "scope": None if self.scope is None else vars(self.scope),
            "warnings": list(self.warnings),
        }


def plan_conversion(
    source: Store | str,
    target: Store | str,
    *,
    bridge: Bridge | Path | str | None = None,
    checkpoint: Path | str | None = None,
) -> ConversionPlan:
    """Say what `convert` will do, and refuse what it will refuse; nothing is written.

    Parameters
    ----------
    source, target, bridge, checkpoint
        As for `convert`.

    Raises
    ------
    ParameterError, SpaceMismatchError, WrongDirectionError, UnsupportedOperationError
    EmptyInputError
        See `convert`.

    Examples
    --------
    >>> from isthmus import Space, VectorSet
    >>> from isthmus.stores import MemoryStore
    >>> old = MemoryStore(Space(model="m", dim=2))
    >>> old.upsert(VectorSet(["a", "b"], [[1, 0], [0, 2]], old.space))
    >>> plan = plan_conversion(old, MemoryStore(old.space))
    >>> plan.rows, plan.vector_bytes, plan.seconds
    (2, 16, None)
    """
    with opened_job(source, target, bridge, create=False, checkpoint=checkpoint) as job:
        state = None
        if job.there:
            state = check_target(job, Checkpoint.of(job.store, checkpoint))
        return _plan(job, state)


def _plan(job: Job, state: State | None) -> ConversionPlan:
    done = 0 if state is None else state.copied
    rows = job.source.count()
    left = max(0, rows - done)
    measured = _measure(job)
    share = left / measured.rows
    width = BYTES.get(job.store.capabilities.storage, 4)
    whole = None
    if state is not None and state.copied and state.seconds:
        whole = left * state.seconds / state.copied
    fitted = job.bridge
    return ConversionPlan(
        source=job.source.url,
        target=job.url,
        source_space=job.source.space,
        space=job.space,
        exists=job.there,
        in_place=job.in_place,
        rows=rows,
        done=done,
        vector_bytes=left * width * job.space.dim,
        text_bytes=0 if job.in_place else round(share * measured.text_bytes),
        sampled=measured.rows,
        read_seconds=share * measured.reading,
        map_seconds=share * measured.mapping,
        seconds=whole,
        status=None if fitted is None else fitted.verdict.status,
        reason="" if fitted is None else fitted.verdict.reason,
        retention=None if fitted is None else fitted.report.values.get(RETENTION),
        scope=measured.scope,
        warnings=tuple(_warnings(job, measured.scope)),
    )


@dataclass(frozen=True)
class _Measured:
    rows: int
    text_bytes: int
    reading: float
    mapping: float
    scope: ScopeReport | None


def _measure(job: Job) -> _Measured:
    """Read and map the first rows of the source."""
    begun = time.perf_counter()
    batch = next(job.source.scan(batch_size=SAMPLE_ROWS))
    reading = time.perf_counter() - begun
    vectors = batch.vectors
    job.carry(_first(vectors))  # what happens once is not a matter of rows
    begun = time.perf_counter()
    job.carry(vectors)
    mapping = 0.0 if job.bridge is None else time.perf_counter() - begun
    texts = [*vectors.ids.tolist(), *(str(one) for one in batch.metadata if one)]
    scope = None if job.bridge is None else job.bridge.examine(vectors)
    return _Measured(
        len(vectors), sum(len(text.encode()) for text in texts), reading, mapping, scope
    )


def _first(vectors: VectorSet) -> VectorSet:
    return next(vectors.iter_batches(1))


def _warnings(job: Job, scope: ScopeReport | None) -> list[str]:
    found, bridge = [], job.bridge
    if job.own and not (job.source.own or job.in_place):
        found.append(OTHER_FIELDS)
    if bridge is not None and bridge.verdict.status not in ENOUGH:
        found.append(f"the verdict is {bridge.verdict.status}: {bridge.verdict.reason}")
    if scope is not None:
        found += scope_notes("rows", scope)
    return found
