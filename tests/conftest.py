"""Real database servers, each started by the first test that asks for it.

`tests/servers/__init__.py` says how they are used. A server that cannot start fails its tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import ChromaServer, PostgresServer


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    from tests.servers.postgres import PostgresServer

    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def chroma_server() -> Iterator[ChromaServer]:
    from tests.servers.chroma import ChromaServer

    with ChromaServer() as server:
        yield server
