"""safetensors, ours and others'."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from isthmus.errors import CorruptFileError
from isthmus.spaces import Space, VectorSet

SPACE = Space(model="m", dim=2)
GOOD = {
    "vectors": np.array([[1, 2], [3, 4]], dtype=np.float32),
    "ids": np.frombuffer("aü".encode(), dtype=np.uint8),
    "id_ends": np.array([1, 3], dtype=np.int64),
}


def test_what_we_wrote_is_read_by_the_library(tmp_path):
    VectorSet(["a", "ü"], GOOD["vectors"], SPACE).save(tmp_path / "v.safetensors")
    with safe_open(tmp_path / "v.safetensors", framework="np") as file:
        assert sorted(file.keys()) == ["id_ends", "ids", "vectors"]
        assert file.get_tensor("vectors").dtype == np.float16
        assert bytes(file.get_tensor("ids")).decode() == "aü"
        assert file.get_tensor("id_ends").tolist() == [1, 3]
        assert json.loads(file.metadata()["space"])["model"] == "m"


def test_no_space_in_the_file(tmp_path):
    save_file(GOOD, tmp_path / "v.safetensors")
    found = VectorSet.load(tmp_path / "v.safetensors", space=SPACE)
    assert (found.ids.tolist(), found.matrix().tolist()) == (["a", "ü"], [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ids": None}, "tensors vectors, ids, id_ends; got no ids among: id_ends, vectors"),
        ({"vectors": None, "id_ends": None}, "got no vectors and no id_ends among: ids"),
        ({"ids": GOOD["ids"].astype(np.int8)}, r"uint8 and .*; got int8 \(3,\) and int64 \(2,\)"),
        ({"id_ends": np.array([1, 3], np.int32)}, "got uint8 .* int32"),
        ({"id_ends": np.array([[1, 3]])}, r"int64 \(1, 2\)"),
        ({"id_ends": np.array([3, 1])}, "rise to the last byte"),
        ({"id_ends": np.array([-1, 3])}, "rise to the last byte"),
        ({"id_ends": np.array([1, 2])}, "rise to the last byte"),
        ({"id_ends": np.array([1, 2**62])}, "rise to the last byte"),
        ({"id_ends": np.array([2, 3])}, "ids in UTF-8"),
    ],
)
def test_the_wrong_tensors(tmp_path, changes, message):
    tensors = {**GOOD, **changes}
    tensors = {name: array for name, array in tensors.items() if array is not None}
    save_file(tensors, tmp_path / "v.safetensors")
    with pytest.raises(CorruptFileError, match=message):
        VectorSet.load(tmp_path / "v.safetensors", space=SPACE)


def write_header(path, header, data=b""):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


@pytest.mark.parametrize(
    "header",
    [
        b"{",
        b"[" * 10_000,
        {"vectors": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 8]}},
        {"vectors": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 2**40]}},
        {"vectors": {"dtype": "F99", "shape": [1, 2], "data_offsets": [0, 8]}},
    ],
)
def test_hostile_headers(tmp_path, header):
    write_header(tmp_path / "v.safetensors", header, b"12345678")
    with pytest.raises(CorruptFileError, match="whole tensors that numpy can hold"):
        VectorSet.load(tmp_path / "v.safetensors", space=SPACE)


def test_a_header_longer_than_the_file(tmp_path):
    (tmp_path / "v.safetensors").write_bytes((2**60).to_bytes(8, "little") + b"{}")
    with pytest.raises(CorruptFileError, match="whole tensors"):
        VectorSet.load(tmp_path / "v.safetensors", space=SPACE)


def test_a_number_type_that_numpy_lacks(tmp_path):
    header = {
        "vectors": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [0, 4]},
        "ids": {"dtype": "U8", "shape": [1], "data_offsets": [4, 5]},
        "id_ends": {"dtype": "I64", "shape": [1], "data_offsets": [5, 13]},
    }
    write_header(tmp_path / "v.safetensors", header, bytes(13))
    with pytest.raises(CorruptFileError, match=r"whole tensors that numpy can hold; got .*16"):
        VectorSet.load(tmp_path / "v.safetensors", space=SPACE)
