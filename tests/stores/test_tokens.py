"""Tokens are equal exactly where ``where`` calls two values equal."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore
from isthmus.stores._tokens import token, tokens

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.sampled_from([0, 0.0, -0.0, 1, 1.0, True, "1", 2.5, 2**53, float(2**53)]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
)


@given(stored=VALUES, asked=VALUES)
def test_as_the_reference_filters(stored, asked):
    store = MemoryStore(Space(model="m", dim=1))
    store.upsert(VectorSet(["a"], [[1.0]], store.space), metadata=[{"k": stored}])
    found = store.search([[1.0]], k=1, where={"k": asked}).ids[0, 0] == "a"
    assert (token("k", stored) == token("k", asked)) == found


def test_only_single_values_have_tokens():
    text = json.dumps({"a": 1, "b": [1], "c": {"d": 1}, "e": None})
    assert tokens(text) == [token("a", 1), token("e", None)]
    assert tokens(None) == []
    assert token("ab", "c") != token("a", "bc")
