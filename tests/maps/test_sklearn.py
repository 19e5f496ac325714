"""Maps where scikit-learn's own tools take an estimator: pipelines, searches, cross-validation."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from isthmus.maps import MAPS, Centre, Compose, LowRank, Normalise, Ridge, make

ROWS, SOURCE, TARGET = 60, 6, 5
QUICK = {
    "mlp_small": {"hidden": (8, 8), "max_epochs": 3},
    "mlp": {"width": 8, "least_steps": 12, "epochs": 1},
    "embedding_converter": {"width": 8, "least_steps": 12, "epochs": 1},
    "drift_adapter": {"hidden": 8, "epochs": 2},
    "vec2vec": {"width": 8, "steps": 5, "batch": 20},
    "sue": {"n_eigenvectors": 3, "n_components": 2, "residual_epochs": 1},
    "contrastive": {"width": 4, "epochs": 2, "warm_up": 1},
    "sotalign": {"width": 4, "epochs": 2, "warm_up": 1},
    "anchordot": {"gamma": 1.0, "eta": 0.1, "width": 4, "epochs": 2, "warm_up": 1},
    "anchor_cca": {"gamma": 1.0, "eta": 0.1},
}
every_map = pytest.mark.parametrize("name", sorted(MAPS))


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((ROWS, SOURCE))
    return X, X @ rng.standard_normal((SOURCE, TARGET)) + 0.1 * rng.standard_normal((ROWS, TARGET))


def closeness(fitted, X, Y):
    """Score as scikit-learn's searches call it: higher is better."""
    carried = fitted.transform(X)
    return -float(np.mean((carried - np.asarray(Y)) ** 2))


def unpaired(name, pairs):
    """Return the rows without a pair, as parameters of ``fit``, where a map needs some."""
    X, Y = pairs
    needs = name in {"anchordot", "anchor_cca", "sotalign"}
    return {"unpaired_source": X[::-1], "unpaired_target": Y[::-1]} if needs else {}


@every_map
def test_a_clone_has_the_parameters_and_nothing_learned(name, pairs):
    made = make(name, **QUICK.get(name, {}))
    fitted = clone(made).fit(*pairs, **unpaired(name, pairs))
    again = clone(fitted)
    assert again.get_params() == made.get_params()
    assert not hasattr(again, "n_features_in_")
    assert again.set_params(**fitted.get_params()).get_params() == fitted.get_params()


@every_map
def test_last_in_a_pipeline_it_gives_what_it_gives_alone(name, pairs):
    X, Y = pairs
    made, more = make(name, **QUICK.get(name, {})), unpaired(name, pairs)
    pipeline = Pipeline([("scale", Normalizer()), ("map", made)])
    pipeline.fit(X, Y, **{f"map__{key}": rows for key, rows in more.items()})
    scaled = Normalizer().fit_transform(X)
    alone = clone(made).fit(scaled, Y, **more)
    assert pipeline.transform(X).tolist() == alone.transform(scaled).tolist()
    assert pipeline.n_features_in_ == SOURCE
    assert clone(pipeline).get_params()["map"].get_params() == made.get_params()


def test_weights_and_a_step_after_it(pairs):
    X, Y = pairs
    weight = np.r_[np.ones(ROWS - 10), np.zeros(10)]
    pipeline = make_pipeline(StandardScaler(), Ridge(penalty=0.5), Normalizer())
    pipeline.fit(X, Y, ridge__sample_weight=weight)
    scaler = StandardScaler().fit(X)
    few = Ridge(penalty=0.5).fit(scaler.transform(X)[:-10], Y[:-10])
    expected = Normalizer().transform(few.transform(scaler.transform(X)))
    np.testing.assert_allclose(pipeline.transform(X), expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(pipeline.transform(X), axis=1), 1, atol=1e-6)


def test_a_grid_search_finds_the_best_parameter(pairs):
    X, Y = pairs
    grid = {"map__penalty": [1e-3, 1e3], "scale__with_std": [True, False]}
    search = GridSearchCV(
        Pipeline([("scale", StandardScaler()), ("map", Ridge())]),
        grid,
        scoring=closeness,
        cv=KFold(3, shuffle=True, random_state=0),
    ).fit(X, Y)
    assert search.best_params_["map__penalty"] == 1e-3
    assert len(search.cv_results_["mean_test_score"]) == 4
    assert search.transform(X).shape == (ROWS, TARGET)


def test_a_grid_search_over_the_map_itself_and_over_what_a_composition_holds(pairs):
    X, Y = pairs
    over_maps = GridSearchCV(
        Pipeline([("map", Ridge())]),
        {"map": [LowRank(rank=1), Ridge(penalty=1e-3)]},
        scoring=closeness,
        cv=3,
    ).fit(X, Y)
    assert isinstance(over_maps.best_params_["map"], Ridge)
    composed = Compose([Normalise(), Centre()], Ridge(), [Centre()])
    inside = GridSearchCV(composed, {"inner__penalty": [1e-3, 1e6]}, scoring=closeness, cv=3).fit(
        X, Y
    )
    assert inside.best_params_ == {"inner__penalty": 1e-3}
    assert composed.inner.penalty == Ridge().penalty


@pytest.mark.parametrize("name", ["procrustes", "ridge", "low_rank", "procrustes_ridge"])
def test_cross_validation(name, pairs):
    scores = cross_val_score(make(name), *pairs, scoring=closeness, cv=4)
    assert scores.shape == (4,)
    assert np.isfinite(scores).all()


def test_frames_of_numbers_and_lists_are_rows_like_any(pairs):
    X, Y = pairs
    fitted = make_pipeline(Ridge(penalty=0.5)).fit(X.tolist(), Y.tolist())
    direct = make_pipeline(Ridge(penalty=0.5)).fit(X, Y)
    assert fitted.transform(X.tolist()).tolist() == direct.transform(X).tolist()


@pytest.mark.parametrize("targets", [slice(None), 0])
def test_a_step_of_ours_in_their_pipeline_looks_at_no_targets(pairs, targets):
    X, Y = pairs
    with_targets = make_pipeline(Centre(), StandardScaler()).fit(X, Y[:, targets])
    alone = StandardScaler().fit(Centre().fit(X).transform(X))
    assert with_targets[-1].mean_.tolist() == alone.mean_.tolist()
    assert make_pipeline(Centre(), Ridge()).fit(X, Y).transform(X).shape == Y.shape


def test_a_function_as_a_step(pairs):
    """A fitted map, or a bridge, is a step by its ``transform``: nothing is fitted again."""
    X, Y = pairs
    fitted = Ridge(penalty=0.5).fit(X, Y)
    step = make_pipeline(FunctionTransformer(fitted.transform), Normalizer())
    np.testing.assert_allclose(
        step.fit_transform(X), Normalizer().transform(fitted.transform(X)), atol=1e-6
    )
