from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import ParameterError
from isthmus.federate.fusion import Score

NAN = float("nan")


def test_score2_by_hand(two_sources):
    # a1: .7 x .8 + .3 x .4 = .68; a2: .35 + .09 = .44
    # b1: .7 x .7 + .3 x .6 = .67; b2: .14 + .03 = .17
    scores = Score(weight=0.7).score(two_sources)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores[0], [0.68, 0.44, 0.67, 0.17], atol=1e-6)
    # a3: .7 x .9 + .3 x .2 = .69, and nothing else
    np.testing.assert_allclose(scores[1], [0.69, NAN, NAN, NAN], atol=1e-6)


def test_the_default_weighs_two_spaces_equally(two_sources):
    # half of each: a1 has .8 and .4, a2 .5 and .3, b1 .7 and .6, b2 .2 and .1
    np.testing.assert_allclose(Score().score(two_sources)[0], [0.6, 0.4, 0.65, 0.15], atol=1e-6)


def test_weight_one_is_the_native_similarity_and_zero_the_mapped_one(two_sources):
    np.testing.assert_allclose(
        Score(weight=1.0).score(two_sources)[0], [0.8, 0.5, 0.7, 0.2], atol=1e-7
    )
    np.testing.assert_allclose(
        Score(weight=0.0).score(two_sources)[0], [0.4, 0.3, 0.6, 0.1], atol=1e-7
    )


def test_score_n_weighs_three_spaces_equally(build_candidates):
    candidates = build_candidates(
        [["a", "b", "c"]],
        [[[0.9, 0.3, 0.6]], [[0.6, 0.5, 0.3]], [[0.3, 0.1, 0.9]]],
        source=[0, 1, 2],
        rank=[1, 1, 1],
        space=[0, 1, 2],
    )
    # each is the plain mean over the spaces: .6, .3, .6
    np.testing.assert_allclose(Score().score(candidates)[0], [0.6, 0.3, 0.6], atol=1e-6)
    # b with w1 = .5: .5 x .5 + .5 x mean(.3, .1) = .35
    np.testing.assert_allclose(Score(weight=0.5).score(candidates)[0, 1], 0.35, atol=1e-6)


def test_one_space_has_native_similarity_only(overlapping):
    np.testing.assert_array_equal(Score(weight=0.2).score(overlapping), overlapping.native)


@pytest.mark.parametrize("weight", [-0.1, 1.1, NAN])
def test_a_weight_out_of_range_is_refused(weight):
    with pytest.raises(ParameterError, match=r"weight of the native similarity from 0 to 1; got"):
        Score(weight=weight)


def test_it_asks_for_every_space():
    assert Score().spaces(3) == (0, 1, 2)


THREE = {
    "similarities": [[[0.9, 0.3, 0.6]], [[0.6, 0.5, 0.3]], [[0.3, 0.1, 0.9]]],
    "source": [0, 1, 2],
    "rank": [1, 1, 1],
    "space": [0, 1, 2],
}


def three(build):
    return build([["a", "b", "c"]], THREE["similarities"], **{k: THREE[k] for k in list(THREE)[1:]})


def test_weights_of_the_spaces_by_hand(build_candidates):
    # shares .5, .25, .25: a .45 + .15 + .075; b .15 + .125 + .025; c .3 + .075 + .225
    scores = Score(weights=(2, 1, 1)).score(three(build_candidates))
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores[0], [0.675, 0.3, 0.6], atol=1e-6)


def test_weights_beside_a_native_share_by_hand(build_candidates):
    # half is native; the rest over the others, 2 : 1 : 1
    # a: .45 + .25 x .6 + .25 x .3; b: .25 + 1/3 x .3 + 1/6 x .1; c: .45 + 1/3 x .6 + 1/6 x .3
    scores = Score(weight=0.5, weights=(2, 1, 1)).score(three(build_candidates))
    np.testing.assert_allclose(scores[0], [0.675, 0.25 + 0.1 + 1 / 60, 0.7], atol=1e-6)


def test_equal_weights_are_the_default(build_candidates, two_sources):
    for candidates in (two_sources, three(build_candidates)):
        np.testing.assert_allclose(
            Score(weights=(1.0,) * candidates.n_spaces).score(candidates),
            Score().score(candidates),
            atol=1e-6,
        )


def test_a_space_that_alone_counts_decides(two_sources):
    np.testing.assert_array_equal(
        Score(weights=(0, 1)).score(two_sources), two_sources.similarities[1]
    )
    # its own candidates have no other evidence; those of the other space half of each
    np.testing.assert_allclose(
        Score(weight=0.5, weights=(0, 1)).score(two_sources)[0], [0.6, 0.4, 0.7, 0.2], atol=1e-6
    )


@pytest.mark.parametrize("weights", [(), (0, 0), (1, -1), (1, NAN), (1, np.inf)])
def test_weights_out_of_range_are_refused(weights):
    with pytest.raises(ParameterError, match="weights of the spaces"):
        Score(weights=weights)


def test_weights_of_another_number_of_spaces_are_refused():
    with pytest.raises(ParameterError, match="one weight for each of the 3 spaces"):
        Score(weights=(1, 2)).spaces(3)
