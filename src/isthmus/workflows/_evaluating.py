"""The two halves of an evaluation: held-out pairs, and queries with judgements."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isthmus._linalg import normalise
from isthmus._types import FloatArray, IdArray
from isthmus.bridge import Bridge
from isthmus.errors import ParameterError
from isthmus.evaluate import Native, Value, measure_pairs, ratio_to_oracle, summarise
from isthmus.evaluate.preservation.overlap import overlap_counts
from isthmus.evaluate.retrieval import measure_run
from isthmus.maps import make
from isthmus.neighbors import top_k
from isthmus.spaces import Pairs, Qrels, VectorSet
from isthmus.workflows._look import draw_rows
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
        mapped = self.bridge.transform(rows)
        in_target = self.bridge.lands_in == "target" and self.bridge.target.normalized
        return normalise(mapped) if in_target else mapped

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


def measure_held_out(sides: Sides, held_out: Pairs, measured: Measured) -> None:
    """Add the preservation family and the reconstruction diagnostics, for bridge and null map."""
    own = sides.target.rows_of(held_out.target_ids)
    native = Native(held_out.target, sides.native, own_rows=own, metric=sides.bridge.target.metric)
    moved = sides.bridge.lands_in != "target"
    measured.values |= measure_pairs(
        sides.mapped(held_out.source),
        sides.compared[own] if moved else held_out.target,
        sides.compared if moved else None,
        native=native,
        seed=sides.seed,
    )
    measured.null |= measure_pairs(
        sides.unmapped(held_out.source), held_out.target, native=native, seed=sides.seed
    )


def measure_run_of(sides: Sides, asked: Asked, measured: Measured) -> tuple[int, int]:
    """Add what the queries keep and find; return judged queries and searched documents.

    Documents that the bridge was fitted on are not searched by judged queries: the map knows where
    these lie.
    """
    mapped, plain = sides.mapped(asked.queries.matrix()), sides.unmapped(asked.queries.matrix())
    if asked.target_queries is not None:
        native = asked.target_queries.matrix()
        measured.values |= _kept(sides, mapped, native, sides.compared)
        measured.null |= _kept(sides, plain, native, sides.native)
    if asked.qrels is None:
        return 0, 0
    fitted = sides.bridge.provenance.fitted_on(sides.target.ids, side="target")
    documents = _Documents(sides, np.flatnonzero(~fitted))
    qrels = documents.restrict(asked.qrels)
    judged = np.zeros(len(asked.queries), np.bool_)
    if qrels is not None:
        judged = qrels.judged(asked.queries.ids)
    if qrels is None or not judged.any():
        return 0, len(documents.rows)
    ids = asked.queries.ids[judged]
    measured.values |= documents.run(mapped[judged], ids, qrels, compared=True)
    measured.null |= documents.run(plain[judged], ids, qrels)
    if asked.target_queries is not None:
        native = asked.target_queries.matrix()[judged]
        measured.oracle |= documents.run(native, ids, qrels)
        for name in list(measured.oracle):
            for side in (measured.values, measured.null):
                share = ratio_to_oracle(side[name], measured.oracle[name], seed=sides.seed)
                side[share.name] = share
    return int(judged.sum()), len(documents.rows)


def _kept(
    sides: Sides, mapped: FloatArray, native: FloatArray, collection: FloatArray
) -> dict[str, Value]:
    """Return the share of the native top 10 that the queries find in a collection."""
    metric = sides.bridge.target.metric
    found = top_k(mapped, collection, k=K, metric=metric).rows
    true = top_k(native, sides.native, k=K, metric=metric).rows
    kept = overlap_counts(found, true) / min(K, len(collection))
    return summarise({OF_QUERIES: kept}, seed=sides.seed)


@dataclass(frozen=True)
class _Documents:
    """Target rows that judged queries search."""

    sides: Sides
    rows: npt.NDArray[np.int64]

    def restrict(self, qrels: Qrels) -> Qrels | None:
        """Keep the judgements of these documents; None where there are none."""
        ids = self.sides.target.ids[self.rows]
        if not np.isin(qrels.document_ids, ids).any():
            return None
        return qrels.restrict(ids)

    def run(
        self, queries: FloatArray, ids: IdArray, qrels: Qrels, *, compared: bool = False
    ) -> dict[str, Value]:
        """Search and measure nDCG@10 and Recall@10."""
        collection = self.sides.compared if compared else self.sides.native
        metric = self.sides.bridge.target.metric
        found = top_k(queries, collection[self.rows], k=K, metric=metric).rows
        names = self.sides.target.ids[self.rows]
        answers = np.where(found < 0, "", names[np.maximum(found, 0)])
        return measure_run(
            qrels.gains(ids, answers),
            qrels.ideal(ids, K),
            qrels.n_relevant(ids),
            k=K,
            seed=self.sides.seed,
        )
