"""Files that are no store, damaged, full, read-only or held by another: each its own error."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path

import apsw
import numpy as np
import pytest

from isthmus.errors import (
    CorruptStoreError,
    IsthmusError,
    MissingCollectionError,
    MissingFileError,
    NotAStoreError,
    StoreBusyError,
    StoreFullError,
    StoreVersionError,
)
from isthmus.spaces import Space
from isthmus.stores import open_store
from isthmus.stores._sqlite_rows import RowTable

SPACE = Space(model="m", dim=16)
QUERIES = np.random.default_rng(9).standard_normal((30, 16)).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "one.db"


@pytest.fixture
def stored(url, rows, path) -> bytes:
    """The bytes of a store of 3,000 rows; its file is there."""
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(3_000), metadata=[{"row": row} for row in range(3_000)])
    assert [item.name for item in path.parent.iterdir()] == ["one.db"]
    return path.read_bytes()


def use(url: str) -> None:
    """Read everything that a store has, in every way."""
    with open_store(url) as store:
        store.count()
        list(store.scan(batch_size=500))
        store.fetch([f"row-{row}" for row in range(0, 3_000, 7)])
        store.search(QUERIES[:1], k=3)
        store.search(QUERIES, k=3)
        store.search(QUERIES, k=3, where={"row": 5})
        store.upsert(store.fetch(["row-1"]))


# --- no store ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "got"),
    [
        (b"", "an empty file"),
        (b"x", "a file that is not a database"),
        (b"id,vector\n" * 5_000, "a file that is not a database"),
        (b"SQLite format 3\0" + b"garbage" * 5_000, "file is not a database"),
    ],
)
def test_a_file_that_is_not_a_database(url, path, content, got):
    path.write_bytes(content)
    with pytest.raises(NotAStoreError, match=f"one.db'; got {got}"):
        open_store(url)
    if content:
        with pytest.raises(NotAStoreError, match="nothing was written"):
            open_store(url, space=SPACE)
    assert path.read_bytes() == content


def test_an_empty_file_may_become_a_store(url, path, rows):
    path.touch()
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(2))
        assert store.count() == 2


def test_a_database_of_another_program(url, path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE users (name TEXT)")
    connection.close()
    before = path.read_bytes()
    for space in (None, SPACE):
        with pytest.raises(NotAStoreError, match="got a SQLite file of another program"):
            open_store(url, space=space)
    assert path.read_bytes() == before


def test_a_folder(tmp_path):
    with pytest.raises(NotAStoreError, match="got a folder"):
        open_store(f"sqlite:///{tmp_path}?collection=c", space=SPACE)


def test_a_link_that_leads_nowhere(url, path):
    path.symlink_to(path.with_name("gone"))
    with pytest.raises(MissingFileError, match="expected a store file; got nothing"):
        open_store(url)


@pytest.mark.usefixtures("stored")
def test_a_later_format(url, path):
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 2)
    connection.close()
    with pytest.raises(StoreVersionError, match=r"in format 1 or earlier; got format 2 .*update"):
        open_store(url)


# --- damage ------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.003, 0.02, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_short(url, path, stored, share):
    path.write_bytes(stored[: int(len(stored) * share)])
    with pytest.raises(CorruptStoreError, match=r"expected a whole store file; got a damaged one"):
        use(url)


def test_a_file_without_its_last_byte_is_noticed_at_once(url, path, stored):
    path.write_bytes(stored[:-1])
    with pytest.raises(CorruptStoreError, match=r"bytes of|malformed"):
        open_store(url)


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8, 0.97])
def test_garbage_in_the_middle(url, path, stored, share):
    start = int(len(stored) * share)
    noise = np.random.default_rng(int(share * 10)).bytes(20_000)[: len(stored) - start]
    path.write_bytes(stored[:start] + noise + stored[start + len(noise) :])
    with pytest.raises(CorruptStoreError, match="a damaged one"):
        use(url)


def test_every_flipped_bit_of_a_row_is_noticed(url, path, stored):
    """SQLite itself does not notice these: they leave its structure whole."""
    with open_store(url) as store:
        vector = store.fetch(["row-1700"]).matrix().astype("<f4").tobytes()
    at = stored.index(vector)
    for place in range(at, at + len(vector), 9):
        changed = bytearray(stored)
        changed[place] ^= 1 << (place % 8)
        path.write_bytes(bytes(changed))
        with (
            open_store(url) as store,
            pytest.raises(CorruptStoreError, match=r"'row-1700'\. Do: restore"),
        ):
            store.fetch(["row-1700"])


@pytest.mark.parametrize("seed", range(12))
def test_damage_anywhere_is_an_error_of_ours_or_harms_nothing(url, path, stored, seed, capfd):
    generator = np.random.default_rng(seed)
    changed = bytearray(stored)
    for _ in range(3):
        start = int(generator.integers(0, len(stored)))
        noise = generator.bytes(int(generator.integers(1, 4_000)))[: len(stored) - start]
        changed[start : start + len(noise)] = noise
    path.write_bytes(bytes(changed))
    try:
        use(url)
    except IsthmusError as error:
        assert isinstance(error, CorruptStoreError | NotAStoreError)  # noqa: PT017 - or no error
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ('UPDATE isthmus_collections SET space = \'{"model": "n", "dim": 16}\'', "was changed"),
        ("UPDATE isthmus_collections SET space = 'x'", "a record in .* that was changed"),
        ("UPDATE isthmus_collections SET space = CAST(x'80' AS TEXT)", "text that is not UTF-8"),
        ("DROP TABLE isthmus_rows_1", "no such table: isthmus_rows_1"),
        ("UPDATE isthmus_rows_1 SET id = CAST(x'80' AS TEXT) WHERE number = 9", "not UTF-8"),
        ("UPDATE isthmus_rows_1 SET metadata = '{\"row\": 6}' WHERE number = 9", "'row-8'"),
        ("UPDATE isthmus_rows_1 SET id = 'other' WHERE number = 9", "'other'"),
    ],
)
@pytest.mark.usefixtures("stored")
def test_records_that_were_changed(url, path, statement, message):
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()
    with pytest.raises(CorruptStoreError, match=message):
        use(url)


def nearest_to(query: np.ndarray, matrix: np.ndarray) -> int:
    lengths = np.linalg.norm(matrix, axis=1)
    return int(np.argmax(matrix @ query / lengths))


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("n_queries", [1, 4, 5])
def test_a_damaged_row_that_a_search_no_longer_finds_is_noticed(url, path, rows, n_queries):
    number = nearest_to(QUERIES[0], rows(3_000).matrix()) + 1
    away = (-QUERIES[0]).astype("<f4").tobytes()
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE isthmus_rows_1 SET vector = ? WHERE number = ?", (away, number))
    connection.close()
    with (
        open_store(url) as store,
        pytest.raises(CorruptStoreError, match=f"'row-{number - 1}'"),
    ):
        store.search(QUERIES[:n_queries], k=1)


@pytest.mark.usefixtures("stored")
def test_damaged_metadata_that_no_longer_match_are_noticed(url, path):
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE isthmus_rows_1 SET metadata = '{}' WHERE number = 9")
    connection.close()
    for n_queries in (1, 9):
        with open_store(url) as store, pytest.raises(CorruptStoreError, match="'row-8'"):
            store.search(QUERIES[:n_queries], k=1, where={"row": 8})


def test_rows_are_checked_once_per_change(url, rows, monkeypatch):
    checked = []
    monkeypatch.setattr(RowTable, "verify", lambda *_: checked.append(1))
    with open_store(url, space=SPACE) as store:
        for _ in range(2):
            store.upsert(rows(3))
            store.search(QUERIES[:1], k=1)
            store.search(QUERIES[:1], k=1)
    assert len(checked) == 2


LOOSE = """
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(replace(sql, ' NOT NULL', ''),
  'CHECK (length(vector) = 64)', ''), 'STRICT', '');
PRAGMA writable_schema = RESET;
"""


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("n_queries", [1, 9])
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE isthmus_rows_1 SET id = NULL WHERE number = 9", "None"),
        ("UPDATE isthmus_rows_1 SET vector = x'00' WHERE number = 9", "'row-8'"),
        ("UPDATE isthmus_rows_1 SET vector = NULL WHERE number = 9", "'row-8'"),
        ("UPDATE isthmus_collections SET change = 9223372036854775807", "change counter"),
        ("UPDATE isthmus_collections SET change = -1", "change counter -1"),
        ("UPDATE isthmus_collections SET token = '../../x'", "the token '../../x'"),
        ("UPDATE isthmus_collections SET shortest = 'x'", "the lengths"),
        ("UPDATE isthmus_collections SET space = NULL", "a record in .* that was changed"),
    ],
)
def test_damage_of_any_type_is_an_error_of_ours(url, path, statement, message, n_queries):
    connection = sqlite3.connect(path)
    connection.executescript(LOOSE + statement)
    connection.close()

    def search() -> None:
        with open_store(url) as store:
            store.search(QUERIES[:n_queries], k=3)
            store.search(QUERIES[:1], k=3)

    with pytest.raises(CorruptStoreError, match=message):
        search()


@pytest.mark.usefixtures("stored")
def test_a_change_counter_at_its_end_refuses_to_write(url, path, rows):
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE isthmus_collections SET change = 9223372036854775807")
    connection.close()
    with open_store(url) as store, pytest.raises(CorruptStoreError, match="change counter"):
        store.upsert(rows(1))


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM isthmus_collections", "UPDATE isthmus_collections SET token = 'another one'"],
)
def test_a_collection_that_disappears_while_it_is_open(url, path, statement):
    with open_store(url) as store:
        connection = apsw.Connection(str(path))
        connection.execute(statement)
        connection.close()
        for call in (lambda: store.search(QUERIES, k=1), lambda: store.delete(["row-1"])):
            with pytest.raises(
                MissingCollectionError, match=r"expected a collection of .*; got 'docs'"
            ):
                call()


# --- no room -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("stored")
def test_a_full_disk_keeps_nothing_of_the_call(url, rows):
    with open_store(url) as store:
        connection = store._file._connection
        connection.pragma("max_page_count", connection.pragma("page_count") + 2)
        with pytest.raises(StoreFullError, match=r"full .*; got a|room to write to .* is full"):
            store.upsert(rows(9_000, "new"), notes={"cursor": "1"})
        assert (store.count(), store.notes()) == (3_000, {})
        store.upsert(rows(1, "small"))  # what fits is still written
        assert store.count() == 3_001


@pytest.mark.usefixtures("stored")
def test_a_disk_that_refuses_to_grow(url, start):
    code = """
    import resource
    store = open_store(url)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    try:
        store.upsert(rows(20_000, "new"), notes={"cursor": "1"})
    except Exception as error:
        print(type(error).__name__, store.count(), store.notes())
    found = store.search(rows(40, "q").vectors, k=3)
    print(found.ids.shape, store.info()["index"]["not_kept"])
    """
    out, errors = start(code, url).communicate(timeout=60)
    assert out.splitlines() == ["StoreFullError 3000 {}", "(40, 3) None"]
    assert errors == ""
    with open_store(url) as store:
        assert store.count() == 3_000


# --- no permission -------------------------------------------------------------------------------

AS_NOBODY = """
import os
store_kind = __import__("isthmus.stores.sqlite")  # imported while the files may be read
import apsw, sqlite_vec, faiss, safetensors.numpy, isthmus.neighbors
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
def attempt(call):
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
with open_store(url) as store:
    print(store.count(), store.search(rows(1, "q").vectors, k=2).ids.shape)
    print(store.search(rows(40, "q").vectors, k=2).ids.shape)
    print(attempt(lambda: store.upsert(rows(1, "new"))))
    print(attempt(lambda: store.delete(["row-1"])))
print(attempt(lambda: open_store(url + "x", space=space)))
"""


@pytest.mark.parametrize("folder_mode", [0o777, 0o555])
def test_a_file_that_may_only_be_read(stored, start, folder_mode):
    folder = Path(tempfile.mkdtemp())  # pytest's own folders may not be entered by another user
    path = folder / "one.db"
    try:
        path.write_bytes(stored)
        path.chmod(0o444)
        folder.chmod(folder_mode)
        out, errors = start(AS_NOBODY, f"sqlite:///{path}?collection=docs").communicate(timeout=60)
        assert path.read_bytes() == stored
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)
    lines = out.splitlines()
    assert errors == ""
    assert lines[:2] == ["3000 (1, 2)", "(40, 2)"]
    for line in lines[2:]:
        assert line.startswith("ReadOnlyStoreError: expected a store that may be written at")
    assert len(lines) == 5


# --- another writer ------------------------------------------------------------------------------


@pytest.mark.usefixtures("stored")
def test_two_writers(url, rows):
    with open_store(url) as one, open_store(f"{url}&timeout=0.1") as other:
        with (
            one._file.writing(),
            pytest.raises(
                StoreBusyError, match=r"access to .* within 0.1 s; got another writer .*timeout=SEC"
            ),
        ):
            other.upsert(rows(1, "new"))
        assert other.count() == 3_000
        other.upsert(rows(1, "new"))
        assert one.count() == 3_001


@pytest.mark.usefixtures("stored")
def test_readers_do_not_wait_for_a_writer(url):
    with open_store(url) as one, open_store(f"{url}&timeout=0") as other, one._file.writing():
        assert other.search(QUERIES, k=3).ids.shape == (30, 3)
        assert other.fetch(["row-5"]).ids.tolist() == ["row-5"]
