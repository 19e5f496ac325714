"""Conversion into a table that its owner made: its own columns, and no record of a space."""

from __future__ import annotations

import uuid
from dataclasses import replace

import chromadb
import duckdb
import numpy as np
import pytest

from isthmus import Bridge, Pairs
from isthmus.errors import ParameterError, SpaceMismatchError
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore, open_store
from isthmus.workflows import (
    conversion_status,
    convert,
    cut_over,
    plan_conversion,
    record_space,
)

OLD = Space(model="old", dim=3)
NEW = Space(model="new", dim=4)
ROWS = 40


@pytest.fixture(scope="module")
def bridge():
    rng = np.random.default_rng(0)
    ids, rows = [f"p{row}" for row in range(60)], rng.standard_normal((60, 3))
    turned = rows @ np.linalg.qr(rng.standard_normal((4, 3)))[0].T
    pairs = Pairs.from_ids(VectorSet(ids, rows, OLD), VectorSet(ids, turned, NEW))
    return Bridge.fit(pairs, method="procrustes")


@pytest.fixture
def base(tmp_path):
    """URLs of a file with a table of somebody's own, whose space is recorded."""
    rows = np.random.default_rng(1).standard_normal((ROWS, 3)).astype(np.float32)
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE docs (id int PRIMARY KEY, title text, e float[3])")
        connection.executemany(
            "INSERT INTO docs VALUES (?, ?, ?)",
            [(row, f"title {row}", rows[row].tolist()) for row in range(ROWS)],
        )
        connection.execute("CREATE TABLE wide (id int PRIMARY KEY, title text, e float[4])")
    base = f"duckdb:///{tmp_path}/a.duckdb?collection="
    record_space(base + "docs", model="old")
    return base


def test_an_empty_table_of_ones_own_is_recorded_and_filled(base, bridge):
    plan = plan_conversion(base + "docs", base + "wide", bridge=bridge)
    assert (plan.exists, plan.target, plan.done) == (True, base + "wide", 0)
    with open_store(base + "wide") as store:
        assert not store.recorded
    assert convert(base + "docs", base + "wide", bridge=bridge).settled
    with open_store(base + "wide") as store:
        assert (store.recorded, store.own) == (True, False)
        assert (store.space.model, store.space.bridged_from) == ("new", bridge.hash)
        assert store.fetch_metadata(["7"]) == [{"title": "title 7"}]


def test_a_target_that_was_recorded_by_hand_says_where_its_rows_come_from(base, bridge):
    record_space(base + "wide", model="new")
    assert convert(base + "docs", base + "wide", bridge=bridge).settled
    with open_store(base + "wide") as store:
        assert store.space.bridged_from == bridge.hash
    assert convert(base + "docs", base + "wide", bridge=bridge).settled


def test_rows_that_nobody_named_are_refused_and_nothing_is_recorded(base, bridge, tmp_path):
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("INSERT INTO wide VALUES (1, 'theirs', [1, 2, 3, 4])")
    for job in (convert, plan_conversion):
        with pytest.raises(ParameterError, match="1 rows of another origin"):
            job(base + "docs", base + "wide", bridge=bridge)
    with open_store(base + "wide") as store:
        assert (store.recorded, store.count()) == (False, 1)


def test_a_table_of_another_width_is_refused(base, bridge, tmp_path):
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE narrow (id int PRIMARY KEY, title text, e float[3])")
    for job in (convert, plan_conversion):
        with pytest.raises(SpaceMismatchError, match="dimension 3"):
            job(base + "docs", base + "narrow", bridge=bridge)
    with open_store(base + "narrow") as store:
        assert not store.recorded


def test_the_recipe_for_postgresql(postgres_server, monkeypatch, bridge):
    """An empty table like the old one, but for its vectors: columns, types and key stay."""
    monkeypatch.setenv("ISTHMUS_POSTGRESQL_SECRET", postgres_server.password)
    old = f"t_{uuid.uuid4().hex[:12]}"
    with postgres_server.connect(autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE {old} (id bigint PRIMARY KEY, title text NOT NULL, e vector(3))"
        )
        connection.execute(f"CREATE INDEX ON {old} USING hnsw (e vector_cosine_ops)")
        connection.execute(f"INSERT INTO {old} VALUES (1, 'a', '[1,2,3]'), (2, 'b', '[3,2,1]')")
    url = f"{postgres_server.dsn}?collection={old}"
    record_space(url, model="old")
    with postgres_server.connect(autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {old}_new (LIKE {old} INCLUDING ALL)")
        connection.execute(f"ALTER TABLE {old}_new DROP COLUMN e, ADD COLUMN e vector(4)")
    assert convert(url, url + "_new", bridge=bridge).settled
    with postgres_server.connect(autocommit=True) as connection:
        found = connection.execute(f"SELECT id, title FROM {old}_new ORDER BY id").fetchall()
        assert found == [(1, "a"), (2, "b")]
    with open_store(url + "_new") as store:
        assert (store.space.model, store.space.bridged_from) == ("new", bridge.hash)


def test_fields_that_are_not_in_the_target_are_told_before_and_after(base, bridge):
    plan = plan_conversion(base + "docs", base + "new", bridge=bridge)
    assert any("lacks fields, types, indexes and rights" in one for one in plan.warnings)
    convert(base + "docs", base + "new", bridge=bridge)
    (said,) = cut_over(base + "new", "docs").warnings
    assert "lacks fields, types, indexes and rights" in said


def test_the_same_fields_are_not_warned_of(base, bridge):
    plan = plan_conversion(base + "docs", base + "wide", bridge=bridge)
    assert not any("fields" in one for one in plan.warnings)
    convert(base + "docs", base + "wide", bridge=bridge)
    assert cut_over(base + "wide", "docs").warnings == ()
    with open_store(base + "docs") as store:
        assert store.fetch_metadata(["7"]) == [{"title": "title 7"}]


def test_a_plan_in_place_counts_no_texts(base, bridge):
    plan = plan_conversion(base + "docs", base + "docs&vector=second", bridge=bridge)
    assert (plan.in_place, plan.text_bytes, plan.vector_bytes) == (True, 0, ROWS * 4 * 4)
    assert not any("fields" in one for one in plan.warnings)


def test_a_plan_counts_the_numbers_as_the_target_keeps_them(base, bridge):
    class Half(MemoryStore):
        capabilities = replace(MemoryStore.capabilities, storage="float16")

    plan = plan_conversion(base + "docs", Half(bridge.space_of_applied(OLD)), bridge=bridge)
    assert plan.vector_bytes == ROWS * 4 * 2


def test_an_empty_collection_that_declares_no_length_is_filled(base, bridge, tmp_path):
    made = chromadb.PersistentClient(str(tmp_path / "chroma"))
    made.create_collection("theirs", metadata={"hnsw:space": "cosine"})
    url = f"chroma:///{tmp_path}/chroma?collection=theirs"
    told = conversion_status(url)
    assert (told.exists, told.state) == (True, None)
    assert plan_conversion(base + "docs", url, bridge=bridge).exists
    assert convert(base + "docs", url, bridge=bridge).settled
    with open_store(url) as store:
        assert (store.space.model, store.own) == ("new", False)
