"""Search several stores of different models as one."""

from __future__ import annotations

from pathlib import Path

from isthmus._progress import Track, silent
from isthmus.federate import Federation
from isthmus.federate.hub import QUERY_BLOCK
from isthmus.rankings import Ranking
from isthmus.spaces import VectorSet
from isthmus.workflows._opening import open_vectors

__all__ = ["search"]


def search(
    federation: Federation | Path | str,
    queries: VectorSet | Path | str,
    *,
    k: int = 10,
    depth: int | None = None,
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
    track : Track, default silent
        One step per block of queries, as many as the federation searches at a time.

    Returns
    -------
    Ranking
        Each hit with its store, native, mapped and canonical score.

    Raises
    ------
    MissingFileError, ConfigError, SpaceMismatchError, ParameterError, StoreError
        See `Federation.load` and `Federation.search`.
    """
    asked = open_vectors(queries)
    steps = -(-len(asked) // QUERY_BLOCK)

    def ask(opened: Federation) -> Ranking:
        batches = track(asked.iter_batches(QUERY_BLOCK), "searching", steps)
        return Ranking.concatenate([opened.search(one, k=k, depth=depth) for one in batches])

    if isinstance(federation, Federation):
        return ask(federation)
    with Federation.load(federation) as opened:
        return ask(opened)
