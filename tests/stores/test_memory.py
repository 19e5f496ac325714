"""The reference itself, against sums by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isthmus.errors import InputError, ParameterError, UnsupportedOperationError
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore, Store
from isthmus.stores._checks import to_json
from isthmus.stores.memory import similarity

NUMBERS = arrays(np.float64, (4, 3), elements=st.floats(-100, 100, width=32))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(rows=NUMBERS, query=arrays(np.float64, 3, elements=st.floats(-100, 100, width=32)))
def test_similarity_is_the_formula(rows, query):
    exact_dot = [math.fsum(a * b for a, b in zip(row, query, strict=True)) for row in rows]
    exact_l2 = [-math.dist(row, query) for row in rows]
    assert np.allclose(similarity(query, rows, "dot"), exact_dot, rtol=1e-6, atol=1e-4)
    assert np.allclose(similarity(query, rows, "l2"), exact_l2, rtol=1e-6)
    keep = [row for row in range(4) if np.linalg.norm(rows[row]) > 1e-3]
    if keep and np.linalg.norm(query) > 1e-3:
        cosines = [exact_dot[row] / (math.hypot(*rows[row]) * math.hypot(*query)) for row in keep]
        assert np.allclose(similarity(query, rows[keep], "cosine"), cosines, atol=1e-6)


def test_cosines_never_leave_their_range():
    row = np.full((1, 3), 0.1)
    assert similarity(row[0] * 7, row, "cosine").tolist() == [1.0]
    assert similarity(row[0] * -7, row, "cosine").tolist() == [-1.0]


def test_an_empty_store_and_a_full_one_do_not_share():
    space = Space(model="m", dim=2)
    one, other = MemoryStore(space), MemoryStore(space)
    one.upsert(VectorSet(["a"], [[1, 0]], space), notes={"k": "v"})
    assert (other.count(), other.notes()) == (0, {})
    one.notes()["k"] = "changed"
    assert one.notes() == {"k": "v"}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ([{"a": float("nan")}], "a finite number as 'a' of row 0; got nan"),
        ([{"a": [float("nan")]}], "JSON values only; got .* in row 0"),
        ([{"a": 2**63}], "a whole number of at most 64 bits as 'a' of row 0"),
        ([{"a": object()}], "JSON values only"),
        ([{"a": "\ud800"}], "whole Unicode characters in the metadata of row 0"),
        ([{1: "a"}], "keys that are text"),
        (["a"], "keys that are text; got a in row 0"),
    ],
)
def test_metadata_that_json_does_not_have(metadata, message):
    with pytest.raises(InputError, match=message):
        to_json(metadata, rows=1)


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "9" * 19, "٣"])
def test_a_cursor_from_elsewhere(cursor):
    store = MemoryStore(Space(model="m", dim=2))
    with pytest.raises(ParameterError, match="the cursor of a batch of this store"):
        next(store.scan(cursor=cursor))


def test_what_the_contract_does_without_help_is_what_the_reference_does():
    store = MemoryStore(Space(model="m", dim=2))
    ids = [f"r{row}" for row in range(9)]
    rows = np.random.default_rng(0).standard_normal((9, 2))
    store.upsert(VectorSet(ids, rows, store.space), metadata=[{"row": row} for row in range(9)])
    for asked in (["r3", "no", "r7", "nor", "r0"], ["no"], [], ids, ["no", "nor"]):
        plain, own = Store.held(store, asked), store.held(asked)
        assert (plain.ids, plain.metadata) == (own.ids, own.metadata)
        assert np.array_equal(plain.vectors, own.vectors)
        assert plain.vectors.shape == (len(plain.ids), 2)
    with pytest.raises(UnsupportedOperationError, match="notes without rows"):
        Store.write_notes(store, {"a": "1"})
