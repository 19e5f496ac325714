"""Stores that are an index file: the old state or the new one, and one writer at a time."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import (
    CorruptStoreError,
    MissingCollectionError,
    MissingFileError,
    NotAStoreError,
    ParameterError,
    StoreBusyError,
    StoreFullError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store
from isthmus.stores._file_set import FileSet
from isthmus.stores._lock import locked

SPACE = Space(model="m", dim=16)
FILES = ("one.index", "one.index.ids.json", "one.index.isthmus.json")


@pytest.fixture(params=["faiss", "usearch"])
def url(request, tmp_path: Path) -> str:
    return f"{request.param}:///{tmp_path}/one.index?collection=docs"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("isthmus.stores._asking.PAUSES", (0.0, 0.0, 0.0))


@pytest.fixture
def filled(url, rows, tmp_path):
    """Make an index, and return its files."""
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(40), metadata=[{"n": n} for n in range(40)])
    return {name: (tmp_path / name).read_bytes() for name in FILES}


def state(url) -> tuple[list[str], dict[str, str]]:
    with open_store(url) as store:
        ids = [text for batch in store.scan() for text in batch.vectors.ids.tolist()]
        return ids, store.notes()


def test_rows_keep_their_numbers(url, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(6))
        (first, *_) = store.scan(batch_size=3)
        assert store.delete(["row-1", "row-5", "no"]) == 2
        last = [batch.cursor for batch in store.scan()][-1]
        store.upsert(rows(2, "new"))
        store.upsert(rows(1, "row", seed=5))
    with open_store(url) as store:
        rest = [text for b in store.scan(cursor=first.cursor) for text in b.vectors.ids.tolist()]
        assert rest == ["row-3", "row-4", "new-0", "new-1"]
        late = [text for b in store.scan(cursor=last) for text in b.vectors.ids.tolist()]
        assert late == ["new-0", "new-1"]
        assert np.array_equal(store.fetch(["row-0"]).vectors, rows(1, seed=5).vectors)
        with pytest.raises(ParameterError, match="the cursor of a batch"):
            list(store.scan(cursor="after:x"))
        assert store.delete([f"row-{row}" for row in range(6)] + ["new-0", "new-1"]) == 6
        assert store.count() == 0
    with open_store(url) as store:
        assert list(store.scan()) == []
        store.upsert(rows(1, "again"))
        assert [b.cursor for b in store.scan()] == ["after:9"]


def test_what_stands_beside_the_index(filled):
    assert json.loads(filled["one.index.ids.json"]) == [f"row-{row}" for row in range(40)]
    beside = json.loads(filled["one.index.isthmus.json"])
    assert beside["format"] == "isthmus-index-1"
    assert beside["collection"] == "docs"
    assert beside["metadata"][3] == {"n": 3}


@pytest.mark.usefixtures("filled")
def test_an_index_file_is_one_collection(url):
    with pytest.raises(MissingCollectionError, match="'docs': an index file is one collection"):
        open_store(url.replace("docs", "other"), space=SPACE)


@pytest.mark.parametrize("name", FILES)
def test_files_of_two_states_are_never_mixed(url, filled, rows, tmp_path, name):
    with open_store(url) as store:
        store.upsert(rows(3, "new"))
    (tmp_path / name).write_bytes(filled[name])  # as a copy of one of them, from yesterday
    with pytest.raises(CorruptStoreError, match="restore all of them from one copy"):
        open_store(url)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_gone(url, filled, tmp_path, name):
    (tmp_path / name).unlink()
    if name.endswith(".isthmus.json"):  # then it is an index that anybody may have made
        with open_store(url) as store:
            assert not store.recorded
            assert store.count() == 40
    else:
        with pytest.raises(CorruptStoreError):
            open_store(url, space=SPACE)
        assert not (tmp_path / name).exists()
    assert len(filled) == 3


@pytest.mark.parametrize(
    "beside",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"format": "isthmus-index-2"}',
        b'{"format": "isthmus-index-1", "collection": "docs", "index_hash": 1, "ids_hash": 2}',
    ],
)
def test_what_stands_beside_the_index_is_checked(url, filled, tmp_path, beside):
    (tmp_path / FILES[2]).write_bytes(beside)
    with pytest.raises(CorruptStoreError, match="what Isthmus wrote in"):
        open_store(url)
    assert len(filled) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": [{}]},
        {"metadata": [1] * 40},
        {"numbers": [2, 1]},
        {"numbers": [1] * 40, "last": 50},
        {"numbers": list(range(1, 41)), "last": 3},
        {"entries": {"a": 1}},
        {"entries": []},
        {"more": 1},
    ],
)
def test_what_it_says_of_the_rows_is_checked(url, filled, tmp_path, change):
    values = json.loads(filled[FILES[2]])
    (tmp_path / FILES[2]).write_text(json.dumps({**values, **change}))
    with pytest.raises(CorruptStoreError):
        open_store(url)


def test_damage_is_noticed(url, filled, tmp_path):
    generator = random.Random(0)  # noqa: S311 - places, not secrets
    for name in FILES[:2]:
        for _ in range(8):
            damaged = bytearray(filled[name])
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
            (tmp_path / name).write_bytes(damaged)
            with pytest.raises(CorruptStoreError):
                open_store(url)
        (tmp_path / name).write_bytes(filled[name])
    assert len(state(url)[0]) == 40


# --- moments between two files -------------------------------------------------------------------


@pytest.mark.parametrize("steps", range(7))
def test_a_crash_at_any_step_leaves_one_state(url, filled, tmp_path, monkeypatch, steps):
    """Stop after so many steps: three files are written, one name counts, three are settled."""

    class Crash(BaseException):
        pass

    done = []

    def stops(original):
        def step(self, *arguments):
            if len(done) == steps:
                raise Crash
            done.append(self)
            return original(self, *arguments)

        return step

    with open_store(url) as store, monkeypatch.context() as patch:
        for name in ("rename", "replace", "open"):
            patch.setattr(Path, name, stops(getattr(Path, name)))
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # what a crash cannot do either
        with contextlib.suppress(Crash):
            FileSet.replace(store._files, [b"i", b"j", b"k"])
    left = [FileSet(store._files.paths).now(path).read_bytes() for path in store._files.paths]
    old, new = [filled[name] for name in FILES], [b"i", b"j", b"k"]
    assert left == (old if steps <= 3 else new)
    FileSet(store._files.paths).settle()
    assert [(tmp_path / name).read_bytes() for name in FILES] == left
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".next"]


WRITES_FOR_EVER = """
store = open_store(url, space=space)
batch = int(sys.argv[2])
while True:
    store.upsert(rows(300, f"b{batch}", seed=batch), notes={"cursor": str(batch)})
    print(batch, flush=True)
    batch += 1
"""


def test_a_writer_that_is_killed_leaves_whole_batches(url, start):
    generator = random.Random(1)  # noqa: S311 - moments, not secrets
    first = 0
    for _ in range(3):
        writer = start(WRITES_FOR_EVER, url, str(first))
        for _ in range(generator.randint(1, 3)):
            said = int(writer.stdout.readline())
        time.sleep(generator.random() * 0.03)  # somewhere inside a batch
        writer.send_signal(signal.SIGKILL)
        out, errors = writer.communicate(timeout=60)
        assert errors == ""
        said = max([said, *map(int, out.split())])
        ids, notes = state(url)
        cursor = int(notes["cursor"])
        assert cursor in {said, said + 1}  # nothing that was reported is lost
        assert len(ids) == 300 * (cursor + 1)
        first = cursor + 1


WRITES_MANY = """
store = open_store(url + "&timeout=60", space=space)
for batch in range(10):
    store.upsert(rows(20, f"{sys.argv[2]}-{batch}"))
    store.upsert(rows(20, "same"))
"""


def test_writers_in_two_processes_take_turns(url, start):
    writers = [start(WRITES_MANY, url, name) for name in "ab"]  # both make the file, too
    for writer in writers:
        out, errors = writer.communicate(timeout=60)
        assert (out, errors, writer.returncode) == ("", "", 0)
    ids, _ = state(url)
    assert len(ids) == len(set(ids)) == 2 * 10 * 20 + 20


@pytest.mark.usefixtures("filled")
def test_a_writer_waits_for_another(url, rows, tmp_path):
    with open_store(f"{url}&timeout=0.1") as store:
        with (
            locked(tmp_path / "one.index.lock", seconds=0),
            pytest.raises(StoreBusyError, match=r"within 0.1 s; got another writer"),
        ):
            store.upsert(rows(3, "new"))
        assert store.count() == 40
        store.upsert(rows(3, "new"))
        assert store.count() == 43


def test_a_link_and_the_permissions_stay(url, rows, filled, tmp_path):
    for name in FILES:
        (tmp_path / name).chmod(0o640)
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "two.index").symlink_to(tmp_path / "one.index")
    with open_store(url.replace("one.index", "links/two.index")) as store:
        store.upsert(rows(3, "new"))
    with open_store(url) as store:
        assert store.count() == len(json.loads(filled[FILES[1]])) + 3
    assert [path.name for path in folder.iterdir()] == ["two.index"]
    assert (folder / "two.index").is_symlink()
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in FILES} == {0o640}


@pytest.mark.usefixtures("filled")
def test_a_reader_sees_what_was_written_since(url, rows):
    with open_store(url) as reader, open_store(url) as writer:
        query = rows(1, seed=9).vectors
        reader.search(query, k=1)
        writer.upsert(VectorSet(["found"], query, SPACE))
        assert reader.search(query, k=1).ids.tolist() == [["found"]]


# --- bad places ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("filled")
def test_a_full_disk_keeps_nothing_of_the_call(url, rows, monkeypatch):
    def full(path, content):
        path.write_bytes(content[:10])
        raise OSError(28, "No space left on device")

    before = state(url)
    with open_store(url) as store:
        with monkeypatch.context() as patch:
            patch.setattr("isthmus.stores._file_set._write", full)
            with pytest.raises(StoreFullError, match="No space left"):
                store.upsert(rows(9, "new"), notes={"cursor": "1"})
        assert (store.count(), store.notes()) == (40, {})
        assert state(url) == before
        store.upsert(rows(1, "more"))
        assert store.count() == 41


FULL = """
import resource
store = open_store(url)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    store.upsert(rows(9_000, "new"), notes={"cursor": "1"})
except Exception as error:
    print(type(error).__name__)
print(store.count(), store.notes())
"""


@pytest.mark.usefixtures("filled")
def test_a_disk_that_refuses_to_grow(url, start, tmp_path):
    out, errors = start(FULL, url).communicate(timeout=60)
    assert (out.splitlines(), errors) == (["StoreFullError", "40 {}"], "")
    assert {path.name for path in tmp_path.iterdir()} == {*FILES, "one.index.lock"}


AS_NOBODY = """
import os
import faiss, isthmus.stores.faiss, isthmus.neighbors, pyarrow
import usearch.index, isthmus.stores.usearch
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
with open_store(url) as store:
    print(store.count(), store.search(rows(1, "q").vectors, k=2).ids.shape)
    for change in (lambda: store.upsert(rows(1, "new")), lambda: store.delete(["row-1"])):
        try:
            change()
        except Exception as error:
            print(type(error).__name__)
for path, space in ((url.replace("one", "new"), space), (url.replace("one", "secret"), None)):
    try:
        open_store(path, space=space)
    except Exception as error:
        print(type(error).__name__)
"""


@pytest.mark.usefixtures("filled")
def test_a_file_that_may_only_be_read(url, tmp_path, start):
    folder = Path(tempfile.mkdtemp())  # pytest's own folders may not be entered by another user
    try:
        for name in FILES:
            shutil.copy(tmp_path / name, folder)
            shutil.copy(tmp_path / name, folder / name.replace("one", "secret"))
        for path in folder.iterdir():
            path.chmod(0o400 if "secret" in path.name else 0o444)
        folder.chmod(0o555)
        process = start(AS_NOBODY, url.replace(str(tmp_path), str(folder)))
        out, errors = process.communicate(timeout=60)
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)
    expected = ["40 (1, 2)", *["ReadOnlyStoreError"] * 3, "AccessDeniedError"]
    assert (out.splitlines(), errors) == (expected, "")


def test_places_that_are_none(url, tmp_path):
    with pytest.raises(MissingCollectionError):
        open_store(url)
    with pytest.raises(MissingFileError):
        open_store(url.replace("one.index", "no/one.index"), space=SPACE)
    (tmp_path / "one.index").mkdir()
    with pytest.raises(NotAStoreError):
        open_store(url, space=SPACE)
    assert [path.name for path in tmp_path.iterdir()] == ["one.index"]
    assert os.listdir(tmp_path / "one.index") == []  # noqa: PTH208 - a list is short
