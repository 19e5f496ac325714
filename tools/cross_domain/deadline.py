"""A limit on the whole of one request: at its end the connection is shut, whatever it waits for."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
import urllib.request
from functools import partial
from types import TracebackType
from typing import Any, Self

__all__ = ["Deadline", "TimedRequest", "timed_handlers"]


class Deadline:
    """Shuts the connections made under it when its time is over.

    The timeout of a socket begins again with every byte: whoever sends slowly never meets it.

    Parameters
    ----------
    seconds : float
        From entering the block. Looking up the name of a host has the limit of the system.
    """

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._end = time.monotonic() + seconds
        self._held: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._shut)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            for one in self._held:
                one.close()
            self._held.clear()

    def check(self) -> None:
        """Raise TimeoutError where the time is over: a connection that was shut looks complete."""
        if self.over or time.monotonic() > self._end:
            raise TimeoutError

    def connect(self, address: tuple[str, int], *rest: Any) -> socket.socket:
        """Connect as `socket.create_connection` does, all addresses of a host in the same time."""
        del rest  # the timeout of a socket, and an address to come from
        trouble: OSError = OSError("no address")
        for family, kind, protocol, _, place in socket.getaddrinfo(
            *address, type=socket.SOCK_STREAM
        ):
            self.check()
            made = socket.socket(family, kind, protocol)
            try:
                made.settimeout(max(self._end - time.monotonic(), 1e-3))
                made.connect(place)
                self._hold(made)
            except OSError as error:
                made.close()
                trouble = error
            else:
                return made
        raise trouble

    def _hold(self, made: socket.socket) -> None:
        """Keep a handle of our own: encryption takes the connection over from its first one."""
        with self._lock:
            self.check()
            self._held.append(made.dup())

    def _shut(self) -> None:
        with self._lock:
            self.over = True
            for one in self._held:
                with contextlib.suppress(OSError):  # the other side was first
                    one.shutdown(socket.SHUT_RDWR)


class TimedRequest(urllib.request.Request):
    """A request with its deadline."""

    def __init__(self, url: str, deadline: Deadline, **named: Any) -> None:
        super().__init__(url, **named)
        self.deadline = deadline


class _Plain(http.client.HTTPConnection):
    """Connects under a deadline."""

    def __init__(self, host: str, *, deadline: Deadline, **named: Any) -> None:
        super().__init__(host, **named)
        self._create_connection = deadline.connect


class _Secure(http.client.HTTPSConnection):
    """Connects under a deadline, which also covers a proxy and the handshake."""

    def __init__(self, host: str, *, deadline: Deadline, **named: Any) -> None:
        super().__init__(host, **named)
        self._create_connection = deadline.connect


class _PlainHandler(urllib.request.HTTPHandler):
    def http_open(self, request: Any) -> http.client.HTTPResponse:
        return self.do_open(partial(_Plain, deadline=request.deadline), request)


class _SecureHandler(urllib.request.HTTPSHandler):
    def __init__(self) -> None:
        self._trusted = ssl.create_default_context()
        self._trusted.set_alpn_protocols(["http/1.1"])
        super().__init__(context=self._trusted)

    def https_open(self, request: Any) -> http.client.HTTPResponse:
        made = partial(_Secure, context=self._trusted, deadline=request.deadline)
        return self.do_open(made, request)


def timed_handlers() -> list[urllib.request.BaseHandler]:
    """Return what `urllib.request.build_opener` needs for requests with a deadline."""
    return [_PlainHandler(), _SecureHandler()]
