"""Learning a calibration: rows left out, never a query's own row, the same for the same seed."""

import numpy as np
import pytest

from isthmus.bridge.calibrating import learn_calibration
from isthmus.bridge.held_out import held_out, plan_splits
from isthmus.bridge.selection import compose_for
from isthmus.maps import Compose, Procrustes
from isthmus.spaces import Pairs, Space, VectorSet


def learn(pairs, method="procrustes", *, seed=0, collection=None, collection_rows=None):
    """Learn from rows held out as the report holds them out."""
    plan = plan_splits(pairs, seed=seed, single=False)
    out = held_out(
        lambda: compose_for(pairs, method),
        pairs,
        plan.full,
        collection=pairs.target if collection is None else collection,
    )
    return learn_calibration(
        out, plan.test, pairs, collection=collection, collection_rows=collection_rows, seed=seed
    )


def rotated(n, *, seed=0, dim=8):
    """Return pairs whose target is a rotation of the source: bridged scores are native scores."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dim))
    Y = X @ np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    ids = [f"r{row}" for row in range(n)]
    return Pairs.from_ids(
        VectorSet(ids, X, Space(model="a", dim=dim)), VectorSet(ids, Y, Space(model="b", dim=dim))
    )


@pytest.mark.parametrize("n", [40, 1_200])
def test_a_rotation_needs_no_calibration(n):
    pairs = rotated(n)
    plan = plan_splits(pairs, seed=0, single=False)
    out = held_out(
        lambda: Compose([], Procrustes(centre=False), []),
        pairs,
        plan.full,
        collection=pairs.target,
    )
    curve = learn_calibration(out, plan.test, pairs)
    assert curve.error_before < 1e-6
    scores = np.linspace(-0.8, 0.9, 20)
    np.testing.assert_allclose(curve.to_native(scores), scores, atol=1e-5)


def test_own_rows_are_left_out(planted):
    # if a query's own row counted, native scores of 1 would lift the upper end of the curve
    pairs = planted.pairs
    curve = learn(pairs)
    assert curve.native.max() < 0.95
    assert curve.n_scores == 120 * (32 + 32)


def test_a_collection_is_used_and_its_own_rows_are_left_out(planted):
    pairs, rows = planted.pairs, np.arange(120)
    within = learn(pairs, collection=planted.target.vectors, collection_rows=rows)
    assert within.native.max() < 0.97
    strangers = learn(pairs, collection=planted.target.vectors)
    assert strangers.native.max() > within.native.max()  # nobody says which row is its own


def test_a_large_collection_is_thinned(planted, monkeypatch):
    from isthmus.bridge import calibrating

    monkeypatch.setattr(calibrating, "MAX_ROWS", 150)
    pairs, rows = planted.pairs, np.arange(120)
    curve = learn(pairs, collection=planted.target.vectors, collection_rows=rows)
    assert curve.native.max() < 0.97
    assert curve.n_scores == 120 * 64


def test_the_same_seed_gives_the_same_curve(planted):
    pairs = planted.pairs
    one, two = (learn(pairs, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.native, two.native)
    other = learn(pairs, seed=4)
    assert not np.array_equal(other.bridged, one.bridged)


def test_few_pairs_search_all_others():
    curve = learn(rotated(20))
    assert curve.n_scores == 20 * (19 + 32)
