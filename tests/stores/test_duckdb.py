"""Tables of DuckDB: those of other programs, second vectors, names that move, bad files."""

from __future__ import annotations

import datetime as dt
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import uuid
from pathlib import Path

import duckdb
import numpy as np
import pytest

from isthmus.errors import (
    CorruptStoreError,
    DuplicateIdError,
    EmptyInputError,
    InputError,
    InvalidIdError,
    InvalidVectorsError,
    MissingCollectionError,
    MissingExtraError,
    MissingFileError,
    NotAStoreError,
    ParameterError,
    ReadOnlyStoreError,
    SpaceMismatchError,
    StoreBusyError,
    UnknownNameError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store

SPACE = Space(model="m", dim=16)
SMALL = Space(model="m", dim=2)
PLACES = """
CREATE TABLE places (
    number BIGINT PRIMARY KEY, name VARCHAR NOT NULL, height DOUBLE, kind ENUM('hill', 'lake'),
    seen DATE, open BOOLEAN, tags VARCHAR[], "odd ""name" INTEGER, extra JSON, vec FLOAT[2]
);
INSERT INTO places VALUES
    (7, 'Aa', 1.5, 'hill', DATE '2020-01-02', true, ['x', 'y'], 1, '{"a": [1]}', [1, 0]),
    (9, 'Bé', 'nan', NULL, NULL, NULL, NULL, NULL, NULL, [0, 2]),
    (11, 'no vector', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
COMMENT ON TABLE places IS 'theirs: {"b": 1}';
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"duckdb:///{tmp_path}/one.duckdb?collection=docs"


@pytest.fixture
def sql(tmp_path: Path):
    def run(statements: str, path: Path = tmp_path / "one.duckdb") -> list[tuple]:
        with duckdb.connect(str(path)) as connection:
            return connection.execute(statements).fetchall()

    return run


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("isthmus.stores._asking.PAUSES", (0.0, 0.0, 0.0))


# --- tables of other programs --------------------------------------------------------------------


@pytest.fixture
def places(url, sql) -> str:
    sql(PLACES)
    return url.replace("docs", "places")


def test_a_table_of_another_program_is_read_without_a_space(places, sql):
    with open_store(places) as store:
        assert not store.recorded
        assert store.space.model.startswith("not recorded: duckdb://")
        assert store.count() == 2
        (batch,) = store.scan()
        assert batch.vectors.ids.tolist() == ["7", "9"]
        assert batch.metadata[0] == {
            "name": "Aa",
            "height": 1.5,
            "kind": "hill",
            "seen": "2020-01-02",
            "open": True,
            "tags": ["x", "y"],
            'odd "name': 1,
            "extra": {"a": [1]},
        }
        assert batch.metadata[1]["name"] == "Bé"
        assert set(batch.metadata[1].values()) == {"Bé", None}  # a NaN is no JSON value
        assert store.fetch_metadata(["9"]) == [batch.metadata[1]]
        held = store.held(["9", "11", "none"])
        assert (held.ids, held.metadata) == (["9"], [batch.metadata[1]])
    assert sql("SELECT comment FROM duckdb_tables()") == [('theirs: {"b": 1}',)]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"name": "Bé"}, ["9"]),
        ({"name": 1}, []),
        ({"height": 1.5}, ["7"]),
        ({"height": "1.5"}, []),
        ({"kind": "hill"}, ["7"]),
        ({"kind": None}, ["9"]),
        ({"seen": "2020-01-02"}, ["7"]),
        ({"open": True}, ["7"]),
        ({"open": 1}, []),
        ({'odd "name': 1}, ["7"]),
        ({'odd "name': 1.0, "open": True}, ["7"]),
        ({'odd "name': True}, []),
        ({'odd "name': 1.5}, []),
        ({"tags": "x"}, []),
        ({"extra": "x"}, []),
        ({"vec": "x"}, []),
        ({"no such": None}, []),
    ],
)
def test_their_columns_are_filters(places, where, expected):
    with open_store(places) as store:
        for n_queries in (1, 9):
            found = store.search(np.tile(np.float32([[1, 0]]), (n_queries, 1)), k=2, where=where)
            assert [text for text in found.ids[-1].tolist() if text] == expected


def test_a_table_is_recorded_when_it_is_opened_with_its_space(places, sql):
    with open_store(places, space=SMALL.with_kind("document")) as store:
        assert store.recorded
        assert not store._own
        store.upsert(
            VectorSet(["9", "12"], [[5, 5], [6, 6]], store.space),
            metadata=[{"height": 3, "tags": ["z"]}, {"name": "new", "seen": "2021-01-01"}],
            notes={"cursor": "1"},
        )
    with open_store(places) as store:
        assert store.recorded
        assert store.notes() == {"cursor": "1"}
        assert store.fetch(["12", "9"]).vectors.tolist() == [[6, 6], [5, 5]]
        with pytest.raises(SpaceMismatchError, match="places"):
            open_store(places, space=Space(model="other", dim=2))
    found = sql("SELECT number, name, height, tags, seen, vec FROM places WHERE number IN (9, 12)")
    assert found == [
        (9, "Bé", 3.0, ["z"], None, (5.0, 5.0)),  # what no metadata name stays
        (12, "new", None, None, dt.date(2021, 1, 1), (6.0, 6.0)),
    ]
    (comment,) = sql("SELECT comment FROM duckdb_tables()")[0]
    assert comment.startswith('theirs: {"b": 1}\nisthmus: {')
    assert sql("SELECT count(*) FROM places") == [(4,)]


def test_a_table_replaced_by_another_loses_its_record(url, sql, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(3))
    sql("CREATE OR REPLACE TABLE docs AS SELECT * FROM docs")
    with open_store(url) as store:
        assert not store.recorded
        assert store.count() == 3


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (Space(model="m", dim=3), "dimension 2 and any metric"),
        (Space(model="m", dim=3, metric="l2"), "dimension 3 and metric l2"),
    ],
)
def test_another_dimension_is_refused(places, sql, space, message):
    with pytest.raises(SpaceMismatchError, match=message):
        open_store(places, space=space)
    assert "isthmus" not in sql("SELECT comment FROM duckdb_tables()")[0][0]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"colour": "red"}, "got the field 'colour'.*add a column for it, or one of JSON"),
        ({"height": "tall"}, "of type DOUBLE for the column 'height'; got 'tall'"),
        ({'odd "name': 1.5}, "of type INTEGER"),
        ({"name": 5}, "of type VARCHAR"),
        ({"open": 1}, "of type BOOLEAN"),
        ({"name": "x", "height": True}, "of type DOUBLE"),
        ({"name": "x", "tags": "z"}, r"of type VARCHAR\[\]"),
        ({"name": "x", "kind": "sea"}, "as the table in .* takes them.*sea"),
        ({"name": "x", "seen": "yesterday"}, "as the table in .* takes them.*yesterday"),
        ({"height": 1.0}, "NOT NULL constraint failed"),
    ],
)
def test_metadata_that_the_columns_do_not_take(places, sql, metadata, message):
    before = sql("SELECT * FROM places ORDER BY 1")
    with open_store(places, space=SMALL) as store:
        vectors = VectorSet(["9", "20"], [[5, 5], [6, 6]], SMALL)
        with pytest.raises(InputError, match=message):
            store.upsert(vectors, metadata=[{}, metadata])
        assert store.count() == 2
    assert repr(sql("SELECT * FROM places ORDER BY 1")) == repr(before)


@pytest.mark.parametrize("text", ["x", "07", "1.0", "99999999999999999999"])
def test_an_id_that_their_type_would_rewrite(places, text):
    with open_store(places, space=SMALL) as store:
        with pytest.raises(InvalidIdError, match="the column 'number' of type BIGINT"):
            store.upsert(VectorSet([text], [[1, 1]], SMALL), metadata=[{"name": "x"}])
        assert store.delete([text]) == 0
        assert store.count() == 2
        with pytest.raises(InputError):
            list(store.scan(cursor="after:=x"))


def test_ids_of_other_types_find_their_way_back(url, sql):
    ids = sorted(uuid.UUID(int=number * 7**40 % 2**128) for number in range(1, 26))
    sql("CREATE TABLE docs (uuid UUID, vector DOUBLE[2])")
    for text in ids:
        sql(f"INSERT INTO docs VALUES ('{text}', [1, {text.int % 100}])")
    with open_store(url, space=SMALL) as store:
        assert store.fetch([str(ids[3])]).vectors.tolist() == [[1, ids[3].int % 100]]
        read = [t for b in store.scan(batch_size=10) for t in b.vectors.ids.tolist()]
        assert read == [str(text) for text in ids]
        store.upsert(VectorSet([str(ids[0])], [[3, 4]], SMALL))
        assert store.delete([str(ids[1]), "not one"]) == 1
    assert sql("SELECT count(*), max(vector[2]) FROM docs WHERE vector[1] = 3") == [(1, 4.0)]


def test_a_view_is_only_read(places, sql):
    sql("CREATE VIEW hills AS SELECT number AS id, vec, name FROM places WHERE kind = 'hill'")
    url = places.replace("=places", "=hills")
    with open_store(url) as store:
        assert store.fetch_metadata(["7"]) == [{"name": "Aa"}]
        with pytest.raises(ReadOnlyStoreError, match="got a view"):
            store.delete(["7"])
    with pytest.raises(ReadOnlyStoreError, match="got a view"):
        open_store(url, space=SMALL)


def test_a_column_of_lists_has_the_length_of_its_rows(url, sql):
    sql("CREATE TABLE docs (id INTEGER, embedding FLOAT[])")
    with pytest.raises(EmptyInputError, match="nobody knows how long"):
        open_store(url)
    with open_store(url, space=SMALL) as store:
        assert (store.count(), store.recorded) == (0, True)
    sql("INSERT INTO docs VALUES (1, [1, 2]), (2, [3, 4])")
    with open_store(url, space=SMALL) as store:
        store.upsert(VectorSet(["2"], [[5, 6]], SMALL))
        assert store.search([[5, 6]], k=1).ids.tolist() == [["2"]]
    sql("INSERT INTO docs VALUES (3, [1, 2, 3])")
    with open_store(url) as store:
        for read in (lambda: list(store.scan()), lambda: store.held(["3"])):
            with pytest.raises(CorruptStoreError, match=r"rows of (2, )?3 numbers"):
                read()
        (shown,) = store.scan_unchecked()
        assert (shown.ids, shown.vectors.tolist()) == (["1", "2"], [[1, 2], [5, 6]])
        assert shown.others == (("3", 3),)
        with pytest.raises(CorruptStoreError, match="rows of 2, 3 numbers"):
            store.search([[5, 6]], k=1)


def test_rows_that_nothing_is_similar_to_are_shown_and_never_found(url, sql):
    sql("CREATE TABLE docs (id VARCHAR PRIMARY KEY, embedding FLOAT[2], note VARCHAR)")
    sql(
        "INSERT INTO docs VALUES ('zero', [0, 0], ''), ('nan', ['nan'::FLOAT, 1], ''),"
        "('a', [1, 0], ''), ('inf', ['inf'::FLOAT, 1], ''),"
        "('null', [NULL, 1], ''), ('none', NULL, ''), ('', [1, 1], '')"
    )
    with open_store(url) as store:
        for queries in (np.ones((1, 2)), np.ones((9, 2))):
            assert store.search(queries, k=4).ids[0].tolist() == ["", "a", "", ""]
        shown = {text: b.vectors[0] for b in store.scan_unchecked(batch_size=1) for text in b.ids}
        assert set(shown) == {"zero", "nan", "a", "inf", "null", ""}
        assert np.isnan(shown["null"][0])
        with pytest.raises(InvalidVectorsError):
            list(store.scan(batch_size=2, cursor="after:=b"))


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ("(1, [1, 2]), (1, [3, 4])", DuplicateIdError, "1 that repeat in the column 'id'"),
        ("(1, [1, 2]), (NULL, [3, 4])", InvalidIdError, "1 rows without one"),
    ],
)
def test_ids_that_are_none(url, sql, rows, error, message):
    sql(f"CREATE TABLE docs (id INTEGER, embedding FLOAT[2]); INSERT INTO docs VALUES {rows}")
    with pytest.raises(error, match=message):
        open_store(url)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("a INTEGER, v FLOAT[2]", "", "only be the ids; got the columns a INTEGER.*&id=COLUMN"),
        ("id INTEGER, v INTEGER", "", "only be the vectors; .* &column=COLUMN"),
        ("id INTEGER, v FLOAT[2], w FLOAT[2]", "", "only be the vectors"),
        ("id INT, embedding FLOAT[2], vector FLOAT[2]", "", "2 of them: 'embedding', 'vector'"),
        ("id INT, uuid VARCHAR, v FLOAT[2]", "", "2 of them: 'id', 'uuid'.*&id=id"),
        ("id INT UNIQUE, n INT UNIQUE, v FLOAT[2]", "", "2 of them: 'id', 'n'.*&id=id"),
        ("id INTEGER, v FLOAT[2]", "&id=no", "a column 'no'"),
        ("id INTEGER, v FLOAT[2]", "&metadata=no", "a column 'no'"),
        ("id INTEGER, v FLOAT[2]", "&vector=id", "vectors in the column 'id'"),
    ],
)
def test_columns_that_cannot_be_told(url, sql, columns, options, message):
    sql(f"CREATE TABLE docs ({columns})")
    with pytest.raises(ParameterError, match=message):
        open_store(url + options)


def test_names_decide_only_between_columns_of_one_kind(url, sql):
    sql("CREATE TABLE docs (doc_id INT, id INT, v FLOAT[2], v_emb FLOAT[2], n INT UNIQUE)")
    sql("INSERT INTO docs VALUES (1, 2, [1, 2], [3, 4], 5)")
    with open_store(url) as store:  # a key of the table goes before any name
        (batch,) = store.scan()
    assert batch.vectors.ids.tolist() == ["5"]
    assert batch.vectors.matrix().tolist() == [[3, 4]]
    with open_store(f"{url}&id=id&column=v") as store:
        assert store.fetch(["2"]).matrix().tolist() == [[1, 2]]


def test_own_columns_are_known_whatever_is_added(url, sql):
    with open_store(url, space=SMALL) as store:
        store.upsert(VectorSet(["a"], [[1, 2]], SMALL))
    sql("ALTER TABLE docs ADD COLUMN vector FLOAT[2]")
    sql("ALTER TABLE docs ADD COLUMN uuid INT")
    with open_store(url) as store:
        assert store.fetch(["a"]).matrix().tolist() == [[1, 2]]
    with pytest.raises(ParameterError, match="'embedding', the first one of the collection"):
        open_store(f"{url}&vector=embedding")


def test_columns_named_in_the_url(url, sql):
    sql("CREATE TABLE docs (a INTEGER, v FLOAT[2], w FLOAT[3], cmetadata JSON, metadata VARCHAR)")
    sql(
        "INSERT INTO docs VALUES (1, [1, 2], NULL, '{\"x\": 5}', 'plain'),"
        "(2, [1, 2], NULL, '[1]', 'y')"
    )
    with open_store(f"{url}&id=a&column=v&metadata=cmetadata", space=SMALL) as store:
        assert store.fetch_metadata(["1"]) == [{"x": 5, "metadata": "plain"}]
        assert store.search([[1, 2]], k=2, where={"x": 5}).ids.tolist() == [["1", ""]]
        with open_store(f"{url}&id=a&column=v&vector=w", space=Space(model="w", dim=3)) as other:
            assert other.count() == 0
    with pytest.raises(UnknownNameError, match="store option"):
        open_store(f"{url}&idd=a")


# --- own tables ----------------------------------------------------------------------------------


def test_what_a_table_looks_like(url, sql, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(2), metadata=[{"year": 2020}, {}])
    assert sql("SELECT column_name, data_type FROM duckdb_columns() WHERE NOT internal") == [
        ("id", "VARCHAR"),
        ("embedding", "FLOAT[16]"),
        ("metadata", "JSON"),
    ]
    assert sql("SELECT id, metadata.year FROM docs ORDER BY id") == [
        ("row-0", "2020"),
        ("row-1", None),
    ]


def test_a_column_that_somebody_added_is_metadata(url, sql, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(2), metadata=[{"year": 2020}, {}])
    sql("ALTER TABLE docs ADD COLUMN lang VARCHAR DEFAULT 'de'")
    with open_store(url) as store:
        assert store.fetch_metadata(["row-0", "row-1"]) == [
            {"year": 2020, "lang": "de"},
            {"lang": "de"},
        ]
        store.upsert(rows(1), metadata=[{"lang": "fr", "month": 5}])
        assert store.fetch_metadata(["row-0"]) == [{"month": 5, "lang": "fr"}]
        assert store.search(rows(1).vectors, k=2, where={"lang": "de"}).ids[0, 0] == "row-1"


def test_numbers_beyond_a_float_are_told_apart(url, rows):
    large = 2**53
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(3), metadata=[{"n": large}, {"n": large + 1}, {"n": float(large)}])
        query = rows(1).vectors
        for value, expected in ((large, {"row-0", "row-2"}), (large + 1, {"row-1"})):
            found = store.search(query, k=3, where={"n": value}).ids[0].tolist()
            assert set(found) - {""} == expected


def test_a_second_vector_leaves_the_first_alone(url, sql, rows):
    other = Space(model="other", dim=2)
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(3), metadata=[{"n": n} for n in range(3)])
    with open_store(f"{url}&vector=v2", space=other) as second:
        second.upsert(VectorSet(["row-1", "new"], [[1, 2], [3, 4]], other), notes={"a": "b"})
        second.upsert(VectorSet(["row-1"], [[5, 6]], other), metadata=[{"n": 9}])
        assert second.fetch_metadata(["row-1", "new"]) == [{"n": 9}, {}]
        assert second.delete(["new", "row-0"]) == 1
    with open_store(url) as store:
        assert store.count() == 3
        assert store.notes() == {}
        assert store.fetch(["row-1"]).vectors.tolist() == rows(3).vectors[1:2].tolist()
    with pytest.raises(ParameterError, match=r"'embedding', the first one .* leave &vector= out"):
        open_store(f"{url}&vector=embedding")
    with pytest.raises(MissingCollectionError, match="by the URL without &vector="):
        open_store(f"{url.replace('docs', 'none')}&vector=v2", space=other)
    assert sql("SELECT count(*) FROM docs") == [(4,)]


def test_a_name_moves_in_one_transaction(url, sql, rows):
    urls = [url.replace("docs", name) for name in ("old", "new", "Docs")]
    with open_store(urls[0], space=SPACE) as old, open_store(urls[1], space=SPACE) as new:
        old.upsert(rows(3))
        new.upsert(rows(4))
        with pytest.raises(ParameterError, match="'new', which exists"):
            new.take_name("old", former="new")
        assert new.take_name("old", former="old before") == "old before"
        assert new.take_name("old", former="x") == ""
        assert new.url == urls[0]
        assert new.count() == 4
    with open_store(urls[0].replace("=old", "=old%20before")) as old:
        assert old.recorded
        assert old.count() == 3
        assert old.take_name("old", former="new") == "new"  # and back again
    assert sql("SELECT table_name, estimated_size FROM duckdb_tables() ORDER BY 1") == [
        ("new", 4),
        ("old", 3),
    ]


# --- bad places ----------------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_not_made(url, tmp_path):
    with pytest.raises(MissingCollectionError):
        open_store(url)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(MissingFileError, match="Cannot open file"):
        open_store(url.replace("one.duckdb", "no/one.duckdb"), space=SPACE)


@pytest.mark.parametrize("content", [b"x" * 5_000, b"SQLite format 3\0" * 512])
def test_another_programs_file(url, tmp_path, content):
    (tmp_path / "one.duckdb").write_bytes(content)
    with pytest.raises(NotAStoreError, match="of something else"):
        open_store(url, space=SPACE)
    assert (tmp_path / "one.duckdb").read_bytes() == content
    with pytest.raises(NotAStoreError):
        open_store(f"duckdb:///{tmp_path}?collection=docs", space=SPACE)


def test_damage_is_noticed(url, tmp_path, rows):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(5_000))
    path = tmp_path / "one.duckdb"
    whole = path.read_bytes()
    generator = random.Random(0)  # noqa: S311 - places, not secrets
    seen = set()
    for _ in range(12):
        damaged = bytearray(whole)
        place = generator.randrange(0, len(whole) - 600)
        damaged[place : place + 600] = generator.randbytes(600)
        path.write_bytes(damaged)
        try:
            with open_store(url) as store:
                ids = [text for batch in store.scan() for text in batch.vectors.ids.tolist()]
                assert len(ids) == 5_000  # an unused block
        except (CorruptStoreError, NotAStoreError) as error:
            seen.add(type(error))
    assert CorruptStoreError in seen


def test_a_file_that_another_process_has_open(url, rows, start):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(3))
    holder = start("store = open_store(url)\nprint('open', flush=True)\nsys.stdin.readline()", url)
    assert holder.stdout.readline() == "open\n"
    with pytest.raises(StoreBusyError, match="another process that holds it"):
        open_store(url)
    holder.communicate("\n", timeout=60)
    with open_store(url) as store:
        assert store.count() == 3


def test_a_file_that_this_process_has_open_otherwise(url, rows, tmp_path):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(3))
    with (
        duckdb.connect(str(tmp_path / "one.duckdb"), read_only=True),
        pytest.raises(StoreBusyError, match="close the other connection"),
    ):
        open_store(url)


WRITES_FOR_EVER = """
store = open_store(url, space=space)
batch = int(sys.argv[2])
while True:
    store.upsert(rows(300, f"b{batch}", seed=batch), notes={"cursor": str(batch)})
    print(batch, flush=True)
    batch += 1
"""


def test_a_writer_that_is_killed_leaves_whole_batches(url, start):
    generator = random.Random(0)  # noqa: S311 - moments, not secrets
    first = 0
    for _ in range(3):
        writer = start(WRITES_FOR_EVER, url, str(first))
        for _ in range(generator.randint(1, 4)):
            said = int(writer.stdout.readline())
        time.sleep(generator.random() * 0.02)  # somewhere inside a batch
        writer.send_signal(signal.SIGKILL)
        out, errors = writer.communicate(timeout=60)
        assert errors == ""
        said = max([said, *map(int, out.split())])
        with open_store(url) as store:
            cursor = int(store.notes()["cursor"])
            assert cursor in {said, said + 1}  # nothing that was reported is lost
            assert store.count() == 300 * (cursor + 1)
        first = cursor + 1


FULL = """
import resource
store = open_store(url)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
try:
    store.upsert(rows(9_000, "new"), notes={"cursor": "1"})
except Exception as error:
    print(type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(store.count(), store.notes())
store.upsert(rows(1, "more"))
print(store.count())
"""


def test_a_disk_that_refuses_to_grow_keeps_nothing_of_the_batch(url, rows, start):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(30))
    out, errors = start(FULL, url).communicate(timeout=60)
    assert (out.splitlines(), errors) == (["StoreFullError", "30 {}", "31"], "")
    with open_store(url) as store:
        assert store.count() == 31


AS_NOBODY = """
import os
import duckdb, pyarrow, faiss, isthmus.stores.duckdb, isthmus.neighbors
try:
    import pandas  # DuckDB asks for it where it is installed
except ImportError:
    pass
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
try:
    open_store(url.replace("docs", "new"), space=space)
except Exception as error:
    print(type(error).__name__)
"""


def test_a_file_that_may_only_be_read(url, tmp_path, rows, start):
    with open_store(url, space=SPACE) as store:
        store.upsert(rows(30))
    folder = Path(tempfile.mkdtemp())  # pytest's own folders may not be entered by another user
    try:
        path = shutil.copy(tmp_path / "one.duckdb", folder)
        os.chmod(path, 0o444)  # noqa: PTH101 - a text
        folder.chmod(0o555)
        process = start(AS_NOBODY, f"duckdb:///{path}?collection=docs")
        out, errors = process.communicate(timeout=60)
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)
    assert (out.splitlines(), errors) == (["30 (1, 2)"] + ["ReadOnlyStoreError"] * 3, "")


def test_the_client_is_not_installed(url, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'isthmus\[duckdb\]'"):
        open_store(url, space=SPACE)


@pytest.mark.parametrize("kind", ["BIGINT", "UTINYINT", "VARCHAR", "DOUBLE"])
def test_a_scan_of_numbers_has_every_row_once(tmp_path, kind):
    path = tmp_path / "numbers.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute(f"CREATE TABLE docs (id {kind} PRIMARY KEY, embedding FLOAT[2])")
        database.execute("INSERT INTO docs SELECT range, [range + 1, 1] FROM range(150)")
    with open_store(f"duckdb:///{path}?collection=docs") as store:
        for batch_size in (1, 7, 1_000):
            batches = list(store.scan(batch_size=batch_size))
            ids = [text for batch in batches for text in batch.vectors.ids.tolist()]
            assert sorted(map(float, ids)) == list(range(150))
            assert [len(batch.vectors) for batch in batches[:-1]] == [batch_size] * (
                len(batches) - 1
            )


def test_numbers_of_more_digits_than_a_float_are_written_back_as_they_were(tmp_path):
    path = tmp_path / "money.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute(
            "CREATE TABLE docs (id INT PRIMARY KEY, embedding FLOAT[2], huge HUGEINT, "
            "sum DECIMAL(20,2), bits UBIGINT, price DECIMAL(10,2))"
        )
        database.execute(
            "INSERT INTO docs VALUES (1, [1, 2], 170141183460469231731687303715884105727, "
            "123456789012345678.12, 18446744073709551615, 12.30)"
        )
        before = database.execute("SELECT * FROM docs").fetchall()
    with open_store(f"duckdb:///{path}?collection=docs", space=Space(model="m", dim=2)) as store:
        (batch,) = store.scan()
        assert batch.metadata[0]["sum"] == "123456789012345678.12"
        assert batch.metadata[0]["price"] == 12.3
        store.upsert(batch.vectors, metadata=batch.metadata)
        with pytest.raises(InputError, match="'sum'"):
            store.upsert(batch.vectors, metadata=[{"sum": "12 euros"}])
    with duckdb.connect(str(path)) as database:
        assert database.execute("SELECT * FROM docs").fetchall() == before
