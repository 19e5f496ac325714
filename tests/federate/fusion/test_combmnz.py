from __future__ import annotations

import numpy as np

from isthmus.federate.fusion import CombMNZ

NAN = float("nan")


def test_min_max_per_source_and_query_by_hand(two_sources):
    # native similarities: source 0 .8 .5 -> 1 0; source 1 .7 .2 -> 1 0; one list each
    scores = CombMNZ().score(two_sources)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores[0], [1, 0, 1, 0], atol=1e-6)
    # a list of one has no spread: the best that its source has
    np.testing.assert_allclose(scores[1], [1, NAN, NAN, NAN])


def test_a_document_in_two_lists_counts_twice_by_hand(overlapping):
    # source 0: .9 .6 .5 -> 1, .25, 0; source 1: .8 .7 .3 -> 1, .8, 0; x: 2 x (.25 + 1) = 2.5
    np.testing.assert_allclose(CombMNZ().score(overlapping)[0], [1, 2.5, 0, 2.5, 0.8, 0], atol=1e-6)


def test_negative_similarities_are_normalised_too(build_candidates):
    candidates = build_candidates(
        [["a", "b", "c"]],
        [[[-1.0, -2.0, -3.0]]],
        source=[0, 0, 0],
        rank=[1, 2, 3],
        space=[0, 0, 0],
    )
    np.testing.assert_allclose(CombMNZ().score(candidates)[0], [1, 0.5, 0], atol=1e-6)


def test_it_asks_for_no_space():
    assert CombMNZ().spaces(2) == ()
