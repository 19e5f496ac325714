"""Every store, when what it runs on is killed: the same for all, in folders and on servers.

What a writer leaves that is killed in the middle of a batch is tested with each store in a file.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from tests.places import PLACES

from isthmus.errors import StoreUnreachableError
from isthmus.spaces import Space, VectorSet
from isthmus.stores import _asking, open_store, store_class

SPACE = Space(model="m", dim=3)
ROWS = VectorSet(["a", "b", "c"], [[3, 0, 0], [0, 2, 0], [1, 1, 1]], SPACE)
SERVERS = [scheme for scheme, place in PLACES.items() if place.server]
SLOW = ("milvus", "weaviate")
"""Servers that answer, or connections that open again, only a while after a restart."""


def notes_of(scheme):
    return store_class(scheme).capabilities.notes


@pytest.fixture
def server(request, scheme):
    found = request.getfixturevalue(PLACES[scheme].server)
    yield found
    if not found.running:
        found.restart()


@pytest.mark.parametrize(
    "scheme",
    [name for name in PLACES if name not in SERVERS and notes_of(name) == "after a batch"],
)
def test_a_process_that_is_killed_between_a_batch_and_its_notes(new_url):
    url = new_url()
    script = f"""
import os, signal
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store
space = Space(model="m", dim=3)
store = open_store({url!r}, space=space)
rows = VectorSet([str(n) for n in range(500)], [[1, 2, 3]] * 500, space)
store.upsert(rows.select(range(200)), notes={{"cursor": "200"}})
store._keep_notes = lambda _: os.kill(os.getpid(), signal.SIGKILL)
store.upsert(rows, notes={{"cursor": "500"}})
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -signal.SIGKILL
    with open_store(url) as store:
        assert store.notes() == {"cursor": "200"}  # behind the rows, never ahead of them
        assert store.count() == 500


@pytest.mark.parametrize("scheme", SERVERS)
def test_the_same_object_goes_on_after_the_server_was_killed(scheme, new_url, server, monkeypatch):
    """Killed between a batch and its notes, where these are two requests."""
    with open_store(f"{new_url()}&timeout=3", space=SPACE) as store:
        store.upsert(ROWS.select([0, 1]), notes={"cursor": "2"})
        scan = store.scan(batch_size=1)
        first = next(scan)
        with monkeypatch.context() as patched:
            patched.setattr(_asking, "PAUSES", (0.01,) * 3)
            keep = store._keep_notes

            def killed(notes):
                server.kill()
                keep(notes)

            patched.setattr(store, "_keep_notes", killed)
            if notes_of(scheme) == "with a batch":
                server.kill()
            with pytest.raises(StoreUnreachableError, match="in one of 4 tries"):
                store.upsert(ROWS, notes={"cursor": "3"})
        server.restart()
        wait_for(store, scheme)
        assert store.notes() == {"cursor": "2"}  # behind the rows, never ahead of them
        assert store.count() == (2 if notes_of(scheme) == "with a batch" else 3)
        seen = first.vectors.ids.tolist() + next(scan).vectors.ids.tolist()
        assert len(set(seen)) == 2
        assert next(store.scan(batch_size=1, cursor=first.cursor)).vectors.ids[0] == seen[1]
        store.upsert(ROWS, notes={"cursor": "3"})
        assert (store.count(), store.notes()) == (3, {"cursor": "3"})
        assert store.fetch(["a", "b", "c"]).matrix() == pytest.approx(ROWS.matrix(), abs=1e-5)
        assert set(store.search(np.ones((1, 3)), k=4).ids[0]) == {"a", "b", "c", ""}


def wait_for(store, scheme):
    end = time.monotonic() + 60
    while scheme in SLOW:
        try:
            store.count()
        except StoreUnreachableError:
            assert time.monotonic() < end
        else:
            return


@pytest.mark.parametrize("scheme", [s for s in SERVERS if notes_of(s) == "with a batch"])
def test_a_kill_in_the_middle_leaves_whole_batches_with_their_notes(new_url, server):
    space = Space(model="m", dim=64)
    values = np.random.default_rng(0).standard_normal((50, 64))
    store = open_store(new_url(), space=space)
    begun = threading.Event()

    def work() -> None:
        for batch in range(100_000):
            rows = VectorSet([f"{batch}-{row}" for row in range(50)], values, space)
            try:
                store.upsert(rows, notes={"rows": str(50 * (batch + 1))})
            except StoreUnreachableError:
                return
            if batch == 4:
                begun.set()

    writer = threading.Thread(target=work)
    writer.start()
    assert begun.wait(60)
    server.kill()
    writer.join()
    server.restart()
    with store:
        assert store.count() == int(store.notes()["rows"]) >= 250
        assert sum(len(batch.vectors) for batch in store.scan()) == store.count()
