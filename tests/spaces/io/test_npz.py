"""numpy archives, ours and others'."""

import io
import json
import zipfile

import numpy as np
import pytest

from isthmus.errors import (
    CorruptFileError,
    DuplicateIdError,
    InputError,
    InvalidIdError,
    InvalidVectorsError,
)
from isthmus.spaces import Space, VectorSet

SPACE = Space(model="m", dim=2)
TEXT = json.dumps({"model": "m", "dim": 2})
IDS = np.array(["a", "b"])
VECTORS = np.array([[1, 2], [3, 4]], dtype=np.float16)


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_what_numpy_wrote(tmp_path, write):
    write(tmp_path / "v.npz", ids=IDS, vectors=VECTORS, space=TEXT, labels=np.arange(2))
    found = VectorSet.load(tmp_path / "v.npz")
    assert (found.ids.tolist(), found.matrix().tolist()) == (["a", "b"], [[1, 2], [3, 4]])
    assert found.space == SPACE


def test_what_we_wrote_is_read_by_numpy(tmp_path):
    VectorSet(IDS, VECTORS, SPACE).save(tmp_path / "v.npz")
    with np.load(tmp_path / "v.npz", allow_pickle=False) as archive:
        assert sorted(archive.files) == ["ids", "space", "vectors"]
        assert archive["vectors"].dtype == np.float16
        assert archive["vectors"].tolist() == VECTORS.tolist()
        assert archive["ids"].tolist() == ["a", "b"]
        assert json.loads(str(archive["space"]))["model"] == "m"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"ids": None}, CorruptFileError, r"got arrays 'space', 'vectors'. Do: .* v.npz\?id=NAME"),
        (
            {"vectors": None},
            CorruptFileError,
            r"got arrays 'ids', 'space'. Do: .* v.npz\?vector=NAME",
        ),
        ({"ids": np.array(["a"])}, ValueError, "each of 2 vectors; got 1 ids"),
        ({"ids": np.array(["a", "a"])}, DuplicateIdError, "'a'"),
        ({"ids": np.array(["a", ""])}, InvalidIdError, "row 1"),
        ({"ids": np.array([1.0, 2.0])}, CorruptFileError, "ids as text; got .* float64"),
        ({"ids": np.array([["a", "b"]])}, CorruptFileError, r"1 axes; got .*\(1, 2\)"),
        ({"vectors": np.array([["a", "b"]])}, CorruptFileError, "as numbers; got .* <U1"),
        ({"vectors": np.ones(2)}, CorruptFileError, r"vectors with 2 axes; got .*\(2,\)"),
        ({"vectors": VECTORS * np.nan}, InvalidVectorsError, "row 0"),
        ({"vectors": VECTORS + 1j}, CorruptFileError, "complex"),
        ({"space": "{"}, CorruptFileError, "'v.npz' with a space as JSON"),
        ({"space": np.array(["{}"])}, CorruptFileError, "space with 0 axes"),
        ({"space": np.array(7)}, CorruptFileError, "space as text"),
        ({"space": " " * 70_000}, CorruptFileError, "65,536 characters; got 70,000 characters"),
        ({"space": '{"model": "m"}'}, CorruptFileError, r"missing fields \['dim'\]"),
    ],
)
def test_the_wrong_arrays(tmp_path, changes, error, message):
    arrays = {"ids": IDS, "vectors": VECTORS, "space": TEXT, **changes}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    np.savez(tmp_path / "v.npz", **arrays)
    with pytest.raises(error, match=message):
        VectorSet.load(tmp_path / "v.npz")


@pytest.mark.parametrize("name", ["ids", "vectors"])
def test_objects_are_never_unpickled(tmp_path, name):
    arrays = {"ids": IDS, "vectors": VECTORS, name: np.array([{}, []], dtype=object)}
    np.savez(tmp_path / "v.npz", **arrays)
    with pytest.raises(CorruptFileError, match="got an array of type object"):
        VectorSet.load(tmp_path / "v.npz", space=SPACE)


def member(header: str, data: bytes = b"") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            member("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 2)}"),
            "8,000,000,000,128 bytes of vectors, as its header says .*; got 128 bytes",
        ),
        (
            member("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2)}"),
            "as its header says",
        ),
        (member("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}", b"x"), "got 129 byt"),
        (member("{'descr': '<f4', 'shape': (1, 2)}"), "numpy's format; got Header does not"),
        (member("{'descr': '<f4'" + "(" * 90), "numpy's format; got"),
        (member("{'descr': '|O', 'fortran_order': False, 'shape': (0, 2)}"), "type object"),
        (b"\x93NUMPY\x09\x00", r"numpy's format; got version \(9, 0\)"),
        (b"PK", "numpy's format"),
        (b"", "numpy's format"),
    ],
)
def test_hostile_headers(tmp_path, content, message):
    ids = io.BytesIO()
    np.save(ids, IDS)
    with zipfile.ZipFile(tmp_path / "v.npz", "w") as archive:
        archive.writestr("ids.npy", ids.getvalue())
        archive.writestr("vectors.npy", content)
    with pytest.raises(CorruptFileError, match=message):
        VectorSet.load(tmp_path / "v.npz", space=SPACE)


def test_a_small_file_that_unpacks_to_gigabytes(tmp_path):
    rows = 2**20
    header = member(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, 128)}}")
    with (
        zipfile.ZipFile(tmp_path / "v.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("vectors.npy", "w") as stream,
    ):
        stream.write(header)
        for _ in range(128):
            stream.write(bytes(rows * 4))
    with zipfile.ZipFile(tmp_path / "v.npz", "a") as archive:
        archive.writestr("ids.npy", b"")
    with zipfile.ZipFile(tmp_path / "v.npz") as archive:
        info = archive.getinfo("vectors.npy")
    from isthmus.spaces.io.base import check_plausible

    with pytest.raises(CorruptFileError, match="claim to hold 536,871,040 bytes of vectors"):
        check_plausible(tmp_path / "v.npz", unpacked=info.file_size, stored=info.compress_size)


def test_a_changed_byte_is_noticed(tmp_path):
    VectorSet(IDS, VECTORS, SPACE).save(tmp_path / "v.npz")
    content = bytearray((tmp_path / "v.npz").read_bytes())
    content[content.index(VECTORS.tobytes())] ^= 1
    (tmp_path / "v.npz").write_bytes(content)
    with pytest.raises(CorruptFileError, match="a whole zip archive; got Bad CRC-32"):
        VectorSet.load(tmp_path / "v.npz")


def test_ids_with_line_breaks_are_fine_here(tmp_path):
    VectorSet(["a\nb", "c\r"], VECTORS, SPACE).save(tmp_path / "v.npz")
    assert VectorSet.load(tmp_path / "v.npz").ids.tolist() == ["a\nb", "c\r"]


@pytest.mark.parametrize("name", ["ids", "id", "_id", "doc_id"])
@pytest.mark.parametrize("vector", ["embeddings", "vectors", "embedding", "emb", "values"])
def test_arrays_by_other_names(tmp_path, name, vector):
    arrays = {name: IDS, vector: VECTORS, "labels": np.arange(len(IDS))}
    np.savez_compressed(tmp_path / "v.npz", **arrays)
    found = VectorSet.load(tmp_path / "v.npz", space=SPACE)
    assert (found.ids.tolist(), found.matrix().tolist()) == (IDS.tolist(), VECTORS.tolist())


def test_arrays_that_are_named_after_the_path(tmp_path):
    np.savez(tmp_path / "v.npz", VECTORS, IDS)
    with pytest.raises(CorruptFileError, match=r"got arrays 'arr_0', 'arr_1'.*npz\?id=NAME"):
        VectorSet.load(tmp_path / "v.npz", space=SPACE)
    found = VectorSet.load(f"{tmp_path / 'v.npz'}?id=arr_1&vector=arr_0", space=SPACE)
    assert found.ids.tolist() == IDS.tolist()


def test_several_arrays_of_vectors(tmp_path):
    np.savez(tmp_path / "v.npz", ids=IDS, text_emb=VECTORS, image_emb=VECTORS)
    with pytest.raises(InputError, match="got 2: 'image_emb', 'text_emb'"):
        VectorSet.load(tmp_path / "v.npz", space=SPACE)
    assert len(VectorSet.load(f"{tmp_path / 'v.npz'}?vector=text_emb", space=SPACE)) == len(IDS)
