"""A chat or embedding endpoint of the OpenAI form: asked again while it fails, its key never shown.

The key travels in one header and nowhere else: redirects are not followed, and the key is struck
out of whatever the endpoint says.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from cross_domain import embeddings
from cross_domain.deadline import Deadline, TimedRequest, timed_handlers
from isthmus.errors import ConfigError, IsthmusError, ParameterError

__all__ = ["Endpoint", "EndpointError", "check_url", "read_key"]

T = TypeVar("T")

AGAIN = {408, 425, 429, *range(500, 600)}
LONGEST_WAIT = 120.0
MAX_BYTES = 64 * 2**20
SHORTEST_SECRET = 8
"""Shorter keys ("none", "ollama") are words: struck out of an answer, they would spoil it."""


class EndpointError(IsthmusError, RuntimeError):
    """An endpoint that does not answer, or answers with a refusal."""

    exit_code: ClassVar[int] = 1


class _AgainError(Exception):
    """A failure that may pass."""

    def __init__(self, got: str, wait: float | None = None) -> None:
        self.got = got
        self.wait = wait
        super().__init__(got)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects would carry the key to another host: they are answers like any other refusal."""

    def redirect_request(self, *args: Any, **named: Any) -> None:
        """Follow none."""
        del args, named


def check_url(url: str) -> str:
    """Return the URL of an endpoint without its last slash.

    Raises
    ------
    ParameterError
        Another scheme than http and https, no host, or a name, password, query or fragment in it.
    """
    try:
        parts = urlsplit(url.strip())
        ready = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        ready = False
    if not ready or not url.isascii() or re.search(r"[\s\x00-\x1f\x7f]", url.strip()):
        raise ParameterError(
            expected="an endpoint as http://host/path or https://host/path",
            got="something else",
            do="give a URL such as https://host/v1",
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ParameterError(
            expected="an endpoint without name, password, query or fragment",
            got="one of these in the URL",
            do="put the key into an environment variable (--key-variable NAME)",
        )
    return url.strip().rstrip("/")


def read_key(variable: str | None, *, default: str = "OPENAI_API_KEY") -> str | None:
    """Return the key from the environment; None where the default variable is not set.

    Neither the key nor the name that was given is ever in a message: the name may be the key.

    Raises
    ------
    ConfigError
        A variable that was named and is not set, or a key that no header can carry.
    """
    key = os.environ.get(variable or default, "").strip()
    if not key and variable is None:
        return None
    if not key:
        raise ConfigError(
            expected="--key-variable with the name of an environment variable that holds the key",
            got="a name that is not set",
            do="export the variable; give its name and never the key itself",
        )
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise ConfigError(
            expected="a key of visible ASCII characters in the environment variable",
            got="other characters",
            do="export the key again, without blanks or line ends inside",
        )
    return key


class Endpoint:
    """An endpoint, and how patiently it is asked.

    Parameters
    ----------
    url : str
        Such as ``https://host/v1``.
    key : str, optional
        Sent as ``Authorization: Bearer``.
    timeout : float, default 60
        Seconds that one request may take, from its start to its last byte; its connection is then
        shut. Only the lookup of the host's name has the limit of the system.
    tries : int, default 6
        Requests for one answer.
    wait : float, default 1
        Seconds before the second try; doubled for each that follows, at most 120. A ``Retry-After``
        of the endpoint counts instead.
    warn : callable, optional
        Given one sentence when a request is asked again for the first time.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 60.0,
        tries: int = 6,
        wait: float = 1.0,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.url = check_url(url)
        self._key = key
        self._shown = self._hide(self.url)
        self._timeout, self._tries, self._wait = timeout, tries, wait
        self._opener = urllib.request.build_opener(_NoRedirects, *timed_handlers())
        self._stop = threading.Event()
        self._warn, self._lock = warn, threading.Lock()

    def __repr__(self) -> str:
        return f"Endpoint({self._shown!r})"

    def stop(self) -> None:
        """Let waiting tries give up: nobody needs their answers."""
        self._stop.set()

    def chat(self, model: str, messages: list[dict[str, str]]) -> str:
        """Return what the model answers, empty where it answers nothing or was cut short.

        Raises
        ------
        EndpointError
        """
        body = {"model": model, "messages": messages}
        return self._post("/chat/completions", body, self._content)

    def embed(self, model: str, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text, in their order.

        Raises
        ------
        EndpointError
            Also where they are not as many vectors of finite numbers, all of one length.
        """
        body = {"model": model, "input": texts, "encoding_format": "float"}
        return self._post("/embeddings", body, lambda answer: _vectors(answer, len(texts)))

    def _content(self, answer: Any) -> str:
        choice = answer["choices"][0]
        content = choice["message"].get("content")
        if choice.get("finish_reason") == "length" or not isinstance(content, str):
            return ""
        # Models that think aloud put their answer after it.
        answered = re.sub(r"\A\s*<think>.*?</think>", "", content, flags=re.DOTALL)
        whole = re.sub("[\ud800-\udfff]", "\ufffd", answered)  # halves of characters
        return self._hide(whole, shortest=SHORTEST_SECRET)

    def _post(self, path: str, body: dict[str, Any], take: Callable[[Any], T]) -> T:
        """Ask until there is an answer of the right form."""
        trouble = _AgainError("nothing")
        for number in range(self._tries):
            if number:
                self._say_once(trouble.got)
                pause = trouble.wait if trouble.wait is not None else self._wait * 2 ** (number - 1)
                self._stop.wait(min(pause, LONGEST_WAIT))
            if self._stop.is_set():
                break
            try:
                return take(self._ask(path, body))
            except _AgainError as error:
                trouble = error
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
                trouble = _AgainError("JSON of another form than the API's")
        raise EndpointError(
            expected=f"an answer of {self._shown}{path} in {self._tries} tries",
            got=self._hide(trouble.got),
            do="check the endpoint, then run the same command again: it goes on where it stopped",
        )

    def _say_once(self, got: str) -> None:
        if self._stop.is_set():
            return
        with self._lock:  # several requests may fail together
            warn, self._warn = self._warn, None
        if warn is not None:
            warn(f"the endpoint does not answer ({self._hide(got)}); trying again")

    def _ask(self, path: str, body: dict[str, Any]) -> Any:
        """Send one request and read its JSON."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            with Deadline(self._timeout) as deadline:
                request = TimedRequest(
                    self.url + path,
                    deadline,
                    data=json.dumps(body).encode(),
                    headers=headers,
                    method="POST",
                )
                raw = self._send(request, path)
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise self._trouble(TimeoutError() if deadline.over else error) from None
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            raise _AgainError("an answer that is no JSON") from None

    def _send(self, request: TimedRequest, path: str) -> bytes:
        """Send one request and read its answer, or what it says of a refusal."""
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                raw = _read(response)
        except urllib.error.HTTPError as error:
            raise self._refusal(error, path) from None
        request.deadline.check()
        return raw

    def _refusal(self, error: urllib.error.HTTPError, path: str) -> Exception:
        """Tell refusals that may pass from those that stay."""
        with error:
            said = self._hide(_message(error))[:200]  # cut after the key is out
        got = f"status {error.code}{': ' + said if said else ''}"
        if error.code in AGAIN:
            return _AgainError(got, _retry_after(error.headers.get("Retry-After")))
        if 300 <= error.code < 400:
            got += " (a redirect, which is not followed)"
        return EndpointError(
            expected=f"an answer of {self._shown}{path}",
            got=got,
            do="check the URL, the model and the key",
        )

    def _trouble(self, error: Exception) -> Exception:
        """Put a broken connection into words; a certificate does not get better by asking again."""
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            return _AgainError(f"no answer within {self._timeout:g} seconds")
        if isinstance(reason, ssl.SSLCertVerificationError):
            return EndpointError(
                expected=f"a valid certificate of {self._shown}",
                got=reason.verify_message,
                do="check the URL",
            )
        return _AgainError(f"a connection that failed ({type(reason).__name__})")

    def _hide(self, text: str, *, shortest: int = 1) -> str:
        """Strike the key out of a text."""
        if self._key and len(self._key) >= shortest:
            return text.replace(self._key, "***")
        return text


def _read(response: http.client.HTTPResponse) -> bytes:
    """Read an answer, but no more than any answer has."""
    parts: list[bytes] = []
    size = 0
    while part := response.read1(2**16):
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            raise _AgainError(f"more than {MAX_BYTES // 2**20} MB")
    return b"".join(parts)


def _message(error: urllib.error.HTTPError) -> str:
    """Return what the endpoint says of a refusal, on one line."""
    try:
        text = error.read(2**14).decode("utf-8", errors="replace")
    except (OSError, http.client.HTTPException):
        return ""
    try:
        told = json.loads(text)["error"]
        text = told["message"] if isinstance(told, dict) else told
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    return " ".join(str(text).split())


def _retry_after(value: str | None) -> float | None:
    """Read a number of seconds; dates and nonsense are left to the usual wait."""
    return float(value) if value and re.fullmatch(r"\d{1,6}(\.\d{1,6})?", value) else None


def _vectors(answer: Any, count: int) -> list[list[float]]:
    """Return the vectors of an answer in the order of the texts."""
    indices = [entry["index"] for entry in answer["data"]]
    rows = [entry["embedding"] for entry in answer["data"]]
    wrong = embeddings.fault(indices, rows, count)
    if wrong:
        raise EndpointError(
            expected=f"{count} vectors of finite numbers, one for each text",
            got=wrong,
            do="name an embedding model of this endpoint",
        )
    ordered = dict(zip(indices, rows, strict=True))
    return [[float(value) for value in ordered[number]] for number in range(count)]
