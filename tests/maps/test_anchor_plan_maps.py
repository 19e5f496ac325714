"""AnchorDOT and AnchorCCA: what both do with a plan, on planted and on real vectors."""

import numpy as np
import pytest

from isthmus import sample
from isthmus.errors import (
    DegenerateVectorsError,
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    NotConvergedError,
    ParameterError,
    TooFewPairsError,
    UnknownNameError,
)
from isthmus.maps import CCA, AnchorCCA, AnchorDOT, Contrastive
from isthmus.maps._fitting import check_fit
from isthmus.maps._sides import centre_sides

QUICK = {"gamma": 1.0, "eta": 0.05}
QUICK_ENCODERS = {"epochs": 40, "warm_up": 5, "learning_rate": 1e-2}


def dot(**params):
    return AnchorDOT(**{**QUICK, **QUICK_ENCODERS, "width": 32, **params})


def cca(**params):
    return AnchorCCA(**{**QUICK, **params})


BOTH = pytest.mark.parametrize("make", [dot, cca], ids=["anchordot", "anchor_cca"])


def planted(n_anchors=60, pool=100, seed=0, dims=(10, 8)):
    """Return anchors, disjoint pools and test pairs of two views of one latent space."""
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n_anchors + 2 * pool + 50, 6))
    X, Y = (
        latent @ rng.standard_normal((6, dim)) + 0.1 * rng.standard_normal((len(latent), dim))
        for dim in dims
    )
    at = np.cumsum([n_anchors, pool, pool])
    return {
        "anchors": (X[: at[0]], Y[: at[0]]),
        "pools": {"unpaired_source": X[at[0] : at[1]], "unpaired_target": Y[at[1] : at[2]]},
        "test": (X[at[2] :], Y[at[2] :]),
    }


def recall(fitted, X, Y, k=1):
    scores = fitted.transform(X) @ fitted.transform_target(Y).T
    own = np.diag(scores)
    return float(((scores > own[:, None]).sum(axis=1) < k).mean())


@BOTH
def test_partners_of_new_rows_are_found(make):
    case = planted()

    fitted = make().fit(*case["anchors"], **case["pools"])

    assert recall(fitted, *case["test"]) > 0.6
    np.testing.assert_allclose(
        np.linalg.norm(fitted.transform(case["test"][0]), axis=1), 1, atol=1e-5
    )


@BOTH
def test_without_centring_an_offset_is_seen(make):
    case = planted()
    shift = np.full(10, 3.0)
    moved = {**case["pools"], "unpaired_source": case["pools"]["unpaired_source"] + shift}
    X, Y = case["anchors"]

    def scores(offset, pools, **params):
        fitted = make(**params).fit(X + offset, Y, **pools)
        return fitted.transform(X[:5] + offset) @ fitted.transform_target(Y[:5]).T

    np.testing.assert_allclose(scores(0, case["pools"]), scores(shift, moved), atol=0.02)
    plain = {"centring": "none"}
    assert np.abs(scores(0, case["pools"], **plain) - scores(shift, moved, **plain)).max() > 0.05
    with pytest.raises(UnknownNameError, match="centring"):
        make(centring="batch").fit(X, Y, **case["pools"])


def shuffled_pools(case):
    rng = np.random.default_rng(1)
    return {name: rng.permutation(rows) for name, rows in case["pools"].items()}


def test_the_order_of_the_pools_does_not_matter_to_the_closed_form():
    case = planted()

    one = cca().fit(*case["anchors"], **case["pools"])
    other = cca().fit(*case["anchors"], **shuffled_pools(case))

    scores = [
        fitted.transform(case["test"][0]) @ fitted.transform_target(case["test"][1]).T
        for fitted in (one, other)
    ]
    np.testing.assert_allclose(*scores, atol=1e-4)


def test_the_order_of_the_pools_does_not_matter_to_what_is_distilled():
    """Chunks are drawn by place, so that training goes another way; where it starts it does not."""
    case = planted()
    still = {"epochs": 1, "learning_rate": 1e-9}

    one = dot(**still).fit(*case["anchors"], **case["pools"])
    other = dot(**still).fit(*case["anchors"], **shuffled_pools(case))

    assert float(one.epsilon_) == pytest.approx(float(other.epsilon_), rel=1e-5)
    np.testing.assert_allclose(one.coupling_errors_[0], other.coupling_errors_[0], rtol=1e-3)
    scores = [
        fitted.transform(case["test"][0]) @ fitted.transform_target(case["test"][1]).T
        for fitted in (one, other)
    ]
    np.testing.assert_allclose(*scores, atol=1e-4)


@BOTH
def test_no_partner_in_the_pools_is_needed_and_sizes_may_differ(make):
    case = planted(pool=100)
    pools = case["pools"]

    fitted = make().fit(
        *case["anchors"],
        unpaired_source=pools["unpaired_source"][:35],
        unpaired_target=pools["unpaired_target"],
    )

    assert recall(fitted, *case["test"]) > 0.5


@BOTH
def test_it_is_the_same_again(make):
    case = planted()

    one, other = (make(seed=3).fit(*case["anchors"], **case["pools"]) for _ in range(2))

    for name, array in one.get_state().items():
        np.testing.assert_array_equal(array, other.get_state()[name])


@BOTH
def test_what_was_used_is_kept(make):
    case = planted()

    fixed = make().fit(*case["anchors"], **case["pools"])
    searched = make(gamma="auto", eta=0.1).fit(*case["anchors"], **case["pools"])

    assert (float(fixed.gamma_), float(fixed.eta_)) == (1.0, 0.05)
    assert len(fixed.searched_rank_) == 0
    assert searched.searched_gamma_.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert set(searched.searched_eta_) == {0.1}
    best = int(searched.searched_rank_.argmin())
    assert float(searched.gamma_) == searched.searched_gamma_[best]
    assert fixed.coupling_errors_[-1] <= 1e-4 < fixed.coupling_errors_[0]
    assert f"plan after {len(fixed.coupling_errors_)} iterations" in fixed.about


@BOTH
def test_rows_without_a_pair_help_on_real_vectors(make):
    documents = sample.load().documents
    X, Y = (documents[model].vectors.astype(np.float32) for model in ("minilm-l6", "mpnet"))
    order = np.random.default_rng(100).permutation(len(X))
    anchors, test, rest = order[:60], order[60:260], order[260:]
    half = len(rest) // 2

    fitted = (make(width=256) if make is dot else make()).set_params(eta=0.1)
    fitted.fit(
        X[anchors], Y[anchors], unpaired_source=X[rest[:half]], unpaired_target=Y[rest[half:]]
    )
    rival = Contrastive(**QUICK_ENCODERS, width=256) if make is dot else CCA()
    alone = rival.fit(X[anchors], Y[anchors])

    # the same encoders, or the same closed form, from the pairs alone
    assert recall(fitted, X[test], Y[test]) > recall(alone, X[test], Y[test]) + 0.03


@BOTH
@pytest.mark.parametrize(
    ("n_anchors", "n_pool", "error", "text"),
    [
        (19, 100, TooFewPairsError, "20 pairs; got 19"),
        (60, 1, EmptyInputError, "20 rows in unpaired_source, .*; got 1"),
        (60, 0, EmptyInputError, "unpaired_source with at least one row"),
    ],
)
def test_too_few_of_something(make, n_anchors, n_pool, error, text):
    case = planted()
    anchors = [side[:n_anchors] for side in case["anchors"]]
    pools = {name: rows[:n_pool] for name, rows in case["pools"].items()}

    with pytest.raises(error, match=text):
        make().fit(*anchors, **pools)


@BOTH
@pytest.mark.parametrize(
    ("spoil", "error", "text"),
    [
        (lambda rows: np.repeat(rows[:1], 80, axis=0), DegenerateVectorsError, "80 equal rows"),
        (lambda rows: rows * 0, DegenerateVectorsError, "100 equal rows"),
        (lambda rows: rows * 1e30, InvalidVectorsError, "numbers up to 1e.15"),
    ],
)
def test_pools_that_say_nothing(make, spoil, error, text):
    case = planted()
    pools = {**case["pools"], "unpaired_target": spoil(case["pools"]["unpaired_target"])}

    with pytest.raises(error, match=f"(in|of) unpaired_target.*{text}|{text}.* in unpaired_target"):
        make().fit(*case["anchors"], **pools)


@BOTH
@pytest.mark.parametrize("missing", ["unpaired_source", "unpaired_target"])
def test_a_side_without_unpaired_rows(make, missing):
    case = planted()

    with pytest.raises(
        EmptyInputError, match=f"rows in {missing}.*; got 0.*unpaired-source.*fit cca"
    ):
        make().fit(*case["anchors"], **{**case["pools"], missing: None})


@BOTH
def test_anchors_that_repeat_count_once(make):
    case = planted()
    X, Y = (np.repeat(side[:10], 6, axis=0) for side in case["anchors"])

    with pytest.raises(TooFewPairsError, match="got 60 pairs, 10 of them different"):
        make().fit(X, Y, **case["pools"])

    X, Y = (side[np.r_[np.arange(40), np.zeros(20, int)]] for side in case["anchors"])
    assert np.isfinite(make().fit(X, Y, **case["pools"]).transform(X)).all()


@BOTH
def test_an_eta_too_small_to_converge_is_named(make, monkeypatch):
    monkeypatch.setattr("isthmus.maps._anchor_plan.sinkhorn", short_of_iterations)
    case = planted()

    with pytest.raises(NotConvergedError, match=r"marginals within 0.01.*raise epsilon"):
        make(eta=1e-3).fit(*case["anchors"], **case["pools"])


def short_of_iterations(cost, **given):
    from isthmus.transport import sinkhorn

    return sinkhorn(cost, max_iterations=3, **given)


@BOTH
@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"gamma": 2.5}, "gamma from 0 to 2, or 'auto'; got 2.5"),
        ({"eta": 0.0}, "eta"),
        ({"eta": float("nan")}, "eta"),
        ({"seed": -1}, "seed"),
    ],
)
def test_parameters_out_of_range(make, params, text):
    case = planted()

    with pytest.raises(ParameterError, match=text):
        make(**params).fit(*case["anchors"], **case["pools"])


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: dot(chunk=1), "chunk"),
        (lambda: dot(epochs=0), "epochs"),
        (lambda: dot(width=0), "width"),
        (lambda: dot(warm_up=-1), "warm_up"),
        (lambda: dot(patience=0), "patience"),
        (lambda: dot(weight_decay=-1.0), "weight_decay"),
        (lambda: dot(learning_rate=0.0), "learning_rate"),
        (lambda: dot(device="abacus"), "a device that torch has here"),
        (lambda: cca(ridge=0.0), "ridge"),
        (lambda: cca(plan_pairs=-1.0), "plan_pairs"),
    ],
)
def test_parameters_of_one_of_them_out_of_range(made, text):
    case = planted()

    with pytest.raises(ParameterError, match=text):
        made().fit(*case["anchors"], **case["pools"])


@BOTH
def test_pools_that_do_not_fit(make):
    case = planted()
    X, pools = case["anchors"][0], case["pools"]
    broken = pools["unpaired_target"].copy()
    broken[4, 2] = np.nan

    with pytest.raises(DimensionError, match="unpaired_target with 8 columns; got 10"):
        make().fit(*case["anchors"], **{**pools, "unpaired_target": X})
    with pytest.raises(InvalidVectorsError, match=r"unpaired_target; got NaN .* row 4"):
        make().fit(*case["anchors"], **{**pools, "unpaired_target": broken})


def test_training_starts_from_the_closed_form():
    case = planted()
    anchors, pools = case["anchors"], case["pools"]

    started = dot(epochs=1, learning_rate=1e-9).fit(*anchors, **pools)
    closed = cca().fit(*anchors, **pools)
    drawn = dot(epochs=1, learning_rate=1e-9, start="random").fit(*anchors, **pools)

    scores = [
        fitted.transform(anchors[0]) @ fitted.transform_target(anchors[1]).T
        for fitted in (started, closed, drawn)
    ]
    # one LayerNorm lies between: the closed form does not centre each row
    assert np.corrcoef(scores[0].ravel(), scores[1].ravel())[0, 1] > 0.9
    assert abs(np.corrcoef(scores[2].ravel(), scores[1].ravel())[0, 1]) < 0.9
    assert started.source_weight_.shape == (10, 8)
    assert drawn.source_weight_.shape == (10, 32)


def test_the_schedule_goes_with_the_start():
    assert (AnchorDOT()._schedule.epochs, AnchorDOT()._schedule.learning_rate) == (60, 3e-4)
    paper = AnchorDOT(start="random")._schedule
    assert (paper.epochs, paper.learning_rate, paper.warm_up) == (200, 1e-3, 200)
    assert AnchorDOT(epochs=7, start="random")._schedule.epochs == 7


def test_an_unknown_start_is_named():
    case = planted()

    with pytest.raises(UnknownNameError, match="closed"):
        AnchorDOT(start="closed").fit(*case["anchors"], **case["pools"])


def test_with_patience_the_best_number_of_epochs_is_taken_on_all_anchors():
    case = planted()

    fitted = dot(epochs=300, patience=1, learning_rate=0.1).fit(*case["anchors"], **case["pools"])

    best = int(fitted.look_epochs_[fitted.look_scores_.argmax()])
    assert len(fitted.losses_) == best < fitted.look_epochs_[-1] < 300
    again = dot(epochs=best, learning_rate=0.1).fit(*case["anchors"], **case["pools"])
    np.testing.assert_array_equal(fitted.source_weight_, again.source_weight_)


def test_more_chunks_than_one_see_every_row():
    case = planted()

    fitted = dot(chunk=30).fit(*case["anchors"], **case["pools"])

    assert recall(fitted, *case["test"]) > 0.5


@pytest.mark.parametrize("sizes", [(100, 100), (100, 40), (31, 95), (20, 20)])
def test_an_epoch_has_each_row_of_the_larger_pool_once_and_the_anchors_once(sizes):
    case = planted()
    source, target = (rows[:n] for rows, n in zip(case["pools"].values(), sizes, strict=True))
    sides = centre_sides(check_fit(*case["anchors"], None), source, target)

    epochs = [dot(chunk=30)._batches(sides, None, epoch) for epoch in (0, 1)]

    for batches in epochs:
        for side, size in zip(("source", "target"), sizes, strict=True):
            picked = [getattr(batch, side) for batch in batches]
            anchors = [rows for rows in picked if rows.min() < 60]
            assert [rows.tolist() for rows in anchors] == [list(range(60))]
            chunks = [rows - 60 for rows in picked if rows.min() >= 60]
            assert all(len(np.unique(rows)) == len(rows) <= 30 for rows in chunks)
            rows = sorted(np.concatenate(chunks).tolist())
            assert set(rows) <= set(range(size))
            assert rows == list(range(size)) or size < max(sizes)
    assert not np.array_equal(*(np.concatenate([b.source for b in each]) for each in epochs))


def test_a_short_side_is_drawn_anew_for_each_chunk():
    from isthmus.maps.anchor_dot import _parts

    rng = np.random.default_rng(0)

    long = _parts(100, 4, 25, rng)
    short = _parts(20, 4, 25, rng)
    uneven = _parts(90, 4, 25, rng)

    assert sorted(np.concatenate(long)) == list(range(100))
    assert sorted(np.concatenate(uneven)) == list(range(90))
    assert [sorted(part) for part in short] == [list(range(20))] * 4


def test_the_plan_counts_as_so_many_pairs():
    case = planted()

    def directions(**params):
        fitted = cca(**params).fit(*case["anchors"], **case["pools"])
        return fitted.source_directions_ @ fitted.target_directions_.T

    # with a weight near zero, how the pools are coupled is without effect
    np.testing.assert_allclose(
        directions(plan_pairs=1e-6, eta=0.05), directions(plan_pairs=1e-6, eta=0.5), atol=1e-4
    )
    assert np.abs(directions(eta=0.05) - directions(eta=0.5)).max() > 0.01


def test_by_default_the_plan_counts_as_many_pairs_as_the_smaller_pool():
    case = planted()
    pools = {**case["pools"], "unpaired_source": case["pools"]["unpaired_source"][:35]}

    usual = cca().fit(*case["anchors"], **pools)
    said = cca(plan_pairs=35).fit(*case["anchors"], **pools)

    np.testing.assert_array_equal(usual.source_directions_, said.source_directions_)
