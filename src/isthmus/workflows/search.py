"""Search several stores of different models as one."""

from __future__ import annotations

from pathlib import Path

from isthmus.federate import Federation
from isthmus.rankings import Ranking
from isthmus.spaces import VectorSet

__all__ = ["search"]


def search(federation: Federation | Path | str, queries: VectorSet, *, k: int = 10) -> Ranking:
    """Return the k best documents of a federation for each query.

    Parameters
    ----------
    federation : Federation, or path of its file
        A file is opened for this search and its stores are closed after it.
    queries : VectorSet
        In the hub's space.
    k : int, default 10
        Answers per query, at least 1.

    Returns
    -------
    Ranking
        Each hit with its store, native, mapped and canonical score.

    Raises
    ------
    MissingFileError, ConfigError, SpaceMismatchError, ParameterError, StoreError
        See `Federation.load` and `Federation.search`.
    """
    if isinstance(federation, Federation):
        return federation.search(queries, k=k)
    with Federation.load(federation) as opened:
        return opened.search(queries, k=k)
