"""The index beside a store: built once, bound to the state of the file, never trusted."""

from __future__ import annotations

import os
import time
from pathlib import Path

import apsw
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from isthmus.neighbors import Exact, Hnsw
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore, open_store
from isthmus.stores import _sidecar as sidecar
from isthmus.stores import _sqlite_search as sqlite_search

SPACE = Space(model="m", dim=16)
QUERIES = np.random.default_rng(9).standard_normal((40, 16)).astype(np.float32)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(sqlite_search, "KEEP_ROWS", 100)


@pytest.fixture(params=["flat", "hnsw"])
def kind(request) -> str:
    return request.param


@pytest.fixture
def url(tmp_path: Path, kind: str) -> str:
    return f"sqlite:///{tmp_path}/one.db?collection=docs&index={kind}"


@pytest.fixture
def built(monkeypatch) -> list[str]:
    """Note every time an index is built from the rows of the file."""
    times: list[str] = []

    def noting(make):
        def build(vectors, *, metric):
            times.append(make.__name__)
            return make(vectors, metric=metric)

        return build

    monkeypatch.setattr(sqlite_search, "Exact", noting(Exact))
    monkeypatch.setattr(sqlite_search, "Hnsw", noting(Hnsw))
    return times


def beside(tmp_path: Path) -> Path:
    (path,) = tmp_path.glob("*.safetensors")
    return path


def search(url: str, n_queries: int = 40):
    with open_store(url) as store:
        found = store.search(QUERIES[:n_queries], k=5)
        return found.ids.tolist(), found.scores.tolist(), store.info()["index"]


def write(url: str, vectors: VectorSet) -> None:
    with open_store(url, space=SPACE) as store:
        store.upsert(vectors)


def test_it_is_built_once_and_then_read(url, rows, built, tmp_path, kind):
    write(url, rows(500))
    first = search(url)
    second = search(url)
    assert len(built) == 1
    assert first[:2] == second[:2]
    assert first[2] == second[2]
    assert first[2] == {
        "kind": kind, "in_memory": True, "file": str(beside(tmp_path)), "not_kept": None
    }  # fmt: skip
    tensors = load_file(beside(tmp_path))
    assert tensors["rows"].tobytes() == rows(500).matrix().tobytes()
    assert set(tensors) == {"rows"} | ({"levels", "links", "entry"} if kind == "hnsw" else set())


def test_who_may_read_the_store_may_read_it(url, rows, tmp_path):
    write(url, rows(500))
    (tmp_path / "one.db").chmod(0o640)
    search(url)
    assert beside(tmp_path).stat().st_mode & 0o777 == 0o640


def test_few_rows_are_not_kept(rows, built, tmp_path):
    url = f"sqlite:///{tmp_path}/one.db?collection=docs"
    write(url, rows(99))
    assert search(url)[2]["file"] is None
    search(url)
    assert built == ["Exact", "Exact"]


@pytest.mark.parametrize(
    "change",
    [
        lambda store, rows: store.upsert(rows(1, "new")),
        lambda store, rows: store.upsert(rows(1, seed=5)),
        lambda store, _: store.delete(["row-3"]),
    ],
)
def test_a_change_makes_it_stale(url, rows, built, change):
    write(url, rows(500))
    search(url)
    with open_store(url) as store:
        change(store, rows)
        reference = MemoryStore(SPACE)
        for batch in store.scan():
            reference.upsert(batch.vectors)
    found = search(url)
    assert len(built) == 2
    expected = reference.search(QUERIES, k=5).ids.tolist()
    recall = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(expected, found[0], strict=True)])
    assert recall == 1.0 or "hnsw" in url
    assert recall > 0.95
    search(url)
    assert len(built) == 2


def test_a_change_that_changes_nothing_keeps_it(url, rows, built):
    write(url, rows(500))
    search(url)
    with open_store(url) as store:
        assert store.delete(["never"]) == 0
    search(url)
    assert len(built) == 1


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0" * 100)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-5] ^= 4
    path.write_bytes(bytes(data))


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def gone(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


DAMAGE = [cut, lengthen, flip, garbage, nothing, gone, folder, pipe, loop]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_file_that_does_not_match_is_as_good_as_none(url, rows, built, tmp_path, damage):
    write(url, rows(500))
    expected = search(url)[:2]
    damage(beside(tmp_path))
    assert search(url)[:2] == expected
    assert len(built) == 2


def vouch(tmp_path: Path, path: Path, *, count: int = 500) -> None:
    """Let the store vouch for a file, as one would who can write both."""
    connection = apsw.Connection(str(tmp_path / "one.db"))
    digest = sidecar.hashlib.sha256(path.read_bytes()).hexdigest()
    connection.execute(
        "UPDATE isthmus_indexes SET sha256 = ?, bytes = ?, count = ?",
        (digest, path.stat().st_size, count),
    )
    connection.close()


@pytest.mark.parametrize(
    "lie",
    [
        lambda tensors: tensors | {"rows": tensors["rows"][:-1]},
        lambda tensors: tensors | {"rows": tensors["rows"].astype(np.float64)},
        lambda tensors: tensors | {"rows": tensors["rows"][:, :8].copy()},
        lambda tensors: tensors | {"rows": tensors["rows"] * np.float32(np.nan)},
        lambda tensors: tensors | {"rows": tensors["rows"] * np.float32(0)},
        lambda tensors: {"other": tensors["rows"]},
    ],
)
def test_a_file_that_lies_is_not_used_even_when_the_store_vouches_for_it(
    url, rows, built, tmp_path, lie
):
    write(url, rows(500))
    expected = search(url)[:2]
    path = beside(tmp_path)
    save_file(lie(load_file(path)), path)
    vouch(tmp_path, path)
    assert search(url)[:2] == expected
    assert len(built) == 2


@pytest.mark.parametrize(
    "lie",
    [
        {"links": lambda links: links + 1_000_000},
        {"links": lambda links: links[:-1]},
        {"links": lambda links: links.astype(np.int64)},
        {"levels": lambda levels: levels + 100},
        {"levels": lambda levels: levels.reshape(2, -1)},
        {"entry": lambda entry: entry + 100_000},
        {"entry": lambda entry: np.concatenate([entry, entry])},
    ],
)
def test_a_hostile_graph_is_not_followed(rows, built, tmp_path, lie):
    url = f"sqlite:///{tmp_path}/one.db?collection=docs&index=hnsw"
    write(url, rows(500))
    expected = search(url)[:2]
    path = beside(tmp_path)
    tensors = load_file(path)
    for name, change in lie.items():
        tensors[name] = np.ascontiguousarray(change(tensors[name]))
    save_file(tensors, path)
    vouch(tmp_path, path)
    assert search(url)[:2] == expected
    assert built == ["Hnsw", "Hnsw"]


def test_a_record_of_fewer_rows_than_there_are(url, rows, built, tmp_path):
    write(url, rows(500))
    expected = search(url)[:2]
    path = beside(tmp_path)
    half = Hnsw(rows(500).vectors[:250]).graph if "hnsw" in url else None
    tensors = {"rows": rows(500).vectors[:250].copy()}
    if half is not None:
        tensors |= {"levels": half.levels, "links": half.links, "entry": np.array([half.entry])}
    save_file(tensors, path)
    vouch(tmp_path, path, count=250)
    assert search(url)[:2] == expected
    assert len(built) == 2


def test_no_safetensors_at_all_though_the_store_vouches_for_it(url, rows, built, tmp_path):
    write(url, rows(500))
    expected = search(url)[:2]
    beside(tmp_path).write_bytes(b"\xff" * 5_000)
    vouch(tmp_path, beside(tmp_path))
    assert search(url)[:2] == expected
    assert len(built) == 2


def test_an_older_copy_of_the_store_does_not_take_the_newer_index(url, rows, built, tmp_path):
    """Both reach the same change counter, with other rows."""
    write(url, rows(500))
    search(url)
    older = (tmp_path / "one.db").read_bytes()
    write(url, rows(1, "lost"))
    search(url)
    (tmp_path / "one.db").write_bytes(older)
    write(url, VectorSet(["kept"], QUERIES[:1], SPACE))
    assert search(url)[0][0][0] == "kept"
    assert len(built) == 3


def test_another_collection_of_the_same_name_and_number_has_another_file(rows, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    names = []
    for place in "ab":
        url = f"sqlite:///{tmp_path}/{place}/one.db?collection=docs"
        write(url, rows(500))
        search(url)
        names.append(beside(tmp_path / place).name)
    assert names[0] != names[1]


def test_a_search_does_not_fail_because_the_index_cannot_be_kept(url, rows, tmp_path, monkeypatch):
    write(url, rows(500))
    expected = search(url)[:2]
    beside(tmp_path).unlink()
    write(url, VectorSet(["x"], -QUERIES[:1], SPACE))

    def full(_tensors, path):
        Path(path).write_bytes(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", full)
    *found, index = search(url)
    assert len(found[0]) == len(expected[0])
    assert index["file"] is None
    assert "No space left on device. Do: check free space" in index["not_kept"]
    assert sorted(item.name for item in tmp_path.iterdir()) == ["one.db"]


def test_a_writer_meanwhile_does_not_hold_up_a_search(url, rows):
    write(url, rows(500))
    patient = f"{url}&timeout=60"
    with open_store(patient) as one, open_store(url) as other, other._file.writing():
        start = time.monotonic()
        one.search(QUERIES, k=5)
        assert time.monotonic() - start < 30
        index = one.info()["index"]
        assert index["in_memory"]
        assert index["file"] is None
        assert "another writer that holds it" in index["not_kept"]


def test_a_change_while_it_was_built_is_noticed(url, rows, built, tmp_path, monkeypatch):
    write(url, rows(500))
    real = sidecar._write

    def slow(path, index):
        real(path, index)
        write(url, rows(1, "meanwhile"))

    monkeypatch.setattr(sidecar, "_write", slow)
    assert search(url)[2]["not_kept"] == "the collection has changed meanwhile"
    monkeypatch.setattr(sidecar, "_write", real)
    assert search(url)[2]["not_kept"] is None
    assert len(built) == 2
    assert len(load_file(beside(tmp_path))["rows"]) == 501
