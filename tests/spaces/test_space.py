"""The identity of a space."""

import json

import pytest

from isthmus.errors import DimensionError, InputError, SpaceMismatchError, UnknownNameError
from isthmus.spaces import Space

SPACE = Space(model="m", dim=3, revision="1", normalized=True)


def test_the_fingerprint_is_the_hash_of_the_canonical_json():
    assert SPACE.canonical_json == (
        '{"dim":3,"metric":"cosine","model":"m","normalized":true,"preprocessing":"","revision":"1"}'
    )
    assert SPACE.fingerprint == "461115c4f38c9bc7c080a6f03ac56fc44824cec0ea5edadb1446fe87c8505a0b"


@pytest.mark.parametrize(
    "field", [{"kind": "query"}, {"prompt": "query: "}, {"bridged_from": "abc"}]
)
def test_what_stands_beside_the_identity(field):
    other = Space(**{**SPACE.to_dict(), **field})
    SPACE.check(other)
    assert other.fingerprint == SPACE.fingerprint


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"model": "n"}, "model 'm'; got model 'n'"),
        ({"dim": 4}, "dim 3; got dim 4"),
        ({"revision": "2", "metric": "l2"}, "revision '1', metric 'cosine'; got revision '2', me"),
        ({"normalized": False}, "normalized True; got normalized False"),
        ({"preprocessing": "centred"}, "preprocessing ''; got preprocessing 'centred'"),
    ],
)
def test_another_space_is_refused_field_by_field(field, message):
    with pytest.raises(SpaceMismatchError, match=f"queries with {message}.*fit a bridge"):
        SPACE.check(Space(**{**SPACE.to_dict(), **field}), what="queries")


@pytest.mark.parametrize(
    ("field", "error", "message"),
    [
        ({"model": ""}, InputError, "a model name; got an empty one"),
        ({"model": 3}, InputError, "text as the space's model; got 3"),
        ({"model": "\ud800"}, InputError, "the space's model; got half of a surrogate pair"),
        ({"dim": 0}, DimensionError, "dimension of at least 1; got 0"),
        ({"dim": True}, DimensionError, "got True"),
        ({"dim": "3"}, DimensionError, "got '3'"),
        ({"normalized": "yes"}, InputError, "normalized as true or false; got 'yes'"),
        ({"metric": "cosin"}, UnknownNameError, "cosine, dot, l2; got 'cosin'.*mean 'cosine'"),
    ],
)
def test_a_bad_field(field, error, message):
    with pytest.raises(error, match=message):
        Space(**{"model": "m", "dim": 3, **field})


def test_json_round_trip():
    assert Space.from_json(json.dumps(SPACE.to_dict())) == SPACE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "text that is not JSON"),
        ("[" * 100_000, "text that is not JSON"),
        ("[1]", r"a JSON object; got \[1\]"),
        ('{"dim": 3}', r"missing fields \['model'\]"),
        ('{"model": "m", "dim": 3, "size": 1}', r"unknown fields \['size'\]"),
    ],
)
def test_bad_json(text, message):
    with pytest.raises(InputError, match=message):
        Space.from_json(text)


def test_another_kind():
    assert SPACE.with_kind("query").kind == "query"
    assert str(SPACE) == "m (3, cosine)"
