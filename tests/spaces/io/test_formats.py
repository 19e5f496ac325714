"""What every format must do: one suite, one row per format."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.errors import (
    CorruptFileError,
    CountMismatchError,
    DimensionError,
    DuplicateIdError,
    InputError,
    InvalidVectorsError,
    IsthmusError,
    MissingFileError,
    ParameterError,
    SpaceMismatchError,
    UnknownFormatError,
    UnknownNameError,
    UnsupportedOperationError,
    WriteFailedError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.spaces.io import FORMATS, open_records, open_writer
from isthmus.spaces.io.asked import Asked

WRITTEN = sorted(name for name, form in FORMATS.items() if form.open_sink is not None)
SUFFIXES = [name for name in WRITTEN if name != ".vdf"]  # a folder
PROPERTY = settings(
    derandomize=True,
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
# Line breaks and NUL are tested on their own: npy refuses the first, every set the second.
IDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r"), min_size=1, max_size=20
)

every_format = pytest.mark.parametrize("suffix", WRITTEN)
every_file = pytest.mark.parametrize("suffix", SUFFIXES)
every_half = pytest.mark.parametrize("suffix", [name for name in WRITTEN if FORMATS[name].half])


def test_the_formats_of_the_design():
    assert set(WRITTEN) == {
        *(".npz", ".npy", ".parquet", ".jsonl", ".ndjson", ".safetensors"),
        *(".faiss", ".index", ".vdf"),
    }
    assert set(FORMATS) - set(WRITTEN) == {".json"}


def content(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_equal(found: VectorSet, wanted: VectorSet):
    assert found.ids.tolist() == wanted.ids.tolist()
    assert found.matrix().tolist() == wanted.matrix().tolist()
    assert found.matrix().dtype == np.float32
    assert found.space == wanted.space


@every_format
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_round_trip(tmp_path, make_set, suffix, dtype):
    path = tmp_path / f"v{suffix}"
    make_set().save(path, dtype=dtype)
    assert_equal(VectorSet.load(path), make_set())


@every_format
@PROPERTY
@given(ids=st.lists(IDS, min_size=1, max_size=8, unique=True), seed=st.integers(0, 99))
def test_any_ids_and_any_float32_come_back(tmp_path, suffix, ids, seed):
    space = Space(model="m", dim=3, metric="l2")
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((len(ids), 3)) * 10.0 ** rng.integers(-30, 30, (len(ids), 3))
    wanted = VectorSet(ids, values, space)
    wanted.save(tmp_path / f"v{suffix}", dtype="float32")
    assert_equal(VectorSet.load(str(tmp_path / f"v{suffix}")), wanted)


@every_format
def test_half_precision_rounds_to_the_nearest(tmp_path, suffix):
    values = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
    vectors = VectorSet([str(row) for row in range(50)], values, Space(model="m", dim=4))
    vectors.save(tmp_path / f"v{suffix}")
    kept = values.astype(np.float16) if FORMATS[suffix].half else values
    assert VectorSet.load(tmp_path / f"v{suffix}").matrix().tolist() == kept.tolist()


@every_file
def test_batches_give_the_bytes_of_one_save(tmp_path, make_set, space, suffix):
    whole = make_set(7)
    whole.save(tmp_path / f"whole{suffix}")
    with open_writer(tmp_path / f"parts{suffix}", space, rows=7) as writer:
        for start, stop in ((0, 1), (1, 5), (5, 7)):
            writer.write(whole.select(np.arange(start, stop)))
    assert_equal(VectorSet.load(tmp_path / f"parts{suffix}"), whole)
    if suffix != ".parquet":  # its row groups are the batches
        found = content(tmp_path)
        for name in [name for name in found if name.startswith("whole")]:
            assert found[name] == found[name.replace("whole", "parts")]


@every_file
def test_the_same_set_gives_the_same_bytes(tmp_path, make_set, suffix):
    make_set().save(tmp_path / f"v{suffix}")
    first = content(tmp_path)
    make_set().save(tmp_path / f"v{suffix}")
    assert content(tmp_path) == first


@every_half
@pytest.mark.parametrize(
    ("value", "got"),
    [(70_000.0, "7e\\+04 in row 1"), (-1e30, "1e\\+30 in row 1"), (1e-7, "1e-07 in row 1")],
)
def test_what_half_precision_would_spoil(tmp_path, space, suffix, value, got):
    values = np.ones((2, 4), dtype=np.float32)
    values[1] = value
    vectors = VectorSet(["a", "b"], values, space)
    with pytest.raises(InvalidVectorsError, match=f"{got}.*dtype=.float32.") as caught:
        vectors.save(tmp_path / f"v{suffix}")
    assert "6.1e-05 to 65504" in str(caught.value)
    assert content(tmp_path) == {}
    vectors.save(tmp_path / f"v{suffix}", dtype="float32")
    assert_equal(VectorSet.load(tmp_path / f"v{suffix}"), vectors)


@every_half
def test_small_numbers_beside_large_ones_are_fine(tmp_path, suffix):
    space = Space(model="m", dim=2, metric="l2")
    vectors = VectorSet(["a", "b"], [[1e-9, 1], [0, 0]], space)
    vectors.save(tmp_path / f"v{suffix}")
    assert VectorSet.load(tmp_path / f"v{suffix}").matrix().tolist() == [[0, 1], [0, 0]]


@every_format
def test_a_full_disk_leaves_what_was_there(tmp_path, make_set, small_disk, suffix):
    path = tmp_path / f"v{suffix}"
    make_set().save(path)
    before = content(tmp_path)
    with small_disk(10_000), pytest.raises(WriteFailedError, match=r"to write 'v\..*unchanged"):
        make_set(5_000, seed=1).save(path)
    assert content(tmp_path) == before


@every_file
def test_a_full_disk_at_the_last_byte(tmp_path, make_set, small_disk, suffix):
    path = tmp_path / f"v{suffix}"
    make_set(300, seed=1).save(path)
    size = path.stat().st_size
    make_set(300).save(path)
    before = content(tmp_path)
    with small_disk(size - 1), pytest.raises(WriteFailedError):
        make_set(300, seed=1).save(path)
    assert content(tmp_path) == before


@every_file
def test_others_may_read_the_files_as_the_umask_says(tmp_path, make_set, suffix):
    (tmp_path / "plain").touch()
    make_set().save(tmp_path / f"v{suffix}")
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


@every_file
def test_a_missing_folder(tmp_path, make_set, suffix):
    with pytest.raises(WriteFailedError, match="that the folder exists"):
        make_set().save(tmp_path / "missing" / f"v{suffix}")


@every_format
def test_fewer_rows_than_announced(tmp_path, make_set, space, suffix):
    def write():
        with open_writer(tmp_path / f"v{suffix}", space, rows=9) as writer:
            writer.write(make_set())

    with pytest.raises(CountMismatchError, match="9 rows in all; got 5"):
        write()
    assert content(tmp_path) == {}


@every_format
def test_nothing_written_at_all(tmp_path, space, suffix):
    def write():
        with open_writer(tmp_path / f"v{suffix}", space, rows=9):
            pass

    with pytest.raises(CountMismatchError, match="9 rows in all; got 0"):
        write()
    assert content(tmp_path) == {}


@every_format
@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (10, DuplicateIdError, "5 repeated"),
        (9, CountMismatchError, "9 rows in all; got 10"),
    ],
)
def test_the_same_batch_twice(tmp_path, make_set, suffix, rows, error, message):  # noqa: PLR0917 - fixtures, by name
    def write():
        with open_writer(tmp_path / f"v{suffix}", make_set().space, rows=rows) as writer:
            writer.write(make_set())
            writer.write(make_set())

    with pytest.raises(error, match=message):
        write()
    assert content(tmp_path) == {}


@every_format
def test_a_batch_of_another_space(tmp_path, space, suffix):
    other = VectorSet(["a"], [[1, 2, 3, 4]], Space(model="other", dim=4))

    def write():
        with open_writer(tmp_path / f"v{suffix}", space, rows=1) as writer:
            writer.write(other)

    with pytest.raises(SpaceMismatchError, match="vectors for this file with model 'm'; got"):
        write()
    assert content(tmp_path) == {}


def test_what_the_writer_refuses_before_it_writes(tmp_path, space):
    for arguments, error in (
        ({"path": tmp_path / "v.npz", "rows": 0}, ParameterError),
        ({"path": tmp_path / "v.npz", "rows": 1, "dtype": "float64"}, UnknownNameError),
        ({"path": tmp_path / "v.csv", "rows": 1}, UnknownFormatError),
    ):
        with pytest.raises(error), open_writer(space=space, **arguments):
            pass  # pragma: no cover
    assert content(tmp_path) == {}


@every_format
def test_a_space_given_beside_the_file(tmp_path, make_set, space, suffix):
    path = tmp_path / f"v{suffix}"
    make_set().save(path)
    assert VectorSet.load(path, space=space.with_kind("passage")).space == space
    with pytest.raises(SpaceMismatchError, match="model 'n'; got model 'm'"):
        VectorSet.load(path, space=Space(model="n", dim=4))


@every_file
def test_a_missing_file(tmp_path, suffix):
    with pytest.raises(MissingFileError, match="nothing there"):
        VectorSet.load(tmp_path / f"v{suffix}")
    (tmp_path / f"v{suffix}").mkdir()
    with pytest.raises(MissingFileError, match="a folder"):
        VectorSet.load(tmp_path / f"v{suffix}")


@pytest.mark.parametrize("name", ["v.csv", "v", "v.npz.bak"])
def test_an_unknown_ending(tmp_path, make_set, name):
    (tmp_path / name).write_text("")
    with pytest.raises(UnknownFormatError, match=r"ending in \.npz, \.npy.*got 'v"):
        VectorSet.load(tmp_path / name)
    with pytest.raises(UnknownFormatError):
        make_set().save(tmp_path / name)


@every_format
def test_an_ending_in_capitals(tmp_path, make_set, suffix):
    make_set().save(tmp_path / f"v{suffix.upper()}")
    assert_equal(VectorSet.load(tmp_path / f"v{suffix.upper()}"), make_set())


@every_format
def test_only_npy_stays_on_disk(tmp_path, make_set, suffix):
    path = tmp_path / f"v{suffix}"
    make_set().save(path)
    if suffix == ".npy":
        assert isinstance(VectorSet.load(path, memory_map=True).vectors, np.memmap)
    else:
        with pytest.raises(UnsupportedOperationError, match=r"stay on disk \(\.npy\)"):
            VectorSet.load(path, memory_map=True)


@every_file
def test_an_empty_file(tmp_path, make_set, suffix):
    path = tmp_path / f"v{suffix}"
    make_set().save(path)
    path.write_bytes(b"")
    with pytest.raises(CorruptFileError):
        VectorSet.load(path)


@every_file
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_file_cut_short(tmp_path, make_set, suffix, share):
    path = tmp_path / f"v{suffix}"
    make_set(50).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(CorruptFileError, match=r"expected 'v\.") as caught:
        VectorSet.load(path)
    assert caught.value.__notes__ == [f"while reading v{suffix}"]


@every_file
def test_garbage(tmp_path, make_set, suffix):
    path = tmp_path / f"v{suffix}"
    make_set().save(path)
    path.write_bytes(np.random.default_rng(0).bytes(5_000))
    with pytest.raises(CorruptFileError):
        VectorSet.load(path)


@every_file
def test_any_damaged_byte_gives_our_own_error_or_a_checked_set(tmp_path, make_set, suffix):
    """Only formats with a checksum can notice a changed number; none may raise anything else."""
    path = tmp_path / f"v{suffix}"
    make_set(20).save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(150):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), rng.integers(1, 4)):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            found = VectorSet.load(path, space=None)
        except IsthmusError as error:
            assert error.do  # noqa: PT017 - either outcome is right
        else:
            assert np.isfinite(found.matrix()).all()
            assert found.matrix().shape == (len(found), found.dim)


@every_file
def test_a_file_of_another_width_than_its_space(tmp_path, make_set, suffix, monkeypatch):
    make_set().save(tmp_path / f"v{suffix}")
    other = Space(model="m", dim=3)
    form = FORMATS[suffix]
    raw = form.read(tmp_path / f"v{suffix}", Asked())
    changed = type(form)(
        suffix=suffix,
        read=lambda path, mapped: type(raw)(ids=raw.ids, vectors=raw.vectors, space=other),  # noqa: ARG005 - the registry's call
        open_sink=form.open_sink,
    )
    monkeypatch.setitem(FORMATS, suffix, changed)
    with pytest.raises(DimensionError, match="vectors with 3 columns; got 4 columns"):
        VectorSet.load(tmp_path / f"v{suffix}")


def test_no_space_anywhere(tmp_path):
    np.savez(tmp_path / "v.npz", ids=np.array(["a"]), vectors=np.ones((1, 4), np.float32))
    with pytest.raises(InputError, match=r"got neither\. Do: write .* pass space="):
        VectorSet.load(tmp_path / "v.npz")
    given = Space(model="m", dim=4)
    assert VectorSet.load(tmp_path / "v.npz", space=given).space == given


def test_a_space_written_beside_a_file_that_names_none(tmp_path):
    path = tmp_path / "v.npz"
    np.savez(path, ids=np.array(["a"]), vectors=np.ones((1, 2)))
    with pytest.raises(InputError, match=r"write 'v.space.json' beside it, such as \{.model"):
        VectorSet.load(path)
    (tmp_path / "v.space.json").write_text('{"model": "n", "dim": 2}')
    assert VectorSet.load(path).space.model == "n"
    VectorSet(["a"], np.ones((1, 2)), Space(model="other", dim=2)).save(tmp_path / "v.npy")
    with pytest.raises(InputError, match="got neither"):  # it speaks of v.npy
        VectorSet.load(path)


@every_format
def test_batches_of_records_without_metadata(tmp_path, make_set, suffix):
    whole = make_set(25)
    whole.save(tmp_path / f"v{suffix}", dtype="float32")
    records = open_records(tmp_path / f"v{suffix}", batch_rows=10)
    for _ in range(2):  # read anew each time
        parts = list(records)
        assert [len(part.vectors) for part in parts] == [10, 10, 5]
        assert [row for part in parts for row in part.metadata] == [{}] * 25
        found = np.concatenate([part.vectors.matrix() for part in parts])
        assert found.tolist() == whole.matrix().tolist()
    assert records.space == whole.space
    assert records.asked.memory_map == (suffix == ".npy")
