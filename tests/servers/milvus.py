"""Milvus standalone, from the `milvus` wheel."""

from __future__ import annotations

import contextlib
import json
import lzma
import shutil
import sys
from pathlib import Path

from tests.servers import loopback
from tests.servers.common import Server, http_get, unpacked, wheel_folder

HOST = "127.0.0.1"
# Parts of Milvus that have a port of their own.
PARTS = ("rootCoord", "queryCoord", "queryNode", "indexNode", "dataCoord", "dataNode")

# Where Milvus notes its number; no setting moves that.
NOTES = (Path("/run/milvus"), Path("/tmp/milvus"))  # noqa: S108


class MilvusServer(Server):
    """A Milvus server with its own metadata store and message queue, without a password.

    After a kill the new server waits until the leases of the old one have run out. It answers
    earlier, but `load_collection` may take up to ten seconds then.
    """

    name = "milvus"
    deadline = 120.0
    # For clients, inside, health, metadata store (two), parts.
    n_ports = 5 + len(PARTS)

    def prepare(self) -> None:
        folder = self.data.parent / "configs"
        folder.mkdir()
        shutil.copy(wheel_folder("milvus") / "data" / "glog.conf", folder)
        # JSON is YAML.
        (folder / "etcd.yaml").write_text(json.dumps(self._etcd_settings()))
        (folder / "milvus.yaml").write_text(json.dumps(self._settings(folder)))

    def command(self) -> list[str]:
        # Milvus listens on every address, and no setting changes that.
        outside = f"{self.port},{self.ports[2]}"
        program = unpacked("milvus-2.3.5", decompress) / "milvus"
        return [sys.executable, loopback.__file__, outside, str(program), "run", "standalone"]

    def environment(self) -> dict[str, str]:
        return {
            "LD_LIBRARY_PATH": str(unpacked("milvus-2.3.5", decompress)),
            "DEPLOY_MODE": "STANDALONE",
            "MILVUSCONF": str(self.data.parent / "configs"),
            "METRICS_PORT": str(self.ports[2]),
        }

    def is_ready(self) -> bool:
        return http_get(f"http://{HOST}:{self.ports[2]}/healthz") == b"OK"

    def kill(self) -> None:
        notes = ["standalone.pid", *(f"server_id_{each.pid}" for each in self.family())]
        super().kill()
        for place in NOTES:
            for note in notes:
                (place / note).unlink(missing_ok=True)
            # Another user's server could not write there; not empty while another one runs.
            with contextlib.suppress(OSError):
                place.rmdir()

    def _etcd_settings(self) -> dict[str, str]:
        client, peer = (f"http://{HOST}:{port}" for port in self.ports[3:5])
        return {
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
        }

    def _settings(self, folder: Path) -> dict[str, object]:
        parts = {
            part: {"ip": HOST, "port": port}
            for part, port in zip(PARTS, self.ports[5:], strict=True)
        }
        # Milliseconds between looks at what is to be done; 500 to 1000 by default.
        parts["queryCoord"] |= dict.fromkeys(
            ("checkInterval", "checkSegmentInterval", "checkChannelInterval", "distPullInterval"),
            50,
        )
        return {
            "etcd": {
                "endpoints": f"{HOST}:{self.ports[3]}",
                "use": {"embed": True},
                "data": {"dir": str(self.data / "etcd")},
                "config": {"path": str(folder / "etcd.yaml")},
            },
            "metastore": {"type": "etcd"},
            # Seconds of a lease, 30 by default. A busy machine must not let one run out.
            "common": {"storageType": "local", "session": {"ttl": 10}},
            "localStorage": {"path": str(self.data / "objects")},
            "mq": {"type": "rocksmq"},
            "rocksmq": {"path": str(self.data / "rocksmq")},
            "log": {"level": "info", "stdout": True, "file": {"rootPath": ""}},
            "proxy": {
                "ip": HOST,
                "port": self.port,
                "internalPort": self.ports[1],
                "http": {"enabled": False},
                # Milliseconds that a strongly consistent search waits at most; 200 by default.
                "timeTickInterval": 20,
            },
            **parts,
        }


def decompress(folder: Path) -> None:
    """Decompress the program and its libraries."""
    for packed in (wheel_folder("milvus") / "data" / "bin").glob("*.lzma"):
        program = folder / packed.stem
        with lzma.open(packed) as source, program.open("wb") as target:
            shutil.copyfileobj(source, target)
        program.chmod(0o755)
