"""Run the public conformance suite of stores against a real server, at an address that is given.

    python tools/store_suite.py 'qdrant+http://host:6333'
    python tools/store_suite.py 'elasticsearch://host:9200?tls=true&secret=KEY' --keep
    make suite URL='qdrant+http://host:6333'

The URL is that of any store, without a collection: the script makes collections whose names begin
with `isthmus_suite_` and are new for each run, and removes these again, unless told to keep them.
It reads and removes nothing else. Where it does not know how to remove a collection, it removes
the rows and says what is left. It ends with 0 when every check passed, with 1 otherwise.
"""

# ruff: noqa: SLF001 - no store removes a collection, so their clients are asked
from __future__ import annotations

import argparse
import re
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from isthmus.errors import MissingCollectionError
from isthmus.spaces import Space
from isthmus.stores import Store, open_store, store_class
from isthmus.testing import store_suite

# scheme -> how a collection is removed, with the database's own client
REMOVERS: dict[str, Callable[[Any, str], object]] = {
    "chroma": lambda store, name: store._client.delete_collection(name),
    "chroma+http": lambda store, name: store._client.delete_collection(name),
    "elasticsearch": lambda store, name: store._client.indices.delete(index=name),
    "milvus": lambda store, name: _drop_milvus(store._client, name),
    "milvus-lite": lambda store, name: _drop_milvus(store._client, name),
    "opensearch": lambda store, name: store._client.indices.delete(index=name),
    "qdrant+http": lambda store, name: store._engine._client.delete_collection(name),
    "weaviate": lambda store, _: store._rest("DELETE", "schema", store._name),
}


def _drop_milvus(client: Any, name: str) -> None:
    """Drop a collection, which may have no alias then."""
    for alias in client.list_aliases(name)["aliases"]:
        client.drop_alias(alias)
    client.drop_collection(name)


class Suite:
    """The collections of one run.

    Parameters
    ----------
    url : str
        Without a collection.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.scheme = parts.scheme
        self.base = f"{url}{'&' if parts.query else '?'}collection="
        run = f"isthmus_suite_{uuid.uuid4().hex[:12]}"
        rule = store_class(self.scheme).capabilities.names.pattern
        self.run = run if re.fullmatch(rule, f"{run}_0000") else run.capitalize()
        self.names: list[str] = []

    def make(self, space: Space) -> Store:
        """Return a store with a new collection."""
        self.names.append(f"{self.run}_{len(self.names):04}")
        return open_store(self.base + self.names[-1], space=space)

    def remove(self) -> list[str]:
        """Remove what was made; return what could not be."""
        left = []
        for made in self.names:
            # The check of names that move gives these two; the second holds the end of the first.
            for name in (made, f"{made}_former", f"isthmus_live_{made[-8:].strip('_-.')}"):
                try:
                    with open_store(self.base + name) as store:
                        if not self._is_ours(store, name) or not self._removed(store, name):
                            left.append(name)
                except MissingCollectionError:
                    continue
                except Exception as error:  # noqa: BLE001 - a client may raise anything
                    print(f"{name}: {error}")
                    left.append(name)
        return left

    def _is_ours(self, store: Store, name: str) -> bool:
        """Whether this run made it: the name of the run is in it, or the suite's model."""
        return self.run in name or store.space.model == "store-suite"

    def _removed(self, store: Store, name: str) -> bool:
        if self.scheme in REMOVERS:
            REMOVERS[self.scheme](store, name)
            return True
        for batch in store.scan(batch_size=1_000):
            store.delete(batch.vectors.ids.tolist())
        return False


def checked(suite: Suite) -> int:
    """Run all checks, say how each went, and return how many failed."""
    failed = 0
    for check in store_suite.CHECKS:
        start = time.monotonic()
        try:
            check(suite.make)
        except Exception as error:  # noqa: BLE001 - a server may do anything
            failed += 1
            said = f"FAILED: {type(error).__name__}: {error}"
        else:
            said = "passed"
        print(f"{store_suite.name(check):60} {time.monotonic() - start:6.1f} s  {said}")
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite; return the exit code."""
    parser = argparse.ArgumentParser(description="The conformance suite of stores, on a server.")
    parser.add_argument("url", help="of a store, without a collection")
    parser.add_argument("--keep", action="store_true", help="keep the collections that are made")
    given = parser.parse_args(arguments)
    suite = Suite(given.url)
    failed = checked(suite)
    print(f"{len(store_suite.CHECKS) - failed} of {len(store_suite.CHECKS)} checks passed")
    if not given.keep and (left := suite.remove()):
        print(f"still there: {', '.join(left)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
