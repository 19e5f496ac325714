"""Real database servers for the tests.

Ask for a fixture; nothing needs to be imported::

    def test_something(postgres_server):
        postgres_server.url       # "127.0.0.1:40123"
        postgres_server.kill()    # SIGKILL to all its processes
        postgres_server.restart() # the same port, the same data

The fixtures `postgres_server` and `chroma_server` have the scope of the session and start at
first use. Tests share them: give each test a collection name of its own, and leave the server
running, so restart it after a kill. A server that cannot start fails the test.
"""

from tests.servers.chroma import ChromaServer
from tests.servers.common import Server, ServerError
from tests.servers.postgres import PostgresServer

__all__ = ["ChromaServer", "PostgresServer", "Server", "ServerError"]
