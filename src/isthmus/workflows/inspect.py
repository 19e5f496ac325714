"""Look at vectors before anything is done with them: one set, or two sets side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard, cast

import numpy as np

from isthmus._progress import Track, silent
from isthmus._types import FloatArray, IntArray, Metric
from isthmus.errors import InputError, MissingFileError
from isthmus.evaluate import Value, summarise
from isthmus.evaluate.consistency import (
    DistanceBins,
    JaccardCurve,
    distance_correlation,
    jaccard_curve,
    nno,
)
from isthmus.evaluate.preservation import nbr_overlap
from isthmus.spaces import Space, VectorSet
from isthmus.spaces._mapped import gather
from isthmus.spaces.io import format_of
from isthmus.spaces.io.npy import read_bare
from isthmus.spaces.io.registry import load_stored, read_raw
from isthmus.spaces.sampling import draw_rows
from isthmus.spaces.space import IDENTITY
from isthmus.stores.reading import is_store_url, read_collection
from isthmus.workflows._look import (
    ASKED_ROWS,
    SEARCHED_ROWS,
    SetInspection,
    look_at_rows,
)
from isthmus.workflows._opening import open_vectors

__all__ = ["Inspection", "PairInspection", "SetInspection", "inspect"]

K = 10
JACCARD_AT = (1, 5, 10, 20, 50)
BINS = 20
"""Bins of distance, as in figure 1 of vector linking."""
MIN_SHARED = 12
"""Fewer shared rows than this have no ten neighbours to compare."""


@dataclass(frozen=True, kw_only=True)
class PairInspection:
    """What two sets have in common.

    Parameters
    ----------
    same_space : bool
        Whether the fingerprints are equal: then no bridge is needed.
    differences : dict of field to (value of A, value of B)
    shared_ids : int
    asked_rows, searched_rows : int
        Shared rows that the values come from: those asked from, and those searched; 0 where too few
        are shared, and nothing below is known.
    metric : str
        That both sides were compared by.
    overlap : Value or None
        ``NNO@10``: share of the 10 nearest neighbours that both spaces agree on, each side searched
        within itself.
    chance : float
        What two unrelated spaces would give.
    jaccard : dict of k to float
        Mean Jaccard index of the k nearest, for some k.
    jaccard_curve : JaccardCurve or None
        For every k up to 50 (vector linking, figure 8).
    distances : DistanceBins or None
        Pearson's correlation of distances by distance in A, 20 bins (vector linking, figure 1):
        neighbours that agree more than far rows is what lets a bridge be fitted, and links found.
    null_retention : Value or None
        ``nbr_overlap@10`` of the null map: share of the native top 10 in B that A's vectors find
        there as they are, cut or padded with zeros. What a bridge must beat.
    """

    same_space: bool
    differences: dict[str, tuple[Any, Any]]
    shared_ids: int
    asked_rows: int = 0
    searched_rows: int = 0
    metric: Metric = "cosine"
    overlap: Value | None = None
    chance: float = float("nan")
    jaccard: dict[int, float] | None = None
    jaccard_curve: JaccardCurve | None = None
    distances: DistanceBins | None = None
    null_retention: Value | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, without those of single rows."""
        distances, curve = self.distances, self.jaccard_curve
        return {
            **vars(self),
            "distances": None if distances is None else vars(distances),
            "jaccard_curve": None
            if curve is None
            else {name: getattr(curve, name) for name in ("k", "mean", "std")},
            **{
                name: None if value is None else value.to_dict(per_query=False)
                for name, value in (
                    ("overlap", self.overlap),
                    ("null_retention", self.null_retention),
                )
            },
        }


@dataclass(frozen=True)
class Inspection:
    """What one set is like, or two, and what they have in common.

    Parameters
    ----------
    a : SetInspection
    b : SetInspection, optional
    both : PairInspection, optional
        None also where one of the sets cannot be used as it is.
    """

    a: SetInspection
    b: SetInspection | None = None
    both: PairInspection | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            name: None if part is None else part.to_dict()
            for name, part in (("a", self.a), ("b", self.b), ("both", self.both))
        }


def inspect(
    a: VectorSet | Path | str,
    b: VectorSet | Path | str | None = None,
    *,
    seed: int = 0,
    track: Track[Any] = silent,
) -> Inspection:
    """Look at a set of vectors, or at two and how far they agree on the ids they share.

    Parameters
    ----------
    a, b : VectorSet, or path of a file
        A file may hold rows that `VectorSet` refuses (NaN, zero rows, repeated ids): they are
        counted.
    seed : int, default 0
        Of the rows that are looked at where there are many.
    track : Track, default silent

    Returns
    -------
    Inspection

    Raises
    ------
    MissingFileError, UnknownFormatError, CorruptFileError, InputError

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(100, 8))
    >>> ids = [str(i) for i in range(100)]
    >>> one = VectorSet(ids, rows, Space(model="a", dim=8))
    >>> two = VectorSet(ids, -rows, Space(model="b", dim=8))
    >>> both = inspect(one, two).both
    >>> both.shared_ids, both.overlap.mean, round(both.null_retention.mean, 1)
    (100, 1.0, 0.0)
    """
    first, looked_a = _look(a, seed=seed, track=track)
    if b is None:
        return Inspection(looked_a)
    second, looked_b = _look(b, seed=seed, track=track)
    if first is None or second is None:
        return Inspection(looked_a, looked_b)
    return Inspection(looked_a, looked_b, compare(first, second, seed=seed))


def compare(a: VectorSet, b: VectorSet, *, seed: int = 0) -> PairInspection:
    """Compare two sets on the ids they share; see `PairInspection`."""
    places = b.find(a.ids)
    rows = np.flatnonzero(places >= 0)
    differences = {
        name: (getattr(a.space, name), getattr(b.space, name))
        for name in IDENTITY
        if getattr(a.space, name) != getattr(b.space, name)
    }
    common: dict[str, Any] = {
        "same_space": a.space.fingerprint == b.space.fingerprint,
        "differences": differences,
        "shared_ids": len(rows),
    }
    if len(rows) < MIN_SHARED:
        return PairInspection(**common)
    rows = rows[draw_rows(len(rows), SEARCHED_ROWS, seed=seed)]
    left, right = gather(a.vectors, rows), gather(b.vectors, places[rows])
    metric: Metric = a.space.metric if a.space.metric == b.space.metric else "cosine"
    asked = draw_rows(len(rows), ASKED_ROWS, seed=seed)
    overlap = summarise({f"NNO@{K}": nno(left, right, k=K, metric=metric, rows=asked)}, seed=seed)
    curve = jaccard_curve(left, right, max_k=max(JACCARD_AT), metric=metric, seed=seed)
    return PairInspection(
        **common,
        asked_rows=len(asked),
        searched_rows=len(rows),
        metric=metric,
        overlap=overlap[f"NNO@{K}"],
        chance=min(1.0, K / (len(rows) - 1)),
        jaccard_curve=curve,
        jaccard={k: float(curve.mean[k - 1]) for k in JACCARD_AT if k <= len(curve.k)},
        distances=distance_correlation(left, right, bins=BINS, metric=metric, seed=seed),
        null_retention=_null_retention(left, right, asked, b.space, seed=seed),
    )


def _null_retention(
    left: FloatArray, right: FloatArray, asked: IntArray, target: Space, *, seed: int
) -> Value:
    """Measure what A's vectors keep of the top 10 in B when nothing is done to them."""
    from isthmus.maps import make

    mapped = make("null").fit(left, right).transform(left[asked])
    kept = nbr_overlap(
        mapped, right[asked], k=K, collection=right, own_rows=asked, metric=target.metric
    )
    return summarise({f"nbr_overlap@{K}": kept}, seed=seed)[f"nbr_overlap@{K}"]


def _look(
    vectors: VectorSet | Path | str, *, seed: int, track: Track[Any]
) -> tuple[VectorSet | None, SetInspection]:
    """Look at a set; the set is None where its rows cannot be used."""
    try:
        if isinstance(vectors, Path | str) and not is_store_url(vectors):
            path = Path(vectors)
            opened, dtype = load_stored(path, memory_map=format_of(path).memory_maps)
        elif isinstance(vectors, str):
            opened = read_collection(vectors)
            dtype = opened.vectors.dtype
        else:
            opened = open_vectors(vectors)
            dtype = opened.vectors.dtype
    except MissingFileError:
        if not _is_file(vectors):
            raise
        return None, _look_without_ids(Path(vectors), seed=seed, track=track)
    except InputError:
        if not _is_file(vectors):
            raise
        return None, _look_at_file(Path(vectors), seed=seed, track=track)
    looked = look_at_rows(opened.ids, opened.vectors, opened.space, seed=seed, track=track)
    return (opened if looked.sound else None), replace(looked, dtype=str(dtype))


def _is_file(vectors: object) -> TypeGuard[Path | str]:
    named = isinstance(vectors, Path | str) and not is_store_url(vectors)
    return named and Path(cast("str", vectors)).is_file()


def _look_at_file(path: Path, *, seed: int, track: Track[Any]) -> SetInspection:
    """Look at what a file holds, though no set can be made of it."""
    raw = read_raw(path, memory_map=format_of(path).memory_maps)
    vectors = np.asanyarray(raw.vectors)
    sound = vectors.ndim == 2 and vectors.size and vectors.dtype.kind in "fiu"
    ids = np.array([str(one) for one in raw.ids], dtype=np.str_)
    fits = raw.space is None or raw.space.dim == vectors.shape[-1]
    if not sound or len(ids) != len(vectors) or not fits:
        open_vectors(path)  # raises, and says what is wrong
    return look_at_rows(ids, vectors, raw.space, seed=seed, track=track)


def _look_without_ids(path: Path, *, seed: int, track: Track[Any]) -> SetInspection:
    """Look at a matrix that has no ids beside it."""
    raw = read_bare(path)
    looked = look_at_rows(raw.ids, raw.vectors, None, seed=seed, track=track)
    note = f"no ids: other commands need {path.stem + '.ids.txt'!r} beside it, one id a line"
    return replace(looked, notes=(note, *looked.notes))
