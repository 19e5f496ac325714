"""What the doctor says of a collection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus.errors import VerdictError
from isthmus.evaluate.mixture import Mixture
from isthmus.evaluate.row_marks import UNIT, MarkSummary, RowMarks
from isthmus.spaces import Space
from isthmus.workflows._doctor_rows import OtherLength

__all__ = ["Diagnosis", "DiagnosisVerdict", "with_verdict"]

DiagnosisVerdict = Literal["clean", "mixed", "damaged", "undecided", "not enough data"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """What a collection is like.

    Parameters
    ----------
    verdict : {"clean", "mixed", "damaged", "undecided", "not enough data"}
        ``mixed``: rows of another encoder, or treated otherwise after it, or with more or fewer
        numbers. ``damaged``: bad or zero rows, repeated ids, or lengths that the recorded space
        rules out. ``undecided`` and ``not enough data``
        are those of the mixture.
    reasons : tuple of str
        Of the verdict.
    space : Space or None
        As recorded; None where none is.
    rows, dim : int
        Of the collection.
    looked : int
        Rows that counts come from: all that have ``dim`` numbers, or the sample of them.
    length_low, length_median, length_high : float
        5th, 50th and 95th percentile of the lengths.
    marks : MarkSummary
        Lengths, widths and number types, and the parts they make.
    invalid_rows, zero_rows, duplicate_rows : int
        Rows with NaN or infinity, of length zero, and equal to another before.
    repeated_ids : int
        Rows under the id of an earlier one.
    invalid_ids, zero_ids : tuple of str
        The first ten of these rows.
    other_lengths : tuple of OtherLength
        Rows with more or fewer numbers than ``dim``, by their number.
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
    repeated_ids: int
    invalid_ids: tuple[str, ...]
    zero_ids: tuple[str, ...]
    other_lengths: tuple[OtherLength, ...]
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
        left_out = ("ids", "posterior", "space", "marks", "mixture", "other_lengths")
        return {
            **{name: value for name, value in vars(self).items() if name not in left_out},
            "space": None if self.space is None else self.space.to_dict(),
            "other_lengths": [vars(one) for one in self.other_lengths],
            "marks": self.marks.to_dict(),
            "mixture": self.mixture.to_dict(),
        }


def with_verdict(found: Diagnosis, marks: RowMarks) -> Diagnosis:
    """Add the verdict, its reasons and the notes."""
    mixed = [
        f"vectors of {one.numbers:g} numbers, not {found.dim:,}, in {_named(one.rows, one.ids)}"
        for one in found.other_lengths
    ]
    mixed += [
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
    return replace(
        found,
        verdict=verdict,
        reasons=tuple(reasons),
        notes=(*_notes_of_space(found), *_notes(found)),
    )


def _damage(found: Diagnosis, marks: RowMarks) -> Iterator[str]:
    space = found.space
    if found.invalid_rows:
        yield f"NaN or infinity in {_named(found.invalid_rows, found.invalid_ids)}"
    if found.zero_rows and (space is None or space.metric == "cosine"):
        yield f"nothing but zeros in {_named(found.zero_rows, found.zero_ids)}"
    if found.repeated_ids:
        yield f"{_rows(found.repeated_ids)} under the id of an earlier one"
    if space is not None and space.normalized:
        off = int((np.abs(marks.length[marks.grid >= 0] - 1) > UNIT).sum())
        if off:
            yield f"the space says unit length: not so in {_rows(off)}"


def _notes_of_space(found: Diagnosis) -> Iterator[str]:
    space, unit = found.space, found.marks.normalized == "all"
    if space is None:
        yield (
            "no space is recorded: if you know which model made these vectors, record it: "
            f"isthmus store record URL --model NAME{' --normalized' if unit else ''}"
        )
    elif space.bridged_from:
        yield (
            f"a bridge made these vectors ({space.bridged_from[:12]}), not the model: they are as "
            "good as that bridge, which a diagnosis cannot see"
        )
    if space is not None and not space.normalized and unit:
        yield (
            "all rows have unit length, which the recorded space does not say: if the encoder "
            "gives such vectors, it should"
        )


def _notes(found: Diagnosis) -> Iterator[str]:
    if found.marks.grids and found.marks.grids[0].name in ("int8", "binary"):
        yield f"the vectors were rounded to {found.marks.grids[0].name}"
    if found.duplicate_rows:
        verb = "repeats" if found.duplicate_rows == 1 else "repeat"
        yield f"{_rows(found.duplicate_rows)} {verb} an earlier one: equal rows tie in every search"
    if found.near_duplicates > 0.05:
        yield f"{found.near_duplicates:.0%} of the rows have a near duplicate"
    if found.hubness > 3:
        yield f"a few rows are near to everything (hubness@10 {found.hubness:.1f})"
    if 0 < len(found.zero_dimensions) < found.dim:
        yield (
            f"{_some(len(found.zero_dimensions), 'dimension')} zero in every row: harmless, "
            "some models leave them so"
        )
    elif len(found.zero_dimensions) < len(found.constant_dimensions) < found.dim:
        yield (
            f"{_some(len(found.constant_dimensions), 'dimension')} of one value in every row: "
            "no two rows are told apart by that"
        )
    if found.mixture.outliers:
        verb = "lies" if found.mixture.outliers == 1 else "lie"
        yield (
            f"{_some(found.mixture.outliers, 'single row')} {verb} outside of the space of "
            "the others"
        )


def _some(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _rows(count: int) -> str:
    return _some(count, "row")


def _named(count: int, ids: Sequence[str]) -> str:
    """Say how many rows, and the first of them."""
    more = ", ..." if count > len(ids) else ""
    return f"{_rows(count)}: {', '.join(repr(text[:40]) for text in ids)}{more}"
