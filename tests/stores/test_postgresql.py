"""PostgreSQL: tables of other programs, indexes, rights, failures of a real server."""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import psycopg
import pytest

from isthmus.errors import (
    AccessDeniedError,
    CorruptStoreError,
    DuplicateIdError,
    EmptyInputError,
    InputError,
    InvalidIdError,
    MissingCollectionError,
    MissingExtraError,
    ParameterError,
    ReadOnlyStoreError,
    SpaceMismatchError,
    StoreBusyError,
    StoreFullError,
    StoreUnreachableError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store
from isthmus.testing import store_suite

VARIABLE = "ISTHMUS_POSTGRESQL_SECRET"
SPACE = Space(model="m", dim=3)
DOCS = """
CREATE TABLE {name} (
    id bigint PRIMARY KEY, title text, year int, price numeric, rate real, day date, key uuid,
    tags text[], extra jsonb, raw bytea, good boolean, embedding vector(3), other vector(2)
)
"""
ROW = """
INSERT INTO {name} VALUES
(7, 'seven', 2020, 1.50, 0.1, '2020-01-02', '6b6f0f0e-1111-4222-8333-944444444444',
 '{{a,b}}', '{{"a": 1}}', '\\x00', true, '[1,0,0]', '[1,0]'),
(30, NULL, 2021, NULL, NULL, NULL, NULL, NULL, '"x"', NULL, false, '[0,2,0]', NULL),
(4, 'four', 2021, 2, 1, NULL, NULL, NULL, NULL, NULL, NULL, '[1,1,0]', NULL),
(5, 'no vector', 2021, 2, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""


@pytest.fixture(autouse=True)
def secret(postgres_server, monkeypatch):
    monkeypatch.setenv(VARIABLE, postgres_server.password)


@pytest.fixture
def sql(postgres_server) -> Iterator[Callable[..., list[Any]]]:
    with postgres_server.connect(autocommit=True) as connection:

        def run(text: str, *values: object) -> list[Any]:
            cursor = connection.execute(text, values or None)
            return cursor.fetchall() if cursor.description else []

        yield run


@pytest.fixture
def name() -> str:
    return f"t_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def url(postgres_server, name) -> str:
    return f"{postgres_server.dsn}?collection={name}"


@pytest.fixture
def docs(sql, name, url) -> str:
    """The URL of a table that another program made."""
    sql(DOCS.format(name=name))
    sql(ROW.format(name=name))
    return f"{url}&column=embedding"


def ones(*ids: str, space: Space = SPACE) -> VectorSet:
    return VectorSet(list(ids), np.ones((len(ids), space.dim)), space)


class TestTablesOfOthers:
    def test_without_a_space_it_is_read_and_nothing_is_written(self, docs, sql, name):
        with open_store(docs) as store:
            assert (store.recorded, store.count(), store.space.dim) == (False, 3, 3)
            (batch,) = store.scan()
            assert batch.vectors.ids.tolist() == ["4", "7", "30"]
            assert batch.vectors.vectors.tolist() == [[1, 1, 0], [1, 0, 0], [0, 2, 0]]
            assert store.capabilities.scan_order == "key"
            with pytest.raises(SpaceMismatchError):
                store.upsert(ones("1"))
        assert sql("SELECT count(*) FROM pg_description WHERE objoid = %s::regclass", name) == [
            (0,)
        ]

    def test_a_space_is_recorded_beside_the_comment_of_the_user(self, docs, sql, name):
        sql(f"COMMENT ON COLUMN {name}.embedding IS 'Of the titles.'")
        for wrong in (Space(model="m", dim=4), Space(model="m", dim=2)):
            with pytest.raises(SpaceMismatchError, match="dimension 3"):
                open_store(docs, space=wrong)
        open_store(docs, space=SPACE).close()
        with open_store(docs) as store:
            assert store.recorded
            assert store.space == SPACE
        (text,) = sql("SELECT col_description(%s::regclass, 12)", name)[0]
        assert text.startswith('Of the titles.\n[isthmus] {"space"')
        with pytest.raises(SpaceMismatchError, match="model"):
            open_store(docs, space=Space(model="other", dim=3))
        sql(f"COMMENT ON COLUMN {name}.embedding IS '[isthmus] broken'")
        with pytest.raises(CorruptStoreError, match="'embedding'"):
            open_store(docs)

    def test_other_columns_are_the_metadata(self, docs):
        with open_store(docs) as store:
            first, second = store.fetch_metadata(["7", "30"])
        assert first == {
            "title": "seven",
            "year": 2020,
            "price": 1.5,
            "rate": 0.1,
            "day": "2020-01-02",
            "key": "6b6f0f0e-1111-4222-8333-944444444444",
            "tags": ["a", "b"],
            "extra": {"a": 1},
            "good": True,
        }
        assert second["title"] is None
        assert second["extra"] == "x"

    @pytest.mark.parametrize(
        ("where", "ids"),
        [
            ({"title": "seven"}, {"7"}),
            ({"title": 7}, set()),
            ({"title": None}, {"30"}),
            ({"title": "se\0ven"}, set()),
            ({"year": 2021}, {"30", "4"}),
            ({"year": 2021.0, "title": "four"}, {"4"}),
            ({"year": 2020.5}, set()),
            ({"year": True}, set()),
            ({"year": "2020"}, set()),
            ({"year": 2**62}, set()),
            ({"price": 1.5}, {"7"}),
            ({"price": "1.5"}, set()),
            ({"rate": 0.1}, {"7"}),
            ({"rate": 0.1 + 1e-9}, set()),
            ({"day": "2020-01-02"}, {"7"}),
            ({"day": "no day"}, set()),
            ({"day": 3}, set()),
            ({"key": "6b6f0f0e-1111-4222-8333-944444444444"}, {"7"}),
            ({"key": "x"}, set()),
            ({"good": True}, {"7"}),
            ({"good": 1}, set()),
            ({"tags": "a"}, set()),
            ({"extra": "x"}, {"30"}),
            ({"extra": None}, {"4"}),
            ({"absent": None}, set()),
            ({"raw": None}, set()),
            ({"id": 7}, set()),
        ],
    )
    def test_filters_compare_columns_by_their_types(self, docs, where, ids):
        with open_store(docs) as store:
            found = store.search(np.ones((1, 3)), k=4, where=where).ids[0].tolist()
        assert set(found) - {""} == ids

    def test_rows_are_replaced_and_added_and_the_rest_stays(self, docs, sql, name):
        with open_store(docs, space=SPACE) as store:
            metadata = [{"title": "new", "tags": ["z"], "extra": {"b": [1]}}, {}]
            store.upsert(ones("7", "99"), metadata=metadata)
            assert store.fetch(["7", "99"]).vectors.tolist() == [[1, 1, 1]] * 2
            assert store.fetch_metadata(["7"])[0]["day"] == "2020-01-02"
            assert store.fetch_metadata(["7"])[0]["extra"] == {"b": [1]}
            store.upsert(ones("5"))  # a row whose vector was missing
            assert store.count() == 5
            assert store.delete(["99", "x", "12345678901234567890"]) == 1
            with pytest.raises(InputError, match=r"columns of .*'no'"):
                store.upsert(ones("7"), metadata=[{"no": 1}])
            with pytest.raises(InputError, match="invalid input syntax"):
                store.upsert(ones("7"), metadata=[{"year": "x"}])
            for bad in ("007", "x", "3.0", "99999999999999999999"):
                with pytest.raises(InvalidIdError, match=r"'id' \(bigint\)"):
                    store.upsert(ones("7", bad))
        assert sql(f"SELECT title, year FROM {name} WHERE id IN (5, 7) ORDER BY id") == [
            ("no vector", 2021),
            ("new", 2020),
        ]

    def test_two_columns_of_vectors_must_be_told_apart(self, docs, url):
        with pytest.raises(ParameterError, match=r"&column=NAME; .*'embedding', 'other'"):
            open_store(url)
        with pytest.raises(ParameterError, match="got text"):
            open_store(f"{url}&column=title")
        with pytest.raises(ParameterError, match="'nothing', which is none"):
            open_store(f"{url}&column=nothing")
        with open_store(f"{docs}&vector=other") as store:
            assert (store.count(), store.space.dim) == (1, 2)
            assert store.search([[1, 0]], k=1).ids.tolist() == [["7"]]

    @pytest.mark.parametrize(
        ("kind", "ids"),
        [
            ("uuid", ["6b6f0f0e-1111-4222-8333-944444444444", str(uuid.UUID(int=5))]),
            ("text", ["é; DROP", 'a"b']),
            ("varchar(5)", ["a", "b c"]),
            ("int", ["-5", "70"]),
            ("numeric", ["1.50", "2"]),
            ("date", ["2020-01-02", "2021-01-02"]),
        ],
    )
    def test_ids_of_any_type_come_back(self, sql, name, url, kind, ids):
        sql(f"CREATE TABLE {name} (key {kind} PRIMARY KEY, v vector(3))")
        with open_store(url, space=SPACE) as store:
            store.upsert(ones(*ids))
            assert store.fetch(ids).ids.tolist() == ids
            batches = list(store.scan(batch_size=1))
            assert sorted(b.vectors.ids[0] for b in batches) == sorted(ids)
            assert store.delete(ids) == 2

    def test_ids_too_long_for_the_column_are_not_cut(self, sql, name, url):
        sql(f"CREATE TABLE {name} (key varchar(3) PRIMARY KEY, v vector(3))")
        with open_store(url, space=SPACE) as store, pytest.raises(InvalidIdError):
            store.upsert(ones("abcd"))

    def test_a_key_of_two_columns_is_refused_with_the_way_out(self, sql, name, url):
        sql(f"CREATE TABLE {name} (a int, b int UNIQUE, v vector(3), PRIMARY KEY (a, b))")
        with pytest.raises(ParameterError, match=r"key of several columns.*&id=NAME"):
            open_store(url)
        with (
            open_store(f"{url}&id=b", space=SPACE) as store,
            pytest.raises(InputError, match=r"'a'|\"a\""),
        ):
            store.upsert(ones("1"))  # the other half of the key is required
        with (
            open_store(f"{url}&id=a", space=SPACE) as store,
            pytest.raises(UnsupportedOperationError, match="CREATE UNIQUE INDEX"),
        ):
            store.upsert(ones("1"))

    def test_ids_that_repeat_are_not_lost_between_batches(self, sql, name, url):
        sql(f"CREATE TABLE {name} (id int, v vector(3))")
        sql(f"INSERT INTO {name} SELECT n / 2, '[1,1,1]' FROM generate_series(0, 9) n")
        with open_store(url) as store:
            assert sum(len(b.ids) for b in store.scan_unchecked(batch_size=3)) == 10
            with pytest.raises(DuplicateIdError):
                list(store.scan(batch_size=3))
            sql(f"INSERT INTO {name} VALUES (NULL, '[1,1,1]')")
            with pytest.raises(InvalidIdError, match="an id in every row"):
                list(store.scan())

    def test_vectors_of_two_lengths(self, sql, name, url):
        sql(f"CREATE TABLE {name} (id int PRIMARY KEY, v vector)")
        with pytest.raises(EmptyInputError, match="nobody knows how long"):
            open_store(url)
        with open_store(url, space=SPACE) as store:
            store.upsert(ones("1"))
            sql(f"INSERT INTO {name} VALUES (2, '[1,1]')")
            with pytest.raises(CorruptStoreError, match=r"rows of 2, 3 numbers.*GROUP BY 1"):
                list(store.scan())
            with pytest.raises(CorruptStoreError, match="GROUP BY 1"):
                store.fetch(["1", "2"])
            one, two = store.scan_unchecked(batch_size=1)
            assert (one.ids, one.vectors.tolist(), one.others) == (["1"], [[1, 1, 1]], ())
            assert (two.ids, two.vectors.shape, two.others) == ([], (0, 3), (("2", 2),))
            with pytest.raises(CorruptStoreError, match="GROUP BY 1"):
                store.search(np.ones((1, 3)), k=2)

    def test_zero_vectors_are_not_found_by_the_cosine(self, sql, name, url):
        sql(f"CREATE TABLE {name} (id int PRIMARY KEY, v vector(3))")
        sql(f"INSERT INTO {name} VALUES (1, '[0,0,0]'), (2, '[1,0,0]')")
        with open_store(url) as store:
            found = store.search(np.ones((1, 3)), k=2)
            assert found.ids.tolist() == [["2", ""]]

    @pytest.mark.usefixtures("docs")
    def test_views_are_read_only(self, sql, name, url):
        sql(f"CREATE VIEW {name}_v AS SELECT id, title, embedding FROM {name}")
        sql(f"CREATE MATERIALIZED VIEW {name}_m AS SELECT id, title, embedding FROM {name}")
        for view in (f"{name}_v", f"{name}_m"):
            with open_store(url.replace(name, view), space=SPACE) as store:
                assert store.count() == 3
                assert store.search([[1, 0, 0]], k=1, where={"title": "seven"}).ids[0, 0] == "7"
                with pytest.raises(ReadOnlyStoreError, match="a view"):
                    store.upsert(ones("1"))
                with pytest.raises(ReadOnlyStoreError, match="a view"):
                    store.delete(["7"])

    def test_tables_without_vectors(self, sql, name, url):
        sql(f"CREATE TABLE {name} (id int PRIMARY KEY, title text)")
        with pytest.raises(ParameterError, match="0 of them"):
            open_store(url)

    @pytest.mark.usefixtures("docs")
    def test_a_further_vector_in_their_table(self, sql, name, url):
        sql(f"ALTER TABLE {name} DROP COLUMN other")
        other = Space(model="new", dim=2)
        with open_store(f"{url}&vector=new", space=other) as store:
            store.upsert(ones("7", "30", space=other))
            assert store.count() == 2
            assert store.delete(["30"]) == 1
        with open_store(url) as store:  # still the only first vector
            assert store.count() == 3
            assert store.fetch(["30"]).vectors.tolist() == [[0, 2, 0]]

    def test_names_are_quoted(self, sql, url, name):
        odd = f'{name} "x"; %s {{}}'
        quoted = '"' + odd.replace('"', '""') + '"'
        sql(f'CREATE SCHEMA "S {name}"')
        columns = '"the id" text PRIMARY KEY, "V {}" vector(3), "a%s" int'
        sql(f'CREATE TABLE "S {name}".{quoted} ({columns})')
        parts = (f"{url.partition('?')[0]}?collection=", "&schema=S%20", name)
        address = parts[0] + odd.replace("%", "%25").replace(" ", "%20").replace(";", "%3B")
        with open_store(address + "".join(parts[1:]), space=SPACE) as store:
            store.upsert(ones("a", "b"), metadata=[{"a%s": 1}, {"a%s": 2}], notes={"x": "1"})
            assert store.search(np.ones((1, 3)), k=2, where={"a%s": 2}).ids.tolist() == [["b", ""]]
            assert store.notes() == {"x": "1"}

    def test_columns_of_unusual_types(self, sql, name, url):
        sql(f"CREATE TYPE {name}_mood AS ENUM ('sad', 'ok')")
        sql(f"CREATE DOMAIN {name}_count AS int CHECK (VALUE > 0)")
        sql(
            f"CREATE TABLE {name} (id {name}_count PRIMARY KEY, mood {name}_mood, n {name}_count, "
            'ip inet, j json, "100 %" text, twice int GENERATED ALWAYS AS (2) STORED, '
            "need int NOT NULL DEFAULT 5, v vector(3))"
        )
        fields = {"mood": "ok", "n": 3, "ip": "1.2.3.4", "j": {"a": 1}, "100 %": "q"}
        with open_store(url, space=SPACE) as store:
            store.upsert(ones("1"), metadata=[fields])
            assert store.fetch_metadata(["1"]) == [{**fields, "twice": 2, "need": 5}]
            for key in ("mood", "n", "ip", "100 %"):
                found = store.search(np.ones((1, 3)), k=1, where={key: fields[key]})
                assert found.ids.tolist() == [["1"]]
            with pytest.raises(InputError, match="invalid input value for enum"):
                store.upsert(ones("1"), metadata=[{"mood": "no mood"}])
            with pytest.raises(InputError, match="'twice'"):
                store.upsert(ones("1"), metadata=[{"twice": 4}])

    def test_identities_and_partitions(self, sql, name, url):
        sql(
            f"CREATE TABLE {name} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
            "v vector(3)) PARTITION BY RANGE (id)"
        )
        sql(f"CREATE TABLE {name}_1 PARTITION OF {name} FOR VALUES FROM (0) TO (100)")
        with open_store(url, space=SPACE) as store:
            store.upsert(ones("1", "2"), notes={"a": "b"})
            store.upsert(ones("2", "3"))
            assert (store.count(), store.notes()) == (3, {"a": "b"})
            with pytest.raises(InputError, match="no partition"):
                store.upsert(ones("100"))

    def test_numbers_come_back_as_they_were(self, url):
        fields = {"large": 1e308, "small": 5e-324, "whole": 2**63 - 1, "n": [-1e25, {"a": 2.5}]}
        with open_store(url, space=SPACE) as store:
            store.upsert(ones("a"), metadata=[fields])
            assert store.fetch_metadata(["a"]) == [fields]
            assert store.search(np.ones((1, 3)), k=1, where={"large": 1e308}).ids[0, 0] == "a"


class TestIndexes:
    def conforms(self, postgres_server, check, options):
        def make(space):
            address = f"{postgres_server.dsn}?collection={uuid.uuid4().hex}{options}"
            store = open_store(address, space=space)
            assert not store.capabilities.exact_search
            return store

        check(make)

    @pytest.mark.parametrize("check", store_suite.CHECKS, ids=store_suite.name)
    def test_with_hnsw_it_conforms_as_an_approximate_store(self, postgres_server, check):
        self.conforms(postgres_server, check, "&index=hnsw")

    def test_an_index_that_is_there_is_noticed(self, docs, sql, name):
        sql(f"CREATE INDEX ON {name} USING hnsw (embedding vector_l2_ops)")
        with open_store(docs) as store:
            assert store.space.metric == "l2"
            assert not store.capabilities.exact_search
            assert store.search([[1, 0, 0]], k=1).ids.tolist() == [["7"]]
        with open_store(f"{docs}&index=exact") as store:
            assert store.capabilities.exact_search
            found = store.search([[1, 0, 0]], k=2)
            assert found.native_scores.tolist() == [[0, 1]]
        with pytest.raises(SpaceMismatchError, match="metric l2"):
            open_store(docs, space=SPACE)

    def test_it_is_used(self, sql, url, name):
        space = Space(model="m", dim=8)
        rows = VectorSet(
            [str(n) for n in range(3_000)],
            np.random.default_rng(0).standard_normal((3_000, 8)),
            space,
        )
        with open_store(f"{url}&index=hnsw", space=space) as store:
            store.upsert(rows, metadata=[{"odd": n % 2 == 1} for n in range(3_000)])
            sql(f"ANALYZE {name}")
            before = self.scans(sql, name)
            found = store.search(rows.vectors[:5], k=900, where={"odd": True})
            assert (found.ids != "").all()  # far more than the width of the search
            assert store.search(rows.vectors[:5], k=1).ids[:, 0].tolist() == list("01234")
        with open_store(f"{url}&index=none") as store:
            exact = store.search(rows.vectors[:5], k=10)
        assert self.scans(sql, name) > before
        with open_store(f"{url}&ef_search=10") as store:
            assert store.search(rows.vectors[:5], k=10).ids.shape == exact.ids.shape

    def scans(self, sql, name):
        return sql(
            "SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE relname = %s "
            "AND indexrelname LIKE '%%embedding%%'",
            name,
        )[0][0]

    def test_a_table_that_is_there_gets_no_index_by_itself(self, docs):
        with pytest.raises(
            ParameterError, match=r"CREATE INDEX CONCURRENTLY ON .*vector_cosine_ops"
        ):
            open_store(f"{docs}&index=hnsw", space=SPACE)

    def test_an_exact_search_stays_exact_when_an_index_comes_later(self, url, sql, name):
        with open_store(url, space=SPACE) as store:
            store.upsert(ones("a"))
            sql(f"CREATE INDEX ON {name} USING hnsw (embedding vector_cosine_ops)")
            before = self.scans(sql, name)
            assert store.search(np.ones((1, 3)), k=1).ids.tolist() == [["a"]]
            assert self.scans(sql, name) == before

    @pytest.mark.parametrize("index", ["", "&index=hnsw"])
    def test_halfvec(self, url, index):
        space = Space(model="m", dim=24, metric="l2")
        values = np.random.default_rng(0).standard_normal((200, 24)).astype(np.float32)
        rows = VectorSet([str(n) for n in range(200)], values, space)
        with open_store(f"{url}&type=halfvec{index}", space=space) as store:
            store.upsert(rows)
            able = store.capabilities
            assert (able.storage, able.exact_search) == ("float16", not index)
            kept = store.fetch(rows.ids.tolist()).matrix()
            assert 0 < np.abs(kept - values).max() <= able.read_back_error * np.abs(values).max()
            found = store.search(values[:5], k=3)
            assert found.ids[:, 0].tolist() == list("01234")
            expected = -np.linalg.norm(kept[:5].astype(float) - values[:5].astype(float), axis=1)
            np.testing.assert_allclose(found.scores[:, 0], expected, rtol=1e-4)
            with pytest.raises(InputError, match="out of range"):
                store.upsert(VectorSet(["big"], np.full((1, 24), 1e6), space))

    @pytest.mark.parametrize(
        ("dim", "options"),
        [(16_001, ""), (2_001, "&index=hnsw"), (4_001, "&index=hnsw&type=halfvec")],
    )
    def test_lengths_that_pgvector_does_not_have(self, url, dim, options):
        with pytest.raises(ParameterError, match="at most"):
            open_store(url + options, space=Space(model="m", dim=dim))
        with pytest.raises(MissingCollectionError):
            open_store(url)


class TestUrls:
    @pytest.mark.parametrize(
        "options", ["&index=ivf", "&type=bit", "&ef_search=0", "&ef_search=x", "&ef_search=1001"]
    )
    def test_bad_options(self, url, options):
        with pytest.raises(ParameterError, match="change the URL"):
            open_store(url + options, space=SPACE)

    def test_long_names(self, postgres_server, url):
        with pytest.raises(ParameterError, match="63 bytes"):
            open_store(f"{postgres_server.dsn}?collection={'é' * 40}", space=SPACE)
        with open_store(url, space=SPACE) as store, pytest.raises(ParameterError, match="63 bytes"):
            store.take_name("x" * 64, former="y")

    def test_a_database_that_is_not_there(self, postgres_server):
        address = f"postgresql://isthmus@{postgres_server.url}/nothing?collection=x"
        with pytest.raises(MissingCollectionError, match="database 'nothing'"):
            open_store(address)

    def test_a_schema_that_is_not_there(self, url):
        with pytest.raises(MissingCollectionError):
            open_store(f"{url}&schema=nothing")
        with pytest.raises(MissingCollectionError):
            open_store(f"{url}&schema=nothing", space=SPACE)

    def test_a_further_vector_of_no_table(self, url):
        with pytest.raises(MissingCollectionError, match="first vector first"):
            open_store(f"{url}&vector=second", space=SPACE)


class TestNames:
    def test_a_name_that_moved_is_not_written_to_by_those_who_had_it(self, url, name):
        old = open_store(url, space=SPACE)
        new = open_store(f"{url}_new", space=Space(model="new", dim=3))
        assert new.take_name(name, former=f"{name}_old") == f"{name}_old"
        assert new.url == url
        for call in (old.count, lambda: old.upsert(ones("a")), lambda: list(old.scan())):
            with pytest.raises(MissingCollectionError, match="another one that has its name now"):
                call()
        with open_store(f"{url}_old") as former:
            assert former.space == SPACE
            with pytest.raises(ParameterError, match="is taken"):
                former.take_name(name, former=f"{name}_old")
            assert former.take_name(f"{name}_old", former="x") == ""
        old.close()
        new.close()

    def test_notes_follow_the_table(self, url, name):
        with open_store(url, space=SPACE) as store:
            store.upsert(ones("a"), notes={"cursor": "1"})
            assert store.take_name(f"{name}_2", former="x") == ""
            assert store.notes() == {"cursor": "1"}
        with open_store(url, space=SPACE) as again:
            assert again.notes() == {}

    def test_two_that_make_it_at_once(self, url):
        stores = []
        together = threading.Barrier(4)

        def make():
            together.wait()
            stores.append(open_store(url, space=SPACE))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(stores) == 4
        for store in stores:
            store.upsert(ones("a"))
            store.close()


@pytest.fixture
def role(sql, name, monkeypatch) -> Iterator[str]:
    """The name of a role that may log in, and nothing else; the secret is its own."""
    sql(f"CREATE ROLE {name}_r LOGIN PASSWORD 'pass word'")
    monkeypatch.setenv("OTHER_SECRET", "pass word")
    yield f"{name}_r"
    sql(f"DROP OWNED BY {name}_r")
    sql(f"DROP ROLE {name}_r")


class TestRights:
    def as_role(self, postgres_server, name, role, database="isthmus"):
        place = f"postgresql://{role}@{postgres_server.url}/{database}"
        return f"{place}?collection={name}&secret=OTHER_SECRET"

    def test_a_wrong_password_is_refused_at_once_and_shown_nowhere(self, url, monkeypatch):
        monkeypatch.setenv(VARIABLE, "hunter2-wrong")
        with pytest.raises(AccessDeniedError, match="ISTHMUS_POSTGRESQL_SECRET") as caught:
            open_store(url)
        said = f"{caught.value} {caught.value!r} {caught.value.__cause__}"
        assert "hunter2-wrong" not in said
        monkeypatch.delenv(VARIABLE)
        monkeypatch.delenv("PGPASSWORD", raising=False)
        with pytest.raises(AccessDeniedError):
            open_store(url)

    def test_the_secret_is_in_no_text_of_the_store(self, url, postgres_server):
        with open_store(url, space=SPACE) as store:
            assert postgres_server.password not in f"{store.url} {store!r} {store.info()}"

    def test_a_server_that_repeats_the_secret(self, docs, monkeypatch):
        with open_store(docs, space=SPACE) as store:
            monkeypatch.setattr(store._server, "_secret", "seven")
            with pytest.raises(InputError) as caught:
                store.upsert(ones("7"), metadata=[{"year": "seven"}])
            assert "seven" not in str(caught.value)
            assert "***" in str(caught.value)

    def test_no_right_at_all(self, docs, name, role, postgres_server):
        address = self.as_role(postgres_server, name, role) + "&column=embedding"
        with open_store(docs, space=SPACE):
            pass
        store = open_store(address)
        with pytest.raises(AccessDeniedError, match="permission denied for table"):
            store.count()
        store.close()

    def test_a_role_that_may_only_read(self, docs, sql, name, role, postgres_server):
        address = self.as_role(postgres_server, name, role) + "&column=embedding"
        sql(f"GRANT SELECT ON {name} TO {role}")
        with open_store(address) as store:
            assert store.count() == 3
            assert not store.recorded
        with pytest.raises(ReadOnlyStoreError, match="write the space into the comment"):
            open_store(address, space=SPACE)
        open_store(docs, space=SPACE).close()
        with open_store(address) as store:
            assert store.recorded
            assert store.search([[1, 0, 0]], k=1).ids.tolist() == [["7"]]
            with pytest.raises(ReadOnlyStoreError, match="write to the table"):
                store.upsert(ones("7"))
            with pytest.raises(ReadOnlyStoreError, match="write to the table"):
                store.delete(["7"])
            with pytest.raises(ReadOnlyStoreError, match="rename"):
                store.take_name("x", former="y")
        with pytest.raises(ReadOnlyStoreError, match="make the collection"):
            open_store(self.as_role(postgres_server, f"{name}_new", role), space=SPACE)

    def test_a_role_that_may_write_rows(self, docs, sql, name, role, postgres_server):
        open_store(docs, space=SPACE).close()
        sql(f"GRANT SELECT, INSERT, UPDATE ON {name} TO {role}")
        with open_store(self.as_role(postgres_server, name, role) + "&column=embedding") as store:
            store.upsert(ones("7", "100"))
            assert store.count() == 4

    def test_a_database_without_the_extension(self, sql, name, role, postgres_server):
        sql(f"CREATE DATABASE {name}_d")
        try:
            sql(f"GRANT ALL ON DATABASE {name}_d TO {role}")
            address = self.as_role(postgres_server, name, role, f"{name}_d")
            with pytest.raises(MissingCollectionError):
                open_store(address)
            own = address.replace(f"{role}@", "isthmus@").replace("OTHER_SECRET", VARIABLE)
            with pytest.raises(
                (AccessDeniedError, ReadOnlyStoreError), match="CREATE EXTENSION vector"
            ):
                open_store(address, space=SPACE)
            with open_store(own, space=SPACE) as store:  # an administrator: it is created
                store.upsert(ones("a"))
        finally:
            sql(f"DROP DATABASE {name}_d WITH (FORCE)")

    def test_an_extension_in_a_schema_of_its_own(self, sql, name, postgres_server):
        sql(f"CREATE DATABASE {name}_d")
        try:
            with psycopg.connect(
                f"{postgres_server.dsn.rpartition('/')[0]}/{name}_d",
                password=postgres_server.password,
                autocommit=True,
            ) as connection:
                connection.execute('CREATE SCHEMA "Ext"')
                connection.execute('CREATE EXTENSION vector SCHEMA "Ext"')
            address = f"{postgres_server.dsn.rpartition('/')[0]}/{name}_d?collection=docs"
            with open_store(f"{address}&index=hnsw", space=SPACE) as store:
                store.upsert(ones("a", "b"))
                assert store.search(np.ones((1, 3)), k=2).scores.tolist() == [[1, 1]]
        finally:
            sql(f"DROP DATABASE {name}_d WITH (FORCE)")


class TestFailures:
    def test_a_restart_between_two_requests_is_not_noticed(self, url, postgres_server):
        with open_store(url, space=SPACE) as store:
            store.upsert(ones("a"))
            postgres_server.restart()
            assert store.count() == 1

    def test_connections_that_others_end_are_made_again(self, url, sql):
        with open_store(url, space=SPACE) as store:
            sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'isthmus'"
            )
            assert store.count() == 0

    def test_rows_and_notes_are_one_whole(self, url, sql, name):
        with open_store(url, space=SPACE) as store:
            store.upsert(ones("a"), notes={"cursor": "1"})
            sql(f"ALTER TABLE {name} ADD CONSTRAINT few CHECK (id < 'm')")
            with pytest.raises(InputError, match='violates check constraint "few"'):
                store.upsert(ones("b", "z"), notes={"cursor": "2"})
            assert store.notes() == {"cursor": "1"}
            assert store.count() == 1

    def test_text_that_postgresql_cannot_hold(self, url):
        with open_store(url, space=SPACE) as store:
            with pytest.raises(InputError, match="can hold"):
                store.upsert(ones("a\0b"))
            with pytest.raises(InputError, match="can hold"):
                store.upsert(ones("a"), metadata=[{"a": "b\0"}])
            assert store.delete(["a\0b"]) == 0
            assert store.count() == 0

    @pytest.mark.parametrize(
        ("value", "read"),
        [
            ("'1e400'::numeric", "1" + "0" * 400),
            ("repeat('9', 5000)::numeric", "9" * 5_000),
            ("'0.1'::numeric", 0.1),
            ("""'{"a": 1e400}'::jsonb""", {"a": "1" + "0" * 400}),
            ("'NaN'::float8", "NaN"),
        ],
    )
    def test_numbers_that_no_float_holds(self, url, sql, name, value, read):
        sql(f"CREATE TABLE {name} AS SELECT 1 AS id, '[1,2,3]'::vector(3) AS e, {value} AS x")
        with open_store(url) as store:
            assert store.fetch_metadata(["1"]) == [{"x": read}]

    def test_more_levels_than_can_be_read(self, url, sql, name):
        sql(f"CREATE TABLE {name} (id int PRIMARY KEY, e vector(3), x jsonb)")
        deep = "(repeat('[', 5000) || repeat(']', 5000))::jsonb"
        sql(f"INSERT INTO {name} VALUES (1, '[1,2,3]', {deep})")
        with open_store(url) as store, pytest.raises(InputError, match="row '1' with fewer levels"):
            list(store.scan())

    def test_a_table_that_somebody_holds(self, url, sql, name, monkeypatch):
        monkeypatch.setattr("isthmus.stores._asking.PAUSES", (0.0,))
        with open_store(f"{url}&timeout=0.2", space=SPACE) as store:
            sql("BEGIN")
            sql(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StoreBusyError, match="raise &timeout="):
                store.count()
            sql("ROLLBACK")
            assert store.count() == 0

    def test_a_table_that_was_dropped(self, url, sql, name):
        with open_store(url, space=SPACE) as store:
            sql(f"DROP TABLE {name}")
            with pytest.raises(MissingCollectionError):
                store.count()

    def test_a_full_disk(self, url, sql, name):
        with open_store(url, space=SPACE) as store:
            sql(
                f"CREATE FUNCTION {name}_full() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$"
            )
            sql(
                f"CREATE TRIGGER full_disk AFTER INSERT ON {name} FOR EACH STATEMENT "
                f"EXECUTE FUNCTION {name}_full()"
            )
            with pytest.raises(StoreFullError, match="no space left"):
                store.upsert(ones("a"))
            sql(f"DROP TRIGGER full_disk ON {name}")
            store.upsert(ones("a"))
            assert store.count() == 1

    def test_nobody_listens(self, monkeypatch):
        monkeypatch.setattr("isthmus.stores._asking.PAUSES", (0.0,))
        with pytest.raises(StoreUnreachableError, match=r"127\.0\.0\.1:1"):
            open_store("postgresql://isthmus@127.0.0.1:1/isthmus?collection=x")

    def test_many_threads_share_one_store(self, url):
        with open_store(url, space=SPACE) as store:

            def work(thread: int) -> None:
                for row in range(10):
                    store.upsert(ones(f"{thread}-{row}", "shared"))
                    store.search(np.ones((1, 3)), k=3)

            threads = [threading.Thread(target=partial(work, n)) for n in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert store.count() == 61


def test_without_the_client(url, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"isthmus\[postgresql"):
        open_store(url)
