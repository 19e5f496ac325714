"""Drift-Adapter: three forms, each what its formula says; two are trained and one is closed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from isthmus._linalg import normalise
from isthmus.errors import (
    DimensionError,
    MalformedArtifactError,
    MissingExtraError,
    ParameterError,
    UnknownNameError,
)
from isthmus.maps import DriftAdapter, Procrustes

FORMS = ("residual_mlp", "orthogonal", "low_rank")
TRAINED = ("residual_mlp", "low_rank")


def drifted(n=400, dims=(10, 10), *, drift=0.3, seed=100):
    """Return an old and a new version of rows of length one: nearly the same where dims are."""
    rng = np.random.default_rng(7)
    turn = np.eye(*dims) + drift * rng.standard_normal(dims) / np.sqrt(dims[0])
    rng = np.random.default_rng(seed)
    X = normalise(rng.standard_normal((n, dims[0])))
    return X, normalise(np.tanh(2 * X @ turn) + 0.02 * rng.standard_normal((n, dims[1])))


def error(fitted, pairs):
    X, Y = pairs
    return float(np.mean(np.sum((fitted.transform(X) - Y) ** 2, axis=1)))


def gelu(z):
    from scipy.special import erf

    return z * (1 + erf(z / np.sqrt(2))) / 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dims", [(10, 10), (10, 6), (6, 10)], ids=str)
def test_every_form_is_its_formula_and_learns(form, dims):
    X, Y = drifted(dims=dims)
    fitted = DriftAdapter(form=form, hidden=32, rank=6, batch=32).fit(X, Y)

    rows = X.astype(np.float64)
    inner = rows @ fitted.weight_first_ + fitted.bias_first_
    plain = {
        "residual_mlp": lambda: gelu(inner) @ fitted.weight_last_ + rows @ fitted.skip_,
        "orthogonal": lambda: rows @ fitted.skip_,
        "low_rank": lambda: inner @ fitted.weight_last_,
    }[form]() + fitted.bias_last_
    np.testing.assert_allclose(fitted.transform(X), normalise(plain), atol=1e-5)
    new = drifted(100, dims, seed=101)
    assert error(fitted, new) < 0.6 * np.mean(np.sum((new[1] - Y.mean(0)) ** 2, axis=1))


def test_the_residual_form_starts_as_nothing_and_ends_better():
    pairs = drifted(1_000)
    new = drifted(200, seed=101)
    still = DriftAdapter(learning_rate=1e-12).fit(*pairs)
    np.testing.assert_allclose(still.transform(new[0]), new[0], atol=1e-6)
    assert error(DriftAdapter().fit(*pairs), new) < 0.5 * error(still, new)


def test_the_orthogonal_form_is_a_rotation_without_centring():
    X, Y = drifted()
    fitted = DriftAdapter(form="orthogonal").fit(X, Y)
    rotation = Procrustes(centre=False).fit(X, Y).rotation_
    np.testing.assert_array_equal(fitted.skip_, rotation)
    np.testing.assert_allclose(fitted.transform(X), normalise(X @ rotation), atol=1e-6)
    assert fitted.outcome == "no_more_gain"
    assert not fitted.weight_first_.size


@pytest.mark.parametrize(("rank", "kept"), [(1, 1), (4, 4), (64, 10)])
def test_the_low_rank_form_has_that_rank(rank, kept):
    X, Y = drifted()
    fitted = DriftAdapter(form="low_rank", rank=rank, epochs=5).fit(X, Y)
    product = fitted.weight_first_.astype(np.float64) @ fitted.weight_last_
    assert fitted.weight_first_.shape == (10, kept)
    assert np.linalg.matrix_rank(product, tol=1e-5) == kept
    assert not fitted.skip_.any()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_scaling_is_that_of_least_squares(form, weighted):
    X, Y = drifted()
    Y = Y * np.linspace(1, 3, 10) * np.linspace(0.5, 1, 400)[:, None]
    weight = np.linspace(0.1, 2, 400) if weighted else np.ones(400)
    params = {"form": form, "hidden": 8, "rank": 5, "epochs": 5}
    plain, scaled = (
        DriftAdapter(scaling=each, **params).fit(X, Y, sample_weight=weight)
        for each in (False, True)
    )

    before = plain.transform(X).astype(np.float64)
    factors = (weight @ (before * Y)) / (weight @ before**2)
    np.testing.assert_allclose(scaled.transform(X), before * factors, rtol=1e-4, atol=1e-5)
    left = [weight @ (each.transform(X) - Y) ** 2 for each in (plain, scaled)]
    assert (left[1] <= left[0] * (1 + 1e-6)).all()


def test_a_dimension_without_anything_is_not_scaled():
    X, Y = drifted()
    X[:, 3] = Y[:, 3] = 0
    fitted = DriftAdapter(form="orthogonal", scaling=True).fit(X, Y)
    assert np.isfinite(fitted.transform(X)).all()


@pytest.mark.parametrize("form", TRAINED)
def test_a_seed_fixes_the_result(form):
    X, Y = drifted(dims=(10, 6))

    def train(seed):
        return DriftAdapter(form=form, epochs=3, seed=seed).fit(X, Y)

    one, again, other = train(100), train(100), train(101)
    for name, array in one.get_state().items():
        np.testing.assert_array_equal(array, again.get_state()[name])
    assert not np.array_equal(one.weight_first_, other.weight_first_)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [10, 49, 50])
def test_few_pairs(form, n):
    X, Y = drifted(n)
    fitted = DriftAdapter(form=form, epochs=5).fit(X, Y)
    assert np.isfinite(fitted.transform(X)).all()
    assert fitted.outcome in ("no_more_gain", "out_of_steps")


def test_a_collection_of_targets_decides_when_to_stop():
    X, Y = drifted(1_000)
    others = normalise(np.random.default_rng(1).standard_normal((2_000, 10)))
    steps = {
        int(DriftAdapter(batch=64, patience=1).fit(X, Y, unpaired_target=each).steps_)
        for each in (None, others, Y[:20])
    }
    assert len(steps) > 1
    with pytest.raises(DimensionError, match="unpaired_target with 10 columns"):
        DriftAdapter().fit(X, Y, unpaired_target=others[:, :9])


def test_a_checkpoint_is_taken_up(tmp_path):
    from isthmus._progress import tracking

    pairs = drifted()
    whole = DriftAdapter(epochs=5, batch=64).fit(*pairs)
    adapter = DriftAdapter(epochs=5, batch=64, checkpoint=str(tmp_path))

    def stop(items, description, total):
        del description, total
        for done, item in enumerate(items):
            if done == 13:
                raise KeyboardInterrupt
            yield item

    with pytest.raises(KeyboardInterrupt), tracking(stop):
        adapter.fit(*pairs)
    adapter.fit(*pairs)

    for name, array in whole.get_state().items():
        np.testing.assert_array_equal(array, adapter.get_state()[name])


@pytest.mark.parametrize(
    ("params", "error_class", "text"),
    [
        ({"form": "mlp"}, UnknownNameError, "form among low_rank, orthogonal, residual_mlp"),
        ({"hidden": 0}, ParameterError, "hidden as a whole number of at least 1; got 0"),
        ({"rank": 1.5}, ParameterError, "rank as a whole number"),
        ({"epochs": 0}, ParameterError, "epochs as a whole number"),
        ({"batch": 0}, ParameterError, "batch as a whole number"),
        ({"patience": 0}, ParameterError, "patience as a whole number"),
        ({"seed": -1}, ParameterError, "seed as a whole number of at least 0"),
        ({"learning_rate": -1.0}, ParameterError, "learning_rate over 0"),
        ({"weight_decay": -1.0}, ParameterError, "weight_decay of at least 0"),
        ({"held_out": 2.0}, ParameterError, "held_out from 0 to 1"),
        ({"device": "nope"}, ParameterError, "'cpu' or 'cuda'; got 'nope'"),
    ],
    ids=str,
)
def test_parameters_out_of_range(params, error_class, text):
    with pytest.raises(error_class, match=text):
        DriftAdapter(**params).fit(*drifted(60))


def test_only_the_trained_forms_need_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    DriftAdapter(form="orthogonal").fit(*drifted())
    for form in TRAINED:
        with pytest.raises(MissingExtraError, match=r"pip install 'isthmus\[torch\]'"):
            DriftAdapter(form=form).fit(*drifted())


def test_scaling_is_fitted_on_rows_of_length_one_where_they_are_used_so():
    X, Y = drifted()
    plain, scaled = (
        DriftAdapter(form="orthogonal", scaling=each).fit(2 * X, Y) for each in (False, True)
    )
    before = plain.transform(2 * X).astype(np.float64)
    factors = np.sum(before * Y, axis=0) / np.sum(before**2, axis=0)
    np.testing.assert_allclose(scaled.skip_, plain.skip_ * factors, rtol=1e-4, atol=1e-6)


def test_the_closed_form_is_not_costly():
    assert [DriftAdapter(form=form).costly for form in FORMS] == [True, False, True]
    assert DriftAdapter.sees_collection


@pytest.mark.parametrize("params", [{"form": "orthogonal"}, {"form": "low_rank"}, {"hidden": 99}])
def test_parameters_that_the_arrays_do_not_have_are_refused(params):
    fitted = DriftAdapter(hidden=12, epochs=1).fit(*drifted(60))
    params = {**fitted.recorded_params(), **params}
    with pytest.raises(MalformedArtifactError, match="sizes that its parameters give"):
        DriftAdapter.from_state(params, fitted.get_state(), dim_source=10, dim_target=10)
