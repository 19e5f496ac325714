"""Fit a bridge from one set of vectors to another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isthmus._progress import Track, silent
from isthmus.bridge import Bridge
from isthmus.bridge.judgement import MIN_RETENTION
from isthmus.bridge.rule import Purpose
from isthmus.spaces import Pairs, VectorSet
from isthmus.workflows._opening import open_vectors

__all__ = ["fit_bridge"]


def fit_bridge(
    source: VectorSet | Path | str,
    target: VectorSet | Path | str,
    pairs: Pairs | Path | str | None = None,
    *,
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
        Rows of both sets that stand for the same objects; by default those with equal ids.
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
        No pairs, too few of them, or pairs of ids that are not there.
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
    if pairs is None:
        pairs = Pairs.from_ids(left, right)
    elif not isinstance(pairs, Pairs):
        pairs = Pairs.from_file(pairs, left, right)
    coverage = pairs.coverage(left, right, seed=seed).to_dict()
    return Bridge.fit(
        pairs,
        method=method,
        purpose=purpose,
        min_retention=min_retention,
        collection=right,
        coverage=coverage,
        params=params,
        seed=seed,
        track=track,
    )
