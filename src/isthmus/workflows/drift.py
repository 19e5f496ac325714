"""Drift between two collections, or between two snapshots of one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isthmus._progress import Track, silent
from isthmus._types import FloatArray
from isthmus._validate import check_positive
from isthmus.errors import DimensionError, EmptyInputError, VerdictError
from isthmus.evaluate.drift import SAMPLE_ROWS, Drift, measure_drift
from isthmus.spaces import VectorSet
from isthmus.stores import Store
from isthmus.workflows._doctor_rows import opened, survey

__all__ = ["DriftReport", "drift_between"]


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
    >>> from isthmus import Space
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
        sides.append(_sound(read.vectors))
        spaces.append(collection.space)
        counts.append(read.count)
    widths = [side.shape[1] for side in sides]
    if len(set(widths)) > 1:
        raise DimensionError(
            expected="two collections of one width",
            got=f"{widths[0]:,} and {widths[1]:,} numbers a row",
            do="compare what one model made",
        )
    one, two = spaces
    return DriftReport(
        drift=measure_drift(*sides, seed=seed, track=track),
        same_space=None if one is None or two is None else one.fingerprint == two.fingerprint,
        rows=counts[0],
        other_rows=counts[1],
    )


def _sound(rows: FloatArray) -> FloatArray:
    sound = rows[np.isfinite(rows).all(axis=1)]
    if not len(sound):
        raise EmptyInputError(
            expected="a row without NaN and infinity on each side",
            got=f"none among {len(rows):,}",
            do="diagnose that collection by itself: isthmus doctor STORE",
        )
    return sound
