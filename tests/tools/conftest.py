"""A local endpoint that answers by rule and misbehaves when told to; two small corpora."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))  # as the tool itself does when it is run

KEY = "sk-planted-0123456789abcdef"
DIM = 8


def chat(text: str, **choice: object) -> dict:
    return {"choices": [{"message": {"role": "assistant", "content": text}, **choice}]}


def question(body: dict) -> str:
    """Ask differently for different documents."""
    code = hashlib.sha256(json.dumps(body["messages"][:2]).encode()).hexdigest()[:10]
    return f"How does the matter of {code} bear on the other one?"


def verdict(body: dict) -> str:
    """Prefer the document that says it is strong."""
    first, second = re.split(r"Document 2:", body["messages"][1]["content"])
    strong = [" strong" in text for text in (first, second)]
    return "1" if strong == [True, False] else "2" if strong == [False, True] else "0"


def embedding(text: str) -> list[float]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    row = np.random.default_rng(seed).standard_normal(DIM)
    return (row / np.linalg.norm(row)).tolist()


class Stub:
    """What it is told to do comes first, one thing a request; then it answers by rule."""

    def __init__(self) -> None:
        self.script: deque[str | dict | bytes] = deque()
        self.requests: list[SimpleNamespace] = []
        self.delay = 0.0
        self.key = KEY
        self.url = ""

    def respond(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        seen = SimpleNamespace(path=handler.path, headers=dict(handler.headers), body=body)
        self.requests.append(seen)
        handler.seen = seen
        step = self.script.popleft() if self.script else "ok"
        time.sleep(self.delay)
        if isinstance(step, str):
            getattr(self, f"do_{step}")(handler)
        else:
            send(handler, 200, step)

    def do_ok(self, handler) -> None:
        if handler.seen.path.endswith("/embeddings"):
            rows = [
                {"index": place, "embedding": embedding(text)}
                for place, text in enumerate(handler.seen.body["input"])
            ]
            send(handler, 200, {"data": rows[::-1]})
        else:
            judging = handler.seen.body["messages"][0]["content"].startswith("You judge")
            send(handler, 200, chat((verdict if judging else question)(handler.seen.body)))

    def do_busy(self, handler) -> None:
        send(handler, 429, {"error": {"message": "slow down"}}, ("Retry-After", "0"))

    def do_broken(self, handler) -> None:
        send(handler, 500, b"<html>oops</html>")

    def do_denied(self, handler) -> None:
        told = f"Incorrect key: {handler.seen.headers.get('Authorization')}\n  second line"
        send(handler, 401, {"error": {"message": told}})

    def do_garbage(self, handler) -> None:
        send(handler, 200, b'{"choices": [')

    def do_closed(self, handler) -> None:
        handler.close_connection = True

    def do_slow(self, handler) -> None:
        time.sleep(1.0)
        send(handler, 200, chat("A question that comes too late to be of any use?"))

    def do_drip(self, handler) -> None:
        drip(handler, b"HTTP/1.1 200 OK\r\n\r\n", b" ")

    def do_drip_status(self, handler) -> None:
        drip(handler, b"", b"H")

    def do_drip_headers(self, handler) -> None:
        drip(handler, b"HTTP/1.1 200 OK\r\n", b"x")

    def do_drip_continue(self, handler) -> None:
        drip(handler, b"", b"HTTP/1.1 100 Continue\r\n\r\n")

    def do_flood_continue(self, handler) -> None:
        drip(handler, b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, pause=0.0)

    def do_drip_chunk(self, handler) -> None:
        drip(handler, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0")

    def do_drip_trailers(self, handler) -> None:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
        drip(handler, head, b"Name: value\r\n")

    def do_drip_failure(self, handler) -> None:
        drip(handler, b"HTTP/1.1 500 Oops\r\n\r\n", b"x")

    def do_drip_refusal(self, handler) -> None:
        drip(handler, b"HTTP/1.1 400 No\r\n\r\n", b"x")

    def do_redirect(self, handler) -> None:
        send(handler, 302, b"", ("Location", self.url + "/elsewhere"))


def drip(handler, head: bytes, rest: bytes, *, pause: float = 0.03) -> None:
    """Send without an end, until the other side has gone or ten seconds are over."""
    handler.close_connection = True
    handler.wfile.write(head)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        handler.wfile.write(rest)
        time.sleep(pause)


def send(handler, status: int, body: dict | bytes, *headers: tuple[str, str]) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    for name, value in (("Content-Length", str(len(raw))), *headers):
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(raw)


@pytest.fixture
def stub(monkeypatch):
    """The endpoint, on a free port of this machine."""
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    made = Stub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                made.respond(self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the other side gave up, as it may

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = False
        made.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture
def corpora(tmp_path):
    """Two files of documents; every third document says that it is strong."""
    paths = []
    for name, what in (("money", "banks and loans"), ("health", "nurses and drugs")):
        path = tmp_path / f"{name}.jsonl"
        lines = [
            {"id": f"{name}{row}", "text": f"Note {row} on {what}{' strong' * (row % 3 == 0)}."}
            for row in range(12)
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        paths.append(path)
    return paths


@pytest.fixture
def vectors(corpora, tmp_path):
    """Vectors of both corpora in one space."""
    from isthmus.spaces import Space, VectorSet

    paths = []
    for corpus in corpora:
        entries = [json.loads(line) for line in corpus.read_text().splitlines()]
        rows = [embedding(entry["text"]) for entry in entries]
        space = Space(model="small", dim=DIM, normalized=True)
        paths.append(tmp_path / f"{corpus.stem}.npz")
        VectorSet([entry["id"] for entry in entries], rows, space).save(paths[-1], dtype="float32")
    return paths


@pytest.fixture
def start():
    """Starts the tool as a user does; every warning of Python is an error there."""
    running = []

    def begin(*arguments: object, **variables: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "NO_PROXY": "*", **variables}
        running.append(
            subprocess.Popen(
                [
                    sys.executable,
                    "-W",
                    "error",
                    ROOT / "tools" / "cross_domain",
                    *map(str, arguments),
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
            )
        )
        return running[-1]

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def check_said(out: str, err: str) -> None:
    """An error has two lines; one more says that the endpoint is asked again."""
    notices = re.findall(r"^cross_domain: the endpoint does not answer .*$", err, re.MULTILINE)
    assert len(notices) <= 1
    assert err.count("\n") <= 2 + len(notices)
    assert "Traceback" not in err
    assert KEY not in out + err


@pytest.fixture
def program(start):
    """Runs the tool to its end as a process of its own."""

    def call(*arguments: object, **variables: str) -> SimpleNamespace:
        process = start(*arguments, **variables)
        out, err = process.communicate(timeout=60)
        check_said(out, err)
        return SimpleNamespace(code=process.returncode, out=out, err=err)

    return call


@pytest.fixture
def tool(capsys, monkeypatch):
    """Runs the tool to its end in this process, which is faster."""
    from cross_domain.command import main

    def call(*arguments: object, **variables: str) -> SimpleNamespace:
        capsys.readouterr()
        with monkeypatch.context() as patched:
            for name, value in variables.items():
                patched.setenv(name, value)
            try:
                code = main([*map(str, arguments)])
            except SystemExit as ended:
                code = ended.code
        said = capsys.readouterr()
        check_said(said.out, said.err)
        return SimpleNamespace(code=code, out=said.out, err=said.err)

    return call


@pytest.fixture
def made(stub, corpora, tmp_path):
    """A folder with eight queries."""
    from cross_domain.corpora import read_corpora
    from cross_domain.endpoint import Endpoint
    from cross_domain.generate import generate

    folder = tmp_path / "made"
    endpoint = Endpoint(stub.url)
    generate(read_corpora(corpora), endpoint, model="m", queries=8, out=folder, seed=3)
    stub.requests.clear()
    return folder


@pytest.fixture
def doubles():
    """Names that the tests of several files need."""
    return SimpleNamespace(KEY=KEY, chat=chat, question=question, embedding=embedding, DIM=DIM)
