"""Fitting the candidates, measuring them on held-out pairs, choosing one and judging it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_args

import numpy as np

from isthmus._progress import Track, silent
from isthmus._types import FloatArray, IntArray
from isthmus.bridge.held_out import HeldOut, Plan, Split, fit, group_copies, held_out, plan_splits
from isthmus.bridge.judgement import FEWEST_PAIRS, MIN_RETENTION, judge, judge_too_few
from isthmus.bridge.retention import NAME, Curve, estimate_retention
from isthmus.bridge.rule import CRITERIA, KEPT, Criterion, Purpose, Trial, best_of, choose, worse_by
from isthmus.bridge.verdict import Verdict
from isthmus.errors import ParameterError, UnknownNameError
from isthmus.evaluate.preservation import Native, cluster_agreement, measure_pairs
from isthmus.evaluate.preservation.overlap import neighbors_kept
from isthmus.evaluate.report import Report, Value
from isthmus.evaluate.view import View
from isthmus.maps import MAPS, Centre, Compose, Normalise, make
from isthmus.spaces import Pairs

__all__ = ["AUTO", "Selection", "compose_for", "select"]

# low_rank costs three ridge fits and was chosen in no cell that was tried; ask for it by name.
AUTO = ("null", "procrustes", "ridge")


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What was chosen, and the numbers that it was chosen by.

    Parameters
    ----------
    map : Compose
        Fitted on all pairs.
    report : Report
        Held-out values of the chosen map beside the null map's.
    verdict : Verdict
    candidates : sequence of mappings
        Per candidate: method, the retention with its interval, the difference to the best with its
        interval, and every other held-out mean.
    held_out : HeldOut, optional
        Held-out rows through the chosen map; None where there were too few pairs.
    held_out_rows : IntArray of shape (m,)
        Which of the pairs they are.
    """

    map: Compose
    report: Report
    verdict: Verdict
    candidates: Sequence[Mapping[str, Any]]
    held_out: HeldOut | None = None
    held_out_rows: IntArray = field(default_factory=lambda: np.empty(0, np.int64))


def select(
    pairs: Pairs,
    *,
    collection: FloatArray | None = None,
    collection_rows: IntArray | None = None,
    method: str = "auto",
    purpose: Purpose = "search",
    min_retention: float = MIN_RETENTION,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    track: Track[Any] = silent,
) -> Selection:
    """Fit the candidates on the same pairs, measure them on held-out pairs, choose, and judge.

    Parameters
    ----------
    pairs : Pairs
    collection : FloatArray of shape (n, dim_target), optional
        The whole target collection; the paired target rows by default.
    collection_rows : IntArray of shape (n_pairs,), optional
        Row of the collection that is each pair's target, -1 for none.
    method : str, default "auto"
        ``auto`` chooses among `AUTO`; a name takes that map, still beside the null map.
    purpose : {"search", "score"}, default "search"
        What the mapped rows are for, see `Purpose`: ``auto`` then looks at ``nbr_overlap@10``, or
        at ``similarity_error``.
    min_retention : float, default 0.5
        The preservation target: share of the native top 10 that a bridge has to keep.
    params : mapping, optional
        Parameters of the map that ``method`` names.
    seed : int, default 0
        Of the held-out rows, and of maps that take one.
    track : Track, default silent

    Returns
    -------
    Selection

    Raises
    ------
    TooFewPairsError, DegenerateVectorsError, UnknownNameError, ParameterError
    """
    if not 0.0 < min_retention <= 1.0:
        raise ParameterError(
            expected="min_retention over 0 and at most 1", got=str(min_retention), do="change it"
        )
    names = AUTO if method == "auto" else tuple(dict.fromkeys(("null", method)))
    if purpose not in CRITERIA:
        raise UnknownNameError.of("purpose", str(purpose), get_args(Purpose))
    build = _builder(pairs, method, params or {}, seed=seed)
    final = build(names[-1])  # an unknown name fails before any work
    different = _count_different(pairs)
    if different < FEWEST_PAIRS:
        return _without_numbers(pairs, build, method=method, different=different)
    trials, plan, native = _try_all(
        names,
        pairs,
        collection,
        collection_rows,
        build=build,
        single=final.lands_in != "target" or final.inner.costly,
        seed=seed,
        track=track,
    )
    chosen, because = choose(
        trials, CRITERIA[purpose], method=method, min_retention=min_retention, seed=seed
    )
    curve, retention = _carry(chosen, pairs, plan, native, build=build, seed=seed)
    values = {NAME: retention, **_with_clusters(chosen, native, seed=seed)}
    report = Report(values, _null_values(trials[0], native, seed=seed), n_queries=len(plan.test))
    verdict = judge(
        report,
        method=chosen.method,
        because=because,
        curve=curve,
        n_pairs=len(pairs),
        min_retention=min_retention,
    )
    return Selection(
        map=fit(
            build(chosen.method),
            pairs,
            np.arange(len(pairs)),
            collection=native.index.database,
        ),
        report=report,
        verdict=verdict,
        candidates=tuple(_row(trial, trials, CRITERIA[purpose], seed=seed) for trial in trials),
        held_out=chosen.out,
        held_out_rows=plan.test,
    )


def compose_for(pairs: Pairs, method: str, **params: Any) -> Compose:
    """Make an unfitted map with the default preprocessing of the two spaces.

    Unit length where the metric is the cosine, then centring, on both sides: "mean-centering both
    spaces usually helps a lot" (map family). Maps that see the angles as they are go without
    centring; the null map takes the vectors as they are.

    Raises
    ------
    UnknownNameError, ParameterError
    """
    inner = make(method, **params)
    if method == "null":
        return Compose(source_steps=[], inner=inner, target_steps=[])
    source, target = (
        [
            *([Normalise()] if space.metric == "cosine" else []),
            *([Centre()] if inner.centred else []),
        ]
        for space in (pairs.source_space, pairs.target_space)
    )
    return Compose(source_steps=source, inner=inner, target_steps=target)


Build = Callable[[str], Compose]
"""Makes an unfitted map with its preprocessing by its name."""


def _builder(pairs: Pairs, method: str, params: Mapping[str, Any], *, seed: int) -> Build:
    """Return what makes the candidates, the named one with its parameters."""
    if params and method == "auto":
        raise ParameterError(
            expected="parameters for a map that is named",
            got=f"{', '.join(params)} with method auto",
            do="name the method",
        )

    def build(name: str) -> Compose:
        given = dict(params) if name == method else {}
        ours = {"seed": seed, "metric": pairs.target_space.metric}
        taken = MAPS[name]().get_params() if name in MAPS else {}
        known = {each: value for each, value in ours.items() if each in taken}
        return compose_for(pairs, name, **{**known, **given})

    return build


def _count_different(pairs: Pairs) -> int:
    """Count pairs that share no vector; where one group is most of them, those outside it."""
    sizes = np.bincount(group_copies(pairs))
    most = int(sizes.max())
    return len(sizes) if 2 * most <= len(pairs) else min(len(sizes), len(pairs) - most + 1)


def _without_numbers(pairs: Pairs, build: Build, *, method: str, different: int) -> Selection:
    unfitted = build("procrustes" if method == "auto" else method)
    return Selection(
        map=fit(unfitted, pairs, np.arange(len(pairs))),
        report=Report({}, {}),
        verdict=judge_too_few(len(pairs), different=different),
        candidates=(),
    )


def _try_all(
    names: Sequence[str],
    pairs: Pairs,
    collection: FloatArray | None,
    collection_rows: IntArray | None,
    *,
    build: Build,
    single: bool,
    seed: int,
    track: Track[Any],
) -> tuple[list[Trial], Plan, Native]:
    plan = plan_splits(pairs, seed=seed, single=single)
    if collection is None or collection_rows is None:
        collection, collection_rows = pairs.target, np.arange(len(pairs))
    native = Native(
        pairs.target[plan.test],
        collection,
        own_rows=collection_rows[plan.test],
        metric=pairs.target_space.metric,
    )
    trials = []
    for name in names:
        out = _map_held_out(partial(build, name), pairs, plan.full, native, track=track)
        values = measure_pairs(
            out.mapped,
            native.target if out.target is None else out.target,
            out.collection,
            native=native,
            clusters=False,
            seed=seed,
        )
        trials.append(Trial(name, make(name).freedom, out, values))
    return trials, plan, native


def _map_held_out(
    build: Callable[[], Compose],
    pairs: Pairs,
    splits: Sequence[Split],
    native: Native,
    *,
    track: Track[Any] = silent,
) -> HeldOut:
    return held_out(build, pairs, splits, collection=native.index.database, track=track)


def _carry(
    chosen: Trial, pairs: Pairs, plan: Plan, native: Native, *, build: Build, seed: int
) -> tuple[Curve, Value]:
    """Carry the held-out retention to all pairs, by the chosen map fitted on half of them."""
    half = chosen.kept
    if chosen.method != "null":  # the null map does not learn
        out = _map_held_out(partial(build, chosen.method), pairs, plan.half, native)
        view = View(out.mapped, native, target=out.target, collection=out.collection)
        half = neighbors_kept(view, 10)
    full, less = plan.sizes
    curve = Curve(
        (less, full), (float(half.mean()), float(chosen.kept.mean())), pairs.source.shape[1]
    )
    rest = len(native.index) - len(pairs)
    gain = curve.gain(len(pairs))
    return curve, estimate_retention(chosen.kept, half, gain=gain, rest=max(rest, 0), seed=seed)


def _with_clusters(trial: Trial, native: Native, *, seed: int) -> dict[str, Value]:
    agreement = cluster_agreement(trial.out.mapped, native.target, metric=native.metric, seed=seed)
    return {**trial.values, "cluster_agreement": agreement}


def _null_values(null: Trial, native: Native, *, seed: int) -> dict[str, Value]:
    values = _with_clusters(null, native, seed=seed)
    plain = values[KEPT]
    return {NAME: Value(NAME, plain.mean, plain.low, plain.high, plain.per_query), **values}


def _row(
    trial: Trial, trials: Sequence[Trial], criterion: Criterion, *, seed: int
) -> Mapping[str, Any]:
    mean, low, high = worse_by(best_of(trials, criterion), trial, criterion, seed=seed)
    return {
        "method": trial.method,
        "criterion": criterion.measure,
        "worse_than_best": {"mean": mean, "low": low, "high": high},
        **{name: value.mean for name, value in trial.values.items()},
    }
