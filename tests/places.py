"""Where the tests of each store happen: a folder, a real server, or a fake of one."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["PLACES", "SERVERS", "Place", "opened"]

# fixture of tests/conftest.py -> its class
SERVERS = {
    "chroma_server": "tests.servers:ChromaServer",
    "milvus_server": "tests.servers:MilvusServer",
    "postgres_server": "tests.servers:PostgresServer",
    "typesense_server": "tests.servers:TypesenseServer",
    "valkey_server": "tests.servers:ValkeyServer",
    "elasticsearch_fake": "tests.fakes:FakeElasticsearch",
    "opensearch_fake": "tests.fakes:FakeOpensearch",
    "qdrant_fake": "tests.fakes:FakeQdrant",
    "weaviate_fake": "tests.fakes:FakeWeaviate",
}


@dataclass(frozen=True)
class Place:
    """Where one store is tested.

    Parameters
    ----------
    address : str
        URL of a new collection; ``{at}`` is the folder or the server, ``{new}`` a name.
    on : str
        What is tested, in words; ``{NAME}`` is the version of the installed package NAME.
    server : str
        Fixture; empty for a folder.
    secret : str
        Attribute of the server that is the secret.
    """

    address: str
    on: str
    server: str = ""
    secret: str = ""

    def url(self, at: Any) -> str:
        """Return the URL of a new collection in a folder or on a server."""
        return self.address.format(at=at, new=uuid.uuid4().hex)

    def secrets(self, scheme: str, at: Any) -> dict[str, str]:
        """Return the environment variable that the store reads its secret from."""
        if not self.secret:
            return {}
        name = f"ISTHMUS_{scheme.upper().replace('+', '_')}_SECRET"
        return {name: getattr(at, self.secret)}

    def versions(self) -> str:
        """Say what is tested, with the versions that are installed."""

        class Installed(dict[str, str]):
            def __missing__(self, name: str) -> str:
                return importlib.metadata.version(name)

        return self.on.format_map(Installed())


PLACES: dict[str, Place] = {
    "chroma": Place("chroma:///{at}/chroma?collection={new}", "Chroma {chromadb} in this process"),
    "chroma+http": Place(
        "chroma+http://{at.url}?collection={new}", "Chroma {chromadb}", "chroma_server"
    ),
    "duckdb": Place("duckdb:///{at}/store.duckdb?collection={new}", "DuckDB {duckdb}"),
    "elasticsearch": Place(
        "elasticsearch://{at.url}?collection={new}",
        "a fake; client {elasticsearch}",
        "elasticsearch_fake",
    ),
    "faiss": Place("faiss:///{at}/{new}.index?collection=docs", "faiss {faiss-cpu}"),
    "lancedb": Place("lancedb:///{at}/lance?collection={new}", "LanceDB {lancedb}"),
    "memory": Place("memory://suite?collection=docs", "the reference"),
    "milvus": Place(
        "milvus://{at.url}?collection=c{new}", "Milvus {milvus}, client {pymilvus}", "milvus_server"
    ),
    "milvus-lite": Place(
        "milvus-lite:///{at}/lite.db?collection=c{new}", "Milvus Lite {milvus-lite}"
    ),
    "opensearch": Place(
        "opensearch://{at.url}?collection={new}",
        "a fake; client {opensearch-py}",
        "opensearch_fake",
    ),
    "postgresql": Place(
        "{at.dsn}?collection={new}",
        "PostgreSQL 18.4, pgvector 0.8.5",
        "postgres_server",
        secret="password",  # noqa: S106 - the name of an attribute
    ),
    "qdrant": Place("qdrant:///{at}/qdrant?collection={new}", "Qdrant Edge {qdrant-edge-py}"),
    "qdrant+http": Place(
        "qdrant+http://{at.url}?collection={new}", "a fake; client {qdrant-client}", "qdrant_fake"
    ),
    "redis": Place(
        "redis://{at.url}?collection={new}", "Valkey 9.1.2, RediSearch 2.10.5", "valkey_server"
    ),
    "sqlite": Place(
        "sqlite:///{at}/store.db?collection={new}", "SQLite (apsw {apsw}), sqlite-vec {sqlite-vec}"
    ),
    "typesense+http": Place(
        "typesense+http://{at.url}?collection={new}",
        "Typesense 0.24.1",
        "typesense_server",
        secret="api_key",  # noqa: S106 - the same
    ),
    "usearch": Place("usearch:///{at}/{new}.usearch?collection=docs", "USearch {usearch}"),
    "weaviate": Place(
        "weaviate://{at.url}?collection=C{new}&grpc={at.grpc_port}",
        "a fake; client {weaviate-client}",
        "weaviate_fake",
    ),
}


@contextlib.contextmanager
def opened(scheme: str, folder: Path) -> Iterator[Callable[[], str]]:
    """Start what a store needs, outside of pytest; give a function of new collections' URLs."""
    place = PLACES[scheme]
    if not place.server:
        yield lambda: place.url(folder)
        return
    module, name = SERVERS[place.server].split(":")
    with getattr(importlib.import_module(module), name)() as server:
        os.environ.update(place.secrets(scheme, server))
        yield lambda: place.url(server)
