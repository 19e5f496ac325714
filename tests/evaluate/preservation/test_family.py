"""The whole family at once: perfect maps, chance, agreement with each measure alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import CountMismatchError, DimensionError, InvalidVectorsError
from isthmus.evaluate import preservation, reconstruction
from isthmus.evaluate.bootstrap import interval
from isthmus.evaluate.hubness import hubness
from isthmus.evaluate.preservation import Native, measure_pairs

quick = settings(derandomize=True, deadline=None, max_examples=15)
SHARES = ("nbr_overlap@10", "nbr_overlap@1", "retrieval_agreement@10", "hit@1", "hit@10")
ORDERS = ("rank_corr", "relation_order_corr", "cluster_agreement", "r2", "cos_to_target")
DECISIONS = ("threshold_transfer", "calibration_transfer")
OTHERS = ("similarity_error", "hard_negative_margin", "hubness@10", "mse")


def gaussian(seed, rows=80, dim=8):
    return np.random.default_rng(seed).standard_normal((rows, dim))


def test_names():
    values = measure_pairs(gaussian(0), gaussian(1))
    assert set(values) == {*SHARES, *ORDERS, *DECISIONS, *OTHERS}
    assert all(name == value.name for name, value in values.items())
    without = measure_pairs(gaussian(0), gaussian(1), clusters=False)
    assert set(values) - set(without) == {"cluster_agreement"}


@quick
@given(seed=st.integers(0, 10_000), metric=st.sampled_from(["cosine", "dot", "l2"]))
def test_the_identity_map_is_perfect(seed, metric):
    target = gaussian(seed)
    values = measure_pairs(target, target, metric=metric)
    names = [*SHARES, *ORDERS, "threshold_transfer"]
    if metric == "dot":  # the longest row may be nearer to another than that row itself
        names = [name for name in names if not name.startswith("hit")]
    for name in names:
        value = values[name]
        assert (value.mean, value.low, value.high) == pytest.approx((1, 1, 1), abs=1e-9), name
    assert values["mse"].mean == 0.0
    assert values["similarity_error"].mean == pytest.approx(0.0, abs=1e-6)
    assert values["calibration_transfer"].mean > 0.97


@quick
@given(seed=st.integers(0, 10_000))
def test_the_true_rotation_is_perfect(seed):
    source, collection = gaussian(seed), gaussian(seed + 1, rows=150)
    turn = np.linalg.qr(gaussian(seed + 2, rows=8))[0]
    native = Native(source @ turn, collection @ turn)
    recovered = (source @ turn).astype(np.float32)
    values = measure_pairs(recovered, source @ turn, native=native)
    for name in ("nbr_overlap@10", "rank_corr", "relation_order_corr", "r2"):
        assert values[name].mean > 0.9999, name
    assert values["mse"].mean < 1e-12


def test_a_random_map_is_at_chance():
    collection = gaussian(0, rows=400)
    values = measure_pairs(
        gaussian(1, rows=200), collection[:200], collection, own_rows=np.arange(200)
    )
    assert values["nbr_overlap@10"].mean == pytest.approx(10 / 399, abs=0.01)
    assert values["retrieval_agreement@10"].mean == pytest.approx(10 / 400, abs=0.01)
    assert values["hit@10"].mean == pytest.approx(10 / 400, abs=0.03)
    for name in ("rank_corr", "relation_order_corr", "cluster_agreement", "cos_to_target"):
        assert values[name].mean == pytest.approx(0.0, abs=0.06), name
    assert values["threshold_transfer"].mean == pytest.approx(0.5, abs=0.05)
    assert values["hard_negative_margin"].mean < 0


def test_each_value_is_that_of_its_measure_alone():
    collection = gaussian(2, rows=300)
    own = np.arange(20, 80)
    target, mapped = collection[own], collection[own] + 0.7 * gaussian(3, rows=60)
    values = measure_pairs(mapped, target, collection, own_rows=own, seed=5)
    where = {"collection": collection, "own_rows": own}
    alone = {
        "nbr_overlap@10": preservation.nbr_overlap(mapped, target, k=10, **where),
        "nbr_overlap@1": preservation.nbr_overlap(mapped, target, k=1, **where),
        "retrieval_agreement@10": preservation.retrieval_agreement(mapped, target, k=10, **where),
        "hit@1": preservation.hit(mapped, target, k=1, **where),
        "hit@10": preservation.hit(mapped, target, k=10, **where),
        "rank_corr": preservation.rank_corr(mapped, target, **where),
        "relation_order_corr": preservation.relation_order_corr(mapped, target),
        "threshold_transfer": preservation.threshold_transfer(mapped, target, **where),
        "calibration_transfer": preservation.calibration_transfer(mapped, target, seed=5, **where),
        "similarity_error": preservation.similarity_error(mapped, target, **where),
        "hard_negative_margin": preservation.hard_negative_margin(mapped, target, **where),
        "cos_to_target": reconstruction.cos_to_target(mapped, target),
        "mse": reconstruction.mse(mapped, target),
    }
    for name, per_query in alone.items():
        np.testing.assert_allclose(values[name].per_query, per_query, atol=1e-6, err_msg=name)
        assert values[name].mean == pytest.approx(np.mean(per_query)), name
        assert (values[name].low, values[name].high) == pytest.approx(interval(per_query, seed=5))
    assert values["r2"] == reconstruction.r2(mapped, target, seed=5)
    assert values["cluster_agreement"] == preservation.cluster_agreement(mapped, target, seed=5)
    assert values["hubness@10"].mean == hubness(mapped, collection, exclude=own).mean


def test_a_shared_native_side_changes_nothing():
    collection = gaussian(4, rows=200)
    own = np.arange(50)
    target, mapped = collection[own], gaussian(5, rows=50)
    native = Native(target, collection, own_rows=own)
    shared = measure_pairs(mapped, target, collection, native=native)
    for name, value in measure_pairs(mapped, target, collection, own_rows=own).items():
        np.testing.assert_equal(shared[name].to_dict(), value.to_dict())


def test_a_map_that_moves_the_target_is_judged_by_native_neighbours():
    collection = gaussian(6, rows=200)
    target = collection[:60]
    turn = np.linalg.qr(gaussian(7, rows=8))[0]
    native = Native(target, collection, own_rows=np.arange(60))
    values = measure_pairs(target @ turn, target @ turn, collection @ turn, native=native)
    assert values["nbr_overlap@10"].mean > 0.999
    crushed = np.ones((8, 2)) + 0.01 * gaussian(8, rows=8, dim=2)
    lost = measure_pairs(target @ crushed, target @ crushed, collection @ crushed, native=native)
    assert lost["nbr_overlap@10"].mean < 0.3


def test_queries_outside_the_collection_have_no_hits():
    values = measure_pairs(gaussian(0, rows=20), gaussian(1, rows=20), gaussian(2))
    assert not {"hit@1", "hit@10"} & set(values)
    np.testing.assert_array_equal(
        values["nbr_overlap@10"].per_query, values["retrieval_agreement@10"].per_query
    )


@pytest.mark.parametrize("dim", [1, 3])
def test_one_row_is_undefined_where_it_says_nothing(dim):
    row = np.ones((1, dim))
    values = measure_pairs(row, row)
    for name in ("nbr_overlap@10", "rank_corr", "relation_order_corr", "r2", "cluster_agreement"):
        assert np.isnan(values[name].mean), name
    assert values["cos_to_target"].mean == pytest.approx(1.0)
    assert np.isnan([values["cos_to_target"].low, values["cos_to_target"].high]).all()


def test_equal_rows_have_defined_values():
    constant = np.ones((30, 4))
    collapsed = measure_pairs(constant, gaussian(0, rows=30, dim=4))
    assert collapsed["relation_order_corr"].mean == 0.0
    assert collapsed["cluster_agreement"].mean == 0.0
    aimless = measure_pairs(gaussian(0, rows=30, dim=4), constant)
    assert aimless["rank_corr"].left_out == 30
    assert np.isnan(aimless["r2"].mean)


def test_arguments_are_not_changed():
    mapped, target = gaussian(0), gaussian(1)
    before = mapped.copy(), target.copy()
    measure_pairs(mapped, target)
    np.testing.assert_array_equal(mapped, before[0])
    np.testing.assert_array_equal(target, before[1])


def test_bad_input_says_expected_got_do():
    rows = gaussian(0)
    with pytest.raises(DimensionError, match="mapped with 8 columns; got 5 columns"):
        measure_pairs(rows[:, :5], rows)
    with pytest.raises(CountMismatchError, match="3 source rows and 80 target rows"):
        measure_pairs(rows[:3], rows)
    with pytest.raises(InvalidVectorsError, match="finite numbers in mapped"):
        measure_pairs(np.full((80, 8), np.nan), rows)
    with pytest.raises(CountMismatchError, match="excluded rows, one per query"):
        measure_pairs(rows, rows, rows, own_rows=[1, 2])
