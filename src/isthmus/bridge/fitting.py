"""Fitting the parts of a bridge: selection, then calibration and scope for what was chosen."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isthmus._progress import Track, silent, tracking
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray
from isthmus.bridge.calibrating import learn_calibration
from isthmus.bridge.calibration import Calibration
from isthmus.bridge.held_out import MOST_FOR_FOLDS
from isthmus.bridge.judgement import MIN_RETENTION
from isthmus.bridge.rule import Purpose
from isthmus.bridge.scope import Scope
from isthmus.bridge.selection import select
from isthmus.bridge.verdict import Verdict
from isthmus.evaluate.report import Report
from isthmus.maps import Compose
from isthmus.maps.training.checkpoint import remove_at_the_end
from isthmus.spaces import Pairs, VectorSet

__all__ = ["Parts", "fit_parts"]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What is fitted: everything of a bridge but its spaces and its origin."""

    map: Compose
    report: Report
    verdict: Verdict
    calibration: Calibration
    scope: Scope
    candidates: Sequence[Mapping[str, Any]]


def fit_parts(
    pairs: Pairs,
    *,
    method: str = "auto",
    purpose: Purpose = "search",
    min_retention: float = MIN_RETENTION,
    collection: VectorSet | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    track: Track[Any] = silent,
) -> Parts:
    """Choose and fit a map on the pairs, then learn its calibration and its scope.

    Raises
    ------
    TooFewPairsError, DegenerateVectorsError, SpaceMismatchError, UnknownNameError, ParameterError
    """
    # With few pairs there are many small fits, with many a few large ones.
    few = len(pairs) <= MOST_FOR_FOLDS
    threads = one_blas_thread() if few else contextlib.nullcontext()
    with threads, tracking(track), remove_at_the_end():
        rows, places = find_in_collection(pairs, collection)
        chosen = select(
            pairs,
            collection=rows,
            collection_rows=places,
            method=method,
            purpose=purpose,
            min_retention=min_retention,
            params=params,
            seed=seed,
            track=track,
        )
        calibration = Calibration.identity()
        if chosen.held_out is not None:
            calibration = learn_calibration(
                chosen.held_out,
                chosen.held_out_rows,
                pairs,
                collection=rows,
                collection_rows=places,
                seed=seed,
            )
        scope = Scope.fit(
            pairs.source,
            unit_rows=pairs.source_space.metric == "cosine",
            kind=pairs.source_space.kind,
        )
        return Parts(
            map=chosen.map,
            report=chosen.report,
            verdict=chosen.verdict,
            calibration=calibration,
            scope=scope,
            candidates=chosen.candidates,
        )


def find_in_collection(
    pairs: Pairs, collection: VectorSet | None
) -> tuple[FloatArray | None, IntArray | None]:
    """Return the rows of the collection, and the row of each pair's target among them.

    Raises
    ------
    SpaceMismatchError
        A collection of another space than the pairs' targets.
    """
    if collection is None:
        return None, None
    pairs.target_space.check(collection.space, what="a target collection")
    return collection.vectors, collection.find(pairs.target_ids)
