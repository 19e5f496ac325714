"""Decoys: links that are known to be wrong, because the right one was taken out."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.link import decoys as module
from isthmus.link.clouds import Clouds, Side
from isthmus.link.decoys import SHARE, make_decoys
from isthmus.link.evidence import collect
from isthmus.link.growth import Anchors

OPTIONS = {"neighborhood": 10, "rounds": 1}


@pytest.fixture(scope="module")
def clouds_and_anchors(overlapping):
    data = overlapping(120, (40, 60), noise=0.3)
    rows = np.flatnonzero(data.partner >= 0)[:100]
    anchors = Anchors(rows, data.partner[rows], np.ones(100))
    return data, Clouds(Side.of(data.source), Side.of(data.target)), anchors


@pytest.fixture
def watched(monkeypatch):
    """Every call of `collect` by the decoys, with its answer."""
    calls = []

    def watch(clouds, anchors, **options):
        found = collect(clouds, anchors, **options)
        calls.append((clouds, anchors, found))
        return found

    monkeypatch.setattr(module, "collect", watch)
    return calls


def numbers(rows, whole):
    """The numbers of rows in the whole cloud, by their bits."""
    place = {row.tobytes(): number for number, row in enumerate(whole)}
    return np.array([place[row.tobytes()] for row in rows])


def test_decoys_are_the_candidates_that_lost_their_partner(clouds_and_anchors, watched):
    data, clouds, anchors = clouds_and_anchors
    found = make_decoys(clouds, anchors, seed=3, **OPTIONS)
    expected, alone = [], 0
    for reduced, rest, evidence in watched:
        source = numbers(reduced.source.rows, data.source)
        target = numbers(reduced.target.rows, data.target)
        lost_source = np.setdiff1d(np.arange(len(data.source)), source)
        lost_target = np.setdiff1d(np.arange(len(data.target)), target)
        partner = dict(zip(anchors.source_rows, anchors.target_rows, strict=True))
        back = {two: one for one, two in partner.items()}
        # Only objects of anchors are taken out, and of no anchor both.
        assert set(lost_source) <= set(partner)
        assert set(lost_target) <= set(back)
        assert not {partner[row] for row in lost_source} & set(lost_target)
        assert abs(len(lost_source) - len(lost_target)) <= 1
        alone += len(lost_source) + len(lost_target)
        # The anchors that are left are the same pairs, and whole.
        pairs = np.column_stack((source[rest.source_rows], target[rest.target_rows]))
        assert all(partner[one] == two for one, two in pairs)
        assert len(rest) == len(anchors) - len(lost_source) - len(lost_target)
        lonely_source = {back[row] for row in lost_target}
        lonely_target = {partner[row] for row in lost_source}
        for (one, two), features in zip(evidence.pairs, evidence.features, strict=True):
            if source[one] in lonely_source or target[two] in lonely_target:
                expected.append(features)

    np.testing.assert_array_equal(found.features, np.array(expected))
    assert found.alone == alone
    assert 0 < len(expected) < alone


def test_decoys_are_wrong_links(clouds_and_anchors, watched):
    """All anchors are true here, so no decoy can be."""
    data, clouds, anchors = clouds_and_anchors
    decoys = {row.tobytes() for row in make_decoys(clouds, anchors, seed=3, **OPTIONS).features}
    for reduced, _, evidence in watched:
        source = numbers(reduced.source.rows, data.source)
        target = numbers(reduced.target.rows, data.target)
        for (one, two), features in zip(evidence.pairs, evidence.features, strict=True):
            if features.tobytes() in decoys:
                assert data.partner[source[one]] != target[two]


def test_how_many_are_taken_apart(clouds_and_anchors, watched):
    _, clouds, anchors = clouds_and_anchors
    found = make_decoys(clouds, anchors, seed=3, **OPTIONS)
    assert len(watched) == 4  # 15 of 100 anchors at once do not make 1,200 in four parts
    assert found.alone == 4 * round(SHARE * 100)
    few = make_decoys(clouds, anchors.select(np.arange(3)), seed=3, **OPTIONS)
    assert few.alone == 2  # one on either side at least, and no anchor twice


def test_the_seed_decides(clouds_and_anchors):
    _, clouds, anchors = clouds_and_anchors
    one, same, other = (
        make_decoys(clouds, anchors, seed=seed, **OPTIONS).features for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one, same)
    assert one.shape != other.shape or not np.array_equal(one, other)
