"""Measure a bridge on rows and queries that it was not fitted on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from isthmus._progress import Track, silent
from isthmus.bridge import Bridge, ScopeReport
from isthmus.errors import EmptyInputError
from isthmus.evaluate import Report
from isthmus.spaces import Pairs, Qrels, VectorSet
from isthmus.workflows._evaluating import (
    Asked,
    Measured,
    Sides,
    hold_out,
    measure_held_out,
    measure_run_of,
)
from isthmus.workflows._opening import open_vectors
from isthmus.workflows._scope_notes import bridged_notes, scope_notes

__all__ = ["Evaluation", "evaluate_bridge"]


@dataclass(frozen=True)
class Evaluation(Report):
    """A report, with what it was measured on.

    Parameters
    ----------
    shared : int
        Pairs of the two sets.
    fitted : int
        How many of them the bridge was fitted on; they are left out.
    n_queries : int
        Held-out rows that were measured, at most 2,000 drawn by seed; 0 where none is left.
    judged : int
        Queries with a relevant document among those searched.
    searched : int
        Documents that the judged queries searched: the target set without those that the bridge was
        fitted on.
    rows_scope, queries_scope : ScopeReport, optional
        How many of the held-out rows and of the queries lie outside the scope.
    notes : tuple of str
        What should be known before the numbers are believed.
    """

    shared: int = 0
    fitted: int = 0
    judged: int = 0
    searched: int = 0
    rows_scope: ScopeReport | None = None
    queries_scope: ScopeReport | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self, *, per_query: bool = True) -> dict[str, Any]:
        """Return plain JSON values; see `Report.to_dict`."""
        scopes = {
            name: None if scope is None else {**vars(scope), "share_outside": scope.share_outside}
            for name, scope in (("rows", self.rows_scope), ("queries", self.queries_scope))
        }
        counts = {name: getattr(self, name) for name in ("shared", "fitted", "judged", "searched")}
        return {
            **super().to_dict(per_query=per_query),
            **counts,
            "scope": scopes,
            "notes": list(self.notes),
        }


def evaluate_bridge(
    bridge: Bridge | Path | str,
    source: VectorSet | Path | str,
    target: VectorSet | Path | str,
    pairs: Pairs | Path | str | None = None,
    *,
    queries: VectorSet | Path | str | None = None,
    target_queries: VectorSet | Path | str | None = None,
    qrels: Qrels | Path | str | None = None,
    seed: int = 0,
    track: Track[Any] = silent,
) -> Evaluation:
    """Measure a bridge, beside the null map and, where it is known, the oracle.

    Preservation and reconstruction come from pairs that the bridge was not fitted on: it keeps
    hashes of its pairs' ids, and a pair with either id among them is left out. Neighbours are
    looked for in the whole target set.

    Parameters
    ----------
    bridge : Bridge, or path of its folder
    source, target : VectorSet, or path of its file
        Sets of the bridge's spaces that share objects.
    pairs : Pairs, or path of a file with ``source,target``, optional
        By default the rows with equal ids.
    queries : VectorSet or path, optional
        In the source space, to search the target set through the bridge.
    target_queries : VectorSet or path, optional
        The same queries encoded by the target's model: the oracle.
    qrels : Qrels or path, optional
        Gives ``nDCG@10`` and ``Recall@10`` of the queries, and their ratio to the oracle.
    seed : int, default 0
        Of draws for intervals, and of the rows where there are more than 2,000.
    track : Track, default silent

    Returns
    -------
    Evaluation

    Raises
    ------
    SpaceMismatchError, WrongDirectionError
        Sets of other spaces than the bridge's.
    EmptyInputError
        Nothing to measure: every pair was fitted on, and there are no queries.
    ParameterError
        Queries without judgements and without the oracle's queries, or the other way round.
    FileError, ArtifactError, UnknownIdError
    """
    fitted = bridge if isinstance(bridge, Bridge) else Bridge.load(bridge)
    sides = Sides(fitted, open_vectors(source), open_vectors(target), seed)
    shared = _pair(sides, pairs)
    asked = Asked.open(fitted, queries, target_queries, qrels)
    held_out, n_fitted = hold_out(fitted, shared, seed=seed)
    if held_out is None and asked is None:
        raise _nothing_held_out(shared)
    measured, judged, searched = Measured(), 0, 0
    if held_out is not None:
        measure_held_out(sides, held_out, measured, track=track)
    if asked is not None:
        judged, searched = measure_run_of(sides, asked, measured, track=track)
    evaluation = Evaluation(
        values=measured.values,
        null=measured.null,
        oracle=measured.oracle,
        n_queries=0 if held_out is None else len(held_out),
        shared=0 if shared is None else len(shared),
        fitted=n_fitted,
        judged=judged,
        searched=searched,
        rows_scope=None if held_out is None else _scope_of_rows(fitted, held_out),
        queries_scope=None if asked is None else fitted.examine(asked.queries),
    )
    return replace(evaluation, notes=tuple(_notes(evaluation, sides, asked)))


def _pair(sides: Sides, pairs: Pairs | Path | str | None) -> Pairs | None:
    """Return the pairs of the two sets; None where they share no id."""
    if isinstance(pairs, Pairs):
        sides.bridge.source.check(pairs.source_space, what="source vectors of the pairs")
        sides.bridge.target.check(pairs.target_space, what="target vectors of the pairs")
        return pairs
    if pairs is not None:
        return Pairs.from_file(pairs, sides.source, sides.target)
    if not (sides.target.find(sides.source.ids) >= 0).any():
        return None
    return Pairs.from_ids(sides.source, sides.target)


def _scope_of_rows(bridge: Bridge, held_out: Pairs) -> ScopeReport:
    outside = int(np.count_nonzero(bridge.outside(held_out.source)))
    return ScopeReport(len(held_out), outside, held_out.source_space.kind, bridge.scope.kind)


def _nothing_held_out(shared: Pairs | None) -> EmptyInputError:
    if shared is None:
        return EmptyInputError(
            expected="sets that share ids, pairs, or queries",
            got="no id in common and no queries",
            do="pass pairs, or queries with judgements",
        )
    return EmptyInputError(
        expected="pairs that the bridge was not fitted on",
        got=f"{len(shared):,} pairs, all of which it was fitted on",
        do="hold pairs out before fitting, pass queries, or read the held-out report of the bridge "
        "(isthmus info)",
    )


def _notes(evaluation: Evaluation, sides: Sides, asked: Asked | None) -> Iterator[str]:
    """Say what should be known before the numbers are believed."""
    bridge = sides.bridge
    yield from bridged_notes(sides.source.space, sides.target.space)
    if not len(bridge.provenance.pair_hashes):
        yield (
            "the bridge does not say which ids it was fitted on: rows that it was fitted on may be "
            "among those measured"
        )
    if evaluation.fitted:
        yield (
            f"{evaluation.fitted:,} of {evaluation.shared:,} pairs were left out: the bridge was "
            "fitted on them"
        )
    if asked is not None and asked.qrels is not None:
        yield from _unjudged(evaluation, asked, asked.qrels)
    for what, scope in (("rows", evaluation.rows_scope), ("queries", evaluation.queries_scope)):
        if scope is not None:
            yield from scope_notes(what, scope)


def _unjudged(evaluation: Evaluation, asked: Asked, qrels: Qrels) -> Iterator[str]:
    """Say how many queries were left out of nDCG@10 and Recall@10, and why."""
    left_out = len(asked.queries) - evaluation.judged
    if not left_out:
        return
    known = qrels.judged(asked.queries.ids)
    unknown = int(np.count_nonzero(~known))
    reasons = []
    if unknown:
        reasons.append(f"{unknown:,} have no relevant document in the judgements")
    if left_out > unknown:
        lacking = f"the relevant documents of {left_out - unknown:,} are not among the "
        reasons.append(
            f"{lacking}{evaluation.searched:,} searched: the bridge was fitted on them, or the "
            "target set lacks them"
            if evaluation.searched
            else "the bridge was fitted on every document of the target set, so none was searched"
        )
    why = "; ".join(reasons)
    if evaluation.judged:
        yield f"{left_out:,} of {len(asked.queries):,} queries were left out: {why}"
        return
    do = "check that ids of queries and judgements are the same"
    if left_out > unknown:
        do = "fit on pairs without these documents (isthmus fit --pairs), or pass a larger target"
    yield f"no query could be judged, so nDCG@10 and Recall@10 are not known: {why}; {do}"
