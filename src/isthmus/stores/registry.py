"""Which store answers to which scheme."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import MappingProxyType

from isthmus.errors import UnknownNameError
from isthmus.spaces import Space
from isthmus.stores._url import StoreUrl
from isthmus.stores.base import Store

__all__ = ["STORES", "open_store", "resolve_url", "schemes", "store_class"]

# One line per store: scheme, module:class. Modules are imported when the scheme is used, so that a
# database's client is needed only by those who use it.
STORES = MappingProxyType(
    {
        "memory": "isthmus.stores.memory:MemoryStore",
        "sqlite": "isthmus.stores.sqlite:SqliteStore",
    }
)


def schemes() -> tuple[str, ...]:
    """Return the known schemes in alphabetical order.

    Examples
    --------
    >>> schemes()
    ('memory', 'sqlite')
    """
    return tuple(sorted(STORES))


def store_class(scheme: str) -> type[Store]:
    """Return the class behind a scheme.

    Raises
    ------
    UnknownNameError
        Names the nearest scheme that exists.
    MissingExtraError
    """
    if scheme not in STORES:
        raise UnknownNameError.of("store scheme", scheme, schemes())
    module, name = STORES[scheme].split(":")
    found: type[Store] = getattr(importlib.import_module(module), name)
    return found


def open_store(url: str, *, space: Space | None = None) -> Store:
    """Open the collection that a URL names.

    Parameters
    ----------
    url : str
        ``scheme:///path?collection=NAME``; see docs/stores.md.
    space : Space, optional
        Creates the collection where there is none; where there is one, both must agree.

    Raises
    ------
    InputError, UnknownNameError
        The URL.
    MissingFileError, MissingCollectionError, SpaceMismatchError, StoreError
        What it leads to.

    Examples
    --------
    >>> open_store("memory://scratch?collection=docs", space=Space(model="m", dim=2)).count()
    0
    """
    return store_class(StoreUrl.parse(url).scheme).open(url, space=space)


def resolve_url(url: str, folder: Path | str) -> str:
    """Return the URL with a relative path read from ``folder``: that of a file which names it.

    Examples
    --------
    >>> resolve_url("sqlite:///one.db?collection=docs", "/data")
    'sqlite:////data/one.db?collection=docs'
    """
    return str(StoreUrl.parse(url).relative_to(folder))
