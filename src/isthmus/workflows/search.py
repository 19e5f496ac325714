"""Search several stores of different models as one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from isthmus._progress import Track, silent
from isthmus.bridge import Bridge
from isthmus.federate import Federation
from isthmus.federate.common import lacks_common
from isthmus.federate.hub import QUERY_BLOCK
from isthmus.federate.spokes import Spoke
from isthmus.rankings import Ranking
from isthmus.spaces import VectorSet
from isthmus.workflows._opening import open_vectors
from isthmus.workflows._scope_notes import scope_notes

__all__ = ["search", "search_notes"]

RELIABLE = ("bridge", "pre_aligned")


def search(
    federation: Federation | Path | str,
    queries: VectorSet | Path | str,
    *,
    k: int = 10,
    depth: int | None = None,
    explain: bool = False,
    min_probability: float | None = None,
    track: Track[VectorSet] = silent,
) -> Ranking:
    """Return the k best documents of a federation for each query.

    Parameters
    ----------
    federation : Federation, or path of its file
        A file is opened for this search and its stores are closed after it.
    queries : VectorSet, or path of its file
        In the hub's space.
    k : int, default 10
        Answers per query, at least 1.
    depth : int, optional
        Candidates from each store; default: that of the federation, see `Federation`.
    explain : bool, default False
        Whether to keep what made the scores: the similarity of every hit in every space, that in
        the common space where it counts, and the weights.
    min_probability : float in [0, 1], optional
        Leaves out hits that are less likely to be relevant; for a federation with a calibration.
    track : Track, default silent
        One step per block of queries, as many as the federation searches at a time.

    Returns
    -------
    Ranking
        Each hit with its store, native, mapped and canonical score. Stores that failed are left out
        and listed under ``outages``.

    Raises
    ------
    MissingFileError, ConfigError, SpaceMismatchError, ParameterError, StoreError
        See `Federation.load` and `Federation.search`.
    """
    asked = open_vectors(queries)
    steps = -(-len(asked) // QUERY_BLOCK)

    def ask(opened: Federation) -> Ranking:
        batches = track(asked.iter_batches(QUERY_BLOCK), "searching", steps)
        return Ranking.concatenate(
            [
                opened.search(
                    one, k=k, depth=depth, explain=explain, min_probability=min_probability
                )
                for one in batches
            ]
        )

    if isinstance(federation, Federation):
        return ask(federation)
    with Federation.load(federation) as opened:
        return ask(opened)


def search_notes(
    federation: Federation,
    queries: VectorSet,
    ranking: Ranking | None = None,
    *,
    lists_once: bool = False,
) -> Iterator[str]:
    """Say what should be known before the answers of a federation are believed.

    Parameters
    ----------
    federation : Federation
    queries : VectorSet
        In the hub's space.
    ranking : Ranking, optional
        Looked at for stores that are missing in it, and for ids that come from two stores.
    lists_once : bool, default False
        Whether it is to be a list in which an id should stand once: a TREC run.

    Yields
    ------
    str
        Stores that failed, and how many searches the budget saved; bridges whose verdict says not
        to rely on them; bridges to a common space that are not used, as not every space has one;
        queries of another kind than the pairs that a bridge was fitted on, or outside its scope;
        ids that come twice; queries without an answer, and copies that were merged.
    """
    if ranking is not None:
        yield from _missing(ranking)
    yield from _unused(federation)
    for spoke in federation.spokes[1:]:
        common = _common_of(federation, spoke) if federation.method.common_directions else None
        for field, bridge in (
            ("bridge_to", spoke.into),
            ("bridge_from", spoke.back),
            ("bridge_common", common),
        ):
            if bridge is not None and bridge.verdict.status not in RELIABLE:
                yield (
                    f"{field} of store {spoke.name!r}: the verdict is {bridge.verdict.status}: "
                    f"{bridge.verdict.reason}"
                )
    yield from _scope(federation, queries)
    twice = _with_repeated_ids(ranking) if ranking is not None and lists_once else 0
    if twice:
        yield (
            f"the same id comes from two stores in the answers to {twice:,} of {len(queries):,} "
            'queries, and stands twice in a TREC run: where it is one document, write dedup = "id" '
            "in the federation's file"
        )


def _scope(federation: Federation, queries: VectorSet) -> Iterator[str]:
    """Say where queries are unlike the pairs of bridges; what holds for several stores once."""
    stores: dict[str, list[str]] = {}
    for spoke in federation.spokes[1:]:
        if spoke.into is not None:
            for note in scope_notes("queries", spoke.into.examine(queries)):
                stores.setdefault(note, []).append(repr(spoke.name))
    for note, names in stores.items():
        yield f"bridge_to of store {', '.join(names)}: {note}"


def _common_of(federation: Federation, spoke: Spoke) -> Bridge | None:
    """Return the bridge to the common space of a spoke."""
    bridges = (
        source.common
        for source in federation.sources
        if source.store.space.fingerprint == spoke.space.fingerprint
    )
    return next((bridge for bridge in bridges if bridge is not None), None)


def _unused(federation: Federation) -> Iterator[str]:
    """Say that some bridges to a common space are for nothing."""
    given = any(source.common is not None for source in federation.sources)
    lacking = lacks_common(federation.sources, federation.spokes)
    if given and lacking and not federation.method.common_directions:
        yield (
            "bridge_common is not used: it counts where every store of another space than the "
            f"hub's has one, and {', '.join(map(repr, lacking))} has none"
        )


def _missing(ranking: Ranking) -> Iterator[str]:
    for outage in ranking.outages:
        yield (f"{outage}; the answers to {outage.queries:,} of {len(ranking):,} queries lack it")
    empty = int(np.count_nonzero((ranking.ids == "").all(axis=1)))
    if empty:
        yield f"{empty:,} of {len(ranking):,} queries have no answer"
    if ranking.also:
        merged = sum(map(len, ranking.also.values()))
        yield f"{merged:,} copies of documents were merged into other hits"
    if ranking.skipped is not None:
        yield (f"the budget left out {ranking.skipped.mean():.0%} of the searches of stores")


def _with_repeated_ids(ranking: Ranking) -> int:
    """Count the queries with an id that comes twice."""
    ids = np.sort(ranking.ids, axis=1)
    repeated = (ids[:, 1:] == ids[:, :-1]) & (ids[:, 1:] != "")
    return int(np.count_nonzero(repeated.any(axis=1)))
