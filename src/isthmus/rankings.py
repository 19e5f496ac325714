"""Rankings: ids and scores per query, with where each hit came from."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TextIO

import numpy as np

from isthmus._files import atomic_path
from isthmus._types import FloatArray, IdArray
from isthmus.errors import (
    CountMismatchError,
    EmptyInputError,
    InvalidIdError,
    UnknownFormatError,
)

__all__ = ["Hit", "Ranking", "check_run_path", "plain"]


@dataclass(frozen=True)
class Hit:
    """One answer to one query.

    Parameters
    ----------
    id : str
    rank : int
        From 1.
    score : float
        Canonical score: comparable across stores, higher is better.
    store : str
        Name of the store that gave it.
    space : str
        Fingerprint of that store's space.
    native_score : float
        Similarity to the query in the store's own space.
    mapped_score : float
        Similarity after mapping into the other space; NaN where the method does not map.
    """

    id: str
    rank: int
    score: float
    store: str
    space: str
    native_score: float
    mapped_score: float


@dataclass(frozen=True)
class Ranking:
    """Answers to many queries as arrays of shape (n_queries, k), best first.

    Rows with fewer than k answers end in the empty id and NaN scores.

    Parameters
    ----------
    query_ids : IdArray of shape (n_queries,)
    ids : IdArray of shape (n_queries, k)
    scores : FloatArray of shape (n_queries, k)
        Canonical scores, higher is better.
    stores, spaces : IdArray of shape (n_queries, k)
    native_scores, mapped_scores : FloatArray of shape (n_queries, k)
    """

    query_ids: IdArray
    ids: IdArray
    scores: FloatArray
    stores: IdArray
    spaces: IdArray
    native_scores: FloatArray
    mapped_scores: FloatArray

    def __post_init__(self) -> None:
        for name in ("scores", "stores", "spaces", "native_scores", "mapped_scores"):
            if getattr(self, name).shape != self.ids.shape:
                raise CountMismatchError(
                    expected=f"{name} of shape {self.ids.shape}",
                    got=f"{getattr(self, name).shape}",
                    do="give one value per hit",
                )
        if len(self.query_ids) != len(self.ids):
            raise CountMismatchError(
                expected=f"{len(self.ids)} query ids", got=f"{len(self.query_ids)}", do="give each"
            )

    def __repr__(self) -> str:
        """Say how many answers there are and from where; the arrays may be long."""
        stores = [repr(str(name)) for name in np.unique(self.stores) if name != ""]
        return f"Ranking({len(self):,} queries x {self.ids.shape[1]}, stores {', '.join(stores)})"

    def __len__(self) -> int:
        """Count the queries."""
        return len(self.query_ids)

    def hits(self, query: int) -> list[Hit]:
        """Return the answers to the query at row ``query``, best first."""
        found = int(np.count_nonzero(self.ids[query] != ""))
        return [
            Hit(
                id=str(self.ids[query, place]),
                rank=place + 1,
                score=float(self.scores[query, place]),
                store=str(self.stores[query, place]),
                space=str(self.spaces[query, place]),
                native_score=float(self.native_scores[query, place]),
                mapped_score=float(self.mapped_scores[query, place]),
            )
            for place in range(found)
        ]

    def __iter__(self) -> Iterator[tuple[str, list[Hit]]]:
        """Yield each query id with its hits."""
        for row, query_id in enumerate(self.query_ids):
            yield str(query_id), self.hits(row)

    @classmethod
    def concatenate(cls, rankings: Sequence[Ranking]) -> Ranking:
        """Return the answers to several batches of queries as one ranking.

        Parameters
        ----------
        rankings : sequence of Ranking
            At least one; all with the same number of columns.

        Raises
        ------
        EmptyInputError, CountMismatchError
        """
        if not rankings:
            raise EmptyInputError(expected="at least one ranking", got="none", do="search first")
        widths = sorted({one.ids.shape[1] for one in rankings})
        if len(widths) > 1:
            raise CountMismatchError(
                expected="rankings of one width", got=f"{widths}", do="ask each for the same k"
            )
        if len(rankings) == 1:
            return rankings[0]
        return cls(
            **{
                one.name: np.concatenate([getattr(ranking, one.name) for ranking in rankings])
                for one in fields(cls)
            }
        )

    def save(self, path: Path | str) -> None:
        """Write a TREC run (``.trec``, ``.run``), ``.jsonl`` or ``.csv``, whole or not at all.

        Raises
        ------
        UnknownFormatError
            Another ending.
        InvalidIdError
            An id with white space, for TREC only: its columns are split at white space.
        """
        path = Path(path)
        check_run_path(path)
        with (
            atomic_path(path) as temporary,
            temporary.open("w", encoding="utf-8", newline="") as out,
        ):
            WRITERS[path.suffix](self, out)


def check_run_path(path: Path) -> None:
    """Refuse a file whose ending names no format, before anything is searched for it.

    Raises
    ------
    UnknownFormatError
    """
    if path.suffix not in WRITERS:
        raise UnknownFormatError(
            expected=f"a run file ending in {', '.join(WRITERS)}", got=path.name, do="rename it"
        )


def _write_trec(ranking: Ranking, out: TextIO) -> None:
    for query_id, hits in ranking:
        for text in (query_id, *(hit.id for hit in hits)):
            if any(character.isspace() for character in text):
                raise InvalidIdError(
                    expected="ids without white space in a TREC run",
                    got=repr(text),
                    do="write .jsonl",
                )
        out.writelines(
            f"{query_id} Q0 {hit.id} {hit.rank} {hit.score:.9g} isthmus\n" for hit in hits
        )


def _write_jsonl(ranking: Ranking, out: TextIO) -> None:
    for query_id, hits in ranking:
        out.writelines(
            json.dumps({"query": query_id, **plain(hit)}, ensure_ascii=False) + "\n" for hit in hits
        )


def _write_csv(ranking: Ranking, out: TextIO) -> None:
    writer = csv.writer(out)
    writer.writerow(["query", *Hit.__dataclass_fields__])
    for query_id, hits in ranking:
        writer.writerows([query_id, *plain(hit).values()] for hit in hits)


WRITERS = MappingProxyType(
    {".trec": _write_trec, ".run": _write_trec, ".jsonl": _write_jsonl, ".csv": _write_csv}
)


def plain(hit: Hit) -> dict[str, str | int | float | None]:
    """Return a hit as JSON values; a score that does not exist is null."""
    return {
        name: None if isinstance(value, float) and np.isnan(value) else value
        for name, value in vars(hit).items()
    }
