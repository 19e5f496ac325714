"""Requests to a Weaviate server: its schema by REST, its objects by gRPC.

The official client is used for its protocol only. Its own calls wait for up to a minute when a
server is gone, whatever time limit they are given, and GraphQL, the other way, is being removed.
"""

from __future__ import annotations

import contextlib
from typing import Any
from urllib.parse import quote

from isthmus._optional import require
from isthmus.stores._weaviate_objects import protocol

__all__ = ["Refused", "Server"]

MESSAGE_BYTES = 100 * 2**20
RECONNECT = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1_000))


class Refused(Exception):  # noqa: N818 - what a server answered, before it is said in our words
    """An answer by REST that is not a success.

    Parameters
    ----------
    status : int
    reason : str
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status_code = status


class Server:
    """The two connections to one server.

    Parameters
    ----------
    address : tuple of str and int
        Of REST.
    grpc : tuple of str and int
    tls : bool
    key : str or None
        API key.
    timeout : float
        Seconds.
    """

    def __init__(
        self,
        address: tuple[str, int],
        *,
        grpc: tuple[str, int],
        tls: bool,
        key: str | None,
        timeout: float,
    ) -> None:
        channels = require("grpc", extra="weaviate")
        host, port = address
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._timeout = timeout
        self._metadata = tuple(headers.items())
        self._http = require("httpx", extra="weaviate").Client(
            base_url=f"{'https' if tls else 'http'}://{_bracketed(host)}:{port}/v1",
            headers=headers,
            timeout=timeout,
        )
        options = (
            *RECONNECT,
            ("grpc.max_send_message_length", MESSAGE_BYTES),
            ("grpc.max_receive_message_length", MESSAGE_BYTES),
        )
        place = f"{_bracketed(grpc[0])}:{grpc[1]}"
        self._channel = (
            channels.secure_channel(place, channels.ssl_channel_credentials(), options=options)
            if tls
            else channels.insecure_channel(place, options=options)
        )
        self._stub = protocol("weaviate_pb2_grpc").WeaviateStub(self._channel)

    def close(self) -> None:
        """Let go of both connections."""
        self._http.close()
        self._channel.close()

    def rest(self, method: str, *path: str, body: Any = None) -> Any:
        """Send a request by REST; return the JSON of the answer, None for a 404.

        Raises
        ------
        Refused
        """
        place = "/" + "/".join(quote(part, safe="") for part in path)
        answer = self._http.request(method, place, json=body)
        if answer.status_code == 404:
            return None
        if answer.status_code >= 300:
            raise Refused(answer.status_code, answer.text)
        with contextlib.suppress(ValueError):
            return answer.json()
        return {}

    def call(self, method: str, request: Any) -> Any:
        """Send a request by gRPC; raises what gRPC raises."""
        send = getattr(self._stub, method)
        return send(request, timeout=self._timeout, metadata=self._metadata)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
