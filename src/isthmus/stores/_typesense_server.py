"""Requests to a Typesense server, by paths whose parts are quoted, and what its errors mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from isthmus._optional import require
from isthmus.errors import (
    AccessDeniedError,
    InputError,
    IsthmusError,
    StoreError,
    StoreFullError,
)
from isthmus.stores._asking import unreachable
from isthmus.stores._client_errors import gone
from isthmus.stores._url import StoreUrl

__all__ = ["MOST_HITS", "Server"]

MOST_HITS = 250
"""Documents of one search."""
MOST_SEARCHES = 50
"""Searches of one request."""
TRANSIENT = {
    *("TransportError", "RequestException", "ConnectionError"),
    *("Timeout", "HTTPStatus0Error", "ServiceUnavailable"),
}


class Server:
    """The server that a URL leads to.

    The objects of the client for collections and documents are not used: they quote only some of
    the characters of an id, and warn of parts of themselves.

    Parameters
    ----------
    url : StoreUrl
    timeout : float
        Seconds that one request may take.
    """

    def __init__(self, url: StoreUrl, timeout: float) -> None:
        self.errors: Any = require("typesense.exceptions", extra="typesense")
        self.where = f"{url.scheme} at {url.place!r}"
        self._secret = url.secret()
        host, port = url.address(8108)
        protocol = "https" if url.flag("tls") else "http"
        settings = {
            "nodes": [{"host": host, "port": str(port), "protocol": protocol}],
            "api_key": self._secret or "none",
            "connection_timeout_seconds": max(timeout, 0.001),
            "num_retries": 0,
            "retry_interval_seconds": 0.0,
        }
        configuration = require("typesense.configuration", extra="typesense")
        client = require("typesense.sync.api_call", extra="typesense")
        self._call: Any = client.ApiCall(configuration.Configuration(settings))

    def close(self) -> None:
        """Let go of the connections."""
        self._call.close()

    def get(self, *parts: str) -> dict[str, Any] | None:
        """Read one thing; None where it is not there."""
        try:
            return dict(self._call.get(_path(parts), entity_type=dict))
        except self.errors.ObjectNotFound:
            return None

    def lines(self, *parts: str, **parameters: str) -> list[str]:
        """Read a text of lines."""
        text = self._call.get(_path(parts), entity_type=str, as_json=False, params=parameters)
        return [line for line in str(text).split("\n") if line]

    def send(self, body: Any, *parts: str) -> None:
        """Post one thing."""
        self._call.post(_path(parts), entity_type=dict, as_json=True, body=body)

    def put(self, body: Any, *parts: str) -> None:
        """Put one thing in its place."""
        self._call.put(_path(parts), entity_type=dict, body=body)

    def send_lines(self, lines: Sequence[str], *parts: str, **parameters: str) -> list[str]:
        """Post lines; return the answer to each."""
        text = self._call.post(
            _path(parts),
            entity_type=str,
            as_json=False,
            params=parameters,
            body="\n".join(lines).encode(),
        )
        return [line for line in str(text).split("\n") if line]

    def delete(self, *parts: str, **parameters: str) -> None:
        """Remove what a path, or the filter of a path, names; nothing where it is not there."""
        try:
            self._call.delete(_path(parts), entity_type=dict, params=parameters)
        except self.errors.ObjectNotFound:
            return

    def search(self, name: str, searches: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Search a collection many times, in few requests.

        Raises
        ------
        MissingCollectionError, InputError, StoreError
        """
        common = {"collection": name, "q": "*", "per_page": MOST_HITS}
        answers: list[dict[str, Any]] = []
        for start in range(0, len(searches), MOST_SEARCHES):
            some = [{**common, **one} for one in searches[start : start + MOST_SEARCHES]]
            answer = self._call.post("/multi_search", entity_type=dict, body={"searches": some})
            for one in answer["results"]:
                if one.get("code") == 404:
                    raise gone(name)
                if "error" in one:
                    raise self.refusal(str(one["error"]))
                answers.append(one)
        return answers

    def is_transient(self, error: Exception) -> bool:
        """Whether the same request may succeed a moment later."""
        return bool(TRANSIENT & {kind.__name__ for kind in type(error).__mro__})

    def in_our_words(self, error: Exception, name: str) -> IsthmusError:
        """Say what an error of the client means for the caller."""
        if self.is_transient(error) or not isinstance(error, self.errors.TypesenseClientError):
            return unreachable(error, where=self.where)
        if isinstance(error, (self.errors.RequestUnauthorized, self.errors.RequestForbidden)):
            return AccessDeniedError(
                expected=f"{self.where} to let us in",
                got="it refuses the key",
                do="check the secret, an API key: &secret= names the environment variable that has "
                "it, ISTHMUS_TYPESENSE_HTTP_SECRET where it names none",
            )
        if isinstance(error, self.errors.ObjectNotFound):
            return gone(name)
        return self.refusal(str(error))

    def refusal(self, said: str) -> IsthmusError:
        """Say why the server did not do what it was asked."""
        said = (said.replace(self._secret, "***") if self._secret else said)[:200]
        if "OUT_OF_" in said:
            return StoreFullError(
                expected="room on the server", got=said, do="make room, then run it again"
            )
        if "field" in said.lower():
            return InputError(
                expected="values as the fields of the collection have them",
                got=said,
                do="change the values, or the schema",
            )
        return StoreError(
            expected=f"an answer of {self.where}",
            got=said,
            do="see what the log of the server says",
        )


def _path(parts: Sequence[str]) -> str:
    return "/" + "/".join(quote(part, safe="") for part in parts)
