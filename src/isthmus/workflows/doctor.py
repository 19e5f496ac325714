"""Look into a collection for what is wrong with it, and change nothing."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._files import atomic_path
from isthmus._progress import Track, silent
from isthmus._types import FloatArray
from isthmus._validate import check_positive
from isthmus.evaluate.hubness import hubness_of
from isthmus.evaluate.mixture import Mixture, find_mixture
from isthmus.evaluate.row_marks import MarkSummary, mark_rows, summarise_marks
from isthmus.neighbors import top_k
from isthmus.spaces import VectorSet
from isthmus.stores import Store
from isthmus.workflows._diagnosis import Diagnosis, DiagnosisVerdict, with_verdict
from isthmus.workflows._doctor_rows import Collection, Survey, opened, survey

__all__ = ["Diagnosis", "DiagnosisVerdict", "diagnose"]

KEPT_ROWS = 20_000
"""Rows that neighbours are looked for among, and that spaces are told apart by, where no sample is
asked for: they bound the memory."""
ASKED_ROWS = 2_000
K = 10
NEAR = 0.99
"""Cosine from which two rows that differ are near duplicates."""


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
        Nothing is written to it. It may hold rows that `VectorSet` refuses: they are counted and
        named.
    sample : int, optional
        Look at so many rows only, drawn uniformly over the scan. Without it every row is looked at,
        and 20,000 are kept for what compares rows.
    out : Path, optional
        A csv file for ``id,posterior`` of every row that was looked at; rows without a direction
        have an empty posterior, and those of another length have 1.
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
    >>> from isthmus import Space
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


def _diagnosed(collection: Collection, read: Survey, *, seed: int, track: Track[Any]) -> Diagnosis:
    summary = summarise_marks(read.marks)
    if not collection.exact:  # what a store rounds itself says nothing of where rows are from
        summary = replace(summary, grids=())
    sound = read.marks.grid >= 0
    lengths = read.marks.length[sound]
    whole = read.hashes[np.isfinite(read.marks.length)]
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
        duplicate_rows=len(whole) - len(np.unique(whole)),
        repeated_ids=read.repeated_ids,
        invalid_ids=read.invalid_ids,
        zero_ids=read.zero_ids,
        other_lengths=read.others,
        near_duplicates=near,
        hubness=hubs,
        asked=asked,
        constant_dimensions=tuple(constant.tolist()),
        zero_dimensions=tuple(zero.tolist()),
        mixture=mixture,
        ids=read.ids,
        posterior=posterior,
    )
    return with_verdict(found, read.marks)


def _mixture(
    read: Survey,
    summary: MarkSummary,
    constant: npt.NDArray[np.int64],
    *,
    seed: int,
    track: Track[Any],
) -> tuple[Mixture, FloatArray]:
    """Look for a second space among the rows that were not cut, where dimensions differ."""
    dim = read.vectors.shape[1]
    varying = _varying(dim, constant)
    cut = _is_cut(read.vectors, _width(summary, dim))
    posterior = cut.astype(np.float64)
    rows = np.flatnonzero(~cut)
    if not len(rows):
        rows = np.arange(len(read.vectors))
    mixture = find_mixture(read.vectors[np.ix_(rows, varying)], seed=seed, track=track)
    posterior[rows] = mixture.posterior
    return mixture, posterior


def _width(summary: MarkSummary, dim: int) -> int:
    """Return the width that most rows have."""
    return int(summary.widths[0].name.split()[1]) if summary.widths else dim


def _is_cut(rows: FloatArray, width: int) -> npt.NDArray[np.bool_]:
    """Say which rows have a direction, and another width than most."""
    marks = mark_rows(rows)
    cut: npt.NDArray[np.bool_] = (marks.width != width) & (marks.grid >= 0)
    return cut


def _varying(dim: int, constant: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the dimensions in which rows differ; all where they differ in none."""
    found = np.setdiff1d(np.arange(dim), constant)
    return found if len(found) else np.arange(dim)


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
    width = _width(found.marks, found.dim)
    varying = _varying(found.dim, found.constant_dimensions)
    known = dict(zip(found.ids.tolist(), found.posterior.tolist(), strict=True))
    for part in track(collection.batches(), "scoring", -(-found.rows // 10_000)):
        if len(part.ids):
            posterior = found.mixture.score(part.vectors[:, varying])[0]
            posterior[_is_cut(part.vectors, width)] = 1.0
            for place, name in enumerate(part.ids.tolist()):
                posterior[place] = known.get(name, posterior[place])
            yield part.ids, posterior
        yield np.array([name for name, _ in part.others], object), np.ones(len(part.others))
