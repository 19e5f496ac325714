"""The default method, from seeds to verdict, on planted clouds."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from isthmus._linalg import normalise
from isthmus.errors import (
    DegenerateVectorsError,
    InvalidVectorsError,
    ParameterError,
    ZeroVectorError,
)
from isthmus.link import Auto, LinkProblem
from isthmus.link.growth import Growth
from isthmus.testing import planted_pair

FEW = {"shared": 100, "alone": (30, 30)}


def same(one, other):
    for name in ("source_rows", "target_rows", "posterior", "votes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.threshold, one.views, one.overlap) == (other.threshold, other.views, other.overlap)
    assert one.verdict == other.verdict


def assert_probabilities(links):
    assert np.isfinite(links.posterior).all()
    assert ((links.posterior >= 0) & (links.posterior <= 1)).all()
    assert 0.0 <= links.threshold <= 1.0
    assert ((links.votes >= 0) & (links.votes <= links.views)).all()


@pytest.mark.parametrize("seed", [100, 101])
@pytest.mark.parametrize("dims", [(24, 24), (24, 32), (32, 24)], ids=str)
def test_the_same_objects_in_another_space_are_recovered_exactly(overlapping, dims, seed):
    data = overlapping(250, (0, 0), dims=dims, noise=0.05, seed=seed)
    links = Auto().link(data.problem(), seed=1)

    assert len(links) == data.hits(links) == 250
    assert len(links.matched_rows()) == len(links.matched_rows(precision=0.95)) == 250
    assert links.overlap == pytest.approx(250, rel=0.02)
    assert links.verdict.status == "linked"
    assert_probabilities(links)


@pytest.mark.parametrize("seed", [100, 101, 102])
@pytest.mark.parametrize("dims", [(24, 24), (24, 32), (32, 20)], ids=str)
def test_objects_of_one_cloud_alone_stay_without_a_link(overlapping, dims, seed):
    """Every shared object is found; of 50 lone ones a side, a few are linked."""
    data = overlapping(200, (50, 50), dims=dims, seed=seed)
    links = Auto().link(data.problem(), seed=1)
    found = links.matched_rows()

    assert data.hits(found) >= 197
    assert data.hits(found) / len(found) >= 0.93
    sure = links.matched_rows(0.9)
    assert data.hits(sure) / len(sure) >= 0.97
    assert links.overlap == pytest.approx(200, rel=0.08)
    assert links.verdict.status == "linked"
    assert_probabilities(links)


def test_a_small_overlap(overlapping):
    """A tenth of all objects is in both clouds: 60 of 330 a side.

    There are about 40 decoys, so how sure the right links are varies with the seed.
    """
    data = overlapping(60, (270, 270), noise=0.05)
    links = Auto().link(data.problem(), seed=2)

    assert data.hits(links.matched_rows()) >= 57
    assert links.overlap == pytest.approx(60, rel=0.7)
    sure = links.matched_rows(precision=0.95)
    assert data.hits(sure) >= len(sure) - 1
    assert_probabilities(links)


@pytest.mark.parametrize("turned", ["as it is", "exchanged"])
def test_a_cloud_of_a_tenth_the_size(overlapping, turned):
    alone = (0, 450) if turned == "as it is" else (450, 0)
    data = overlapping(50, alone, noise=0.05)
    links = Auto().link(data.problem(), seed=1)

    assert data.hits(links.matched_rows()) >= 45
    assert len(links.matched_rows()) <= 50
    assert 25 <= links.overlap <= 50
    assert_probabilities(links)


def test_duplicates_inside_a_cloud(overlapping):
    """Ten rows are one object: one of them may be linked to it, and the others are not sure."""
    data = overlapping(200, (30, 30), noise=0.05)
    rows = np.setdiff1d(np.flatnonzero(data.partner >= 0), data.seeds[:, 0])[:10]
    data.source[rows] = data.source[rows[0]]
    links = Auto().link(data.problem(), seed=1)

    right = data.partner[links.source_rows] == links.target_rows
    others = ~np.isin(links.source_rows, rows)
    assert np.count_nonzero(right & others & (links.posterior >= links.threshold)) >= 187
    assert np.count_nonzero(np.isin(links.source_rows, rows) & (links.posterior >= 0.5)) <= 10
    assert_probabilities(links)


def test_the_same_cloud_twice(overlapping):
    cloud = overlapping().source
    seeds = [(row, row) for row in range(15)]
    links = Auto().link(LinkProblem.of_rows(cloud, cloud, seeds))

    np.testing.assert_array_equal(links.source_rows, links.target_rows)
    assert len(links.matched_rows()) == len(cloud)
    assert links.verdict.status == "linked"


def test_seeds_of_another_domain():
    """Other clusters in the same two spaces: none of the seeds is a row of a cloud."""
    pair = planted_pair(240, 24, 24, noise=0.05, seed=101)
    turn = pair.weight
    cloud = planted_pair(250, 24, 24, seed=100).source.vectors
    blur = np.random.default_rng(7).standard_normal((250, 24)) * 0.01
    source, target = cloud[:220], (cloud @ turn + blur)[::-1][:220]  # 190 are in both
    chosen = np.random.default_rng(8).permutation(240)[:20]
    problem = LinkProblem.of_vectors(
        source, target, pair.source.vectors[chosen], pair.target.vectors[chosen]
    )
    links = Auto().link(problem)

    assert problem.seed_rows is None
    found = links.matched_rows()
    hits = np.count_nonzero(found.source_rows + found.target_rows == 249)
    assert hits >= 187
    assert hits / len(found) >= 0.93
    assert links.verdict.status == "linked"


@pytest.mark.parametrize("seed", [100, 101, 102])
def test_wrong_seeds_are_survived_and_named(overlapping, seed):
    data = overlapping(wrong=3, seed=seed)
    links = Auto().link(data.problem(), seed=1)

    found = links.matched_rows()
    assert data.hits(found) >= 195
    assert data.hits(found) / len(found) >= 0.93
    for source, target in data.seeds[:3]:
        assert not ((found.source_rows == source) & (found.target_rows == target)).any()
        assert f"{source} with {target}" in links.verdict.reasons[-1]


def test_few_seeds_are_doubtful(overlapping):
    links = Auto().link(overlapping(seeds=3).problem())
    assert links.verdict.status in {"doubtful", "no_overlap_found"}
    assert links.posterior.max() <= 0.5
    assert len(links.matched_rows(precision=0.95)) == 0


def test_seeds_that_say_nothing_are_doubtful(overlapping):
    data = overlapping()
    point = np.ones((20, 24))
    problem = LinkProblem.of_vectors(data.source, data.target, point, data.target[:20])
    links = Auto().link(problem)

    assert links.verdict.status == "doubtful"
    assert "grew from the 20 seeds" in links.verdict.reasons[0]
    assert len(links.matched_rows(precision=0.95)) == 0


def test_the_same_on_one_thread_and_on_two(overlapping):
    problem = overlapping(noise=0.3).problem()
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(Auto().link(problem, seed=5))
    same(*found)


def test_the_seed_decides_and_steps_say_what_they_did(overlapping):
    problem = overlapping(**FEW, noise=0.4).problem()
    one, again, other = (Auto().link(problem, seed=seed) for seed in (5, 5, 6))
    same(one, again)
    assert not np.array_equal(one.posterior, other.posterior)
    rounds = Growth().rounds(24)
    assert [step.phase for step in one.history] == ["grow"] * rounds + ["weigh"] * 2
    assert [step.number for step in one.history] == [*range(1, rounds + 3)]
    assert [step.views for step in one.history] == [1] * rounds + [4] * 2
    assert [step.anchors for step in one.history[:rounds]] == [
        15,
        *(step.links for step in one.history[: rounds - 1]),
    ]


def test_going_on_from_every_state(overlapping):
    problem = overlapping(**FEW, noise=0.4).problem()
    states = []
    whole = Auto().link(problem, seed=2, watch=states.append)

    assert [state.done for state in states] == [False] * (len(states) - 1) + [True]
    for number, state in enumerate(states):
        more = []
        same(Auto().link(problem, seed=2, resume=state, watch=more.append), whole)
        assert len(more) == len(states) - 1 - number


@pytest.mark.parametrize("place", [1, 5, -2])
def test_ctrl_c_keeps_the_links_so_far(overlapping, place):
    """In the first round of growth, in the fifth, and after the first pass."""
    data = overlapping(**FEW)
    rounds = Growth().rounds(24)
    last = place if place > 0 else rounds + 1

    def stop(state):
        if len(state.history) == last:
            raise KeyboardInterrupt

    links = Auto().link(data.problem(), watch=stop)

    assert links.interrupted
    assert len(links.history) == last
    assert links.verdict.status == "not_judged"
    assert (links.overlap is None) == (last <= rounds)
    assert len(links) > 0
    assert_probabilities(links)
    if last > 1:
        assert data.hits(links) >= 90


def test_ctrl_c_inside_a_pass_keeps_the_links_before_it(overlapping, monkeypatch):
    data = overlapping(**FEW)
    states = []

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("isthmus.link.auto.make_decoys", stop)
    links = Auto().link(data.problem(), watch=states.append)

    assert links.interrupted
    assert {step.phase for step in links.history} == {"grow"}
    assert {*zip(links.source_rows, links.target_rows, strict=True)} == {
        *map(tuple, states[-1].pairs)
    }
    assert data.hits(links) >= 95
    monkeypatch.undo()
    same(
        Auto().link(data.problem(), resume=states[-1]),
        Auto().link(data.problem()),
    )


def test_ctrl_c_while_judging_keeps_the_weighed_links(overlapping, monkeypatch):
    data = overlapping(**FEW)
    whole = Auto().link(data.problem())

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("isthmus.link.auto.judge", stop)
    links = Auto().link(data.problem())

    assert links.interrupted
    assert links.verdict.status == "not_judged"
    np.testing.assert_array_equal(links.posterior, whole.posterior)  # believed in full there
    assert whole.verdict.status == "linked"


def test_large_clouds_have_fewer_rounds_and_one_pass(overlapping, monkeypatch):
    problem = overlapping(**FEW).problem()
    monkeypatch.setattr("isthmus.link.auto.LARGE_ROWS", 129)
    fast = Auto().link(problem)
    phases = [step.phase for step in fast.history]
    assert phases == ["grow"] * Growth(rank_growth=1.3).rounds(24) + ["weigh"]
    monkeypatch.setattr("isthmus.link.auto.LARGE_ROWS", 130)  # of 130 rows a side: not over it
    assert [step.phase for step in Auto().link(problem).history].count("weigh") == 2


def test_turning_and_stretching_a_cloud_changes_no_link(overlapping):
    data = overlapping(**FEW)
    turn = np.linalg.qr(np.random.default_rng(9).standard_normal((24, 24)))[0]
    length = np.random.default_rng(10).uniform(0.5, 2, (len(data.source), 1))
    plain = Auto().link(data.problem())
    moved = Auto().link(LinkProblem.of_rows(length * data.source @ turn, data.target, data.seeds))

    one, other = (
        {*zip(found.source_rows, found.target_rows, strict=True)}
        for found in (plain.matched_rows(0.9), moved.matched_rows(0.9))
    )
    assert len(one ^ other) <= 3  # float32 rounding, where two rows are as good
    assert len(one) >= 95


def bad():
    cloud = normalise(np.random.default_rng(0).standard_normal((20, 6)))
    with_nan, with_zeros = cloud.copy(), cloud.copy()
    with_nan[3, 1], with_zeros[3] = np.nan, 0
    return {
        "nan": (with_nan, InvalidVectorsError),
        "zeros": (with_zeros, ZeroVectorError),
        "one point": (cloud[:1], DegenerateVectorsError),
        "equal": (cloud[:1].repeat(20, axis=0), DegenerateVectorsError),
        "lengths": (np.outer(np.arange(1, 21), cloud[0]), DegenerateVectorsError),
    }


@pytest.mark.parametrize("case", list(bad()))
@pytest.mark.parametrize("side", ["source", "target"])
def test_clouds_that_cannot_be_used_are_refused(case, side):
    cloud, error = bad()[case]
    other = normalise(np.random.default_rng(1).standard_normal((20, 6)))
    clouds = (cloud, other) if side == "source" else (other, cloud)
    with pytest.raises(error, match=side):
        Auto().link(LinkProblem.of_rows(*clouds, [(0, 0), (1, 1), (2, 2)]))


@pytest.mark.parametrize("case", range(12))
def test_clouds_of_a_few_rows(case):
    """Random sizes, widths and seeds, down to three rows and one dimension."""
    rng = np.random.default_rng(case)
    sizes, dims = rng.integers(3, 16, 2), rng.integers(1, 8, 2)
    source, target = (rng.standard_normal(shape) for shape in zip(sizes, dims, strict=True))
    if case % 3 == 0:
        source[len(source) // 2 :] = source[0]
    count = int(rng.integers(3, sizes.min() + 1))
    seeds = np.column_stack([rng.permutation(size)[:count] for size in sizes])
    links = Auto().link(LinkProblem.of_rows(source, target, seeds), seed=case)

    assert 1 <= len(links) <= sizes.min()
    assert links.verdict.status != "not_judged"
    assert_probabilities(links)


@pytest.mark.parametrize("seed", range(6))
def test_a_handful_of_unrelated_rows_is_never_sure(seed):
    """All of five rows are linked by chance: no posterior to speak of, and no verdict for it."""
    rng = np.random.default_rng(seed)
    clouds = rng.standard_normal((5, 24)), rng.standard_normal((5, 24))
    seeds = np.column_stack((np.arange(5), rng.permutation(5)))
    links = Auto().link(LinkProblem.of_rows(*clouds, seeds))
    assert len(links.matched_rows(precision=0.95)) == 0
    assert links.verdict.status != "linked"


def test_parameters_are_checked():
    with pytest.raises(ParameterError, match="passes"):
        Auto(passes=0)
    with pytest.raises(ParameterError, match="csls_neighborhood"):
        Auto(csls_neighborhood=2.5)
