"""What every method of linking must do: one row per method, every test on every row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field, is_dataclass
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from isthmus.errors import (
    ConflictingSeedsError,
    DegenerateVectorsError,
    InvalidVectorsError,
    ParameterError,
    TooFewPairsError,
    ZeroVectorError,
)
from isthmus.link import LINKERS, Linker, LinkProblem, Links, make, names


@dataclass(frozen=True)
class Row:
    """A method as the suite uses it.

    seeds: of 120 shared objects, enough for it.
    many: rows a side where threads share out work.
    needs_overlap: takes the number of shared objects.
    one_point: can use seeds that are one point on one side.
    """

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 40
    many: int = 1_200
    needs_overlap: bool = False
    one_point: bool = True

    def make(self, shared: int) -> Linker:
        given = {"overlap": shared} if self.needs_overlap else {}
        return make(self.name, **self.params, **given)


ROWS = [
    Row("auto", seeds=15),
    Row("geh", {"max_iterations": 3}, seeds=15),
    Row("self_training", seeds=15),
    Row("procrustes"),
    Row("procrustes", {"undetermined": "identity"}),
    Row("linear", {"learning_rate": 0.05}),
    Row("cca", one_point=False),
    Row("mlp", {"hidden": 128}, seeds=100),
    Row("rcsls"),
    Row("ugw", many=100),
    Row("ao", {"steps": 25}, many=100, needs_overlap=True),
]

EQUAL, UP, DOWN = (10, 10), (10, 14), (14, 10)


@pytest.fixture(params=ROWS, ids=lambda row: "-".join([row.name, *map(str, row.params.values())]))
def row(request):
    return request.param


@dataclass(frozen=True)
class Planted:
    """Two turned, noised and shuffled views; ``partner`` is the target row of each, or -1."""

    source: np.ndarray
    target: np.ndarray
    partner: np.ndarray
    shared: int

    def seeds(self, count):
        rows = np.flatnonzero(self.partner >= 0)[:count]
        return np.column_stack((rows, self.partner[rows]))

    def problem(self, count):
        return LinkProblem.of_rows(self.source, self.target, self.seeds(count))


def planted(shared=120, alone=(0, 0), dims=EQUAL, noise=0.02, seed=0):
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((shared + sum(alone), min(dims)))
    latent /= np.linalg.norm(latent, axis=1, keepdims=True)
    of_source = rng.permutation(shared + alone[0])
    of_target = rng.permutation(np.r_[:shared, shared + alone[0] : len(latent)])
    sides = []
    for objects, dim in zip((of_source, of_target), dims, strict=True):
        turn = np.linalg.qr(rng.standard_normal((dim, min(dims))))[0].T
        blur = rng.standard_normal((len(objects), dim)) * noise / np.sqrt(dim)
        sides.append((latent[objects] @ turn + blur).astype(np.float32))
    place = np.full(len(latent), -1)
    place[of_target] = np.arange(len(of_target))
    return Planted(*sides, place[of_source], shared)


def share_of_true(links: Links, data: Planted) -> float:
    return float(np.mean(data.partner[links.source_rows] == links.target_rows))


def same(one: Links, other: Links) -> None:
    for name in ("source_rows", "target_rows", "posterior", "votes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.threshold, one.views, one.method) == (other.threshold, other.views, other.method)
    assert [step.links for step in one.history] == [step.links for step in other.history]


def test_every_method_has_a_row():
    assert {row.name for row in ROWS} == set(names()) == set(LINKERS)


def test_a_method_is_a_frozen_dataclass_that_bears_its_name(row):
    method = row.make(120)

    assert is_dataclass(method)
    assert method.name == row.name
    assert method == row.make(120)
    with pytest.raises(FrozenInstanceError):
        method.anything = 1
    with pytest.raises(TypeError, match="positional argument"):
        type(method)(1)


def test_a_planted_cloud_is_recovered(row):
    data = planted()

    links = row.make(120).link(data.problem(row.seeds))

    assert len(links) >= 114
    assert share_of_true(links, data) >= 0.97


@pytest.mark.parametrize("dims", [EQUAL, UP, DOWN], ids=str)
def test_unequal_widths_and_sizes(row, dims):
    data = planted(alone=(20, 80), dims=dims)

    links = row.make(120).link(data.problem(row.seeds))

    assert share_of_true(links, data) * len(links) >= 0.85 * data.shared
    assert_sound(links, data)


def assert_sound(links: Links, data: Planted) -> None:
    assert len(np.unique(links.source_rows)) == len(np.unique(links.target_rows)) == len(links)
    assert 0 <= links.source_rows.min() <= links.source_rows.max() < len(data.source)
    assert 0 <= links.target_rows.min() <= links.target_rows.max() < len(data.target)
    assert links.source_rows.dtype == links.target_rows.dtype == links.votes.dtype == np.int64
    assert ((links.posterior >= 0) & (links.posterior <= 1)).all()
    order = np.lexsort((links.source_rows, -links.posterior))
    np.testing.assert_array_equal(order, np.arange(len(links)))
    assert ((links.votes >= 0) & (links.votes <= links.views)).all()  # a seed may have none
    assert [step.number for step in links.history] == [*range(1, len(links.history) + 1)]
    assert all(0 <= step.ratio <= 2 and step.seconds >= 0 for step in links.history)


def test_links_say_what_made_them(row):
    data = planted(alone=(30, 30))

    links = row.make(120).link(data.problem(row.seeds))

    assert links.method == row.name
    assert not links.interrupted
    assert_sound(links, data)


def test_seeds_from_elsewhere(row):
    data = planted(shared=240, dims=UP)
    here = np.flatnonzero(data.partner < 120)
    there = np.flatnonzero(data.partner >= 120)[: row.seeds]
    problem = LinkProblem.of_vectors(
        data.source[here], data.target[:120], data.source[there], data.target[data.partner[there]]
    )

    links = row.make(120).link(problem)

    assert len(links) >= 108
    assert np.mean(data.partner[here][links.source_rows] == links.target_rows) >= 0.95


def test_the_same_seed_gives_the_same_links_on_any_number_of_threads(row):
    data = planted(shared=row.many, dims=UP, noise=0.3)
    problem = data.problem(row.seeds)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(row.make(row.many).link(problem, seed=3))

    assert len(found[0]) > 0
    same(*found)


def test_nothing_given_is_changed_and_no_global_randomness_is_touched(row):
    data = planted(alone=(10, 10))
    given = data.source, data.target, data.seeds(row.seeds)
    copies = [array.copy() for array in given]
    for array in given:
        array.flags.writeable = False
    problem = LinkProblem.of_rows(*given)
    for array in (problem.source, problem.target, problem.seed_source, problem.seed_target):
        array.flags.writeable = False
    np.random.seed(7)  # noqa: NPY002 - the global state is what is tested
    expected = np.random.RandomState(7).random_sample()

    row.make(120).link(problem)

    assert np.random.random_sample() == expected  # noqa: NPY002
    for array, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_going_on_from_every_state_gives_the_same_links(row):
    problem = planted(alone=(30, 30), noise=0.4).problem(row.seeds)
    states = []
    whole = row.make(120).link(problem, seed=1, watch=states.append)

    assert [state.done for state in states] == [False] * (len(states) - 1) + [True]
    for state in states:
        same(row.make(120).link(problem, seed=1, resume=state), whole)


def test_ctrl_c_after_the_first_state_keeps_the_links(row):
    data = planted(alone=(30, 30))

    def stop(_):
        raise KeyboardInterrupt

    links = row.make(120).link(data.problem(row.seeds), watch=stop)

    assert links.interrupted
    assert len(links.history) == 1
    assert_sound(links, data)


def test_ctrl_c_before_it_is_ctrl_c(row, monkeypatch):
    data = planted()
    method = row.make(120)

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(method), "iterate", stop)
    with pytest.raises(KeyboardInterrupt):
        method.link(data.problem(row.seeds))


def test_few_rows_and_the_fewest_seeds(row):
    cloud = np.random.default_rng(2).standard_normal((4, 6))
    problem = LinkProblem.of_rows(cloud, cloud[:, ::-1], [(0, 0), (1, 1), (2, 2)])

    links = row.make(4).link(problem)

    assert 1 <= len(links) <= 4


def test_duplicates_inside_a_cloud(row):
    data = planted(noise=0.0)
    data.source[60:70], data.target[20:30] = data.source[60], data.target[20]

    assert_sound(row.make(120).link(data.problem(row.seeds)), data)


def test_the_same_cloud_twice_is_linked_to_itself(row):
    cloud = planted().source
    problem = LinkProblem.of_rows(cloud, cloud, [(i, i) for i in range(row.seeds)])

    links = row.make(120).link(problem)

    assert len(links) >= 117
    assert np.mean(links.source_rows == links.target_rows) >= 0.98


def test_seeds_of_one_point_on_one_side(row):
    data = planted()
    problem = LinkProblem.of_vectors(data.source, data.target, np.ones((20, 10)), data.target[:20])

    if row.one_point:
        assert_sound(row.make(120).link(problem), data)
    else:
        with pytest.raises(DegenerateVectorsError, match="two different rows in X"):
            row.make(120).link(problem)


def bad():
    data = planted(shared=20)
    cloud, seeds = data.source, data.seeds(5)
    with_nan, with_zeros = cloud.copy(), cloud.copy()
    with_nan[3, 1], with_zeros[3] = np.nan, 0
    twice = np.r_[seeds, [[seeds[0, 0], seeds[1, 1]]]]
    return {
        "nan": ((with_nan, cloud, seeds), InvalidVectorsError, "row 3"),
        "zeros": ((cloud, with_zeros, seeds), ZeroVectorError, "row 3"),
        "one row": ((cloud[:1], cloud, seeds), DegenerateVectorsError, "different rows"),
        "equal": ((cloud, cloud[:1].repeat(20, 0), seeds), DegenerateVectorsError, "equal rows"),
        "no seeds": ((cloud, cloud, []), TooFewPairsError, "at least 3 seed pairs; got 0"),
        "two seeds": ((cloud, cloud, seeds[:2]), TooFewPairsError, "at least 3 seed pairs; got 2"),
        "range": ((cloud, cloud, seeds + 20), ParameterError, "from 0 to 19"),
        "conflict": ((cloud, cloud, twice), ConflictingSeedsError, "with"),
    }


@pytest.mark.parametrize("case", list(bad()))
def test_clouds_and_seeds_that_cannot_be_used_are_refused(case):
    given, error, text = bad()[case]

    with pytest.raises(error, match=text):
        LinkProblem.of_rows(*given)
