"""A set of vectors is checked when it is made, and never after."""

import numpy as np
import pytest

from isthmus.errors import (
    CountMismatchError,
    DimensionError,
    DuplicateIdError,
    EmptyInputError,
    InvalidIdError,
    InvalidVectorsError,
    ParameterError,
    UnknownIdError,
    ZeroVectorError,
)
from isthmus.spaces import Space, VectorSet

SPACE = Space(model="m", dim=2)
L2 = Space(model="m", dim=2, metric="l2")


def two() -> VectorSet:
    return VectorSet(["a", "b"], [[1, 2], [3, 4]], SPACE)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, ">f4"])
def test_numbers_become_float32(dtype):
    vectors = VectorSet(["a", "b"], np.array([[1, 2], [3, 4]], dtype=dtype), SPACE)
    assert vectors.vectors.dtype == np.float32
    assert vectors.matrix().tolist() == [[1, 2], [3, 4]]
    assert (len(vectors), vectors.dim) == (2, 2)
    assert repr(vectors) == "VectorSet(2 rows of m (2, cosine))"


def test_a_float32_array_is_not_copied_and_cannot_be_changed_through_the_set():
    given = np.ones((1, 2), dtype=np.float32)
    vectors = VectorSet(["a"], given, SPACE)
    assert np.shares_memory(vectors.vectors, given)
    with pytest.raises(ValueError, match="read-only"):
        vectors.vectors[0, 0] = 2
    with pytest.raises(ValueError, match="read-only"):
        vectors.ids[0] = "b"
    given[0, 0] = 3  # the caller's own array is as it was


@pytest.mark.parametrize(
    ("ids", "values", "error", "message"),
    [
        (["a"], [[1, 2], [3, 4]], CountMismatchError, "each of 2 vectors; got 1 ids"),
        (["a", "a"], [[1, 2], [3, 4]], DuplicateIdError, "1 repeated: 'a'"),
        (["a", ""], [[1, 2], [3, 4]], InvalidIdError, "empty one in row 1"),
        (["a", "b"], [[1, 2, 3], [4, 5, 6]], DimensionError, "2 columns; got 3 columns"),
        (["a"], [1, 2], DimensionError, r"two axes .*shape \(2,\)"),
        (["a", "b"], [[1, 2], [3]], InvalidVectorsError, "several lengths"),
        (["a"], [["x", "y"]], InvalidVectorsError, "as numbers; got an array of type <U1"),
        (["a", "b"], [[1, 2], [np.nan, 4]], InvalidVectorsError, "NaN or infinity in row 1"),
        (["a", "b"], [[1, np.inf], [3, 4]], InvalidVectorsError, "NaN or infinity in row 0"),
        (["a"], [[1e300, 1]], InvalidVectorsError, r"as float32 holds them; got 1.0e\+300"),
        (["a", "b"], [[1, 2], [0, 0]], ZeroVectorError, "only zeros in row 1"),
        ([], np.zeros((0, 2)), EmptyInputError, "at least one row"),
    ],
)
def test_what_is_refused(ids, values, error, message):
    with pytest.raises(error, match=message):
        VectorSet(ids, values, SPACE)


def test_infinities_that_cancel_are_found():
    with pytest.raises(InvalidVectorsError, match="row 1"):
        VectorSet(["a", "b"], [[1, 1], [np.inf, -np.inf]], SPACE)


def test_large_finite_numbers_are_not_taken_for_infinity():
    values = np.full((3, 2), 3e38, dtype=np.float32)
    assert VectorSet(["a", "b", "c"], values, L2).matrix().tolist() == values.tolist()


def test_a_zero_row_is_allowed_where_no_direction_is_needed():
    assert VectorSet(["a", "b"], [[0, 0], [0, 1]], L2).matrix().tolist() == [[0, 0], [0, 1]]


def test_rows_of_and_select():
    vectors = two()
    assert vectors.rows_of(["b", "a"]).tolist() == [1, 0]
    assert vectors.find(["b", "x"]).tolist() == [1, -1]
    picked = vectors.select([1])
    assert (picked.ids.tolist(), picked.matrix().tolist()) == (["b"], [[3, 4]])
    assert vectors.select([False, True]).ids.tolist() == ["b"]
    assert vectors.select(np.array([1, 0], dtype=np.uint8)).ids.tolist() == ["b", "a"]
    with pytest.raises(UnknownIdError, match=r"1 of 2 .*'x'"):
        vectors.rows_of(["a", "x"])


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([2], ParameterError, "rows from 0 to 1; got rows from 2 to 2"),
        ([-1], ParameterError, "-1 stands for no row"),
        ([0.0], ParameterError, "row numbers"),
        ([[0]], ParameterError, r"shape \(1, 1\)"),
        ([True], ParameterError, "2 booleans"),
        ([], EmptyInputError, "at least one row"),
        ([False, False], EmptyInputError, "at least one row"),
        ([1, 1], DuplicateIdError, "1 repeated: 'b'"),
    ],
)
def test_bad_rows(rows, error, message):
    with pytest.raises(error, match=message):
        two().select(rows)


@pytest.mark.parametrize("batch_size", [1, 2, 5, 100])
def test_batches_hold_every_row_in_order(batch_size):
    values = np.arange(1, 11, dtype=np.float32).reshape(5, 2)
    batches = list(VectorSet(list("abcde"), values, SPACE).iter_batches(batch_size))
    assert max(map(len, batches)) == min(batch_size, 5)
    assert np.concatenate([batch.ids for batch in batches]).tolist() == list("abcde")
    assert np.concatenate([batch.vectors for batch in batches]).tolist() == values.tolist()
    assert all(batch.space == SPACE for batch in batches)


def test_a_batch_size_of_nothing():
    with pytest.raises(ParameterError, match="batch_size over 0; got 0"):
        next(two().iter_batches(0))


def test_vectors_where_the_ids_belong():
    for rows in (np.ones((2, 384)), [[1.0, 2.0], [3.0, 4.0]]):
        with pytest.raises(
            InvalidIdError, match=r"ids first.*got rows of numbers, of shape \(2, "
        ) as e:
            VectorSet(rows, ["a", "b"], SPACE)
        assert "\n" not in str(e.value)
    with pytest.raises(ParameterError, match="a Space as the third argument; got a ndarray"):
        VectorSet(["a"], SPACE, np.ones((1, 2)))


def test_rows_of_a_normalised_space_have_length_one(tmp_path):
    unit = Space(model="m", dim=2, normalized=True)
    rows = np.array([[0.6, 0.8], [1.0, 0.0]], dtype=np.float32)
    assert len(VectorSet(["a", "b"], rows * np.float32(1.009), unit)) == 2
    assert len(VectorSet(["a", "b"], rows.astype(np.float16), unit)) == 2
    message = "length 1, as the space says with normalized=True; got length 2 in row 1"
    with pytest.raises(InvalidVectorsError, match=message):
        VectorSet(["a", "b"], rows * [[1], [2]], unit)
    np.save(tmp_path / "v.npy", rows * np.float32([[1], [2]]))
    (tmp_path / "v.ids.txt").write_text("a\nb\n")
    mapped = VectorSet.load(tmp_path / "v.npy", space=unit, memory_map=True)
    batches = mapped.iter_batches(1)
    assert len(next(batches)) == 1
    with pytest.raises(InvalidVectorsError, match=message):
        next(batches)
