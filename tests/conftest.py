"""Real database servers, each started by the first test that asks for it.

`tests/servers/__init__.py` says how they are used. A server that cannot start fails its tests.
The modules are imported in the fixtures because each needs the client of its database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests import fakes, servers


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[servers.PostgresServer]:
    from tests.servers import PostgresServer

    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def chroma_server() -> Iterator[servers.ChromaServer]:
    from tests.servers import ChromaServer

    with ChromaServer() as server:
        yield server


@pytest.fixture(scope="session")
def milvus_server() -> Iterator[servers.MilvusServer]:
    from tests.servers import MilvusServer

    with MilvusServer() as server:
        yield server


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[servers.ValkeyServer]:
    from tests.servers import ValkeyServer

    with ValkeyServer() as server:
        yield server


@pytest.fixture(scope="session")
def typesense_server() -> Iterator[servers.TypesenseServer]:
    from tests.servers import TypesenseServer

    with TypesenseServer() as server:
        yield server


@pytest.fixture(scope="session")
def qdrant_fake() -> Iterator[fakes.FakeQdrant]:
    from tests.fakes import FakeQdrant

    with FakeQdrant() as server:
        yield server


@pytest.fixture(scope="session")
def elasticsearch_fake() -> Iterator[fakes.FakeElasticsearch]:
    from tests.fakes import FakeElasticsearch

    with FakeElasticsearch() as server:
        yield server


@pytest.fixture(scope="session")
def opensearch_fake() -> Iterator[fakes.FakeOpensearch]:
    from tests.fakes import FakeOpensearch

    with FakeOpensearch() as server:
        yield server


@pytest.fixture(scope="session")
def weaviate_fake() -> Iterator[fakes.FakeWeaviate]:
    from tests.fakes import FakeWeaviate

    with FakeWeaviate() as server:
        yield server


@pytest.fixture
def new_url(
    request: pytest.FixtureRequest,
    scheme: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[], str]:
    """Make URLs of new collections of a store, on its server where it has one."""
    from tests.places import PLACES
    from tests.servers.common import Server

    place = PLACES[scheme]
    at = request.getfixturevalue(place.server) if place.server else tmp_path
    if isinstance(at, Server):
        at.wait_until_ready()  # a server that another test killed may still gather its parts
    for name, secret in place.secrets(scheme, at).items():
        monkeypatch.setenv(name, secret)
    return lambda: place.url(at)
