"""What the doctor says of a collection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus.errors import VerdictError
from isthmus.evaluate.mixture import Mixture
from isthmus.evaluate.row_marks import UNIT, MarkSummary, RowMarks
from isthmus.spaces import Space

__all__ = ["Diagnosis", "DiagnosisVerdict", "with_verdict"]

DiagnosisVerdict = Literal["clean", "mixed", "damaged", "undecided", "not enough data"]


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


def with_verdict(found: Diagnosis, marks: RowMarks) -> Diagnosis:
    """Add the verdict, its reasons and the notes."""
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
