"""The two halves of an evaluation: held-out pairs, and queries with judgements."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._progress import Track, silent
from isthmus._types import FloatArray, IdArray
from isthmus.bridge import Bridge
from isthmus.errors import ParameterError
from isthmus.evaluate import Native, Value, measure_pairs, ratio_to_oracle, summarise
from isthmus.evaluate.preservation.overlap import overlap_counts
from isthmus.evaluate.retrieval import measure_run
from isthmus.maps import make
from isthmus.neighbors import top_k
from isthmus.spaces import Pairs, Qrels, VectorSet
from isthmus.spaces.sampling import draw_rows
from isthmus.workflows._opening import open_qrels, open_vectors

__all__ = [
    "OF_QUERIES",
    "Asked",
    "Measured",
    "Sides",
    "hold_out",
    "measure_held_out",
    "measure_run_of",
]

HELD_OUT_ROWS = 2_000
"""Held-out rows that are measured: enough for a standard error of about a hundredth."""
K = 10
OF_QUERIES = f"nbr_overlap@{K} of queries"
"""Name of the share of the native top 10 that queries find; that of rows has no addition."""


@dataclass
class Measured:
    """What has been measured so far."""

    values: dict[str, Value] = field(default_factory=dict)
    null: dict[str, Value] = field(default_factory=dict)
    oracle: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Sides:
    """A bridge between two sets, with the null map beside it.

    Raises
    ------
    SpaceMismatchError, WrongDirectionError
    """

    bridge: Bridge
    source: VectorSet
    target: VectorSet
    seed: int

    def __post_init__(self) -> None:
        self.bridge.check_source(self.source.space)
        self.bridge.target.check(self.target.space, what="target vectors")

    @cached_property
    def native(self) -> FloatArray:
        """The target set as it is: (n, dim_target)."""
        return self.target.matrix()

    @cached_property
    def compared(self) -> FloatArray:
        """The target set in the comparison space: itself, unless the map moves it."""
        if self.bridge.lands_in == "target":
            return self.native
        return self.bridge.transform_target(self.native)

    def mapped(self, rows: FloatArray) -> FloatArray:
        """Carry source rows as `Bridge.apply` does."""
        return self.bridge.transform(rows)

    def unmapped(self, rows: FloatArray) -> FloatArray:
        """Carry source rows by the null map."""
        null = make("null").fit(rows[:1], self.native[:1])
        return null.transform(rows)


@dataclass(frozen=True)
class Asked:
    """Queries in the source space, in the target space too where they are known, and judgements."""

    queries: VectorSet
    target_queries: VectorSet | None
    qrels: Qrels | None

    @classmethod
    def open(
        cls,
        bridge: Bridge,
        queries: VectorSet | Path | str | None,
        target_queries: VectorSet | Path | str | None,
        qrels: Qrels | Path | str | None,
    ) -> Asked | None:
        """Open what was given, and bring both sides of the queries into one order.

        Raises
        ------
        ParameterError
            Queries alone, or something else without queries.
        SpaceMismatchError, WrongDirectionError, UnknownIdError, FileError
        """
        if queries is None:
            if target_queries is not None or qrels is not None:
                raise ParameterError(
                    expected="queries in the source space beside target queries or judgements",
                    got="none",
                    do="pass queries",
                )
            return None
        if target_queries is None and qrels is None:
            raise ParameterError(
                expected="judgements of the queries, or the same queries in the target space",
                got="neither",
                do="pass qrels, target_queries, or both",
            )
        asked = open_vectors(queries)
        bridge.check_source(asked.space)
        native = None if target_queries is None else open_vectors(target_queries)
        if native is not None:
            bridge.target.check(native.space, what="target queries")
            native = native.select(native.rows_of(asked.ids))
        return cls(asked, native, None if qrels is None else open_qrels(qrels))


def hold_out(bridge: Bridge, pairs: Pairs | None, *, seed: int) -> tuple[Pairs | None, int]:
    """Leave out the pairs that the bridge was fitted on, and draw 2,000 of the rest.

    Returns
    -------
    held_out : Pairs or None
        None where none is left.
    fitted : int
        Pairs that were left out: either id stands in a pair that the bridge was fitted on.
    """
    if pairs is None:
        return None, 0
    fitted = bridge.provenance.fitted_on(pairs.source_ids, side="source")
    fitted |= bridge.provenance.fitted_on(pairs.target_ids, side="target")
    rest = np.flatnonzero(~fitted)
    if not len(rest):
        return None, len(pairs)
    drawn = rest[draw_rows(len(rest), HELD_OUT_ROWS, seed=seed)]
    return pairs.select(drawn), int(np.count_nonzero(fitted))


def measure_held_out(
    sides: Sides, held_out: Pairs, measured: Measured, *, track: Track[Any] = silent
) -> None:
    """Add the preservation family and the reconstruction diagnostics, for bridge and null map."""
    own = sides.target.rows_of(held_out.target_ids)
    native = Native(held_out.target, sides.native, own_rows=own, metric=sides.bridge.target.metric)
    for side in track((measured.values, measured.null), "measuring held-out rows", 2):
        through = side is measured.values
        moved = through and sides.bridge.lands_in != "target"
        carry = sides.mapped if through else sides.unmapped
        found = measure_pairs(
            carry(held_out.source),
            sides.compared[own] if moved else held_out.target,
            sides.compared if moved else None,
            native=native,
            seed=sides.seed,
        )
        side.update(found)


def measure_run_of(
    sides: Sides, asked: Asked, measured: Measured, *, track: Track[Any] = silent
) -> tuple[int, int]:
    """Add what the queries keep and find; return judged queries and searched documents.

    Documents that the bridge was fitted on are not searched by judged queries: the map knows where
    these lie.
    """
    ways = {
        "values": (sides.mapped(asked.queries.matrix()), True),
        "null": (sides.unmapped(asked.queries.matrix()), False),
    }
    if asked.target_queries is not None:
        ways["oracle"] = (asked.target_queries.matrix(), False)
        for name in ("values", "null"):
            getattr(measured, name).update(_kept(sides, *ways[name], native=ways["oracle"][0]))
    if asked.qrels is None:
        return 0, 0
    documents = _Documents.not_fitted_on(sides)
    qrels = documents.restrict(asked.qrels)
    if qrels is None or not (judged := qrels.judged(asked.queries.ids)).any():
        return 0, len(documents.rows)
    ids = asked.queries.ids[judged]
    for name, (queries, moved) in track(ways.items(), "searching", len(ways)):
        found = documents.run(queries[judged], ids, qrels, moved=moved)
        getattr(measured, name).update(found)
    for name, oracle in measured.oracle.items():
        for side in (measured.values, measured.null):
            share = ratio_to_oracle(side[name], oracle, seed=sides.seed)
            side[share.name] = share
    return int(judged.sum()), len(documents.rows)


def _kept(
    sides: Sides,
    queries: FloatArray,
    moved: bool,  # noqa: FBT001 - both come as one of the ways above
    *,
    native: FloatArray,
) -> dict[str, Value]:
    """Return the share of the native top 10 that the queries find."""
    metric = sides.bridge.target.metric
    collection = sides.compared if moved else sides.native
    found = top_k(queries, collection, k=K, metric=metric).rows
    true = top_k(native, sides.native, k=K, metric=metric).rows
    kept = overlap_counts(found, true) / min(K, len(collection))
    return summarise({OF_QUERIES: kept}, seed=sides.seed)


@dataclass(frozen=True)
class _Documents:
    """Target rows that judged queries search."""

    sides: Sides
    rows: npt.NDArray[np.int64]

    @classmethod
    def not_fitted_on(cls, sides: Sides) -> _Documents:
        """Take the target set without what the bridge was fitted on."""
        fitted = sides.bridge.provenance.fitted_on(sides.target.ids, side="target")
        return cls(sides, np.flatnonzero(~fitted))

    @cached_property
    def native(self) -> FloatArray:
        """Their rows as they are."""
        return self.sides.native[self.rows]

    @cached_property
    def compared(self) -> FloatArray:
        """Their rows in the comparison space."""
        same = self.sides.compared is self.sides.native
        return self.native if same else self.sides.compared[self.rows]

    def restrict(self, qrels: Qrels) -> Qrels | None:
        """Keep the judgements of these documents; None where there are none."""
        ids = self.sides.target.ids[self.rows]
        if not np.isin(qrels.document_ids, ids).any():
            return None
        return qrels.restrict(ids)

    def run(
        self, queries: FloatArray, ids: IdArray, qrels: Qrels, *, moved: bool
    ) -> dict[str, Value]:
        """Search and measure nDCG@10 and Recall@10."""
        collection = self.compared if moved else self.native
        metric = self.sides.bridge.target.metric
        found = top_k(queries, collection, k=K, metric=metric).rows
        names = self.sides.target.ids[self.rows]
        answers = np.where(found < 0, "", names[np.maximum(found, 0)])
        return measure_run(
            qrels.gains(ids, answers),
            qrels.ideal(ids, K),
            qrels.n_relevant(ids),
            k=K,
            seed=self.sides.seed,
        )
