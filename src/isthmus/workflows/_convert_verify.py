"""Whether a target is what a conversion of its source gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isthmus._linalg import normalise
from isthmus._types import FloatArray, IdArray
from isthmus._validate import check_whole
from isthmus.bridge import Bridge
from isthmus.bridge.retention import NAME as RETENTION
from isthmus.errors import MissingCollectionError
from isthmus.evaluate import Value
from isthmus.evaluate.bootstrap import interval
from isthmus.maps.null import Null
from isthmus.stores.base import Batch, Store
from isthmus.workflows._convert_job import Job, opened_job

__all__ = ["Verification", "verify_conversion"]

NEIGHBOURS = 10
FEW = 5


@dataclass(frozen=True)
class Verification:
    """How far a target agrees with its source.

    Parameters
    ----------
    source, target : str
        URLs.
    source_rows, target_rows : int
    checked : int
        Rows of the source, drawn at random, that were mapped again and compared.
    missing, differing : int
        Of these, those that the target lacks, and those that it has otherwise.
    examples : tuple of str
        Ids of the first few of them.
    queries : int
        Of the checked rows, those that both sides were searched for.
    overlap : Value or None
        Share of the ten nearest neighbours in the source that a search of the target with the
        mapped vector finds, the row itself left out.
    null : Value or None
        The same when nothing is done: the vector itself, cut off or filled up with zeros. None for
        a copy.
    retention : Value or None
        Share of the native top ten that the bridge keeps, by its own report: of the neighbours that
        the target's model would find, which the overlap does not know. None for a copy.
    """

    source: str
    target: str
    source_rows: int
    target_rows: int
    checked: int
    missing: int
    differing: int
    examples: tuple[str, ...]
    queries: int
    overlap: Value | None
    null: Value | None
    retention: Value | None = None

    @property
    def verdict(self) -> str:
        """Say ``same``, or what is not."""
        found = []
        if self.source_rows != self.target_rows:
            found.append(f"the target has {self.target_rows:,} of {self.source_rows:,} rows")
        for count, what in ((self.missing, "missing"), (self.differing, "differing")):
            if count:
                found.append(f"{count:,} of {self.checked:,} compared rows are {what}")
        return "; ".join(found) or "same"

    @property
    def ok(self) -> bool:
        """Whether both sides have as many rows and no checked one is missing or differs."""
        return self.source_rows == self.target_rows and not (self.missing or self.differing)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        shown = {
            name: None if value is None else [value.mean, value.low, value.high]
            for name, value in (
                ("overlap", self.overlap),
                ("null", self.null),
                ("retention", self.retention),
            )
        }
        told = {"ok": self.ok, "verdict": self.verdict}
        return {**vars(self), "examples": list(self.examples), **shown, **told}


def verify_conversion(
    source: Store | str,
    target: Store | str,
    *,
    bridge: Bridge | Path | str | None = None,
    sample: int = 1_000,
    queries: int = 200,
    seed: int = 0,
) -> Verification:
    """Compare a target with its source: counts, sampled rows, sampled searches. Nothing is written.

    The source is scanned once for the sample.

    Parameters
    ----------
    source, target : Store, or URL
    bridge : Bridge, or path of its folder, optional
        As for `convert`.
    sample : int, default 1,000
        Rows to map again and compare.
    queries : int, default 200
        Rows of the sample to search both sides for.
    seed : int, default 0
        Of the sample.

    Raises
    ------
    MissingCollectionError
        There is no such target.
    ParameterError, SpaceMismatchError, WrongDirectionError, UnsupportedOperationError
    EmptyInputError
        See `convert`.

    Examples
    --------
    >>> from isthmus import Space, VectorSet
    >>> from isthmus.stores import MemoryStore
    >>> from isthmus.workflows import convert
    >>> old, new = (MemoryStore(Space(model="m", dim=2)) for _ in range(2))
    >>> old.upsert(VectorSet(["a", "b"], [[1, 0], [0, 2]], old.space))
    >>> done = convert(old, new)
    >>> verify_conversion(old, new).ok
    True
    """
    for name, value in (("sample", sample), ("queries", queries)):
        check_whole(value, name=name)
    with opened_job(source, target, bridge, create=False, needs_notes=False) as job:
        if not job.there:
            raise MissingCollectionError(
                expected="the target of a conversion",
                got=f"nothing at {target}",
                do="convert first",
            )
        drawn = _draw(job, sample, seed)
        carried = Batch(job.carry(drawn.vectors), "", drawn.metadata)
        held = job.store.held(carried.vectors.ids.tolist())
        missing, changed = job.differing(carried, held)
        bad = carried.vectors.ids[missing | changed]
        there = np.flatnonzero(~missing)[:queries]
        overlap = null = None
        if len(there) and job.source.count() > 1:
            overlap, null = _overlaps(job, drawn, carried, there, seed)
        return Verification(
            source=job.source.url,
            target=job.store.url,
            source_rows=job.source.count(),
            target_rows=job.store.count(),
            checked=len(carried.vectors),
            missing=int(missing.sum()),
            differing=int(changed.sum()),
            examples=tuple(bad[:FEW].tolist()),
            queries=len(there) if overlap is not None else 0,
            overlap=overlap,
            null=null,
            retention=None if job.bridge is None else job.bridge.report.values.get(RETENTION),
        )


def _draw(job: Job, limit: int, seed: int) -> Batch:
    """Return rows drawn from one scan, in random order; memory holds them and one batch."""
    rng = np.random.default_rng(seed)
    # The rows with the smallest of one random number each are a sample without replacement.
    kept: list[tuple[float, str, FloatArray, dict[str, Any]]] = []
    for batch in job.source.scan():
        keys = rng.random(len(batch.vectors))
        most = kept[-1][0] if len(kept) == limit else np.inf
        matrix = batch.vectors.matrix()
        kept += [
            (float(keys[row]), str(batch.vectors.ids[row]), matrix[row].copy(), batch.metadata[row])
            for row in np.flatnonzero(keys < most).tolist()
        ]
        kept = sorted(kept, key=lambda one: one[0])[:limit]
    ids = np.array([one[1] for one in kept], np.str_)
    made = type(batch.vectors)(ids, np.stack([one[2] for one in kept]), batch.vectors.space)
    return Batch(made, "", tuple(one[3] for one in kept))


def _overlaps(
    job: Job, drawn: Batch, carried: Batch, rows: Any, seed: int
) -> tuple[Value, Value | None]:
    """Return how many neighbours the mapped vectors find, and the vectors themselves."""
    ids = drawn.vectors.ids[rows]
    own, mapped = drawn.vectors.matrix()[rows], carried.vectors.matrix()[rows]
    expected = _neighbours(job.source, own, ids)
    overlap = _shared(expected, _neighbours(job.store, mapped, ids), seed)
    if job.bridge is None:
        return overlap, None
    null = Null().fit(own, mapped).transform(own)
    if not np.any(null, axis=1).all():
        return overlap, None
    null = normalise(null) if job.space.normalized else null
    return overlap, _shared(expected, _neighbours(job.store, null, ids), seed)


def _neighbours(store: Store, queries: FloatArray, own: IdArray) -> list[list[str]]:
    found = store.search(queries, k=NEIGHBOURS + 1).ids
    return [
        [text for text in row if text not in ("", itself)][:NEIGHBOURS]
        for row, itself in zip(found.tolist(), own.tolist(), strict=True)
    ]


def _shared(expected: list[list[str]], found: list[list[str]], seed: int) -> Value:
    shares = np.array(
        [
            len(set(one) & set(other)) / max(1, len(one))
            for one, other in zip(expected, found, strict=True)
        ]
    )
    low, high = interval(shares, seed=seed)
    return Value("nbr_overlap@10", float(shares.mean()), low, high, shares)
