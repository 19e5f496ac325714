"""Chroma's HTTP server, from the `chromadb` wheel."""

from __future__ import annotations

import sys

from tests.servers.common import Server, http_get

# The command line of the wheel without `import chromadb`, which takes longer than the server.
RUN = "import sys, chromadb_rust_bindings; chromadb_rust_bindings.cli(['chroma', *sys.argv[1:]])"


class ChromaServer(Server):
    """A Chroma server without authentication."""

    name = "chroma"

    def command(self) -> list[str]:
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--path", str(self.data)]
        return [sys.executable, "-c", RUN, "run", *options]

    def environment(self) -> dict[str, str]:
        return {"ANONYMIZED_TELEMETRY": "False"}

    def is_ready(self) -> bool:
        return b"heartbeat" in http_get(f"http://{self.url}/api/v2/heartbeat")
