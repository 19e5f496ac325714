"""What every test server has: a folder, a port, a process with a log, and an end.

A server may not outlive its test run. Each one has a guard, a small shell in a session of its own
that waits on a pipe from the test process; when the pipe closes, however the test process ended,
the guard kills the server and removes its folder.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

# $1 is the server's folder, in which `pid` holds the server's process group while one runs.
GUARD = """
trap '' INT TERM HUP
read -r word
test "$word" = done && exit 0
test -s "$1/pid" && kill -s KILL -- "-$(cat "$1/pid")"
for attempt in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1" && exit 0; sleep 0.2; done
"""


class ServerError(Exception):
    """A server that did not start, or that ended by itself; the message has the end of its log."""


class Server(ABC):
    """One database server on 127.0.0.1, on a free port, with its data in a temporary folder.

    A subclass says how it is started (`command`) and when it is ready (`is_ready`). Use it as a
    context manager, or call `start` and `stop`.
    """

    name: ClassVar[str]
    # Seconds from start to ready before the start counts as failed; many times what was measured,
    # since other work may keep the machine busy.
    deadline: ClassVar[float] = 60.0
    # Asks for an orderly end; without one the server is killed, as its data end with it.
    stop_signal: ClassVar[signal.Signals | None] = None
    n_ports: ClassVar[int] = 1

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.ports: Sequence[int] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    # What a subclass says.

    @abstractmethod
    def command(self) -> list[str]:
        """The server's command line; called at every start."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether the server answers; an `OSError` counts as not yet."""

    def prepare(self) -> None:  # noqa: B027 - most servers need no such step
        """Once, before the first start: fill the data folder."""

    def finish(self) -> None:  # noqa: B027 - the same
        """Once, after the first start: what needs a running server."""

    def environment(self) -> dict[str, str]:
        """Variables beside the few that every server gets; the test run's own are not passed on."""
        return {}

    @property
    def user(self) -> int | None:
        """The user id that the server runs as; None for the test run's own."""
        return None

    # What a test uses.

    @property
    def port(self) -> int:
        return self.ports[0]

    @property
    def url(self) -> str:
        """`127.0.0.1:port`, the same after a restart."""
        return f"127.0.0.1:{self.port}"

    @property
    def data(self) -> Path:
        """The folder that the server keeps its data in."""
        if self.folder is None:
            raise ServerError(f"{self.name} was not started")
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """The file with everything that the server printed."""
        return self.data.parent / "log"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ServerError(f"{self.name} is not running")
        return self._process.pid

    def memory(self) -> int:
        """Resident bytes of the server's processes together; shared pages count once."""
        total = 0
        for process in (psutil.Process(self.pid), *self.family()):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_full_info().pss
        return total

    def start(self) -> Self:
        """Start in a new folder on a free port and wait until the server answers."""
        if self.folder is not None:
            raise ServerError(f"{self.name} was started before: restart it, or stop it first")
        try:
            self._make_folder()
            self.ports = free_ports(self.n_ports)
            self.prepare()
            self._run()
            self.finish()
        except BaseException:
            self.stop()
            raise
        return self

    def restart(self) -> Self:
        """End the server if it runs, then start it on the same port and data."""
        self._end()
        self._run()
        return self

    def kill(self) -> None:
        """SIGKILL to every process of the server, as a crash would end it. The data stay."""
        if self._process is None:
            return
        family = self.family()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        wait_until_ended(family, timeout=30.0)
        self._forget_process()

    def stop(self) -> None:
        """End the server and remove its folder. Harmless when it is stopped."""
        if self.folder is None:
            return
        self._end()
        if self._guard is not None:
            self._guard.communicate(b"done\n")
            self._guard = None
        shutil.rmtree(self.folder)
        self.folder = None

    def __enter__(self) -> Self:
        return self if self.running else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # How.

    def _make_folder(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"isthmus-test-{self.name}-"))
        self.data.mkdir()
        if self.user is not None:
            os.chown(self.folder, self.user, -1)
            os.chown(self.data, self.user, -1)
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "guard", str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )

    def run_to_end(self, command: list[str]) -> None:
        """Run a command that prepares data, as the server's user, its output in the log."""
        with self.log.open("ab") as log:
            code = subprocess.call(command, **self._popen_arguments(), stdout=log, stderr=log)
        if code:
            raise ServerError(f"{command[0]} ended with code {code}\n{self._log_tail()}")

    def _run(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                **self._popen_arguments(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (self.data.parent / "pid").write_text(str(self._process.pid))
        self.wait_until_ready()

    def _popen_arguments(self) -> dict[str, object]:
        arguments: dict[str, object] = {
            "stdin": subprocess.DEVNULL,
            "cwd": self.data.parent,
            "env": {
                "PATH": os.defpath,
                "HOME": str(self.data.parent),
                "TMPDIR": str(self.data.parent),
                "LC_ALL": "C.UTF-8",
                "OMP_NUM_THREADS": "1",
                **self.environment(),
            },
        }
        if self.user is not None:
            arguments |= {"user": self.user, "extra_groups": []}
        return arguments

    def wait_until_ready(self) -> None:
        """Wait until it answers; a server that does not is killed, and the end of its log told."""
        end = time.monotonic() + self.deadline
        while time.monotonic() < end:
            if not self.running:
                raise ServerError(f"{self.name} ended while starting\n{self._log_tail()}")
            with contextlib.suppress(OSError):
                if self.is_ready():
                    return
            time.sleep(0.02)
        tail = self._log_tail()
        self.kill()
        raise ServerError(f"{self.name} did not answer in {self.deadline:g} seconds\n{tail}")

    def _end(self) -> None:
        if self.running and self.stop_signal is not None:
            family = self.family()
            self._process.send_signal(self.stop_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=15.0)
                wait_until_ended(family, timeout=15.0)
        self.kill()

    def family(self) -> list[psutil.Process]:
        """The processes that the server started."""
        # By descent, not by group: PostgreSQL gives each of its processes a session of its own.
        if self._process is None:
            return []
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def _forget_process(self) -> None:
        self._process = None
        (self.data.parent / "pid").unlink(missing_ok=True)

    def _log_tail(self, n_bytes: int = 4000) -> str:
        if not self.log.exists():
            return "(no log)"
        return self.log.read_bytes()[-n_bytes:].decode(errors="replace")


def wait_until_ended(processes: list[psutil.Process], timeout: float) -> None:
    """Wait for processes that are not our children; one that init has yet to reap counts as ended.

    Raises
    ------
    ServerError
        If one still runs after `timeout` seconds.
    """
    end = time.monotonic() + timeout
    for process in processes:
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > end:
                raise ServerError(f"{process} still runs after {timeout:g} seconds")
            time.sleep(0.005)


def free_ports(n_ports: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n_ports)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def http_get(url: str, timeout: float = 2.0) -> bytes:
    """The body of one answer from a server on this machine, by no proxy."""
    import urllib.request

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=timeout) as answer:
        return answer.read()


def executable(path: Path, folder: Path) -> Path:
    """The program itself where it may be executed, else a copy in `folder` that may."""
    if os.access(path, os.X_OK):
        return path
    copy = folder / path.name
    shutil.copyfile(path, copy)
    copy.chmod(0o755)
    return copy


def unpacked(name: str, unpack: Callable[[Path], None]) -> Path:
    """The folder `name` in the Python environment, filled by `unpack` when it is not there yet.

    Some wheels hold their programs compressed or in pieces. They are put together once for each
    environment and lie beside the wheels. Several runs may do so at once: the first rename wins.
    """
    home = Path(sys.prefix) / "isthmus-test-servers"
    folder = home / name
    if not folder.exists():
        home.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            filling = Path(scratch) / name
            filling.mkdir()
            unpack(filling)
            with contextlib.suppress(FileExistsError):
                filling.rename(folder)
    return folder


def wheel_folder(package: str) -> Path:
    """Where an installed package lies, without importing it."""
    specification = importlib.util.find_spec(package)
    if specification is None or not specification.submodule_search_locations:
        raise ServerError(f"the package {package} is not installed: `make test` installs it")
    return Path(specification.submodule_search_locations[0])
