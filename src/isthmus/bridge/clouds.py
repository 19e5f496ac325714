"""Fits that pairs do not enter: a map between two clouds, measured on pairs where there are any.

One fit is made, and the bridge has the map that was measured: such a fit finds the alignment or
does not, and another one of nearly the same rows may end elsewhere, so that numbers of one would
say little about the other. Rows of the held-out pairs are in neither cloud.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from isthmus._progress import Track, silent
from isthmus._types import FloatArray, IntArray
from isthmus.bridge.held_out import fit, plan_one_part
from isthmus.bridge.judgement import (
    FEWEST_PAIRS,
    MIN_RETENTION,
    judge_unmeasured,
    judge_unpaired,
)
from isthmus.bridge.rule import CRITERIA, Purpose
from isthmus.bridge.selection import Selection, builder, check_choice, count_different
from isthmus.bridge.trials import Trials, describe_trial
from isthmus.bridge.unpaired import Unpaired
from isthmus.errors import EmptyInputError
from isthmus.maps import Compose
from isthmus.spaces import Pairs, Space

__all__ = ["select_clouds"]

HELD_OUT_SHARE = 0.2
"""Of the rows of the smaller cloud: more pairs than this are not kept from the fit."""


def select_clouds(
    spaces: tuple[Space, Space],
    pairs: Pairs | None,
    unpaired: Unpaired,
    *,
    collection: FloatArray | None = None,
    collection_rows: IntArray | None = None,
    method: str,
    purpose: Purpose = "search",
    min_retention: float = MIN_RETENTION,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    track: Track[Any] = silent,
) -> Selection:
    """Fit a map that does not learn from pairs, and judge it by pairs or by its own confidence.

    Parameters
    ----------
    spaces : (Space, Space)
        Of source and target.
    pairs : Pairs, optional
        They only measure.
    unpaired : Unpaired
        Both clouds, without the rows of the pairs.
    collection, collection_rows, method, purpose, min_retention, params, seed, track
        As `isthmus.bridge.selection.select` takes them.

    Returns
    -------
    Selection

    Raises
    ------
    EmptyInputError
        Without pairs, and without rows on a side.
    TooFewPairsError, DegenerateVectorsError, UnknownNameError, ParameterError
    """
    check_choice(purpose, min_retention)
    build = builder(spaces, method, params or {}, seed=seed)
    if pairs is None:
        fitted = build(method).fit(*_both(unpaired))
        return _unmeasured(fitted, n_pairs=0)
    if count_different(pairs) < FEWEST_PAIRS:
        every = np.arange(len(pairs))
        return _unmeasured(fit(build(method), pairs, every, unpaired=unpaired), n_pairs=len(pairs))
    smaller = len(pairs) + min(unpaired.counts)
    most = max(FEWEST_PAIRS, round(HELD_OUT_SHARE * smaller))
    trials = Trials.prepare(
        pairs,
        plan_one_part(pairs, most=most, seed=seed),
        collection,
        collection_rows,
        build=build,
        unpaired=unpaired,
        seed=seed,
    )
    null, chosen = (trials.measure(name, track=track) for name in ("null", method))
    report = trials.report(chosen, trials.retention(chosen, chosen.kept, gain=0.0), null=null)
    tried, rule = (null, chosen), CRITERIA[purpose]
    return Selection(
        map=chosen.out.fitted,
        report=report,
        verdict=judge_unpaired(
            report,
            because="it was asked for by name; it needs no pairs",
            min_retention=min_retention,
        ),
        candidates=tuple(describe_trial(trial, tried, rule, seed=seed) for trial in tried),
        held_out=chosen.out,
        held_out_rows=trials.plan.test,
    )


def _both(unpaired: Unpaired) -> tuple[FloatArray, FloatArray]:
    if unpaired.source is None or unpaired.target is None:
        raise EmptyInputError(
            expected="rows on both sides, where there are no pairs",
            got=f"{unpaired.counts[0]:,} source rows and {unpaired.counts[1]:,} target rows",
            do="give the vectors of both sides as unpaired rows",
        )
    return unpaired.source, unpaired.target


def _unmeasured(fitted: Compose, *, n_pairs: int) -> Selection:
    said = getattr(fitted.inner_, "confidence_", None)
    verdict = judge_unmeasured(
        None if said is None else float(said),
        reliable=bool(getattr(fitted.inner_, "reliable", True)),
        n_pairs=n_pairs,
    )
    return Selection.without_numbers(fitted, verdict)
