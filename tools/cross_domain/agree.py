"""Judgements of people read back, and how far they agree (HVMap, table 1)."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cross_domain.export import unguard
from isthmus.errors import (
    CorruptFileError,
    CountMismatchError,
    DuplicateIdError,
    EmptyInputError,
    MissingFileError,
)
from isthmus.evaluate import fleiss_kappa, pairwise_agreement

__all__ = ["Agreement", "Judged", "agree", "read_judged", "show"]

YES = {"1", "yes", "y", "true"}
NO = {"0", "no", "n", "false"}
NEEDED = ("query_id", "document_id", "relevant")
Pair = tuple[str, str]


@dataclass(frozen=True)
class Judged:
    """The file of one annotator.

    Parameters
    ----------
    path : Path
    relevant : dict of (query, document) to bool
    lines : dict of (query, document) to int
        Where each pair stands in the file.
    """

    path: Path
    relevant: dict[Pair, bool]
    lines: dict[Pair, int]

    @property
    def queries(self) -> int:
        """Count the queries."""
        return len({query for query, _ in self.relevant})

    @property
    def ratio(self) -> float:
        """Share of the pairs that were judged relevant."""
        return sum(self.relevant.values()) / len(self.relevant)


@dataclass(frozen=True)
class Agreement:
    """What table 1 of the paper shows."""

    annotators: tuple[Judged, ...]
    pairwise: float
    kappa: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it; an undefined kappa is null."""
        return {
            "annotators": [
                {
                    "file": str(one.path),
                    "queries": one.queries,
                    "pairs": len(one.relevant),
                    "relevant_ratio": one.ratio,
                }
                for one in self.annotators
            ],
            "mean_pairwise_agreement": self.pairwise,
            "fleiss_kappa": None if math.isnan(self.kappa) else self.kappa,
        }


def read_judged(path: Path) -> Judged:
    """Read the judgements of one annotator, separated by commas, semicolons or tabs.

    Raises
    ------
    MissingFileError, CorruptFileError, DuplicateIdError, EmptyInputError
        With the number of the line where the row ends.
    """
    if not path.is_file():
        raise MissingFileError(
            expected=f"judgements at {str(path)!r}", got="nothing there", do="check the path"
        )
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CorruptFileError(
            expected=f"{path.name!r} as text in UTF-8",
            got="another encoding",
            do='save it as "CSV UTF-8"',
        ) from None
    head = text.partition("\n")[0]
    separator = max(",;\t", key=head.count)
    limit = csv.field_size_limit(len(text) + 1)  # a text may be longer than the usual limit
    table = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        return _read(table, path)
    except csv.Error as error:
        raise CorruptFileError(
            expected=f"a table in {path.name!r}",
            got=f"{error} in line {table.line_num}",
            do="save it as CSV again",
        ) from error
    finally:
        csv.field_size_limit(limit)


def _read(table: Any, path: Path) -> Judged:
    """Read the rows below the names of the columns."""
    header = [name.strip().casefold() for name in next(table, [])]
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise CorruptFileError(
            expected=f"columns {', '.join(NEEDED)} in line 1 of {path.name!r}",
            got=f"no {', '.join(missing)}",
            do="keep the first line as export wrote it",
        )
    places = [header.index(name) for name in NEEDED]
    judged = Judged(path, {}, {})
    for row in table:
        if not any(cell.strip() for cell in row):
            continue
        line = table.line_num
        if len(row) != len(header):
            raise _bad(path, line, f"{len(header)} cells", f"{len(row)}")
        query, document, cell = (row[place] for place in places)
        pair = (unguard(query), unguard(document))
        if pair in judged.lines:
            raise DuplicateIdError(
                expected=f"each pair once in {path.name!r}",
                got=f"query {pair[0]!r:.40}, document {pair[1]!r:.40} in lines "
                f"{judged.lines[pair]} and {line}",
                do="drop one of the two rows",
            )
        judged.lines[pair] = line
        judged.relevant[pair] = _read_cell(cell, path, line)
    if not judged.lines:
        raise EmptyInputError(
            expected=f"judgements in {path.name!r}", got="none", do="check the file"
        )
    return judged


def _read_cell(cell: str, path: Path, line: int) -> bool:
    said = cell.strip().casefold()
    if said not in YES | NO:
        got = f"{cell.strip()!r:.40}" if said else "an empty cell"
        raise _bad(path, line, "1 or 0 (yes or no) in the column relevant", got)
    return said in YES


def _bad(path: Path, line: int, expected: str, got: str) -> CorruptFileError:
    return CorruptFileError(
        expected=f"{expected} in line {line} of {path.name!r}", got=got, do="fix the row"
    )


def agree(judged: Sequence[Judged]) -> Agreement:
    """Measure how far at least two annotators of the same pairs agree.

    Raises
    ------
    CountMismatchError
        Names a pair that one of them has and another has not.
    """
    first = judged[0]
    for other in judged[1:]:
        for one, two in ((first, other), (other, first)):
            lacking = one.relevant.keys() - two.relevant.keys()
            if lacking:
                pair = min(lacking, key=one.lines.__getitem__)
                raise CountMismatchError(
                    expected=f"the pairs of {str(one.path)!r} in {str(two.path)!r}",
                    got=f"{len(lacking):,} missing, first query {pair[0]!r:.40}, document "
                    f"{pair[1]!r:.40} of line {one.lines[pair]}",
                    do="give back all rows as they were exported",
                )
    votes = np.array([[one.relevant[pair] for one in judged] for pair in first.relevant])
    relevant = votes.sum(axis=1)
    counts = np.c_[relevant, len(judged) - relevant]
    return Agreement(tuple(judged), pairwise_agreement(counts), fleiss_kappa(counts))


def show(found: Agreement) -> str:
    """Return the table that is printed."""
    names = [one.path.name for one in found.annotators]
    if len(set(names)) < len(names):
        names = [str(one.path) for one in found.annotators]
    width = max(map(len, ("annotator", *names)))
    lines = [f"{'annotator':{width}}  queries   pairs  relevant"]
    lines += [
        f"{name:{width}}  {one.queries:7,}  {len(one.relevant):6,}  {one.ratio:8.1%}"
        for name, one in zip(names, found.annotators, strict=True)
    ]
    kappa = "undefined (all judgements are the same)"
    if not math.isnan(found.kappa):
        kappa = f"{found.kappa:.3f}"
    lines += [f"mean pairwise agreement: {found.pairwise:.1%}", f"Fleiss' kappa: {kappa}"]
    return "\n".join(lines)
