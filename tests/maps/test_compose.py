"""Compose: steps around a map, raw target rows out, descriptions that are checked when read."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from isthmus.errors import (
    MalformedArtifactError,
    NotFittedError,
    ParameterError,
    UnsupportedOperationError,
)
from isthmus.maps import (
    CCA,
    PCA,
    Centre,
    Compose,
    Normalise,
    Null,
    Procrustes,
    Relative,
    Ridge,
    Whiten,
)


def pairs(n=80, dim_source=6, dim_target=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim_source)) + 1
    return X, X @ rng.standard_normal((dim_source, dim_target)) - 3


def usual(inner):
    return Compose([Normalise(), Centre()], inner, [Normalise(), Centre()])


def test_the_answer_is_in_the_raw_target_space():
    X, Y = pairs()

    for target_steps in ([Centre()], [Whiten()], [Centre(), Whiten()], [PCA(n_components=6)]):
        fitted = Compose([Whiten()], Ridge(), target_steps).fit(X, Y)
        np.testing.assert_allclose(fitted.transform(X), Y, atol=5e-3)


def test_on_unit_rows_lengths_come_back():
    _, Y = pairs()
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    turned = Y @ np.linalg.qr(np.random.default_rng(1).standard_normal((8, 8)))[0]

    fitted = usual(Procrustes()).fit(Y, turned)

    np.testing.assert_allclose(fitted.transform(Y), turned, atol=1e-5)


def test_it_is_the_parts_one_after_the_other():
    X, Y = pairs()
    fitted = Compose([Centre(), PCA(n_components=3)], Ridge(penalty=1.0), [Centre()]).fit(X, Y)

    centred = Centre().fit(X)
    reduced = PCA(n_components=3).fit(centred.transform(X))
    target = Centre().fit(Y)
    source = reduced.transform(centred.transform(X))
    inner = Ridge(penalty=1.0).fit(source, target.transform(Y))

    np.testing.assert_array_equal(
        fitted.transform(X), target.inverse_transform(inner.transform(source))
    )


@pytest.mark.parametrize("inner", [CCA(), Relative()], ids=["cca", "relative"])
def test_in_a_comparison_space_both_sides_go_through_their_steps(inner):
    X, Y = pairs()
    fitted = Compose([Centre()], inner, [Centre()]).fit(X, Y)
    by_hand = clone(inner).fit(X - X.mean(0), Y - Y.mean(0))

    assert fitted.lands_in == "comparison"
    np.testing.assert_allclose(
        fitted.transform(X), by_hand.transform(X - X.mean(0)), rtol=1e-3, atol=1e-5
    )
    np.testing.assert_allclose(
        fitted.transform_target(Y), by_hand.transform_target(Y - Y.mean(0)), rtol=1e-3, atol=1e-5
    )


def test_what_was_passed_stays_unfitted_and_parameters_reach_the_inner_map():
    X, Y = pairs()
    inner, step = Ridge(), Centre()
    composed = Compose([step], inner, [])

    composed.set_params(inner__penalty=2.0).fit(X, Y)

    assert not hasattr(inner, "weight_")
    assert not hasattr(step, "mean_")
    assert float(composed.inner_.penalty_) == 2.0
    assert composed.get_params()["inner__penalty"] == 2.0
    assert clone(composed).get_params(deep=False).keys() == composed.get_params(deep=False).keys()


def test_no_steps_is_the_map_itself():
    X, Y = pairs()

    np.testing.assert_array_equal(
        Compose([], Ridge(), []).fit(X, Y).transform(X), Ridge().fit(X, Y).transform(X)
    )
    np.testing.assert_array_equal(
        Compose((), Null()).fit(X, Y).transform(X), Null().fit(X, Y).transform(X)
    )


def test_weights_reach_every_part():
    X, Y = pairs(40)
    weight = np.r_[np.ones(20), np.zeros(20)]

    np.testing.assert_array_equal(
        usual(Ridge()).fit(X, Y, sample_weight=weight).transform(X),
        usual(Ridge()).fit(X[:20], Y[:20], sample_weight=np.ones(20)).transform(X),
    )


class Listening(Null):
    """A null map that keeps the unpaired rows it was given."""

    name = "listening"

    def fit(self, X, Y, *, sample_weight=None, unpaired_source=None, unpaired_target=None):
        self.heard_ = unpaired_source, unpaired_target
        return super().fit(X, Y, sample_weight=sample_weight)


def test_unpaired_rows_go_through_the_steps_too():
    X, Y = pairs()
    fitted = Compose([Centre()], Listening(), [Centre()]).fit(
        X, Y, unpaired_source=X[:3], unpaired_target=Y[:4]
    )

    np.testing.assert_array_equal(fitted.inner_.heard_[0], fitted.source_steps_[0].transform(X[:3]))
    np.testing.assert_array_equal(fitted.inner_.heard_[1], fitted.target_steps_[0].transform(Y[:4]))


@pytest.mark.parametrize("threads", [1, 2])
def test_bits_do_not_depend_on_the_batch_where_rows_go_through_in_blocks(threads):
    fitted = Compose([Normalise(), Whiten()], Ridge(), [Normalise(), Whiten()]).fit(*pairs())
    many = np.random.default_rng(1).standard_normal((10_000, 6)).astype(np.float32)
    with threadpool_limits(1):
        expected = fitted.transform(many)

    with threadpool_limits(threads):
        for start, stop in ((0, 1), (4_799, 4_802), (3, 9_999), (0, 4_801)):
            np.testing.assert_array_equal(fitted.transform(many[start:stop]), expected[start:stop])


def test_errors_of_the_parts_come_through():
    X, Y = pairs()
    with pytest.raises(ParameterError, match="n_components of at most 6"):
        Compose([PCA(n_components=9)], Ridge(), []).fit(X, Y)
    with pytest.raises(NotFittedError, match="a fitted compose"):
        usual(Ridge()).describe()
    with pytest.raises(UnsupportedOperationError, match=r"use Compose\.from_description"):
        Compose.from_state({}, {}, dim_source=1, dim_target=1)


def written():
    X, Y = pairs()
    fitted = Compose([PCA(n_components=3)], Ridge(), [Centre()]).fit(X, Y)
    return fitted.describe(), fitted.get_state()


def test_names_of_arrays_say_where_they_belong():
    _, state = written()

    assert sorted(state) == [
        "inner.bias",
        "inner.loo_errors",
        "inner.penalties",
        "inner.penalty",
        "inner.weight",
        "source.0.directions",
        "source.0.mean",
        "source.0.variances",
        "target.0.mean",
    ]


def change(path, value):
    def apply(description, state):
        place = description
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        return description, state

    return apply


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (change(["inner", "name"], "teleport"), "KeyError: 'teleport'"),
        (change(["source_steps", 0, "name"], "blur"), "KeyError: 'blur'"),
        (change(["source_steps"], None), "TypeError"),
        (change(["inner"], {}), "KeyError: 'name'"),
        (change(["inner", "params"], "loo"), "AttributeError"),
        (change(["dim_source"], "six"), "ValueError"),
        (change(["inner", "params"], {"speed": 1}), "unknown parameters \\['speed'\\]"),
        (change(["dim_source"], 7), "steps of widths \\[6, 3\\]; got \\[7, 3\\]"),
        (change(["dim_target"], 9), "steps of widths \\[8, 8\\]; got \\[9, 8\\]"),
        (change(["source_steps", 0, "dim"], 5), "with dim = 5; got shape \\(6,"),
        (lambda d, s: (d, {**s, "inner.spare": np.zeros(2)}), "unknown \\['spare'\\]"),
        (lambda d, s: (d, {**s, "source.1.mean": np.zeros(2)}), "got \\['source.1.mean'\\]"),
        (lambda d, s: (d, {k: v for k, v in s.items() if "bias" not in k}), "missing \\['bias'\\]"),
        (lambda d, s: (d, {**s, "inner.bias": np.zeros(3)}), "with target = 8; got shape \\(3,\\)"),
        (lambda d, s: (d, {**s, "inner.bias": np.array(["a"] * 8)}), "finite numbers in ridge"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(damage, text):
    description, state = damage(*copy.deepcopy(written()))

    with pytest.raises(MalformedArtifactError, match=text):
        Compose.from_description(description, state)
