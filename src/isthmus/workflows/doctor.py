"""Look into a collection for what is wrong with it, and change nothing."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isthmus._files import atomic_path
from isthmus._progress import Track, silent
from isthmus._types import FloatArray
from isthmus._validate import check_positive
from isthmus.errors import VerdictError
from isthmus.evaluate.drift import SAMPLE_ROWS, Drift, measure_drift
from isthmus.evaluate.hubness import hubness_of
from isthmus.evaluate.mixture import Mixture, find_mixture
from isthmus.evaluate.row_marks import UNIT, MarkSummary, RowMarks, mark_rows, summarise_marks
from isthmus.neighbors import top_k
from isthmus.spaces import Space, VectorSet
from isthmus.stores import Store
from isthmus.workflows._doctor_rows import Collection, Survey, opened, survey

__all__ = ["Diagnosis", "DiagnosisVerdict", "DriftReport", "diagnose", "drift_between"]

DiagnosisVerdict = Literal["clean", "mixed", "damaged", "undecided", "not enough data"]

KEPT_ROWS = 20_000
"""Rows that neighbours are looked for among, and that spaces are told apart by, where no sample is
asked for: they bound the memory."""
ASKED_ROWS = 2_000
K = 10
NEAR = 0.99
"""Cosine from which two rows that differ are near duplicates."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """What a collection is like.

    Parameters
    ----------
    verdict : {"clean", "mixed", "damaged", "undecided", "not enough data"}
        ``mixed``: rows of another encoder, or treated otherwise after it. ``damaged``: bad or zero
        rows, or lengths that the recorded space rules out. ``undecided`` and ``not enough data``
        are those of the mixture.
    reasons : tuple of str
        Of the verdict.
    space : Space or None
        As recorded.
    rows, dim : int
        Of the collection.
    looked : int
        Rows that counts come from: all, or the sample.
    length_low, length_median, length_high : float
        5th, 50th and 95th percentile of the lengths.
    marks : MarkSummary
        Lengths, widths and number types, and the parts they make.
    invalid_rows, zero_rows, duplicate_rows : int
        Rows with NaN or infinity, of length zero, and equal to another before.
    near_duplicates : float
        Share of the asked rows whose nearest other row has a cosine of .99 and is not equal.
    hubness : float
        ``hubness@10``; over 1 says that a few rows are near to everything.
    asked : int
        Rows whose neighbours were looked for.
    constant_dimensions, zero_dimensions : tuple of int
    mixture : Mixture
        Of the rows kept: see ``ids`` and ``posterior``.
    ids : array of shape (kept,)
    posterior : FloatArray of shape (kept,)
        That the row is of another space than most; 1 for rows that are cut, where most are not.
    notes : tuple of str
        What should be seen to, besides.
    """

    verdict: DiagnosisVerdict
    reasons: tuple[str, ...]
    space: Space | None
    rows: int
    dim: int
    looked: int
    length_low: float
    length_median: float
    length_high: float
    marks: MarkSummary
    invalid_rows: int
    zero_rows: int
    duplicate_rows: int
    near_duplicates: float
    hubness: float
    asked: int
    constant_dimensions: tuple[int, ...]
    zero_dimensions: tuple[int, ...]
    mixture: Mixture
    ids: npt.NDArray[Any]
    posterior: FloatArray
    notes: tuple[str, ...] = ()

    def require(self) -> None:
        """Refuse a collection that is not clean.

        Raises
        ------
        VerdictError
        """
        if self.verdict != "clean":
            raise VerdictError(
                expected="a collection that is clean",
                got=f"{self.verdict}: {'; '.join(self.reasons)}",
                do="see to it, or leave out --require",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, without those of single rows."""
        left_out = ("ids", "posterior", "space", "marks", "mixture")
        return {
            **{name: value for name, value in vars(self).items() if name not in left_out},
            "space": None if self.space is None else self.space.to_dict(),
            "marks": self.marks.to_dict(),
            "mixture": self.mixture.to_dict(),
        }


@dataclass(frozen=True, kw_only=True)
class DriftReport:
    """What changed between two collections.

    Parameters
    ----------
    drift : Drift
    same_space : bool or None
        Whether the recorded spaces are equal; None where one of them records none.
    rows, other_rows : int
        Of the collections.
    """

    drift: Drift
    same_space: bool | None
    rows: int
    other_rows: int

    def require(self) -> None:
        """Refuse anything but no drift.

        Raises
        ------
        VerdictError
        """
        if self.drift.verdict != "no drift":
            raise VerdictError(
                expected="no drift",
                got=f"{self.drift.verdict}: {self.drift.reason}",
                do="see what was written since, or leave out --require",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**vars(self), "drift": self.drift.to_dict()}


def diagnose(
    place: Store | VectorSet | Path | str,
    *,
    sample: int | None = None,
    out: Path | None = None,
    seed: int = 0,
    track: Track[Any] = silent,
) -> Diagnosis:
    """Look into a collection and say what is wrong with it.

    Parameters
    ----------
    place : Store, VectorSet, store URL, or path of a file
        Nothing is written to it. A file may hold rows that `VectorSet` refuses: they are counted.
    sample : int, optional
        Look at so many rows only, drawn uniformly over the scan. Without it every row is looked at,
        and 20,000 are kept for what compares rows.
    out : Path, optional
        A csv file for ``id,posterior`` of every row that was looked at; rows without a direction
        have an empty posterior.
    seed : int, default 0
    track : Track, default silent

    Returns
    -------
    Diagnosis

    Raises
    ------
    MissingFileError, UnknownFormatError, CorruptFileError, EmptyInputError, StoreError,
    ParameterError, WriteFailedError

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> flat = draw.standard_normal((300, 16)) * np.geomspace(1, 0.01, 16)
    >>> ids = [str(row) for row in range(300)]
    >>> diagnose(VectorSet(ids, flat, Space(model="m", dim=16))).verdict
    'clean'
    """
    if sample is not None:
        check_positive(sample, name="sample")
    collection = opened(place)
    try:
        read = survey(
            collection, keep=sample or KEPT_ROWS, every=sample is None, seed=seed, track=track
        )
        found = _diagnosed(collection, read, seed=seed, track=track)
        if out is not None:
            _write(out, collection, found, whole=sample is None, track=track)
    finally:
        if collection.source is not place:
            collection.close()
    return found


def drift_between(
    place: Store | VectorSet | Path | str,
    against: Store | VectorSet | Path | str,
    *,
    sample: int | None = None,
    seed: int = 0,
    track: Track[Any] = silent,
) -> DriftReport:
    """Compare what two collections, or two snapshots of one, are distributed like.

    Parameters
    ----------
    place, against : Store, VectorSet, store URL, or path of a file
    sample : int, optional
        Rows of each that are compared; 2,000 by default, and at most.
    seed : int, default 0
    track : Track, default silent

    Returns
    -------
    DriftReport

    Raises
    ------
    DimensionError, EmptyInputError, MissingFileError, UnknownFormatError, CorruptFileError,
    StoreError, ParameterError

    Examples
    --------
    >>> rows, ids = np.random.default_rng(0).standard_normal((600, 4)), list(range(600))
    >>> space = Space(model="m", dim=4)
    >>> whole = VectorSet(ids, rows, space)
    >>> parts = [whole.select(np.arange(600) % 2 == part) for part in (0, 1)]
    >>> drift_between(*parts).drift.verdict
    'no drift'
    """
    if sample is not None:
        check_positive(sample, name="sample")
    sides, spaces, counts = [], [], []
    for number, side in enumerate((place, against)):
        collection = opened(side)
        try:
            keep = min(sample or SAMPLE_ROWS, SAMPLE_ROWS)
            # another seed for each: the same rows of both would hide a difference
            read = survey(collection, keep=keep, every=False, seed=2 * seed + number, track=track)
        finally:
            if collection.source is not side:
                collection.close()
        sides.append(read.vectors[np.isfinite(read.vectors).all(axis=1)])
        spaces.append(collection.space)
        counts.append(read.count)
    one, two = spaces
    return DriftReport(
        drift=measure_drift(*sides, seed=seed, track=track),
        same_space=None if one is None or two is None else one.fingerprint == two.fingerprint,
        rows=counts[0],
        other_rows=counts[1],
    )


def _diagnosed(collection: Collection, read: Survey, *, seed: int, track: Track[Any]) -> Diagnosis:
    summary = summarise_marks(read.marks)
    sound = read.marks.grid >= 0
    lengths = read.marks.length[sound]
    low, median, high = np.quantile(lengths, (0.05, 0.5, 0.95)) if len(lengths) else [np.nan] * 3
    constant = np.flatnonzero(read.low == read.high)
    zero = constant[read.low[constant] == 0]
    mixture, posterior = _mixture(read, summary, constant, seed=seed, track=track)
    near, hubs, asked = _neighbors(read.vectors, seed=seed)
    found = Diagnosis(
        verdict="clean",
        reasons=(),
        space=collection.space,
        rows=read.count,
        dim=collection.dim,
        looked=len(read.hashes),
        length_low=float(low),
        length_median=float(median),
        length_high=float(high),
        marks=summary,
        invalid_rows=int(np.isnan(read.marks.length).sum()),
        zero_rows=int((~sound & np.isfinite(read.marks.length)).sum()),
        duplicate_rows=len(read.hashes) - len(np.unique(read.hashes)),
        near_duplicates=near,
        hubness=hubs,
        asked=asked,
        constant_dimensions=tuple(constant.tolist()),
        zero_dimensions=tuple(zero.tolist()),
        mixture=mixture,
        ids=read.ids,
        posterior=posterior,
    )
    return _with_verdict(found, read.marks)


def _mixture(
    read: Survey,
    summary: MarkSummary,
    constant: npt.NDArray[np.int64],
    *,
    seed: int,
    track: Track[Any],
) -> tuple[Mixture, FloatArray]:
    """Look for a second space among the rows that were not cut, where dimensions differ."""
    width = int(summary.widths[0].name.split()[1]) if summary.widths else read.vectors.shape[1]
    varying = np.setdiff1d(np.arange(read.vectors.shape[1]), constant)
    cut = mark_rows(read.vectors).width != width
    posterior = cut.astype(np.float64)
    rows = np.flatnonzero(~cut)
    if not len(rows) or not len(varying):
        varying, rows = np.arange(read.vectors.shape[1]), np.arange(len(read.vectors))
    mixture = find_mixture(read.vectors[np.ix_(rows, varying)], seed=seed, track=track)
    posterior[rows] = mixture.posterior
    return mixture, posterior


def _neighbors(vectors: FloatArray, *, seed: int) -> tuple[float, float, int]:
    """Return the share of near duplicates, the hubness, and of how many rows."""
    sound = np.isfinite(vectors).all(axis=1) & (np.abs(np.nan_to_num(vectors)).max(axis=1) > 0)
    rows = vectors[sound]
    if len(rows) <= K:
        return float("nan"), float("nan"), 0
    with np.errstate(over="ignore", under="ignore"):
        rows = rows / np.abs(rows).max(axis=1, keepdims=True)
    asked = np.sort(np.random.default_rng(seed).permutation(len(rows))[:ASKED_ROWS])
    nearest = top_k(rows[asked], rows, k=K, exclude=asked)
    first = nearest.rows[:, 0]
    equal = (vectors[sound][asked] == vectors[sound][first]).all(axis=1)
    near = (nearest.scores[:, 0] >= NEAR) & ~equal
    return float(near.mean()), hubness_of(nearest.rows, n=len(rows), k=K).mean, len(asked)


def _with_verdict(found: Diagnosis, marks: RowMarks) -> Diagnosis:
    mixed = [
        f"{kind}: " + ", ".join(f"{part.name} {part.share:.1%}" for part in parts)
        for kind, parts in (
            ("width", found.marks.widths),
            ("number type", found.marks.grids),
            ("length", found.marks.lengths),
        )
        if len(parts) > 1
    ]
    mixture = found.mixture
    if mixture.verdict == "mixed":
        mixed.append(f"{mixture.share:.1%} of the rows are of another space: {mixture.reason}")
    damaged = list(_damage(found, marks))
    verdict: DiagnosisVerdict = "clean"
    reasons: list[str] = [*mixed, *damaged]
    if mixed:
        verdict = "mixed"
    elif damaged:
        verdict = "damaged"
    elif mixture.verdict in ("undecided", "not enough data"):
        verdict, reasons = mixture.verdict, [mixture.reason]
    return replace(found, verdict=verdict, reasons=tuple(reasons), notes=tuple(_notes(found)))


def _damage(found: Diagnosis, marks: RowMarks) -> Iterator[str]:
    space = found.space
    if found.invalid_rows:
        yield f"{found.invalid_rows:,} rows hold NaN or infinity"
    if found.zero_rows and (space is None or space.metric == "cosine"):
        yield f"{found.zero_rows:,} rows are all zero"
    if space is not None and space.normalized:
        off = int((np.abs(marks.length[marks.grid >= 0] - 1) > UNIT).sum())
        if off:
            yield f"the space says unit length, and {off:,} rows have another"


def _notes(found: Diagnosis) -> Iterator[str]:
    if found.space is None:
        yield "no space is recorded: only you know which model made these vectors"
    elif not found.space.normalized and found.marks.normalized == "all":
        yield "all rows have unit length, which the recorded space does not say"
    if found.marks.grids and found.marks.grids[0].name in ("int8", "binary"):
        yield f"the vectors were rounded to {found.marks.grids[0].name}"
    if found.duplicate_rows:
        yield f"{found.duplicate_rows:,} rows repeat an earlier one: they tie in every search"
    if found.near_duplicates > 0.05:
        yield f"{found.near_duplicates:.0%} of the rows have a near duplicate"
    if found.hubness > 3:
        yield f"a few rows are near to everything (hubness@10 {found.hubness:.1f})"
    if found.zero_dimensions:
        yield f"{len(found.zero_dimensions):,} dimensions are zero in every row"
    elif found.constant_dimensions:
        yield f"{len(found.constant_dimensions):,} dimensions have one value in every row"
    if found.mixture.outliers:
        yield f"{found.mixture.outliers:,} single rows lie outside of the space of the others"


def _write(
    out: Path, collection: Collection, found: Diagnosis, *, whole: bool, track: Track[Any]
) -> None:
    """Write the posterior of every row that was looked at."""
    with atomic_path(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["id", "posterior"])
        for ids, posterior in _posteriors(collection, found, whole=whole, track=track):
            for name, value in zip(ids.tolist(), posterior.tolist(), strict=True):
                table.writerow([name, "" if np.isnan(value) else f"{value:.6g}"])


def _posteriors(
    collection: Collection, found: Diagnosis, *, whole: bool, track: Track[Any]
) -> Iterator[tuple[npt.NDArray[Any], FloatArray]]:
    """Yield ids and posteriors; a second pass scores what was not kept in the first."""
    if not whole or len(found.ids) == found.rows:
        yield found.ids, found.posterior
        return
    width = int(found.marks.widths[0].name.split()[1])
    varying = np.setdiff1d(np.arange(found.dim), found.constant_dimensions)
    known = dict(zip(found.ids.tolist(), found.posterior.tolist(), strict=True))
    for ids, rows in track(collection.batches(), "scoring", -(-found.rows // 10_000)):
        posterior = found.mixture.score(rows[:, varying])[0]
        posterior[mark_rows(rows).width != width] = 1.0
        names = ids.tolist()
        for place, name in enumerate(names):
            posterior[place] = known.get(name, posterior[place])
        yield ids, posterior
