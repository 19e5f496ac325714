"""Judging links by growing them again from parts of the seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isthmus.link import Auto, LinkProblem, Links, LinkVerdict
from isthmus.link.growth import Growth
from isthmus.link.judging import UNCHECKED, judge, regrow


def links_of(rows, targets, posterior=0.99):
    return Links(
        source_rows=np.asarray(rows),
        target_rows=np.asarray(targets),
        posterior=np.broadcast_to(posterior, (len(rows),)).astype(np.float64),
        votes=np.ones(len(rows), np.int64),
        views=4,
        threshold=0.5,
        method="auto",
        history=(),
        verdict=LinkVerdict("not_judged"),
    )


def true_links(data, posterior=0.99):
    rows = np.flatnonzero(data.partner >= 0)
    return links_of(rows, data.partner[rows], posterior)


def judged(data, links, seed=1):
    return judge(data.problem(), links, growth=Growth(), seed=seed)


def test_true_links_are_believed(overlapping):
    found = judged(data := overlapping(), true_links(data))
    assert found.belief == 1.0
    assert found.verdict.status == "linked"
    (reason,) = found.verdict.reasons
    assert "200 links have a posterior of 0.9 or more" in reason
    assert "were found again" in reason


def test_links_that_do_not_grow_again_are_not(overlapping):
    data = overlapping()
    links = true_links(data)
    found = judged(data, replace(links, target_rows=np.roll(links.target_rows, 7)))
    assert found.belief == 0.0
    assert found.verdict.status == "no_overlap_found"
    assert "of the links were found again" in found.verdict.reasons[0]


def test_what_grows_again_in_part_is_believed_in_part(overlapping):
    """Of the sure links 35 % are true: halfway from .2, not believed, to .5, believed."""
    data = overlapping()
    links = true_links(data)
    targets = links.target_rows.copy()
    targets[70:] = np.roll(targets[70:], 7)
    found = judged(data, replace(links, target_rows=targets))
    assert found.belief == pytest.approx(0.5, abs=0.05)
    assert found.verdict.status == "doubtful"
    assert "links change with the seeds" in found.verdict.reasons[0]


def test_too_few_sure_links_are_no_overlap(overlapping):
    data = overlapping()
    found = judged(data, true_links(data, posterior=0.5))
    assert found.verdict.status == "no_overlap_found"
    assert "0 of 200 candidates have a posterior of 0.9 or more" in found.verdict.reasons[0]


def test_mostly_wrong_candidates_are_doubtful(overlapping):
    data = overlapping()
    posterior = np.where(np.arange(200) < 20, 0.99, 0.01)
    found = judged(data, true_links(data, posterior))
    assert found.verdict.status == "doubtful"
    assert "mean posterior of the candidates is 0.11: most are wrong" in found.verdict.reasons[0]


def test_seeds_too_few_to_be_parted(overlapping):
    data = overlapping(seeds=3)
    found = judged(data, true_links(data))
    assert found.belief == UNCHECKED
    assert found.verdict.status == "doubtful"
    assert "3 seeds are too few to see" in found.verdict.reasons[0]
    assert regrow(data.problem(), growth=Growth(), seed=1) == []


def test_wrong_seeds_are_named(overlapping):
    data = overlapping(wrong=3)
    found = judged(data, true_links(data))
    assert found.verdict.status == "linked"
    about = found.verdict.reasons[-1]
    assert "3 of 15 seed pairs are no candidates" in about
    for source, target in data.seeds[:3]:
        assert f"{source} with {target}" in about
    for source, target in data.seeds[3:]:
        assert f" {source} with {target}" not in about


def test_mostly_wrong_seeds_are_doubtful_and_five_are_named(overlapping):
    data = overlapping(seeds=15, wrong=8)
    right = replace_seeds(data, wrong=0)
    found = judge(
        LinkProblem(
            source=data.problem().source,
            target=data.problem().target,
            seed_source=right.seed_source,  # what grows is right, what is looked up is wrong
            seed_target=right.seed_target,
            seed_rows=data.problem().seed_rows,
        ),
        true_links(data),
        growth=Growth(),
        seed=1,
    )
    assert found.verdict.status == "doubtful"
    assert "8 of 15 seed pairs" in found.verdict.reasons[-1]
    assert found.verdict.reasons[-1].endswith(", ...)")
    assert found.verdict.reasons[-1].count(" with ") == 5 + 1


def replace_seeds(data, *, wrong):
    rows = data.seeds[:, 0]
    targets = data.partner[rows].copy()
    targets[:wrong] = np.roll(targets[:wrong], 1)
    return LinkProblem.of_rows(data.source, data.target, np.column_stack((rows, targets)))


def test_parts_grow_from_seventy_percent_of_the_seeds(overlapping, monkeypatch):
    data = overlapping()
    problem = data.problem()
    first = []
    grow = Growth.grow

    def watch(self, source, target, *anchors, round_):
        if round_ == 0:
            first.append(anchors[:2])
        return grow(self, source, target, *anchors, round_=round_)

    monkeypatch.setattr(Growth, "grow", watch)
    found = regrow(problem, growth=Growth(), seed=4)
    again = regrow(problem, growth=Growth(), seed=4)

    seeds = [*zip(map(bytes, problem.seed_source), map(bytes, problem.seed_target), strict=True)]
    for source, target in first:
        part = {*zip(map(bytes, source), map(bytes, target), strict=True)}
        assert len(source) == len(part) == 10  # 70 % of 15, half to even
        assert part <= set(seeds)
    assert not np.array_equal(first[0][0], first[1][0])
    assert len(found) == 2
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one.source_rows, other.source_rows)
        np.testing.assert_array_equal(one.weight, other.weight)
        assert data.hits(one) >= 198


@pytest.mark.parametrize("seed", range(100, 106))
def test_clouds_that_share_nothing(unrelated, seed):
    links = Auto().link(unrelated(seed), seed=seed)

    assert links.verdict.status == "no_overlap_found"
    assert links.verdict.reasons
    assert links.posterior.max() < 0.01  # a belief of 0, or nothing to believe
    assert links.overlap < 1.0
    assert len(links.matched_rows(precision=0.95)) == 0
