"""Splits: every pair held out once, copies together, and nothing mapped by a map that saw it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.held_out import MOST_FOR_FOLDS, held_out, plan_splits
from isthmus.bridge.selection import compose_for
from isthmus.spaces import Pairs
from isthmus.testing import planted_pair

quick = settings(derandomize=True, deadline=None, max_examples=20)


def pairs_of(n: int, *, seed: int = 0, dim: int = 6, copies: int = 0) -> Pairs:
    planted = planted_pair(n, dim, dim, noise=0.3, seed=seed)
    pairs = Pairs.from_ids(planted.source, planted.target)
    if not copies:
        return pairs
    target = pairs.target.copy()
    target[-copies:] = target[:copies]  # the same target vector under another id
    return Pairs(
        source=pairs.source,
        target=target,
        source_ids=pairs.source_ids,
        target_ids=pairs.target_ids,
        source_space=pairs.source_space,
        target_space=pairs.target_space,
    )


@quick
@given(n=st.integers(20, 300), seed=st.integers(0, 1000))
def test_every_pair_is_held_out_once_and_never_trained_on_then(n, seed):
    plan = plan_splits(pairs_of(n), seed=seed, single=False)
    for splits, folds in ((plan.full, 10), (plan.half, 2)):
        assert len(splits) == folds
        np.testing.assert_array_equal(
            np.sort(np.concatenate([split.test for split in splits])), np.arange(n)
        )
        for split in splits:
            assert not np.intersect1d(split.train, split.test).size
            assert len(split.train) + len(split.test) == n
    full, half = plan.sizes
    assert full == pytest.approx(0.9 * n, abs=1)
    assert half == pytest.approx(0.5 * n, abs=1)


def test_copies_of_a_vector_are_held_out_together():
    plan = plan_splits(pairs_of(100, copies=30), seed=3, single=False)
    for split in (*plan.full, *plan.half):
        held = set(split.test.tolist())
        assert all((row in held) == (row + 70 in held) for row in range(30))


def test_one_part_is_held_out_of_many_pairs():
    n = MOST_FOR_FOLDS + 500
    plan = plan_splits(pairs_of(n), seed=0, single=False)
    assert len(plan.full) == len(plan.half) == 1
    np.testing.assert_array_equal(plan.full[0].test, plan.half[0].test)
    assert len(plan.test) == n // 5
    assert len(plan.full[0].train) == n - n // 5
    assert len(plan.half[0].train) == pytest.approx(len(plan.full[0].train) / 2, rel=0.01)
    assert np.isin(plan.half[0].train, plan.full[0].train).all()


def test_the_same_seed_gives_the_same_plan_and_another_another():
    pairs = pairs_of(60)
    first, again, other = (
        plan_splits(pairs, seed=seed, single=False).full[0].test for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("method", ["procrustes", "cca"])
def test_held_out_rows_come_from_maps_fitted_on_the_other_pairs(method):
    pairs = pairs_of(80)
    plan = plan_splits(pairs, seed=0, single=method == "cca")
    out = held_out(lambda: compose_for(pairs, method), pairs, plan.full, collection=pairs.target)
    split = plan.full[-1]
    by_hand = compose_for(pairs, method).fit(pairs.source[split.train], pairs.target[split.train])
    places = np.searchsorted(plan.test, split.test)
    np.testing.assert_array_equal(out.mapped[places], by_hand.transform(pairs.source[split.test]))
    if method == "cca":
        np.testing.assert_array_equal(out.collection, by_hand.transform_target(pairs.target))
        np.testing.assert_array_equal(
            out.target, by_hand.transform_target(pairs.target[split.test])
        )
    else:
        assert out.target is None
        assert out.collection is None
