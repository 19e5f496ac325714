"""Which store answers to which scheme."""

from __future__ import annotations

import importlib
import os
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from isthmus.errors import UnknownNameError
from isthmus.spaces import Space
from isthmus.stores._url import COLUMN_WORDS, StoreUrl
from isthmus.stores.base import Store

__all__ = [
    "STORES",
    "open_store",
    "place_of",
    "resolve_url",
    "rows_of",
    "scheme_of",
    "schemes",
    "store_class",
]

# One line per store: scheme, module:class. Modules are imported when the scheme is used, so that a
# database's client is needed only by those who use it.
STORES = MappingProxyType(
    {
        "chroma": "isthmus.stores.chroma:ChromaStore",
        "chroma+http": "isthmus.stores.chroma:ChromaServerStore",
        "duckdb": "isthmus.stores.duckdb:DuckdbStore",
        "elasticsearch": "isthmus.stores.elasticsearch:ElasticsearchStore",
        "faiss": "isthmus.stores.faiss:FaissStore",
        "lancedb": "isthmus.stores.lancedb:LancedbStore",
        "memory": "isthmus.stores.memory:MemoryStore",
        "milvus": "isthmus.stores.milvus:MilvusStore",
        "milvus-lite": "isthmus.stores.milvus:MilvusLiteStore",
        "opensearch": "isthmus.stores.opensearch:OpensearchStore",
        "postgresql": "isthmus.stores.postgresql:PostgresqlStore",
        "qdrant": "isthmus.stores.qdrant:QdrantStore",
        "qdrant+http": "isthmus.stores.qdrant:QdrantServerStore",
        "redis": "isthmus.stores.redis:RedisStore",
        "sqlite": "isthmus.stores.sqlite:SqliteStore",
        "typesense+http": "isthmus.stores.typesense:TypesenseStore",
        "usearch": "isthmus.stores.usearch:UsearchStore",
        "weaviate": "isthmus.stores.weaviate:WeaviateStore",
    }
)


def schemes() -> tuple[str, ...]:
    """Return the known schemes in alphabetical order.

    Examples
    --------
    >>> schemes()[:3]
    ('chroma', 'chroma+http', 'duckdb')
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


def scheme_of(url: str) -> str:
    """Return the scheme of a store URL, after checking the whole of it.

    Examples
    --------
    >>> scheme_of("sqlite:///one.db?collection=docs")
    'sqlite'
    """
    return StoreUrl.parse(url).scheme


def place_of(url: str, folder: Path | str) -> str:
    """Return what tells one collection from another, however its URL is spelt and opened.

    Examples
    --------
    >>> spelt = [f"sqlite:///{path}?collection=docs" for path in ("one.db", "./x/../one.db")]
    >>> len({place_of(url, "/data") for url in spelt})
    1
    >>> place_of("redis://db.example?collection=docs&field=v&timeout=3", "/data")
    'redis://db.example?collection=docs&column=v'
    """
    parsed = StoreUrl.parse(url)
    options = dict(parsed.options)
    column = next((options[word] for word in COLUMN_WORDS if options.get(word)), "")
    vectors = {"column": column, "vector": options.get("vector", "")}
    told = _rows_options(parsed) | {name: text for name, text in vectors.items() if text}
    return str(replace(_rows_of(parsed, folder), options=told))


def rows_of(url: str, folder: Path | str) -> str:
    """Return what tells the rows of one collection from those of another, whatever their vector.

    Examples
    --------
    >>> rows_of("duckdb:///a.db?collection=docs&vector=second", "/data")
    'duckdb:////data/a.db?collection=docs'
    """
    return str(_rows_of(StoreUrl.parse(url), folder))


def _rows_of(parsed: StoreUrl, folder: Path | str) -> StoreUrl:
    found = parsed.relative_to(folder)
    path = os.path.realpath(found.path) if found.path and not found.place else found.path
    return replace(found, path=path, options=_rows_options(parsed))


def _rows_options(parsed: StoreUrl) -> dict[str, str]:
    known = store_class(parsed.scheme).place_options if parsed.scheme in STORES else ()
    return {name: parsed.options[name] for name in sorted(known) if parsed.options.get(name)}


def resolve_url(url: str, folder: Path | str) -> str:
    """Return the URL with a relative path read from ``folder``: that of a file which names it.

    Examples
    --------
    >>> resolve_url("sqlite:///one.db?collection=docs", "/data")
    'sqlite:////data/one.db?collection=docs'
    """
    return str(StoreUrl.parse(url).relative_to(folder))
