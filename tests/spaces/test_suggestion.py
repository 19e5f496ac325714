"""Which rows are suggested, and what is refused."""

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import (
    CountMismatchError,
    InvalidVectorsError,
    ParameterError,
    SpaceMismatchError,
    UnknownFormatError,
    UnknownNameError,
)
from isthmus.spaces import Pairs, Space, VectorSet
from isthmus.spaces.suggestion import MOST_ROWS, STRATEGIES

PROPERTY = settings(derandomize=True, deadline=None, max_examples=15)
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
SPACE = Space(model="m", dim=3, metric="l2")


def set_of(rows: np.ndarray, space: Space = SPACE) -> VectorSet:
    return VectorSet([f"d{row}" for row in range(len(rows))], rows, space)


def ask(a: VectorSet, **asked):
    if asked.get("strategy") == "uncertainty":
        asked.setdefault("scores", np.arange(len(a)))
    return Pairs.suggest(a, **asked)


@every_strategy
@PROPERTY
@given(
    n_all=st.integers(1, 40), share=st.floats(0, 1), repeats=st.booleans(), seed=st.integers(0, 5)
)
def test_every_suggestion_is_n_different_rows_and_the_same_again(
    strategy, n_all, share, repeats, seed
):
    rows = np.random.default_rng(seed).standard_normal((n_all, 3)).astype(np.float32)
    if repeats:
        rows[:] = rows[0]
    n = max(1, round(share * n_all))
    a = set_of(rows)
    found = ask(a, n=n, strategy=strategy, seed=seed)
    assert len(found) == len(set(found.rows.tolist())) == n
    np.testing.assert_array_equal(a.ids[found.rows], found.ids)
    again = ask(a, n=n, strategy=strategy, seed=seed)
    np.testing.assert_array_equal(found.rows, again.rows)


def test_uncertainty_takes_the_least_sure_of_each_cluster_in_order():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(4), 25)
    rows = 50 * np.eye(4)[group][:, :3] + 0.1 * rng.standard_normal((100, 3))
    scores = rng.random(100)
    found = ask(set_of(rows), n=4, strategy="uncertainty", scores=scores)
    assert sorted(group[found.rows]) == [0, 1, 2, 3]
    for row in found.rows:
        assert scores[row] == scores[group == group[row]].max()
    assert (np.diff(found.scores) <= 0).all()


def test_copies_of_the_least_sure_row_are_not_all_taken():
    rows = np.concatenate([np.zeros((50, 3)), np.random.default_rng(1).normal(size=(50, 3))])
    scores = np.r_[np.full(50, 0.9), np.full(50, 0.5)]
    found = ask(set_of(rows), n=10, strategy="uncertainty", scores=scores)
    assert (found.rows < 50).sum() == 1


def test_all_rows_by_their_scores():
    scores = [0.1, 0.9, 0.5]
    found = ask(set_of(np.eye(3)), n=3, strategy="uncertainty", scores=scores)
    assert found.rows.tolist() == [1, 2, 0]


@every_strategy
def test_only_rows_near_to_where_partners_are_can_be_chosen(strategy):
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((200, 3)) + np.repeat([[0], [100]], 100, axis=0)
    near = set_of(rng.standard_normal((30, 3)) + 100)
    found = ask(set_of(rows), b=near, n=40, strategy=strategy)
    assert found.rows.min() >= 100
    more = ask(set_of(rows), b=near, n=150, strategy=strategy)
    assert len(more) == 150


def test_of_many_rows_some_are_drawn():
    rows = np.random.default_rng(0).standard_normal((MOST_ROWS + 1000, 3))
    found = ask(set_of(rows), n=3, strategy="fps")
    assert len(found) == 3


def test_the_sheet_is_a_file_of_pairs_once_it_is_filled_in(tmp_path):
    ids = ["plain", "with,comma", 'with"quote', " spaces "]
    a = VectorSet(ids, np.eye(4)[:, :3] + 1, SPACE)
    found = Pairs.suggest(a, n=4)
    found.save(tmp_path / "sheet.csv")
    with (tmp_path / "sheet.csv").open(newline="") as stream:
        lines = list(csv.reader(stream))
    assert lines[0] == ["source", "target"]
    assert [line[0] for line in lines[1:]] == found.ids.tolist()
    assert {line[1] for line in lines[1:]} == {""}
    with (tmp_path / "filled.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([lines[0], *([one[0], one[0]] for one in lines[1:])])
    pairs = Pairs.from_file(tmp_path / "filled.csv", a, a)
    assert pairs.source_ids.tolist() == found.ids.tolist()


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3", 11])
def test_a_number_that_cannot_be_chosen_is_refused(n):
    with pytest.raises(ParameterError, match="n as a whole number"):
        ask(set_of(np.eye(10)[:, :3] + 1), n=n)


@pytest.mark.parametrize("strategy", ["nearest", "", "Random", None, ["kmeans"]])
def test_another_strategy_is_refused(strategy):
    with pytest.raises(UnknownNameError, match="strategy"):
        ask(set_of(np.eye(3)), n=1, strategy=strategy)


@pytest.mark.parametrize("seed", [-1, 1.5, None])
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(ParameterError, match="seed as a whole number"):
        Pairs.suggest(set_of(np.eye(3)), n=1, seed=seed)


def test_scores_belong_to_uncertainty_and_to_nothing_else():
    with pytest.raises(ParameterError, match="uncertainty without scores"):
        Pairs.suggest(set_of(np.eye(3)), n=1, strategy="uncertainty")
    with pytest.raises(ParameterError, match="kmeans with scores"):
        Pairs.suggest(set_of(np.eye(3)), n=1, scores=[1, 2, 3])


@pytest.mark.parametrize("scores", [[1, 2], [1, 2, 3, 4], [[1, 2, 3]], 1.0])
def test_one_score_per_row_is_asked_for(scores):
    with pytest.raises(CountMismatchError, match="one score per row"):
        ask(set_of(np.eye(3)), n=1, strategy="uncertainty", scores=scores)


@pytest.mark.parametrize(
    "scores", [[1, 2, np.nan], [1, np.inf, 2], ["a", "b", "c"], [[1], [2], [3, 4]]]
)
def test_scores_that_are_no_finite_numbers_are_refused(scores):
    with pytest.raises(InvalidVectorsError, match="scores that are finite"):
        ask(set_of(np.eye(3)), n=1, strategy="uncertainty", scores=scores)


def test_where_partners_are_is_said_in_the_same_space():
    other = set_of(np.eye(3), Space(model="other", dim=3, metric="l2"))
    with pytest.raises(SpaceMismatchError, match="rows to be near to"):
        ask(set_of(np.eye(3)), b=other, n=1)


def test_a_sheet_of_another_format_is_refused(tmp_path):
    with pytest.raises(UnknownFormatError, match="csv"):
        Pairs.suggest(set_of(np.eye(3)), n=1).save(tmp_path / "sheet.xlsx")
