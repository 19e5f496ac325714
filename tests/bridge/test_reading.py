"""Reading the files of an artifact, trusting none of them."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.reading import open_plain, parse_json, read_limited
from isthmus.errors import (
    CorruptFileError,
    IsthmusError,
    MalformedArtifactError,
    MissingFileError,
    OversizedArtifactError,
    UnsafePathError,
)


def test_reads_a_plain_file(tmp_path):
    (tmp_path / "f").write_bytes(b"abc")
    assert read_limited(tmp_path / "f", limit=3) == b"abc"


def test_size_is_checked_before_reading(tmp_path):
    with (tmp_path / "f").open("wb") as file:
        file.truncate(2**40)  # sparse: reading it would fill the memory
    with pytest.raises(
        OversizedArtifactError, match=r"at most 10 bytes in f; got 1,099,511,627,776"
    ):
        read_limited(tmp_path / "f", limit=10)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(MissingFileError, match=r"a bridge with the file 'bridge\.json'"):
        read_limited(tmp_path / "bridge.json", limit=10)


def test_a_file_in_place_of_the_folder_is_missing(tmp_path):
    (tmp_path / "folder").write_text("x")
    with pytest.raises(MissingFileError):
        read_limited(tmp_path / "folder" / "bridge.json", limit=10)


def test_symbolic_links_are_refused(tmp_path):
    (tmp_path / "secret").write_text("x")
    (tmp_path / "f").symlink_to(tmp_path / "secret")
    with pytest.raises(UnsafePathError, match="got a symbolic link"):
        read_limited(tmp_path / "f", limit=10)


def test_dangling_links_are_refused(tmp_path):
    (tmp_path / "f").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UnsafePathError, match="got a symbolic link"):
        read_limited(tmp_path / "f", limit=10)


def test_pipes_are_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "f")
    with pytest.raises(UnsafePathError, match="a pipe, a device or a socket"):
        read_limited(tmp_path / "f", limit=10)


def test_folders_are_refused(tmp_path):
    (tmp_path / "f").mkdir()
    with pytest.raises(UnsafePathError), open_plain(tmp_path / "f"):
        pass


def test_parses_an_object():
    assert parse_json(b' {"a": [1, 0.5, null, "\xc3\xa9"]}\n', name="f") == {
        "a": [1, 0.5, None, "é"]
    }


@pytest.mark.parametrize(
    ("content", "got"),
    [
        (b'{"a": 1, "a": 2}', "repeated"),
        (b'{"x": {"a": 1, "a": 1}}', "repeated"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "not JSON compliant"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
        (b'{"a": "\\ud800"}', "surrogates"),
        (b'\xef\xbb\xbf{"a": 1}', "BOM"),
        (b'{"a": "\xff"}', "decode"),
        (b'{"a": ' + b"[" * 100_000 + b"}", "recursion"),
        (b"{'a': 1}", "property name"),
        (b"[1] }", "Extra data"),
    ],
)
def test_refuses_what_is_not_the_json_of_the_spec(content, got):
    with pytest.raises(MalformedArtifactError, match=got):
        parse_json(content, name="f")


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1', b'{"a": "', b'{"a": {"b": 1}, '])
def test_an_object_that_ends_early_was_cut_short(content):
    with pytest.raises(CorruptFileError, match="cut short"):
        parse_json(content, name="f")


def test_other_values_than_objects_are_malformed():
    with pytest.raises(MalformedArtifactError, match="f as JSON"):
        parse_json(b'"}"}', name="f")


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.binary(max_size=60))
def test_random_bytes_give_an_object_or_our_error(content):
    try:
        parsed = parse_json(content, name="f")
    except IsthmusError:
        return
    assert isinstance(parsed, dict)
