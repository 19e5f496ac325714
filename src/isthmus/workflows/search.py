"""Search several stores of different models as one."""

from __future__ import annotations

from pathlib import Path

from isthmus._progress import Track, silent
from isthmus.federate import Federation
from isthmus.rankings import Ranking
from isthmus.spaces import VectorSet
from isthmus.workflows._opening import open_vectors

__all__ = ["search"]

BATCH_QUERIES = 4_096
"""Queries per step of progress; the numbers do not depend on it."""


def search(
    federation: Federation | Path | str,
    queries: VectorSet | Path | str,
    *,
    k: int = 10,
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
    track : Track, default silent
        One step per batch of queries.

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
    steps = -(-len(asked) // BATCH_QUERIES)

    def ask(opened: Federation) -> Ranking:
        batches = track(asked.iter_batches(BATCH_QUERIES), "searching", steps)
        return Ranking.concatenate([opened.search(batch, k=k) for batch in batches])

    if isinstance(federation, Federation):
        return ask(federation)
    with Federation.load(federation) as opened:
        return ask(opened)
