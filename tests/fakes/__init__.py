"""Fakes of databases that have no server here: the protocol that their clients speak, on loopback.

A fake proves that a connector and the real client understand each other, not that a real server
would answer the same; `tools/store_suite.py` asks one.
"""

from tests.fakes.elasticsearch import FakeElasticsearch, FakeOpensearch
from tests.fakes.http_server import Fault
from tests.fakes.qdrant import FakeQdrant
from tests.fakes.weaviate import FakeWeaviate

__all__ = ["FakeElasticsearch", "FakeOpensearch", "FakeQdrant", "FakeWeaviate", "Fault"]
