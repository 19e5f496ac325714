"""Each server starts, answers, survives a kill with its data, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from pathlib import Path

import numpy as np
import psutil
import psycopg
import pytest
from tests.servers import (
    ChromaServer,
    MilvusServer,
    PostgresServer,
    Server,
    ServerError,
    TypesenseServer,
    ValkeyServer,
)
from tests.servers.common import free_ports, unpacked

CLASSES = [PostgresServer, ChromaServer, MilvusServer, ValkeyServer, TypesenseServer]
VECTORS = {"north": [0.0, 1.0], "east": [1.0, 0.0]}
QUERY = [0.9, 0.1]


def post(server, path, body):
    request = urllib.request.Request(f"http://{server.url}{path}", json.dumps(body).encode())
    request.add_header("Content-Type", "application/json")
    if isinstance(server, TypesenseServer):
        request.add_header("X-TYPESENSE-API-KEY", server.api_key)
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        return json.load(answer)


def write_postgres(server, table):
    with server.connect() as connection:
        connection.execute(f"CREATE TABLE {table} (id text, vector vector(2))")
        for key, vector in VECTORS.items():
            connection.execute(f"INSERT INTO {table} VALUES (%s, %s)", (key, str(vector)))


def nearest_postgres(server, table):
    with server.connect() as connection:
        rows = connection.execute(f"SELECT id FROM {table} ORDER BY vector <=> %s", (str(QUERY),))
        return [row[0] for row in rows]


CHROMA = "/api/v2/tenants/default_tenant/databases/default_database/collections"


def write_chroma(server, name):
    key = post(server, CHROMA, {"name": name})["id"]
    rows = {"ids": list(VECTORS), "embeddings": list(VECTORS.values())}
    post(server, f"{CHROMA}/{key}/add", rows)


def nearest_chroma(server, name):
    key = post(server, CHROMA, {"name": name, "get_or_create": True})["id"]
    question = {"query_embeddings": [QUERY], "n_results": 2}
    return post(server, f"{CHROMA}/{key}/query", question)["ids"][0]


def milvus(server):
    from pymilvus import MilvusClient

    return contextlib.closing(MilvusClient(uri=f"http://{server.url}"))


def write_milvus(server, name):
    kind = {"id_type": "string", "max_length": 20, "consistency_level": "Strong"}
    with milvus(server) as client:
        client.create_collection(name, dimension=2, metric_type="COSINE", **kind)
        client.insert(name, [{"id": key, "vector": vector} for key, vector in VECTORS.items()])


def nearest_milvus(server, name):
    with milvus(server) as client:
        client.load_collection(name)
        return [hit["id"] for hit in client.search(name, data=[QUERY], limit=2)[0]]


def valkey(server):
    import redis

    return redis.Redis(port=server.port, protocol=2)


def write_valkey(server, name):
    with valkey(server) as client:
        client.execute_command(
            *("FT.CREATE", name, "PREFIX", 1, f"{name}:", "SCHEMA", "vector", "VECTOR", "FLAT", 6),
            *("TYPE", "FLOAT32", "DIM", 2, "DISTANCE_METRIC", "COSINE"),
        )
        for key, vector in VECTORS.items():
            client.hset(f"{name}:{key}", "vector", np.float32(vector).tobytes())


def nearest_valkey(server, name):
    with valkey(server) as client:
        answer = client.execute_command(
            *("FT.SEARCH", name, "*=>[KNN 2 @vector $query AS distance]", "SORTBY", "distance"),
            *("PARAMS", 2, "query", np.float32(QUERY).tobytes(), "NOCONTENT", "DIALECT", 2),
        )
    return [key.decode().removeprefix(f"{name}:") for key in answer[1:]]


def write_typesense(server, name):
    fields = [{"name": "vector", "type": "float[]", "num_dim": 2}]
    post(server, "/collections", {"name": name, "fields": fields})
    for key, vector in VECTORS.items():
        post(server, f"/collections/{name}/documents", {"id": key, "vector": vector})


def nearest_typesense(server, name):
    search = {"collection": name, "q": "*", "vector_query": f"vector:({QUERY}, k:2)"}
    found = post(server, "/multi_search", {"searches": [search]})
    return [hit["document"]["id"] for hit in found["results"][0]["hits"]]


@pytest.mark.parametrize(
    ("fixture", "write", "nearest"),
    [
        ("postgres_server", write_postgres, nearest_postgres),
        ("chroma_server", write_chroma, nearest_chroma),
        ("milvus_server", write_milvus, nearest_milvus),
        ("valkey_server", write_valkey, nearest_valkey),
        ("typesense_server", write_typesense, nearest_typesense),
    ],
)
def test_a_killed_server_comes_back_with_its_data(request, fixture, write, nearest):
    server, name = request.getfixturevalue(fixture), f"t{uuid.uuid4().hex[:12]}"
    url = server.url
    write(server, name)
    assert nearest(server, name) == ["east", "north"]
    server.kill()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)
    server.restart()
    assert server.url == url
    assert nearest(server, name) == ["east", "north"]


@pytest.mark.parametrize("make", CLASSES)
def test_a_server_listens_on_loopback_only_and_leaves_nothing(make):
    with make() as server:
        folder = server.folder
        numbers = {server.pid, *(process.pid for process in server.family())}
        addresses = {
            connection.laddr.ip
            for connection in psutil.net_connections("inet")
            if connection.pid in numbers and connection.status == psutil.CONN_LISTEN
        }
        assert addresses == {"127.0.0.1"}
        assert server.memory() > 2**20
    assert not folder.exists()
    assert not server.running
    assert not any(alive(number) for number in numbers)
    server.stop()


@pytest.mark.parametrize("make", [PostgresServer, ValkeyServer, MilvusServer])
def test_a_server_ends_with_a_test_run_that_is_killed(make):
    code = f"""
import time
from tests.servers import {make.__name__}
server = {make.__name__}().start()
print(server.folder, server.pid, *(each.pid for each in server.family()), flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        folder, *numbers = run.stdout.readline().split()
        run.send_signal(signal.SIGKILL)
    assert len(numbers) >= 1
    wait_until(lambda: not Path(folder).exists())
    wait_until(lambda: not any(alive(int(number)) for number in numbers))


def test_an_orderly_restart_keeps_port_and_data(valkey_server):
    port, pid = valkey_server.port, valkey_server.pid
    with valkey(valkey_server) as client:
        client.set("restart", "kept")
    valkey_server.restart()
    assert (valkey_server.port, valkey_server.pid == pid) == (port, False)
    with valkey(valkey_server) as client:
        assert client.get("restart") == b"kept"


def test_postgres_refuses_a_wrong_password(postgres_server):
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres_server.dsn, password="wrong")  # noqa: S106


class Silent(Server):
    name = "silent"
    deadline = 0.3

    def command(self):
        return ["/bin/sh", "-c", "echo busy; sleep 600"]

    def is_ready(self):
        raise ConnectionRefusedError


class Broken(Silent):
    name = "broken"
    deadline = 30.0

    def command(self):
        return ["/bin/sh", "-c", "echo no such disk >&2; exit 3"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Silent, r"silent did not answer in 0.3 seconds\nbusy"),
        (Broken, r"broken ended while starting\nno such disk"),
    ],
)
def test_a_server_that_cannot_start_says_why_and_leaves_nothing(make, message):
    server = make()
    with pytest.raises(ServerError, match=message):
        server.start()
    assert server.folder is None
    assert not server.running


def test_a_server_starts_once(valkey_server):
    with pytest.raises(ServerError, match="started before"):
        valkey_server.start()


def test_free_ports_differ():
    assert len(set(free_ports(20))) == 20


def test_what_is_unpacked_is_unpacked_once(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    calls = []

    def unpack(folder):
        calls.append(folder)
        (folder / "program").write_text("x")

    assert unpacked("thing-1", unpack) == unpacked("thing-1", unpack)
    assert (unpacked("thing-1", unpack) / "program").read_text() == "x"
    assert len(calls) == 1
    assert [path.name for path in (tmp_path / "isthmus-test-servers").iterdir()] == ["thing-1"]


def alive(number):
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    return False


def wait_until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
