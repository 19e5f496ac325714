"""An HTTP server on loopback that speaks JSON and fails when it is told to.

A fake of a database is a subclass that answers requests from plain Python data. It knows nothing of
the connector that it is used to test.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True)
class Request:
    """What came in: the path is split and decoded, the body is parsed JSON."""

    method: str
    path: tuple[str, ...]
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Fault:
    """What goes wrong with the next requests.

    `status`: an answer of that status with `body`. `drop`: the connection ends without an answer,
    `after` the request was carried out or before. `wait`: seconds before the answer.
    """

    times: int = 1
    status: int | None = None
    body: Any = None
    drop: bool = False
    after: bool = False
    wait: float = 0.0
    only: str = ""  # part of the path that the request must have


class Refusal(Exception):  # noqa: N818 - an answer, not an error of the fake
    """An answer that is not a success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass
class FakeServer:
    """A server in a thread of this process, on a free port of 127.0.0.1.

    `stop` and `start` again keep the port and the data, as a restart does.
    """

    max_bytes: int = 32 * 1024 * 1024
    faults: list[Fault] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    port: int = 0

    headers: ClassVar[dict[str, str]] = {}  # of every answer

    def parsed(self, body: bytes) -> Any:
        """Return the body of a request as a fake wants it."""
        return json.loads(body)

    def answer(self, request: Request) -> Any:
        """Return the JSON of a success, or raise `Refusal`."""
        raise NotImplementedError

    def refusal(self, refusal: Refusal) -> Any:
        """Return the JSON of an answer that is not a success."""
        return {"error": refusal.message}

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> Self:
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", self.port), type("Handler", (_Handler,), {"fake": self})
        )
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def stop(self) -> None:
        """End at once: open connections break."""
        self._server.shutdown()
        self._thread.join()
        with self._guard:
            for one in self._open:
                with contextlib.suppress(OSError):  # the other side has left
                    one.shutdown(socket.SHUT_RDWR)
            self._open.clear()
        self._server.server_close()

    kill = stop

    def restart(self) -> Self:
        return self.start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def fail(self, **fault: Any) -> None:
        self.faults.append(Fault(**fault))

    def opened(self, connection: socket.socket) -> None:
        with self._guard:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._guard:
            self._open.discard(connection)

    def answered(self, request: Request | None) -> tuple[int, Any]:
        """Return the status and the JSON for a request; None is one that was too large."""
        if request is None:
            message = f"JSON payload is larger than allowed (limit: {self.max_bytes} bytes)"
            return 413, self.refusal(Refusal(413, message))
        with self._guard:
            self.requests.append(request)
            try:
                return 200, self.answer(request)
            except Refusal as refusal:
                return refusal.status, self.refusal(refusal)

    def next_fault(self, path: str) -> Fault | None:
        with self._guard:
            for fault in self.faults:
                if fault.only in path:
                    fault.times -= 1
                    if fault.times == 0:
                        self.faults.remove(fault)
                    return fault
        return None


class _Handler(BaseHTTPRequestHandler):
    fake: ClassVar[FakeServer]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.fake.opened(self.connection)

    def finish(self) -> None:
        self.fake.closed(self.connection)
        super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except (OSError, ValueError):  # the other side left, or the server was stopped
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass

    def _serve(self) -> None:
        request = self._read()
        fault = self.fake.next_fault(self.path)
        if fault is not None:
            threading.Event().wait(fault.wait)  # tests replace `time.sleep`
            if fault.drop and not fault.after:
                self._break()
                return
            if fault.status is not None:
                self._write(fault.status, fault.body)
                return
        status, body = self.fake.answered(request)
        if fault is not None and fault.drop:
            self._break()
            return
        self._write(status, body)

    def _read(self) -> Request | None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if length > self.fake.max_bytes:
            return None
        parts = urlsplit(self.path)
        return Request(
            self.command,
            tuple(unquote(part) for part in parts.path.split("/") if part),
            {key: values[-1] for key, values in parse_qs(parts.query).items()},
            {key.lower(): value for key, value in self.headers.items()},
            self.fake.parsed(body) if body else None,
        )

    def _write(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        for name, value in self.fake.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _break(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815
