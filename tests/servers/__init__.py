"""Real database servers for the tests.

Ask for a fixture; nothing needs to be imported::

    def test_something(postgres_server):
        postgres_server.url        # "127.0.0.1:40123", the same for the whole session
        postgres_server.kill()     # SIGKILL to all its processes, as a crash
        postgres_server.restart()  # the same port, the same data

=================== ================= ================================== =====================
fixture             class             versions                           to log in
=================== ================= ================================== =====================
`postgres_server`   `PostgresServer`  PostgreSQL 18.4, pgvector 0.8      `dsn`, `password`
`chroma_server`     `ChromaServer`    Chroma 1.5.9                       nothing
`milvus_server`     `MilvusServer`    Milvus 2.3.5 standalone            nothing
`valkey_server`     `ValkeyServer`    Valkey 9.1.2, RediSearch 2.10      nothing
`typesense_server`  `TypesenseServer` Typesense 0.24.1                   `api_key`
=================== ================= ================================== =====================

The fixtures have the scope of the session and start at first use; a server that cannot start fails
its tests. Tests share a server, so give each test a collection name of its own and leave the server
running: `restart` after a `kill`. A test that must do worse makes a server for itself::

    with ChromaServer() as server:
        ...

Every server has `start()`, `stop()`, `kill()`, `restart()`, `running`, `url`, `port`, `pid`, `data`
(folder), `log` (file) and `memory()` (bytes). `PostgresServer` has also `username`, `database`,
`dsn` (an address without the password) and `connect()` (a psycopg connection). Its user may do
everything, and the extension `vector` is created.

All listen on 127.0.0.1 only. `kill` loses nothing that the server had acknowledged: Valkey writes
its append-only file at each command and PostgreSQL its log at each commit.

`make servers`, or `python -m tests.servers [name ...]`, starts them for work by hand.
"""

from tests.servers.chroma import ChromaServer
from tests.servers.common import Server, ServerError
from tests.servers.milvus import MilvusServer
from tests.servers.postgres import PostgresServer
from tests.servers.typesense import TypesenseServer
from tests.servers.valkey import ValkeyServer

__all__ = [
    "ChromaServer",
    "MilvusServer",
    "PostgresServer",
    "Server",
    "ServerError",
    "TypesenseServer",
    "ValkeyServer",
]
