"""Fitting the parts of a bridge: selection, then calibration and scope for what was chosen."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus._progress import Track, silent, tracking
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray
from isthmus.bridge.calibrating import learn_calibration
from isthmus.bridge.calibration import Calibration
from isthmus.bridge.clouds import select_clouds
from isthmus.bridge.held_out import MOST_FOR_FOLDS
from isthmus.bridge.judgement import MIN_RETENTION
from isthmus.bridge.rule import Purpose
from isthmus.bridge.scope import Scope
from isthmus.bridge.selection import Selection, select
from isthmus.bridge.unpaired import NO_ROWS, Unpaired
from isthmus.bridge.verdict import Verdict
from isthmus.errors import EmptyInputError
from isthmus.evaluate.report import Report
from isthmus.maps import MAPS, Compose, Map
from isthmus.maps.training.checkpoint import remove_at_the_end
from isthmus.spaces import Pairs, Space, VectorSet

__all__ = ["Parts", "check_needs", "fit_parts", "needs_pairs"]


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
    spaces: tuple[Space, Space],
    pairs: Pairs | None,
    unpaired: Unpaired = NO_ROWS,
    *,
    method: str = "auto",
    purpose: Purpose = "search",
    min_retention: float = MIN_RETENTION,
    collection: VectorSet | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    track: Track[Any] = silent,
) -> Parts:
    """Choose and fit a map, then learn its calibration and its scope.

    Parameters
    ----------
    spaces : (Space, Space)
        Of source and target.
    pairs : Pairs, optional
        Maps that do not learn from pairs go without.
    unpaired : Unpaired, optional
    method, purpose, min_retention, collection, params, seed, track
        As `Bridge.fit` takes them.

    Raises
    ------
    TooFewPairsError, DegenerateVectorsError, SpaceMismatchError, UnknownNameError, ParameterError
    EmptyInputError
        No pairs, and a map that learns from them.
    """
    # With few pairs there are many small fits, with many a few large ones.
    few = pairs is not None and len(pairs) <= MOST_FOR_FOLDS
    threads = one_blas_thread() if few else contextlib.nullcontext()
    with threads, tracking(track), remove_at_the_end():
        rows, places = find_in_collection(pairs, collection)
        asked: dict[str, Any] = {
            "collection": rows,
            "collection_rows": places,
            "method": method,
            "purpose": purpose,
            "min_retention": min_retention,
            "params": params,
            "seed": seed,
            "track": track,
        }
        if pairs is None or not needs_pairs(method):
            check_needs(method, pairs)
            chosen = select_clouds(spaces, pairs, unpaired, **asked)
        else:
            chosen = select(pairs, unpaired=unpaired, **asked)
        return Parts(
            map=chosen.map,
            report=chosen.report,
            verdict=chosen.verdict,
            calibration=_calibrate(chosen, pairs, rows, places, seed=seed),
            scope=Scope.fit(
                _rows_fitted_on(chosen.map.inner, pairs, unpaired),
                unit_rows=spaces[0].metric == "cosine",
                kind=spaces[0].kind,
            ),
            candidates=chosen.candidates,
        )


def _calibrate(
    chosen: Selection,
    pairs: Pairs | None,
    collection: FloatArray | None,
    collection_rows: IntArray | None,
    *,
    seed: int,
) -> Calibration:
    if pairs is None or chosen.held_out is None:
        return Calibration.identity()
    return learn_calibration(
        chosen.held_out,
        chosen.held_out_rows,
        pairs,
        collection=collection,
        collection_rows=collection_rows,
        seed=seed,
    )


def _rows_fitted_on(inner: Map, pairs: Pairs | None, unpaired: Unpaired) -> FloatArray:
    """Return the source rows that bind the map: those of the pairs, or the whole cloud."""
    if inner.paired and pairs is not None:
        return pairs.source
    sides = [None if pairs is None else pairs.source, unpaired.source]
    return np.concatenate([rows for rows in sides if rows is not None])


def needs_pairs(method: str) -> bool:
    """Tell whether a map learns from pairs; a name that nobody knows is refused elsewhere."""
    return method not in MAPS or MAPS[method].paired


def check_needs(method: str, pairs: Pairs | None) -> None:
    """Refuse a fit without pairs of a map that learns from them.

    Raises
    ------
    EmptyInputError
    """
    if pairs is None and needs_pairs(method):
        able = [name for name, made in MAPS.items() if not made.paired]
        raise EmptyInputError(
            expected=f"pairs, which {method} learns from",
            got="none",
            do=f"give pairs, or name a map that needs none ({', '.join(able)})",
        )


def find_in_collection(
    pairs: Pairs | None, collection: VectorSet | None
) -> tuple[FloatArray | None, IntArray | None]:
    """Return the rows of the collection, and the row of each pair's target among them.

    Raises
    ------
    SpaceMismatchError
        A collection of another space than the pairs' targets.
    """
    if collection is None or pairs is None:
        return None, None
    pairs.target_space.check(collection.space, what="a target collection")
    return collection.vectors, collection.find(pairs.target_ids)
