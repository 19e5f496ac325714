"""Ids are read, checked and looked up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import CountMismatchError, DuplicateIdError, InvalidIdError, UnknownIdError
from isthmus.spaces.ids import IdIndex, as_ids, check_unique, name_few

PROPERTY = settings(derandomize=True, deadline=None, max_examples=60)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (["a", "bc"], ["a", "bc"]),
        ([1, np.int64(2)], ["1", "2"]),
        (np.array([10, 2], dtype=np.uint8), ["10", "2"]),
        (np.array(["a", "b"], dtype=">U3"), ["a", "b"]),
        (np.array([b"a", "é".encode()]), ["a", "é"]),
        (np.array(["a", 7], dtype=object), ["a", "7"]),
        (["a\0b", "c"], ["a\0b", "c"]),
    ],
)
def test_what_can_be_an_id(values, texts):
    ids = as_ids(values)
    assert ids.tolist() == texts
    assert ids.dtype.isnative
    assert not ids.flags.writeable


def test_the_array_of_the_caller_stays_writeable():
    values = np.array(["a", "b"])
    as_ids(values)
    values[0] = "c"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", ""], "empty one in row 1"),
        (np.array(["a", ""]), "empty one in row 1"),
        (["a", "b\0"], r"do not end in a NUL.*'b\\x00' in row 1"),
        (["a", None], "None in row 1"),
        ([True], "True in row 0"),
        ([1.5], "1.5 in row 0"),
        (np.array([1.5]), "1.5.* in row 0"),
        ([b"\xff"], r"b'\\xff' in row 0"),
        (["a", "\ud800"], "half of a surrogate pair in row 1"),
        (["x" * 1_025], "at most 1,024 characters; got one of 1,025"),
        (np.array(["x" * 1_025]), "at most 1,024 characters"),
    ],
)
def test_what_cannot_be_an_id(values, message):
    with pytest.raises(InvalidIdError, match=message):
        as_ids(values)


def test_ids_in_two_axes():
    with pytest.raises(CountMismatchError, match=r"one axis.*\(1, 2\)"):
        as_ids(np.array([["a", "b"]]))


def test_repeated_ids_are_named():
    with pytest.raises(DuplicateIdError, match="2 repeated: 'a', 'c'"):
        check_unique(as_ids(["c", "a", "b", "a", "c", "c"]))


@PROPERTY
@given(st.lists(TEXTS, min_size=1, max_size=30))
def test_repeats_are_found_exactly(texts):
    ids = as_ids(texts)
    if len(set(texts)) == len(texts):
        check_unique(ids)
    else:
        with pytest.raises(DuplicateIdError):
            check_unique(ids)


def test_ids_whose_hashes_meet_are_compared_as_text(monkeypatch):
    monkeypatch.setattr("isthmus.spaces.ids._hashes", lambda ids: np.zeros(len(ids), np.uint64))
    check_unique(as_ids(["a", "b", "c"]))
    with pytest.raises(DuplicateIdError, match="1 repeated: 'b'"):
        check_unique(as_ids(["a", "b", "b"]))


def test_rows_by_id():
    index = IdIndex(as_ids(["a", "b", "c"]))
    assert index.find(as_ids(["c", "x", "a"])).tolist() == [2, -1, 0]
    with pytest.raises(UnknownIdError, match=r"ids of the set; got 4 of 5 .*'v', 'w', 'x', ..."):
        index.rows(as_ids(["v", "a", "w", "x", "y"]), name="the set")


def test_a_few_names():
    assert name_few(as_ids(["a"])) == "'a'"
    assert name_few(as_ids(list("abcd"))) == "'a', 'b', 'c', ..."
