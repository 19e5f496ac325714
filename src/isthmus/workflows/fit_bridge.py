"""Fit a bridge from one set of vectors to another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from isthmus._progress import Track, silent
from isthmus.bridge import Bridge
from isthmus.bridge.fitting import needs_pairs
from isthmus.bridge.judgement import MIN_RETENTION
from isthmus.bridge.rule import Purpose
from isthmus.bridge.selection import looks_at_unpaired
from isthmus.spaces import Pairs, VectorSet
from isthmus.spaces.free_rows import free_rows
from isthmus.workflows._opening import NONE_GIVEN, open_vectors

__all__ = ["fit_bridge"]

Side = Literal["source", "target"]
FEWEST_UNPAIRED = 2
"""Fewer rows that happen to be without a pair are nothing to learn from, and no error either."""


def fit_bridge(
    source: VectorSet | Path | str,
    target: VectorSet | Path | str,
    pairs: Pairs | Path | str | None = None,
    *,
    unpaired_source: VectorSet | Path | str | None = None,
    unpaired_target: VectorSet | Path | str | None = None,
    method: str = "auto",
    purpose: Purpose = "search",
    min_retention: float = MIN_RETENTION,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    track: Track[Any] = silent,
) -> Bridge:
    """Fit a bridge, measured among the whole target set and with the coverage of its pairs.

    Parameters
    ----------
    source, target : VectorSet, or path of its file
    pairs : Pairs, or path of a file with ``source,target``, optional
        Rows of both sets that stand for the same objects; by default those with equal ids. Maps
        that need no pairs are only measured by them, and go without where there are none;
        ``"none"`` says that equal ids are chance.
    unpaired_source, unpaired_target : VectorSet, or path of its file, optional
        More rows of both spaces, for the maps that look at rows without a pair; by default the rows
        of ``source`` and ``target`` that stand in no pair. What stands in a pair is left out, and
        of more than 20,000 rows on a side that many are drawn. ``provenance`` says how many the map
        was fitted on.
    method : str, default "auto"
        A name of `isthmus.maps.names`, or ``auto``: the most constrained map within noise of the
        best, among those that land in the target space.
    purpose : {"search", "score"}, default "search"
        What the mapped rows are for: searching the target's collection, or being ranked by their
        similarity beside native rows, as candidates that a federation carries back to its hub.
    min_retention : float, default 0.5
        Share of the native top 10 that has to be kept for the verdict ``bridge``; in (0, 1].
    params : mapping, optional
        Parameters of the map that ``method`` names.
    seed : int, default 0
        Of everything random in the fit and the held-out splits.
    track : Track, default silent

    Returns
    -------
    Bridge
        Too few pairs, or a map that keeps too little, is a verdict and not an error.

    Raises
    ------
    EmptyInputError, TooFewPairsError, UnknownIdError, DuplicateIdError
        No pairs, too few of them, or pairs of ids that are not there; an unpaired set of nothing
        but paired rows.
    SpaceMismatchError, DegenerateVectorsError, UnknownNameError, ParameterError, FileError
    MissingExtraError, DivergedTrainingError

    Examples
    --------
    >>> from isthmus import sample
    >>> documents = sample.load().documents
    >>> few = [documents[model].select(range(300)) for model in ("minilm-l6", "mpnet")]
    >>> bridge = fit_bridge(*few, method="procrustes")
    >>> bridge.provenance.n_pairs, bridge.method
    (300, 'procrustes')
    """
    left, right = open_vectors(source), open_vectors(target)
    found = _find_pairs(pairs, left, right, method)
    find = partial(_find_unpaired, pairs=found, wanted=looks_at_unpaired(method), seed=seed)
    return Bridge.fit(
        found,
        unpaired_source=find("source", unpaired_source, left),
        unpaired_target=find("target", unpaired_target, right),
        method=method,
        purpose=purpose,
        min_retention=min_retention,
        collection=right,
        coverage=None if found is None else found.coverage(left, right, seed=seed).to_dict(),
        params=params,
        seed=seed,
        track=track,
    )


def _find_pairs(
    pairs: Pairs | Path | str | None, source: VectorSet, target: VectorSet, method: str
) -> Pairs | None:
    """Return the pairs: those given, or equal ids; None for a map that needs none, without any."""
    if isinstance(pairs, Pairs):
        return pairs
    if pairs == NONE_GIVEN:
        return None
    if pairs is not None:
        return Pairs.from_file(pairs, source, target)
    if not needs_pairs(method) and not (target.find(source.ids) >= 0).any():
        return None
    return Pairs.from_ids(source, target)


def _find_unpaired(
    side: Side,
    given: VectorSet | Path | str | None,
    own: VectorSet,
    pairs: Pairs | None,
    *,
    wanted: bool,
    seed: int,
) -> VectorSet | None:
    """Open the set that was given; else take what has no pair, where a map will look."""
    if given is not None:
        opened = open_vectors(given)
        own.space.check(opened.space, what=f"unpaired rows on the {side} side")
        return opened
    if not wanted or pairs is None:
        return own if wanted else None
    ids, rows = (
        (pairs.source_ids, pairs.source) if side == "source" else (pairs.target_ids, pairs.target)
    )
    free = free_rows(own, ids, rows, seed=seed)
    return own.select(free) if len(free) >= FEWEST_UNPAIRED else None
