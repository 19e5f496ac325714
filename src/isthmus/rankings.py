"""Rankings: ids and scores per query, with where each hit came from."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TextIO

import numpy as np
import numpy.typing as npt

from isthmus._files import atomic_path
from isthmus._types import FloatArray, IdArray
from isthmus.errors import (
    CountMismatchError,
    EmptyInputError,
    InvalidIdError,
    UnknownFormatError,
)

__all__ = ["COMMON", "Hit", "Outage", "OutageKind", "Ranking", "check_run_path", "plain"]

OutageKind = Literal["error", "garbage", "timeout", "busy", "resting"]

COMMON = "common"
"""Name of the common space among the weights."""

ARRAYS = ("ids", "scores", "stores", "spaces", "native_scores", "mapped_scores")


@dataclass(frozen=True)
class Outage:
    """A store that is missing in the answers to some queries.

    Parameters
    ----------
    store : str
        Name of the source.
    reason : str
        One line.
    kind : {"error", "garbage", "timeout", "busy", "resting"}
        ``error``: it failed. ``garbage``: its answer breaks the contract of stores. ``timeout``: it
        did not answer in time. It was not asked at all for ``busy``: an earlier call that nobody
        waits for is still running; and for ``resting``: it failed several times in a row.
    attempts : int
        How often it was asked.
    seconds : float
        How long it was waited for.
    queries : int
        How many queries were answered without it.

    Examples
    --------
    >>> print(Outage("two", "no answer in 30 s", "timeout", attempts=1, seconds=30.0, queries=5))
    store 'two' (timeout): no answer in 30 s
    """

    store: str
    reason: str
    kind: OutageKind
    attempts: int
    seconds: float
    queries: int

    def __str__(self) -> str:
        """Say which store is missing and why."""
        return f"store {self.store!r} ({self.kind}): {self.reason}"


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
    also : tuple of (store, id)
        Where the same document was found besides, when documents were merged.
    similarities : mapping of str to float
        By name of the space, when they were asked for (``explain``).
    probability : float, optional
        That the hit is relevant, where scores are calibrated.
    common : float, optional
        Similarity in the common space, when it was asked for and the method looks there.
    weights : mapping of str to float
        What each similarity counts in the score: by name of the space, and ``common``. Empty unless
        asked for, and where the score is no weighted sum (``agg``, ``rrf``, ``combmnz``).
    """

    id: str
    rank: int
    score: float
    store: str
    space: str
    native_score: float
    mapped_score: float
    also: tuple[tuple[str, str], ...] = ()
    similarities: Mapping[str, float] = field(default_factory=dict)
    probability: float | None = None
    common: float | None = None
    weights: Mapping[str, float] = field(default_factory=dict)


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
    outages : tuple of Outage, default ()
        Stores that are missing in some answers.
    also : mapping of (row, place) to pairs of (store, id), default empty
        Where the document at that row and place was found besides, when documents were merged.
    similarities : FloatArray of shape (n_spaces, n_queries, k), optional
        In every space: native in the document's own, after mapping in the others.
    space_names : tuple of str, default ()
        Of those spaces.
    skipped : boolean array of shape (n_queries, n_sources), optional
        Stores that were left out of a search to save time; None where nothing was.
    source_names : tuple of str, default ()
        Of those stores.
    probabilities : FloatArray of shape (n_queries, k), optional
        That each hit is relevant, where scores are calibrated. Hits are ranked by their scores.
    common : FloatArray of shape (n_queries, k), optional
        Similarity in the common space, beside ``similarities``.
    weights : mapping of str to mapping of str to float, default empty
        What each similarity counts in the scores of the documents of a space, by its fingerprint:
        by name of the space, and ``common``.
    """

    query_ids: IdArray
    ids: IdArray
    scores: FloatArray
    stores: IdArray
    spaces: IdArray
    native_scores: FloatArray
    mapped_scores: FloatArray
    outages: tuple[Outage, ...] = ()
    also: Mapping[tuple[int, int], tuple[tuple[str, str], ...]] = field(default_factory=dict)
    similarities: FloatArray | None = None
    space_names: tuple[str, ...] = ()
    skipped: npt.NDArray[np.bool_] | None = None
    source_names: tuple[str, ...] = ()
    probabilities: FloatArray | None = None
    common: FloatArray | None = None
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shapes = dict.fromkeys(ARRAYS[1:], self.ids.shape)
        for name in ("probabilities", "common"):
            if getattr(self, name) is not None:
                shapes[name] = self.ids.shape
        if self.similarities is not None:
            shapes["similarities"] = (len(self.space_names), *self.ids.shape)
        if self.skipped is not None:
            shapes["skipped"] = (len(self.ids), len(self.source_names))
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise CountMismatchError(
                    expected=f"{name} of shape {shape}",
                    got=f"{getattr(self, name).shape}",
                    do="give one value per hit",
                )
        if len(self.query_ids) != len(self.ids):
            raise CountMismatchError(
                expected=f"{len(self.ids)} query ids", got=f"{len(self.query_ids)}", do="give each"
            )

    @property
    def complete(self) -> bool:
        """Say whether every store answered every query that it was asked."""
        return not self.outages

    def __repr__(self) -> str:
        """Say how many answers there are and from where; the arrays may be long."""
        stores = [repr(str(name)) for name in np.unique(self.stores) if name != ""]
        without = ", ".join(sorted({repr(one.store) for one in self.outages}))
        return (
            f"Ranking({len(self):,} queries x {self.ids.shape[1]}, stores {', '.join(stores)}"
            f"{', without ' + without if without else ''})"
        )

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
                also=self.also.get((query, place), ()),
                similarities=self._similarities(query, place),
                probability=_at(self.probabilities, query, place),
                common=_at(self.common, query, place),
                weights=self.weights.get(str(self.spaces[query, place]), {}),
            )
            for place in range(found)
        ]

    def _similarities(self, query: int, place: int) -> dict[str, float]:
        if self.similarities is None:
            return {}
        values = self.similarities[:, query, place].tolist()
        return dict(zip(self.space_names, values, strict=True))

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
            At least one; all with the same number of columns, and made in one way: by the same
            stores, explained or not. Outages of one store and kind become one.

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
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(one, name) for one in rankings])
            for name in ("query_ids", *ARRAYS)
        }
        optional = {"similarities": 1, "skipped": 0, "probabilities": 0, "common": 0}
        for name, axis in optional.items():
            parts = [getattr(one, name) for one in rankings]
            if all(part is not None for part in parts):
                joined[name] = np.concatenate(parts, axis=axis)
        also: dict[tuple[int, int], tuple[tuple[str, str], ...]] = {}
        start = 0
        for one in rankings:
            also |= {(start + row, place): other for (row, place), other in one.also.items()}
            start += len(one)
        return cls(
            **joined,
            outages=_merge(outage for one in rankings for outage in one.outages),
            also=also,
            space_names=rankings[0].space_names,
            source_names=rankings[0].source_names,
            weights=rankings[0].weights,
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


def _at(values: FloatArray | None, query: int, place: int) -> float | None:
    return None if values is None else float(values[query, place])


def _merge(outages: Iterable[Outage]) -> tuple[Outage, ...]:
    """Make one of the outages of one store and kind: the first reason, the sums of the counts."""
    merged: dict[tuple[str, str], Outage] = {}
    for one in outages:
        known = merged.get((one.store, one.kind))
        merged[one.store, one.kind] = (
            one
            if known is None
            else replace(
                known,
                attempts=known.attempts + one.attempts,
                seconds=known.seconds + one.seconds,
                queries=known.queries + one.queries,
            )
        )
    return tuple(merged.values())


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
    columns = [name for name in Hit.__dataclass_fields__ if name not in EVIDENCE]
    columns += [
        name
        for name, values in (("probability", ranking.probabilities), ("common", ranking.common))
        if values is not None
    ]
    weighed = list(dict.fromkeys(name for one in ranking.weights.values() for name in one))
    heads = [f"similarity {name}" for name in ranking.space_names]
    writer.writerow(["query", *columns, *heads, *(f"weight {name}" for name in weighed)])
    for query_id, hits in ranking:
        for hit in hits:
            told = plain(hit)
            similarities, weights = told.get("similarities", {}), told.get("weights", {})
            writer.writerow(
                [
                    query_id,
                    *(told[name] for name in columns),
                    *(similarities.get(name) for name in ranking.space_names),
                    *(weights.get(name) for name in weighed),
                ]
            )


WRITERS = MappingProxyType(
    {".trec": _write_trec, ".run": _write_trec, ".jsonl": _write_jsonl, ".csv": _write_csv}
)


EVIDENCE = ("also", "similarities", "probability", "common", "weights")
"""Fields of a hit that are left out of its JSON when there is nothing in them."""


def plain(hit: Hit) -> dict[str, Any]:
    """Return a hit as JSON values; a score that does not exist is null."""
    values = {name: _number(value) for name, value in vars(hit).items() if name not in EVIDENCE}
    if hit.also:
        values["also"] = [{"store": store, "id": name} for store, name in hit.also]
    if hit.similarities:
        values["similarities"] = {name: _number(value) for name, value in hit.similarities.items()}
    for name in ("probability", "common"):
        if getattr(hit, name) is not None:
            values[name] = _number(getattr(hit, name))
    if hit.weights:
        values["weights"] = dict(hit.weights)
    return values


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value
