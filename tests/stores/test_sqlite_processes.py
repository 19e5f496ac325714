"""Several processes on one file: nothing half written, nothing stale, nothing lost."""

from __future__ import annotations

import random
import signal
import time

import numpy as np

from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store

SPACE = Space(model="m", dim=16)
QUERIES = np.random.default_rng(9).standard_normal((40, 16)).astype(np.float32)

WRITES_FOR_EVER = """
store = open_store(url, space=space)
batch = int(sys.argv[2])
while True:
    store.upsert(rows(300, f"b{batch}", seed=batch), notes={"cursor": str(batch)})
    print(batch, flush=True)
    batch += 1
"""


def test_a_writer_that_is_killed_leaves_whole_batches(url, start):
    """Batch and cursor are there together, and a second run goes on from the cursor."""
    generator = random.Random(0)  # noqa: S311 - moments, not secrets
    first = 0
    for _ in range(4):
        writer = start(WRITES_FOR_EVER, url, str(first))
        for _ in range(generator.randint(1, 4)):
            line = writer.stdout.readline()
            assert line, writer.stderr.read()
            said = int(line)
        time.sleep(generator.random() * 0.02)  # somewhere inside a batch
        writer.send_signal(signal.SIGKILL)
        out, errors = writer.communicate(timeout=60)
        assert errors == ""
        said = max([said, *map(int, out.split())])
        with open_store(url) as store:
            cursor = int(store.notes()["cursor"])
            assert cursor in {said, said + 1}  # nothing that was reported is lost
            assert store.count() == 300 * (cursor + 1)
            for batch in store.scan(batch_size=300):
                assert len({text.split("-")[0] for text in batch.vectors.ids.tolist()}) == 1
        first = cursor + 1


READS = """
store = open_store(url)
print(store.count(), flush=True)
seen, changes = set(), 0
queries = rows(40, "q", seed=9).vectors
while max(seen, default=0) < 3_000:
    count = store.count()
    changes += count not in seen
    seen.add(count)
    found = store.search(queries[: 1 + 39 * (count % 2)], k=3)
    assert count % 100 == 0, count
    got = store.fetch(found.ids[0].tolist())
    assert len(got) == 3
print(changes > 1)
"""


def test_readers_work_while_a_writer_writes(url, rows, start):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(100, "b0"))
        readers = [start(READS, url) for _ in range(2)]
        assert [reader.stdout.readline() for reader in readers] == ["100\n"] * 2  # both are open
        for batch in range(1, 30):
            store.upsert(rows(100, f"b{batch}", seed=batch))
            time.sleep(0.03)
        for reader in readers:
            out, errors = reader.communicate(timeout=60)
            assert (out.strip(), errors) == ("True", "")


WRITES_ON_DEMAND = """
store = open_store(url)
for line in sys.stdin:
    store.upsert(VectorSet([line.strip()], rows(40, "q", seed=9).vectors[:1], space))
    print("done", flush=True)
"""


def test_a_search_sees_what_another_process_wrote(url, rows, start):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(200))
        queries = rows(40, "q", seed=9).vectors
        store.search(queries, k=2)
        assert store.info()["index"]["in_memory"]
        writer = start(WRITES_ON_DEMAND, url)
        for name in ("first", "second"):
            writer.stdin.write(f"{name}\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == "done\n"
            for n_queries in (1, 40):
                found = store.search(queries[:n_queries], k=2)
                assert "first" in found.ids[0]
                assert np.isclose(found.scores[0, 0], 1.0)
            assert store.fetch([name]).ids.tolist() == [name]
        writer.stdin.close()
        assert writer.wait(timeout=60) == 0


WRITES_MANY = """
store = open_store(url + "&timeout=60", space=space)
for batch in range(20):
    store.upsert(rows(20, f"{sys.argv[2]}-{batch}"))
"""


def test_writers_take_turns(url, start):
    writers = [start(WRITES_MANY, url, name) for name in "abc"]  # all of them make the file, too
    for writer in writers:
        out, errors = writer.communicate(timeout=60)
        assert (out, errors, writer.returncode) == ("", "", 0)
    with open_store(url) as store:
        assert store.count() == 3 * 20 * 20
        ids = [text for batch in store.scan() for text in batch.vectors.ids.tolist()]
        assert len(set(ids)) == 1_200


def test_a_copy_of_a_store_that_is_open_may_lack_the_last_writes_but_is_whole(url, rows, tmp_path):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(50))
        for name in ("one.db", "one.db-wal"):
            (tmp_path / name.replace("one", "two")).write_bytes((tmp_path / name).read_bytes())
        store.upsert(VectorSet(["later"], QUERIES[:1], SPACE))
    with open_store(url.replace("one.db", "two.db")) as copy:
        assert copy.count() == 50


FORKS = """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # later Pythons warn of any fork with threads
store = open_store(url, space=space)
store.upsert(rows(10, "row"))
child = os.fork()
if child == 0:
    try:
        store.count()
    except Exception as error:
        print(type(error).__name__, "in another process" in str(error), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(store.count())
"""


def test_a_handle_that_a_fork_copied_is_refused(url, start):
    out, errors = start(FORKS, url).communicate(timeout=60)
    assert (out.splitlines(), errors) == (["StoreError True", "10"], "")
