"""Chroma: ``chroma:///dir?collection=NAME`` in this process, or ``chroma+http://host:port``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from isthmus._optional import require
from isthmus.errors import NotAStoreError
from isthmus.spaces import Space
from isthmus.stores._batches import write_in_parts
from isthmus.stores._chroma_collection import CAPABILITIES, ChromaCollection
from isthmus.stores._connected import Rows

__all__ = ["ChromaServerStore", "ChromaStore"]

PORT = 8000
# Small requests, since a server puts rows into its graph before it answers: measured, 4 ms for a
# row of 384 numbers that was there before. Servers refuse more than 40 MiB by default.
REQUEST_ROWS = 500
REQUEST_BYTES = 4_000_000
NUMBER_BYTES = 6  # a float32 in base64


class ChromaStore(ChromaCollection):
    """A collection of a Chroma folder, opened in this process.

    Examples
    --------
    >>> from isthmus.stores import schemes
    >>> "chroma" in schemes()
    True
    """

    scheme: ClassVar[str] = "chroma"

    def _open_client(self, settings: Any, place: Mapping[str, str]) -> Any:
        chroma = require("chromadb", extra="chroma")
        path = str(self._url.file().absolute())
        try:
            return chroma.PersistentClient(path=path, settings=settings, **place)
        except ValueError as error:
            if "different settings" not in str(error):
                raise
            return chroma.PersistentClient(path=path, **place)  # another's client in this process

    def _connect(self) -> None:
        """Open the folder where there is one; a new one is made by `_create`."""
        require("chromadb", extra="chroma")
        path = self._url.file()
        if path.exists() and not path.is_dir():
            raise NotAStoreError(
                expected="the folder of a Chroma database",
                got=f"the file {str(path)!r}",
                do="give the folder that holds chroma.sqlite3",
            )
        if (path / "chroma.sqlite3").exists():
            super()._connect()

    def _exists(self) -> bool:
        return self._client is not None and super()._exists()

    def _create(self, space: Space) -> None:
        if self._client is None:
            super()._connect()
        super()._create(space)


class ChromaServerStore(ChromaCollection):
    """A collection of a Chroma server.

    Examples
    --------
    >>> from isthmus.stores import schemes
    >>> "chroma+http" in schemes()
    True
    """

    scheme: ClassVar[str] = "chroma+http"
    options: ClassVar[tuple[str, ...]] = (*ChromaCollection.options, "tls")
    capabilities = replace(
        CAPABILITIES,
        max_batch=REQUEST_ROWS,
        concurrency="many writers",
        proof="real server",
    )

    def _open_client(self, settings: Any, place: Mapping[str, str]) -> Any:
        host, port = self._url.address(PORT)
        settings.chroma_api_impl = "chromadb.api.fastapi.FastAPI"
        token = self._secret
        headers = {"X-Chroma-Token": token, "Authorization": f"Bearer {token}"} if token else {}
        settings.chroma_server_host = host
        settings.chroma_server_http_port = port
        settings.chroma_server_ssl_enabled = self._url.flag("tls")
        settings.chroma_server_headers = headers
        return _patient_client(self.timeout)(settings=settings, **place)

    def _settle(self, space: Space | None) -> None:
        super()._settle(space)
        most = min(self.capabilities.max_batch or 1, REQUEST_ROWS)
        rows = max(1, min(most, REQUEST_BYTES // (NUMBER_BYTES * self._space.dim)))
        self.capabilities = replace(self.capabilities, max_batch=rows)

    def _write(self, rows: Rows) -> None:
        write_in_parts(super()._write, rows)


def _patient_client(timeout: float) -> Any:
    """Return the client's class, with a timeout and an end.

    The client has no option for a timeout, would wait for ever, and leaves its sockets open.
    """
    kind = require("chromadb.api.client", extra="chroma").Client

    class Patient(kind):  # type: ignore[misc,valid-type]
        """Cares for the sessions behind the client and behind its administration."""

        def __init__(self, **given: Any) -> None:
            self._sessions: list[Any] = []
            try:
                super().__init__(**given)
            except BaseException:
                self.close()
                raise

        def _care_for(self, session: Any) -> None:
            session.timeout = timeout
            self._sessions.append(session)

        def get_user_identity(self) -> Any:
            self._care_for(self._server._session)  # noqa: SLF001
            return super().get_user_identity()

        def _validate_tenant_database(self, tenant: str, database: str) -> None:
            self._care_for(self._admin_client._server._session)  # noqa: SLF001
            super()._validate_tenant_database(tenant, database)

        def close(self) -> None:
            for session in self._sessions:
                session.close()
            super().close()

    return Patient
