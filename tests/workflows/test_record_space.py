"""Which model made a collection that another program filled: said once, checked, put right."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from isthmus.errors import (
    InvalidVectorsError,
    SpaceMismatchError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store
from isthmus.workflows import fit_bridge, inspect
from isthmus.workflows.record_space import record_space


@pytest.fixture
def theirs(tmp_path):
    """A table that a user's program filled, with rows of length 1."""
    rows = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    with duckdb.connect(str(tmp_path / "theirs.duckdb")) as database:
        database.execute("CREATE TABLE docs (id BIGINT PRIMARY KEY, embedding FLOAT[4], year INT)")
        database.execute("CREATE TABLE empty (id BIGINT PRIMARY KEY, embedding FLOAT[])")
        values = [(row, vector.tolist(), 2_000 + row) for row, vector in enumerate(rows)]
        database.executemany("INSERT INTO docs VALUES (?, ?, ?)", values)
    return f"duckdb:///{tmp_path}/theirs.duckdb?collection="


def test_what_is_not_recorded_is_looked_at_and_not_fitted(theirs):
    looked = inspect(theirs + "docs")
    assert looked.a.rows == 40
    other = VectorSet([str(row) for row in range(40)], np.eye(40, 5) + 0.1, Space(model="m", dim=5))
    with pytest.raises(SpaceMismatchError, match="isthmus store record"):
        fit_bridge(theirs + "docs", other, method="procrustes")


def test_recorded_once_and_put_right(theirs):
    done = record_space(theirs + "docs", model="wrong", normalized=True)
    assert (done.before, done.notes) == (None, ())
    with pytest.raises(SpaceMismatchError, match=r"differs in model.*--replace"):
        record_space(theirs + "docs", model="right", normalized=True)
    put_right = record_space(theirs + "docs", model="right", normalized=True, replace=True)
    assert put_right.before == done.space
    with open_store(theirs + "docs") as store:
        assert store.space == Space(model="right", dim=4, normalized=True)
        assert store.fetch_metadata(["7"]) == [{"year": 2_007}]


def test_the_rows_have_a_say(theirs):
    (note,) = record_space(theirs + "docs", model="m").notes
    assert "say --normalized" in note
    with open_store(theirs + "docs") as store:
        store.upsert(VectorSet(["3"], [[3, 0, 0, 0]], store.space))
    with pytest.raises(InvalidVectorsError, match="1 of the first 40"):
        record_space(theirs + "docs", model="m", normalized=True, replace=True)
    with open_store(theirs + "docs") as store:
        assert not store.space.normalized


def test_an_empty_collection_takes_the_dimension_that_is_given(theirs):
    assert record_space(theirs + "empty", model="m", dim=4).space.dim == 4
    with open_store(theirs + "empty") as store:
        assert store.recorded


def test_another_dimension_or_metric_is_no_correction(theirs):
    record_space(theirs + "docs", model="m")
    with open_store(theirs + "docs") as store:
        for space in (Space(model="m", dim=5), Space(model="m", dim=4, metric="l2")):
            with pytest.raises(SpaceMismatchError, match="dimension 4 and metric cosine"):
                store.record_space(space)


def test_a_store_that_only_isthmus_fills_keeps_its_space(tmp_path):
    url = f"sqlite:///{tmp_path}/one.db?collection=docs"
    with open_store(url, space=Space(model="m", dim=2)) as store:
        store.upsert(VectorSet(["a"], [[3, 4]], store.space))
    with pytest.raises(UnsupportedOperationError):
        record_space(url, model="other", replace=True)
