"""`python -m tests.servers [name ...]`: start servers, print how to reach them, wait for Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import threading
import time

from tests.servers import (
    ChromaServer,
    MilvusServer,
    PostgresServer,
    TypesenseServer,
    ValkeyServer,
)

SERVERS = {
    each.name: each
    for each in (PostgresServer, ChromaServer, MilvusServer, ValkeyServer, TypesenseServer)
}


def main() -> None:
    """Run until interrupted. The passwords are made for this run and end with it."""
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(SERVERS)}")
    names = parser.parse_args().names or list(SERVERS)
    if unknown := set(names) - set(SERVERS):
        parser.error(f"no server is called {', '.join(sorted(unknown))}")
    with contextlib.ExitStack() as stack, contextlib.suppress(KeyboardInterrupt):
        for name in names:
            begin = time.monotonic()
            server = stack.enter_context(SERVERS[name]())
            seconds = time.monotonic() - begin
            print(f"{name:10} {server.url:16} ready in {seconds:.1f} s, {server.memory() >> 20} MB")
            for secret in ("dsn", "password", "api_key"):
                if hasattr(server, secret):
                    print(f"{'':10} {secret} {getattr(server, secret)}")
        print("Ctrl-C ends them", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
