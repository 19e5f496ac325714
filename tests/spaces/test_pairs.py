"""Pairs: made, split, sampled, saved apart."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import (
    CountMismatchError,
    DimensionError,
    DuplicateIdError,
    EmptyInputError,
    InvalidVectorsError,
    ParameterError,
    TooFewPairsError,
    UnknownNameError,
)
from isthmus.spaces import Pairs, Space, VectorSet

A = Space(model="a", dim=2)
B = Space(model="b", dim=3, metric="l2")
PROPERTY = settings(derandomize=True, deadline=None, max_examples=40)


def sets(rows: int = 6) -> tuple[VectorSet, VectorSet]:
    """Give two sets whose row ``i`` holds the number of the object, the second in reverse order."""
    numbers = np.arange(1.0, rows + 1)
    ids = [f"o{row}" for row in range(1, rows + 1)]
    source = VectorSet(ids, np.c_[numbers, numbers], A)
    target = VectorSet(ids[::-1], np.c_[numbers, numbers, numbers][::-1], B)
    return source, target


def test_equal_ids_are_paired_in_the_order_of_the_source():
    source, target = sets()
    pairs = Pairs.from_ids(source.select([4, 0, 2]), target.select([1, 5, 0]))
    assert pairs.source_ids.tolist() == pairs.target_ids.tolist() == ["o5", "o1"]
    assert pairs.source.tolist() == [[5, 5], [1, 1]]
    assert pairs.target.tolist() == [[5, 5, 5], [1, 1, 1]]
    assert (pairs.source_space, pairs.target_space) == (A, B)
    assert pairs.weight is None
    assert repr(pairs) == "Pairs(2 from a (2, cosine) to b (3, l2))"


def test_no_id_in_both():
    source, target = sets()
    other = VectorSet(["x"], [[1, 1, 1]], B)
    with pytest.raises(EmptyInputError, match=r"source has 'o1', .*target has 'x'.*find links"):
        Pairs.from_ids(source, other)
    assert len(Pairs.from_ids(source, target)) == 6


def test_rows_and_weights():
    source, target = sets()
    pairs = Pairs.from_rows(source, target, [3, 0], np.array([5, 1]), [0.5, 1])
    assert pairs.target_ids.tolist() == ["o1", "o5"]
    assert pairs.weight.tolist() == [0.5, 1]
    assert pairs.weight.dtype == np.float32
    assert pairs.select([1]).weight.tolist() == [1]
    assert pairs.reverse().weight.tolist() == [0.5, 1]


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (([0, 1], [0], None), CountMismatchError, "source rows as target rows; got 2 and 1"),
        (([0, 9], [0, 1], None), ParameterError, "rows from 0 to 5; got rows from 0 to 9"),
        (([-1, 1], [0, 1], None), ParameterError, "rows from -1"),
        (([], [], None), EmptyInputError, "at least one row"),
        (([0, 0], [0, 1], None), DuplicateIdError, "'o1'"),
        (([0, 1], [2, 2], None), DuplicateIdError, "'o4'"),
        (([0, 1], [0, 1], [1]), CountMismatchError, "2 weights"),
        (([0, 1], [0, 1], [1, -1]), ParameterError, "not negative"),
        (([0, 1], [0, 1], [0, 0]), ParameterError, "not all zero"),
        (([0, 1], [0, 1], [1, np.nan]), ParameterError, "finite"),
    ],
)
def test_bad_rows(rows, error, message):
    with pytest.raises(error, match=message):
        Pairs.from_rows(*sets(), *rows)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"target": np.ones((3, 3))}, CountMismatchError, "each of 3 vectors; got 2 ids"),
        (
            {"target": np.ones((3, 3)), "target_ids": np.array(["x", "y", "z"])},
            CountMismatchError,
            "got 2 source rows and 3 target rows",
        ),
        ({"source": np.ones((2, 5))}, DimensionError, "2 columns; got 5 columns"),
        ({"source": np.full((2, 2), np.nan)}, InvalidVectorsError, "row 0"),
    ],
)
def test_bad_arrays(changes, error, message):
    good = {
        "source": np.ones((2, 2)),
        "target": np.ones((2, 3)),
        "source_ids": np.array(["a", "b"]),
        "target_ids": np.array(["x", "y"]),
        "source_space": A,
        "target_space": B,
    }
    assert len(Pairs(**good)) == 2
    with pytest.raises(error, match=message):
        Pairs(**{**good, **changes})


def test_links_become_weights():
    @dataclass(frozen=True)
    class Matched:
        source_rows: np.ndarray
        target_rows: np.ndarray
        confidence: np.ndarray

    pairs = Pairs.from_links(
        *sets(), Matched(np.array([0, 1]), np.array([5, 4]), np.array([0.9, 0.4]))
    )
    assert pairs.source_ids.tolist() == pairs.target_ids.tolist() == ["o1", "o2"]
    assert pairs.weight.tolist() == pytest.approx([0.9, 0.4])


def test_reverse_twice_is_the_same():
    pairs = Pairs.from_ids(*sets())
    turned = pairs.reverse()
    assert (turned.source_space, turned.target_space) == (B, A)
    assert turned.source.tolist() == pairs.target.tolist()
    assert turned.reverse().source_ids.tolist() == pairs.source_ids.tolist()


@PROPERTY
@given(rows=st.integers(2, 40), test=st.floats(0.01, 0.99), seed=st.integers(0, 9))
def test_a_split_loses_nothing(rows, test, seed):
    pairs = Pairs.from_ids(*sets(rows))
    train, held_out = pairs.split(test, seed)
    assert len(held_out) == min(max(round(test * rows), 1), rows - 1)
    numbers = [sorted(part.source[:, 0].tolist()) for part in (train, held_out)]
    assert [part.source[:, 0].tolist() for part in (train, held_out)] == numbers
    assert sorted(numbers[0] + numbers[1]) == list(range(1, rows + 1))
    assert train.target[:, 0].tolist() == train.source[:, 0].tolist()
    assert pairs.split(test, seed)[1].source_ids.tolist() == held_out.source_ids.tolist()


def test_other_seeds_give_other_splits():
    pairs = Pairs.from_ids(*sets(40))
    assert pairs.split(0.2, 0)[1].source_ids.tolist() != pairs.split(0.2, 1)[1].source_ids.tolist()


@pytest.mark.parametrize("test", [0, 1, -0.1, 1.5, float("nan")])
def test_a_share_out_of_range(test):
    with pytest.raises(ParameterError, match="between 0 and 1"):
        Pairs.from_ids(*sets()).split(test)


def test_one_pair_cannot_be_split():
    with pytest.raises(TooFewPairsError, match="at least 2 pairs to split; got 1"):
        Pairs.from_ids(*sets(1)).split()


@pytest.mark.parametrize("strategy", ["random", "fps", "kmeans", "nearest", "coverage"])
def test_a_sample_keeps_its_pairs_and_its_name(strategy):
    sample = Pairs.from_ids(*sets(30)).sample(7, strategy, seed=1)
    assert len(sample) == 7
    assert sample.strategy == strategy
    assert sample.source[:, 0].tolist() == sample.target[:, 0].tolist()
    assert sample.select([0, 1]).strategy == strategy


def test_a_bad_sample():
    pairs = Pairs.from_ids(*sets())
    with pytest.raises(TooFewPairsError, match="at least 7 pairs to choose from; got 6"):
        pairs.sample(7)
    with pytest.raises(UnknownNameError, match=r"strategy among .*; got 'fsp'.*'fps'"):
        pairs.sample(2, "fsp")


def test_a_mapped_side(tmp_path):
    source, target = sets()
    source.save(tmp_path / "v.npy")
    mapped = VectorSet.load(tmp_path / "v.npy", memory_map=True)
    pairs = Pairs.from_ids(mapped, target)
    assert pairs.source.dtype == np.float32
    assert not isinstance(pairs.source, np.memmap)
    assert pairs.source.tolist() == source.matrix().tolist()
