from __future__ import annotations

import numpy as np

from isthmus.federate.fusion import Agg

NAN = float("nan")


def test_lists_are_interleaved_by_hand(two_sources):
    # <a1, b1, a2, b2>: places 1, 3, 2, 4 in the order of the columns a1 a2 b1 b2
    scores = Agg().score(two_sources)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores[0], [1, 1 / 3, 1 / 2, 1 / 4], rtol=1e-6)
    np.testing.assert_allclose(scores[1], [1, NAN, NAN, NAN])


def test_three_sources_take_turns(build_candidates):
    candidates = build_candidates(
        [["a1", "a2", "b1", "", "c1", "c2"]],
        [[[0.1, 0.1, 0.9, NAN, 0.5, 0.5]]],
        source=[0, 0, 1, 1, 2, 2],
        rank=[1, 2, 1, 2, 1, 2],
        space=[0] * 6,
    )
    order = np.argsort(-Agg().score(candidates)[0])[:5]
    assert candidates.ids[0, order].tolist() == ["a1", "b1", "c1", "a2", "c2"]


def test_it_asks_for_no_space():
    assert Agg().spaces(2) == ()
