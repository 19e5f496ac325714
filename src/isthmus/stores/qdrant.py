"""Qdrant: ``qdrant:///dir?collection=NAME`` in this process, or ``qdrant+http://host:port``."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

from isthmus._optional import require
from isthmus.errors import IsthmusError
from isthmus.spaces import Space
from isthmus.stores._batches import write_in_parts
from isthmus.stores._connected import Rows
from isthmus.stores._qdrant_collection import CAPABILITIES, QdrantCollection
from isthmus.stores._qdrant_edge import EdgeEngine
from isthmus.stores._qdrant_engine import Engine
from isthmus.stores._qdrant_errors import in_our_words, is_transient
from isthmus.stores._qdrant_http import HttpEngine

__all__ = ["QdrantServerStore", "QdrantStore"]

PORT = 6333
REQUEST_BYTES = 16_000_000  # servers refuse requests over 32 MiB
NUMBER_BYTES = 22  # a float32 as JSON, at most
REQUEST_ROWS = 1_000


class QdrantStore(QdrantCollection):
    """A collection of Qdrant's engine in this process.

    Examples
    --------
    >>> from isthmus.stores import schemes
    >>> "qdrant" in schemes()
    True
    """

    scheme: ClassVar[str] = "qdrant"

    def _open_engine(self) -> Engine:
        edge = require("qdrant_edge", extra="qdrant")
        return EdgeEngine(edge, self._url.file(), self._url.collection)

    def _is_transient(self, error: Exception) -> bool:
        return is_transient(error)

    def _in_our_words(self, error: Exception) -> IsthmusError:
        found = in_our_words(error, url=self.url, secret=None)
        return found or super()._in_our_words(error)


class QdrantServerStore(QdrantCollection):
    """A collection of a Qdrant server.

    Examples
    --------
    >>> from isthmus.stores import schemes
    >>> "qdrant+http" in schemes()
    True
    """

    scheme: ClassVar[str] = "qdrant+http"
    options: ClassVar[tuple[str, ...]] = (*QdrantCollection.options, "tls")
    serial: ClassVar[bool] = False
    capabilities = replace(
        CAPABILITIES,
        atomic=False,
        max_batch=REQUEST_ROWS,
        switch="alias",
        concurrency="many writers",
        proof="protocol fake",
    )

    def _open_engine(self) -> Engine:
        qdrant = require("qdrant_client", extra="qdrant")
        host, port = self._url.address(PORT)
        secret = self._secret
        client = qdrant.QdrantClient(
            host=host,
            port=port,
            https=self._url.flag("tls"),
            prefix=self._url.path or None,
            timeout=max(1, math.ceil(self.timeout)),
            headers={"api-key": secret} if secret else None,
            check_compatibility=False,
        )
        try:
            return HttpEngine(client, qdrant.models, self._url.collection)
        except BaseException:
            client.close()
            raise

    def _settle(self, space: Space | None) -> None:
        super()._settle(space)
        rows = max(1, min(REQUEST_ROWS, REQUEST_BYTES // (NUMBER_BYTES * self._space.dim)))
        self.capabilities = replace(self.capabilities, max_batch=rows)

    def _write(self, rows: Rows) -> None:
        write_in_parts(super()._write, rows)

    def _take_name(self, name: str, former: str) -> str:
        del former
        engine: Any = self._engine
        return str(engine.take_name(name))

    def _is_transient(self, error: Exception) -> bool:
        return is_transient(error)

    def _in_our_words(self, error: Exception) -> IsthmusError:
        found = in_our_words(error, url=self.url, secret=self._secret)
        return found or super()._in_our_words(error)
