"""Fitting the candidates, measuring them on held-out pairs, choosing one and judging it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, get_args

import numpy as np

from isthmus._progress import Track, silent
from isthmus._types import FloatArray, IntArray
from isthmus.bridge.held_out import HeldOut, Plan, fit, group_copies, plan_splits
from isthmus.bridge.judgement import FEWEST_PAIRS, MIN_RETENTION, judge, judge_too_few
from isthmus.bridge.rule import CRITERIA, Purpose, choose
from isthmus.bridge.trials import Build, Trials, describe_trial
from isthmus.bridge.unpaired import NO_ROWS, Unpaired
from isthmus.bridge.verdict import Verdict
from isthmus.errors import ParameterError, UnknownNameError
from isthmus.evaluate.report import Report
from isthmus.maps import MAPS, Centre, Compose, Normalise, make
from isthmus.spaces import Pairs, Space

__all__ = [
    "AUTO",
    "Selection",
    "builder",
    "candidates",
    "check_choice",
    "compose_between",
    "compose_for",
    "count_different",
    "looks_at_unpaired",
    "select",
]

# low_rank costs three ridge fits and was chosen in no cell that was tried; ask for it by name.
AUTO = ("null", "procrustes", "ridge")
AUTO_WITH_UNPAIRED: tuple[str, ...] = ("barycentric",)
"""What ``auto`` tries too where both sides have rows without a pair."""


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

    @classmethod
    def without_numbers(cls, fitted: Compose, verdict: Verdict) -> Self:
        """Return a map of which nothing could be measured."""
        return cls(map=fitted, report=Report({}, {}), verdict=verdict, candidates=())


def select(
    pairs: Pairs,
    *,
    collection: FloatArray | None = None,
    collection_rows: IntArray | None = None,
    method: str = "auto",
    purpose: Purpose = "search",
    min_retention: float = MIN_RETENTION,
    params: Mapping[str, Any] | None = None,
    unpaired: Unpaired = NO_ROWS,
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
    unpaired : Unpaired, optional
        Rows without a pair, for the maps that look at them.
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
    check_choice(purpose, min_retention)
    names = candidates(method, unpaired)
    build = builder((pairs.source_space, pairs.target_space), method, params or {}, seed=seed)
    unfitted = [build(name) for name in names]  # an unknown name fails before any work
    plan = _plan(pairs, unfitted, seed=seed)
    if isinstance(plan, Verdict):
        first = build("procrustes" if method == "auto" else method)
        fitted = fit(first, pairs, np.arange(len(pairs)), unpaired=unpaired)
        return Selection.without_numbers(fitted, plan)
    rows = collection, collection_rows
    trials = Trials.prepare(pairs, plan, *rows, build=build, unpaired=unpaired, seed=seed)
    tried = [trials.measure(name, track=track) for name in names]
    rule = CRITERIA[purpose]
    chosen, because = choose(tried, rule, method=method, min_retention=min_retention, seed=seed)
    curve, retention = trials.carry_to_all(chosen)
    report = trials.report(chosen, retention, null=tried[0])
    return Selection(
        map=trials.fit_all(chosen.method),
        report=report,
        verdict=judge(
            report,
            method=chosen.method,
            because=because,
            curve=curve,
            n_pairs=len(pairs),
            min_retention=min_retention,
        ),
        candidates=tuple(describe_trial(trial, tried, rule, seed=seed) for trial in tried),
        held_out=chosen.out,
        held_out_rows=plan.test,
    )


def _plan(pairs: Pairs, unfitted: Sequence[Compose], *, seed: int) -> Plan | Verdict:
    """Plan which pairs are held out, or say that there are too few for these maps."""
    different, needed = count_different(pairs), FEWEST_PAIRS
    if different >= FEWEST_PAIRS:
        single = any(one.lands_in != "target" or one.inner.costly for one in unfitted)
        plan = plan_splits(pairs, seed=seed, single=single)
        needed = plan.pairs_for(max(one.inner.fewest_pairs for one in unfitted), len(pairs))
        if len(pairs) >= needed:
            return plan
    return judge_too_few(len(pairs), different=different, needed=needed)


def check_choice(purpose: str, min_retention: float) -> None:
    """Refuse a target or a purpose that does not exist.

    Raises
    ------
    ParameterError, UnknownNameError
    """
    if not 0.0 < min_retention <= 1.0:
        raise ParameterError(
            expected="min_retention over 0 and at most 1", got=str(min_retention), do="change it"
        )
    if purpose not in CRITERIA:
        raise UnknownNameError.of("purpose", str(purpose), get_args(Purpose))


def candidates(method: str, unpaired: Unpaired) -> tuple[str, ...]:
    """Return the names of the maps to compare, the null map first.

    Examples
    --------
    >>> candidates("auto", NO_ROWS), candidates("cca", NO_ROWS)
    (('null', 'procrustes', 'ridge'), ('null', 'cca'))
    """
    if method != "auto":
        return tuple(dict.fromkeys(("null", method)))
    return (*AUTO, *(AUTO_WITH_UNPAIRED if all(unpaired.counts) else ()))


def looks_at_unpaired(method: str) -> bool:
    """Tell whether a map that may come out looks at rows without a pair."""
    names = (*AUTO, *AUTO_WITH_UNPAIRED) if method == "auto" else (method,)
    made = [MAPS[name] for name in names if name in MAPS]
    return any(one.sees_unpaired or not one.paired for one in made)


def compose_for(pairs: Pairs, method: str, **params: Any) -> Compose:
    """Make an unfitted map with the default preprocessing of the spaces of pairs.

    Raises
    ------
    UnknownNameError, ParameterError
    """
    return compose_between((pairs.source_space, pairs.target_space), method, **params)


def compose_between(spaces: tuple[Space, Space], method: str, **params: Any) -> Compose:
    """Make an unfitted map with the default preprocessing of two spaces.

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
        for space in spaces
    )
    return Compose(source_steps=source, inner=inner, target_steps=target)


def builder(
    spaces: tuple[Space, Space], method: str, params: Mapping[str, Any], *, seed: int
) -> Build:
    """Return what makes the candidates, the named one with its parameters.

    Raises
    ------
    ParameterError
        Parameters without a name of a map.
    """
    if params and method == "auto":
        raise ParameterError(
            expected="parameters for a map that is named",
            got=f"{', '.join(params)} with method auto",
            do="name the method",
        )

    def build(name: str) -> Compose:
        given = dict(params) if name == method else {}
        ours = {"seed": seed, "metric": spaces[1].metric}
        taken = MAPS[name]().get_params() if name in MAPS else {}
        known = {each: value for each, value in ours.items() if each in taken}
        return compose_between(spaces, name, **{**known, **given})

    return build


def count_different(pairs: Pairs) -> int:
    """Count pairs that share no vector; where one group is most of them, those outside it."""
    sizes = np.bincount(group_copies(pairs))
    most = int(sizes.max())
    return len(sizes) if 2 * most <= len(pairs) else min(len(sizes), len(pairs) - most + 1)
