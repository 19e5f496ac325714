"""Tensors of an artifact: bit-exact round trips, and hostile headers."""

import json
import pathlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file

from isthmus.bridge.format import (
    DTYPES,
    check_tensor_name,
    read_tensors,
    tensor_hash,
    tensor_record,
    write_tensors,
)
from isthmus.errors import (
    CorruptFileError,
    IsthmusError,
    MalformedArtifactError,
    OversizedArtifactError,
    UnsafePathError,
)

FAST = settings(derandomize=True, deadline=None, max_examples=50)
ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def write(path: pathlib.Path, header, data=bytes(8)):
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(content).to_bytes(8, "little") + content + data)


@FAST
@given(
    dtype=st.sampled_from(list(DTYPES.values())),
    shape=hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    data=st.data(),
)
def test_round_trip_is_exact_to_the_bit(tmp_path_factory, dtype, shape, data):
    array = data.draw(hnp.arrays(dtype, shape))
    path = tmp_path_factory.mktemp("t") / "w"
    write_tensors(path, {"a/b": array})
    again = read_tensors(path)["a/b"]
    assert again.dtype == dtype
    assert again.shape == shape
    assert again.tobytes() == array.tobytes()


def test_agrees_with_the_safetensors_library(tmp_path):
    arrays = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.array(3, np.int64)}
    write_tensors(tmp_path / "w", arrays)
    theirs, ours = load_file(tmp_path / "w"), read_tensors(tmp_path / "w")
    assert theirs.keys() == ours.keys()
    for name, array in theirs.items():
        np.testing.assert_array_equal(array, ours[name])


def test_byte_order_and_layout_of_the_caller_do_not_matter(tmp_path):
    array = np.arange(6, dtype=np.float64).reshape(2, 3)
    for name, same in {"big": array.astype(">f8"), "fortran": np.asfortranarray(array)}.items():
        write_tensors(tmp_path / name, {"w": same})
        np.testing.assert_array_equal(read_tensors(tmp_path / name)["w"], array)
        assert tensor_record(same, name="w") == tensor_record(array, name="w")
    np.testing.assert_array_equal(array, np.arange(6).reshape(2, 3))


def test_arrays_that_were_read_cannot_be_changed(tmp_path):
    write_tensors(tmp_path / "w", {"w": np.zeros(3)})
    with pytest.raises(ValueError, match="read-only"):
        read_tensors(tmp_path / "w")["w"][0] = 1


def test_hash_is_that_of_the_stored_bytes():
    assert tensor_hash(np.zeros(3, np.uint8)).startswith("709e80c88487a241")
    assert tensor_hash(np.zeros(3)) != tensor_hash(np.zeros(2))


def test_types_that_the_format_does_not_hold_are_refused(tmp_path):
    with pytest.raises(MalformedArtifactError, match=r"tensor 'w' as BOOL.*got complex128"):
        write_tensors(tmp_path / "w", {"w": np.zeros(2, complex)})
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("name", ["../w", "/w", "a/../b", "a\\b", "..", "C:\\w"])
def test_names_that_look_like_paths_are_unsafe(name):
    with pytest.raises(UnsafePathError, match="lead nowhere"):
        check_tensor_name(name)


@pytest.mark.parametrize(
    "name", ["", "a//b", "a/", "a b", "a\n", "é", ".hidden", "a" * 201, "a/./b"]
)
def test_names_of_other_characters_are_malformed(name):
    with pytest.raises(MalformedArtifactError, match="plain characters"):
        check_tensor_name(name)


@pytest.mark.parametrize(
    "name", ["map/inner/weight", "report/values/nDCG@10", "P(rel=2)@5", "a..b"]
)
def test_plain_names_are_fine(name):
    check_tensor_name(name)


@pytest.mark.parametrize(
    ("header", "data", "error", "text"),
    [
        ({"w": ENTRY}, bytes(7), CorruptFileError, "cut short"),
        ({"w": ENTRY}, b"", CorruptFileError, "cut short"),
        ({"w": ENTRY}, bytes(9), MalformedArtifactError, "as its header says"),
        ({"w": {**ENTRY, "data_offsets": [1, 9]}}, bytes(9), MalformedArtifactError, "without gap"),
        ({"w": ENTRY, "v": ENTRY}, bytes(8), MalformedArtifactError, "without gap or overlap"),
        ({"w": {**ENTRY, "shape": [3]}}, bytes(8), MalformedArtifactError, "as many bytes as"),
        ({"w": {**ENTRY, "data_offsets": [8, 0]}}, bytes(8), MalformedArtifactError, "as many"),
        ({"w": {**ENTRY, "shape": [-2]}}, bytes(8), MalformedArtifactError, "a shape of"),
        ({"w": {**ENTRY, "shape": [2.0]}}, bytes(8), MalformedArtifactError, "a shape of"),
        ({"w": {**ENTRY, "shape": [True, 2]}}, bytes(8), MalformedArtifactError, "a shape of"),
        ({"w": {**ENTRY, "shape": [1, 1, 1, 1, 2]}}, bytes(8), MalformedArtifactError, "a shape"),
        ({"w": {**ENTRY, "shape": [2**60, 0]}}, bytes(8), MalformedArtifactError, "a shape"),
        ({"w": {**ENTRY, "shape": "2"}}, bytes(8), MalformedArtifactError, "a shape"),
        ({"w": {**ENTRY, "data_offsets": [0]}}, bytes(8), MalformedArtifactError, "two offsets"),
        ({"w": {**ENTRY, "data_offsets": [-8, 0]}}, bytes(8), MalformedArtifactError, "two"),
        ({"w": {**ENTRY, "dtype": "BF16"}}, bytes(8), MalformedArtifactError, "tensor 'w' as"),
        ({"w": {**ENTRY, "dtype": ["F32"]}}, bytes(8), MalformedArtifactError, "tensor 'w' as"),
        ({"w": {**ENTRY, "extra": 1}}, bytes(8), MalformedArtifactError, "dtype, shape and"),
        ({"w": [1]}, bytes(8), MalformedArtifactError, "dtype, shape and data_offsets"),
        ({"../w": ENTRY}, bytes(8), UnsafePathError, "lead nowhere"),
        (b"{" + b" " * 40, bytes(8), CorruptFileError, "closing brace"),
        (b"[1, 2] }", bytes(8), MalformedArtifactError, "the header of w as JSON"),
        ({"w": {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}}, b"\x00\x02",
         MalformedArtifactError, "0 and 1 in the boolean"),
    ],
)  # fmt: skip
def test_hostile_headers_are_refused(tmp_path, header, data, error, text):
    write(tmp_path / "w", header, data)
    with pytest.raises(error, match=text):
        read_tensors(tmp_path / "w")


def test_a_header_longer_than_the_limit_is_not_read(tmp_path):
    (tmp_path / "w").write_bytes((2**62).to_bytes(8, "little") + b"{}")
    with pytest.raises(OversizedArtifactError, match="at most 1,048,576 bytes in the header of w"):
        read_tensors(tmp_path / "w")


def test_a_header_longer_than_the_file_is_cut_short(tmp_path):
    (tmp_path / "w").write_bytes((1000).to_bytes(8, "little") + b"{}")
    with pytest.raises(CorruptFileError, match="at least 1,008 bytes in w"):
        read_tensors(tmp_path / "w")


@pytest.mark.parametrize("length", range(8))
def test_a_file_without_a_whole_length_is_cut_short(tmp_path, length):
    (tmp_path / "w").write_bytes(bytes(length))
    with pytest.raises(CorruptFileError):
        read_tensors(tmp_path / "w")


def test_too_many_tensors_are_refused(tmp_path):
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    write(tmp_path / "w", {f"t{i}": empty for i in range(4_097)}, b"")
    with pytest.raises(OversizedArtifactError, match="at most 4,096 tensors; got 4,097"):
        read_tensors(tmp_path / "w")


def test_a_file_over_the_limit_is_not_read(tmp_path):
    with (tmp_path / "w").open("wb") as file:
        file.truncate(5 * 2**30)
    with pytest.raises(OversizedArtifactError, match="in w; got 5,368,709,120"):
        read_tensors(tmp_path / "w")


def test_metadata_is_ignored(tmp_path):
    write(tmp_path / "w", {"__metadata__": {"made": "elsewhere"}, "w": ENTRY})
    assert list(read_tensors(tmp_path / "w")) == ["w"]


@FAST
@given(place=st.integers(0, 79), value=st.integers(0, 255))
def test_one_changed_byte_gives_our_error_or_other_numbers(tmp_path_factory, place, value):
    path = tmp_path_factory.mktemp("t") / "w"
    write_tensors(path, {"w": np.array([1.5, 2.5], np.float32)})
    content = bytearray(path.read_bytes())
    content[place % len(content)] = value
    path.write_bytes(content)
    try:
        tensors = read_tensors(path)
    except IsthmusError:
        return
    assert sum(array.nbytes for array in tensors.values()) == 8
