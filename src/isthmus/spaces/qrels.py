"""Judgements: which documents are relevant to which queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IdArray
from isthmus.errors import (
    CorruptFileError,
    CountMismatchError,
    DuplicateIdError,
    EmptyInputError,
    MissingFileError,
)
from isthmus.spaces.ids import as_ids

__all__ = ["Qrels"]

LARGEST = float(np.finfo(np.float32).max)
HEADER = ("query-id", "corpus-id", "score")


@dataclass(frozen=True, eq=False, repr=False)
class Qrels:
    """Judgements as three columns; what is not listed, or is not over 0, is not relevant.

    Parameters
    ----------
    query_ids, document_ids : IdArray of shape (n,)
    scores : FloatArray of shape (n,)
        Grade of relevance; negative grades count as 0, as in trec_eval.

    Raises
    ------
    CountMismatchError, DuplicateIdError, EmptyInputError, InvalidIdError
        Columns of several lengths, a document judged twice for one query, nothing, a bad id.

    Examples
    --------
    >>> qrels = Qrels(["q", "q"], ["a", "b"], [1, 2])
    >>> qrels.gains(["q"], [["b", "x", "a"]]).tolist()
    [[2.0, 0.0, 1.0]]
    >>> qrels.ideal(["q"], 3).tolist()
    [[2.0, 1.0, 0.0]]
    """

    query_ids: IdArray
    document_ids: IdArray
    scores: FloatArray

    def __post_init__(self) -> None:
        query_ids = as_ids(self.query_ids, name="query ids")
        document_ids = as_ids(self.document_ids, name="document ids")
        scores = np.maximum(np.asarray(self.scores, dtype=np.float32), 0)
        if not len(query_ids) == len(document_ids) == len(scores):
            raise CountMismatchError(
                expected="as many queries as documents and scores",
                got=f"{len(query_ids)}, {len(document_ids)} and {len(scores)}",
                do="give all three for each judgement",
            )
        if not len(query_ids):
            raise EmptyInputError(
                expected="at least one judgement", got="none", do="check the file of judgements"
            )
        scores.flags.writeable = False
        for name, value in (
            ("query_ids", query_ids),
            ("document_ids", document_ids),
            ("scores", scores),
        ):
            object.__setattr__(self, name, value)
        if sum(map(len, self._by_query.values())) != len(scores):
            raise DuplicateIdError(
                expected="each document judged once for a query",
                got=f"{len(scores)} judgements of "
                f"{sum(map(len, self._by_query.values()))} documents",
                do="drop the repeated judgements",
            )

    def __len__(self) -> int:
        """Count the judgements."""
        return len(self.query_ids)

    def __repr__(self) -> str:
        return f"Qrels({len(self):,} judgements of {len(self._by_query):,} queries)"

    @cached_property
    def _by_query(self) -> dict[str, dict[str, float]]:
        by_query: dict[str, dict[str, float]] = {}
        columns = zip(
            self.query_ids.tolist(), self.document_ids.tolist(), self.scores.tolist(), strict=True
        )
        for query_id, document_id, score in columns:
            by_query.setdefault(query_id, {})[document_id] = score
        return by_query

    @property
    def relevant_ids(self) -> IdArray:
        """Documents that are relevant to some query, sorted."""
        return np.unique(self.document_ids[self.scores > 0])

    def gains(self, query_ids: Sequence[str] | IdArray, ids: npt.ArrayLike) -> FloatArray:
        """Return the grade of each retrieved document, float32 of shape (m, k).

        Parameters
        ----------
        query_ids : ids of shape (m,)
        ids : ids of shape (m, k)
            The empty id, which stands for no document, gains 0.
        """
        found = np.asarray(ids, dtype=np.str_)
        if found.ndim != 2 or len(found) != len(query_ids):
            raise CountMismatchError(
                expected=f"ids of shape ({len(query_ids)}, k), one row per query",
                got=f"shape {found.shape}",
                do="pass the ids of a ranking",
            )
        gains = np.zeros(found.shape, dtype=np.float32)
        for row, query_id in enumerate(query_ids):
            grades = self._by_query.get(str(query_id))
            if grades:
                gains[row] = [grades.get(document_id, 0.0) for document_id in found[row].tolist()]
        return gains

    def ideal(self, query_ids: Sequence[str] | IdArray, k: int) -> FloatArray:
        """Return the best gains that k places can have, float32 of shape (m, k), best first."""
        ideal = np.zeros((len(query_ids), k), dtype=np.float32)
        for row, query_id in enumerate(query_ids):
            grades = sorted(self._by_query.get(str(query_id), {}).values(), reverse=True)[:k]
            ideal[row, : len(grades)] = grades
        return ideal

    def n_relevant(self, query_ids: Sequence[str] | IdArray) -> npt.NDArray[np.int64]:
        """Count the relevant documents of each query, int64 of shape (m,)."""
        return np.array(
            [
                sum(grade > 0 for grade in self._by_query.get(str(query_id), {}).values())
                for query_id in query_ids
            ],
            dtype=np.int64,
        )

    def judged(self, query_ids: Sequence[str] | IdArray) -> npt.NDArray[np.bool_]:
        """Say which queries have a relevant document: only those can be measured."""
        return self.n_relevant(query_ids) > 0

    def restrict(self, document_ids: Sequence[str] | IdArray) -> Qrels:
        """Keep the judgements of these documents: those that can be retrieved at all."""
        kept = np.isin(self.document_ids, as_ids(document_ids, name="document ids"))
        return Qrels(self.query_ids[kept], self.document_ids[kept], self.scores[kept])

    @classmethod
    def load(cls, path: Path | str) -> Qrels:
        """Read tab-separated ``query-id, corpus-id, score``, with or without that header.

        Raises
        ------
        MissingFileError, CorruptFileError
            Names the line that is broken.
        DuplicateIdError
            A document judged twice for one query.
        """
        path = Path(path)
        if not path.is_file():
            raise MissingFileError(
                expected=f"judgements at {str(path)!r}", got="nothing there", do="check the path"
            )
        try:
            with path.open(encoding="utf-8-sig") as stream:  # ends lines at newlines and no other
                lines = [line.removesuffix("\n") for line in stream]
        except UnicodeDecodeError as error:
            raise _broken(path, "a file that is not UTF-8 text") from error
        first = 1 if lines and tuple(lines[0].split("\t")) == HEADER else 0
        rows = [
            _parse(line, path, number + 1)
            for number, line in enumerate(lines)
            if number >= first and line.strip()
        ]
        if not rows:
            raise _broken(path, "no line of judgements")
        query_ids, document_ids, scores = zip(*rows, strict=True)
        return cls(
            as_ids(query_ids, name="query ids"),
            as_ids(document_ids, name="document ids"),
            np.array(scores, dtype=np.float32),
        )


def _parse(line: str, path: Path, number: int) -> tuple[str, str, float]:
    """Read one line; a score that is no number, or that float32 cannot hold, is refused."""
    cells = line.split("\t")
    try:  # Python reads 1_0 as 10
        score = float(cells[2]) if len(cells) == 3 and "_" not in cells[2] else float("nan")
    except ValueError:
        score = float("nan")
    if not abs(score) <= LARGEST:
        raise _broken(path, f"{line[:80]!r} in line {number}")
    return cells[0], cells[1], score


def _broken(path: Path, got: str) -> CorruptFileError:
    return CorruptFileError(
        expected=f"lines of query-id, corpus-id and score between tabs in {path.name!r}",
        got=got,
        do="fix the file",
    )
