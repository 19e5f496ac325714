"""What the jobs share that copy rows between stores: reading ahead, notes, metadata."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from isthmus.errors import CorruptStoreError
from isthmus.stores._url import StoreUrl
from isthmus.stores.base import Batch, Store
from isthmus.stores.registry import place_of, rows_of

__all__ = ["parse_note", "place_of_store", "read_ahead", "which_store", "written_metadata"]

T = TypeVar("T")


def read_ahead(items: Iterable[T]) -> Iterator[T]:
    """Yield the items; the next one is made in a thread of its own while the last one is used.

    Never more than one ahead. What making it raises is raised in its place.

    Examples
    --------
    >>> list(read_ahead(iter([1, 2, 3])))
    [1, 2, 3]
    """
    iterator, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, iterator, end)
        while (item := waiting.result()) is not end:
            waiting = pool.submit(next, iterator, end)
            yield item  # type: ignore[misc]  # what is not the end is an item


def written_metadata(store: Store, batch: Batch) -> tuple[list[dict[str, Any]] | None, bool]:
    """Return the metadata of a batch as the store takes them, and whether any are left out."""
    if not any(batch.metadata):
        return None, False
    if not store.capabilities.filters:
        return None, True
    return list(batch.metadata), False


def parse_note(text: str, kinds: Mapping[str, type], *, what: str, do: str) -> dict[str, Any]:
    """Read the note of an earlier run, trusting nothing in it.

    Parameters
    ----------
    text : str
        JSON.
    kinds : mapping of str to type
        What must be in it; more is left out.
    what, do : str
        For the error: what it should be, and what to do where it is not.

    Raises
    ------
    CorruptStoreError

    Examples
    --------
    >>> parse_note('{"cursor": "4"}', {"cursor": str}, what="a note", do="start again")
    {'cursor': '4'}
    """
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(
        type(found.get(name)) is kind for name, kind in kinds.items()
    ):
        raise CorruptStoreError(expected=what, got=repr(text)[:80], do=do)
    return {name: found[name] for name in kinds}


def place_of_store(url: str) -> tuple[str, str] | None:
    """Return what tells the rows of one collection, and one further vector of them, from others.

    None for what no URL opens. The first vector of the rows is the empty name, whatever its column
    is called: nobody knows here which one a URL means that names none.
    """
    try:
        return rows_of(url, Path.cwd()), StoreUrl.parse(url).options.get("vector", "")
    except (ValueError, LookupError):
        return None


def which_store(url: str) -> str:
    """Return what tells one collection from another, however it is opened; else the URL itself."""
    try:
        return place_of(url, Path.cwd())
    except (ValueError, LookupError):
        return url
