"""What every map must do: one row per map, every test on every row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from isthmus.errors import (
    CountMismatchError,
    DegenerateVectorsError,
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    MalformedArtifactError,
    NotFittedError,
    ParameterError,
    TooFewPairsError,
    ZeroVectorError,
)
from isthmus.maps import (
    MAPS,
    PCA,
    Centre,
    Compose,
    Map,
    Normalise,
    Procrustes,
    Ridge,
    Whiten,
    make,
    names,
)


@dataclass(frozen=True)
class Row:
    """A map as the suite uses it.

    weight_counts: a weight of k is the same as the row k times (else only: a weight of zero is the
    same as no row).
    learns: the rows matter, so rows that are all equal are refused.
    minimum: fewest pairs.
    pools: the map needs rows without a pair.
    """

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    weight_counts: bool = True
    learns: bool = True
    minimum: int = 2
    pools: bool = False

    def make(self) -> Map:
        return make(self.name, **self.params)

    def fit(self, X: Any, Y: Any, *, made: Map | None = None, **given: Any) -> Map:
        """Fit, with rows without a pair where the map needs some."""
        made = self.make() if made is None else made
        widths = [np.asarray(side).shape[1:] for side in (X, Y)]
        if self.pools and all(len(width) == 1 and width[0] for width in widths):
            (source,), (target,) = widths
            given["unpaired_source"] = planted(30, source, 1, seed=5)[0]
            given["unpaired_target"] = planted(25, 1, target, seed=6)[1]
        return made.fit(X, Y, **given)


ROWS = [
    Row("null", learns=False, minimum=1),
    Row("dummy", learns=False, minimum=1),
    Row("procrustes"),
    Row("procrustes", {"scale": True, "unequal": "pca"}),
    Row("cca", {"shrinkage": 0.1}),
    # As many columns as anchors: a row that comes twice is a column that comes twice.
    Row("relative", weight_counts=False),
    Row("relative", {"kernel": "poly"}, weight_counts=False),
    Row("relative", {"kernel": "rbf"}, weight_counts=False),
    Row("csa"),
    Row("csa", {"shrinkage": 0.1}),
    Row("asif", weight_counts=False),
    Row("asif", {"k": 3, "power": 2.0}, weight_counts=False),
    # Rows make the graph, whatever their weight.
    Row(
        "sue",
        {"n_eigenvectors": 3, "n_components": 2, "residual_epochs": 1},
        weight_counts=False,
        minimum=4,
    ),
    Row("low_rank", {"penalty": 0.5, "rank": 1}),
    Row("low_rank", weight_counts=False),
    Row("procrustes_ridge", {"penalty": 0.5}),
    Row("procrustes_ridge", weight_counts=False),
    Row("ridge", {"penalty": 0.5}),
    # Leave-one-out leaves out the pair, with all its weight; of a row twice it leaves out one.
    Row("ridge", weight_counts=False),
    Row("barycentric"),
    Row("drift_adapter", {"form": "orthogonal"}, minimum=10),
    Row("drift_adapter", {"form": "orthogonal", "scaling": True}, minimum=10),
    # Batches are drawn from rows, whatever their weight.
    Row("drift_adapter", {"hidden": 8, "epochs": 3}, weight_counts=False, minimum=10),
    Row(
        "drift_adapter",
        {"form": "low_rank", "rank": 2, "epochs": 3},
        weight_counts=False,
        minimum=10,
    ),
    Row("mlp_small", {"hidden": (8, 8), "max_epochs": 5}, weight_counts=False, minimum=10),
    Row("mlp", {"width": 8, "least_steps": 12}, weight_counts=False, minimum=10),
    Row(
        "mlp",
        {"start": "random", "width": 8, "epochs": 1, "least_steps": 12, "depth": 3},
        weight_counts=False,
        minimum=10,
    ),
    Row(
        "embedding_converter",
        {"width": 8, "epochs": 1, "least_steps": 12},
        weight_counts=False,
        minimum=10,
    ),
    Row("anchor_cca", {"gamma": 1.0, "eta": 0.1}, minimum=20, pools=True, weight_counts=False),
    # The centre of the rows counts each pair once, whatever its weight.
    Row(
        "contrastive",
        {"width": 4, "epochs": 3, "warm_up": 1},
        minimum=20,
        weight_counts=False,
    ),
    Row(
        "sotalign",
        {"width": 4, "epochs": 2, "warm_up": 1},
        minimum=20,
        pools=True,
        weight_counts=False,
    ),
    Row(
        "anchordot",
        {"gamma": 1.0, "eta": 0.1, "width": 4, "epochs": 2, "warm_up": 1},
        minimum=20,
        pools=True,
        weight_counts=False,
    ),
]

SIZES = [(60, 7, 11), (60, 11, 7), (60, 8, 8), (12, 20, 16), (12, 16, 20), (40, 1, 3), (40, 3, 1)]


def identify(row: Row) -> str:
    return "-".join([row.name, *(f"{name}={value}" for name, value in row.params.items())])


@pytest.fixture(params=ROWS, ids=identify)
def row(request):
    return request.param


@pytest.fixture(params=SIZES, ids=str)
def pairs(request, row):
    n, dim_source, dim_target = request.param
    return planted(max(n, row.minimum), dim_source, dim_target)


def planted(n, dim_source, dim_target, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim_source)) + 0.5
    Y = X @ rng.standard_normal((dim_source, dim_target)) + 0.1 * rng.standard_normal(
        (n, dim_target)
    )
    return X.astype(np.float32), (Y - 1).astype(np.float32)


def both(fitted: Map, X, Y):
    return fitted.transform(X), fitted.transform_target(Y)


def test_every_map_has_a_row():
    paired = {name for name in names() if MAPS[name].paired}  # the others: test_unpaired_maps.py
    assert {row.name for row in ROWS} == paired
    assert set(names()) == set(MAPS)


def test_names_go_from_the_most_constrained_to_the_most_free():
    freedoms = [MAPS[name].freedom for name in names()]

    assert freedoms == sorted(freedoms)


def test_constructor_only_stores(row):
    made = row.make()

    assert {name: getattr(made, name) for name in row.params} == dict(row.params)
    assert not [name for name in vars(made) if name.endswith("_")]
    assert clone(made).get_params() == made.get_params()
    assert type(made)(**made.get_params()).get_params() == made.get_params()
    with pytest.raises(TypeError, match=r"positional argument|takes no arguments"):
        type(made)(1)


def test_fit_returns_the_map_and_transform_gives_float32_in_one_space(row, pairs):
    X, Y = pairs
    made = row.make()

    assert row.fit(X, Y, made=made) is made
    mapped, target = both(made, X, Y)
    assert mapped.dtype == target.dtype == np.float32
    assert mapped.shape == target.shape
    assert np.isfinite(mapped).all()
    if made.lands_in == "target":
        np.testing.assert_array_equal(target, Y)
    assert made.n_features_in_ == X.shape[1]
    assert made.n_features_target_ == Y.shape[1]


def test_fit_forgets_an_earlier_fit(row):
    X, Y = planted(60, 7, 11)
    twice = row.fit(X, Y, made=row.fit(*planted(30, 5, 4, seed=1)))
    once = row.fit(X, Y)

    assert twice.get_state().keys() == once.get_state().keys()
    for name, array in once.get_state().items():
        np.testing.assert_array_equal(twice.get_state()[name], array)


def test_no_input_is_changed_and_no_global_randomness_is_touched(row, pairs):
    X, Y = pairs
    weight = np.linspace(0.5, 1, len(X))
    given = X, Y, weight
    copies = [array.copy() for array in given]
    for array in given:
        array.flags.writeable = False
    np.random.seed(7)  # noqa: NPY002 - the global state is what is tested
    expected = np.random.RandomState(7).random_sample()

    fitted = row.fit(X, Y, sample_weight=weight)
    both(fitted, X, Y)

    assert np.random.random_sample() == expected  # noqa: NPY002
    for array, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_what_comes_out_does_not_share_memory_with_the_state(row):
    X, Y = planted(40, 6, 6)
    fitted = row.fit(X, Y)
    before = {name: array.copy() for name, array in fitted.get_state().items()}
    Z = fitted.transform(X[:3])

    Z += 1

    for name, array in fitted.get_state().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_numbers_of_a_row_depend_on_neither_batch_nor_threads(row, threads):
    rng = np.random.default_rng(3)
    X, Y = planted(30, 33, 21)
    fitted = row.fit(X, Y)
    many_x = rng.standard_normal((6_000, 33)).astype(np.float32)
    many_y = rng.standard_normal((6_000, 21)).astype(np.float32)
    with threadpool_limits(1):
        mapped, target = both(fitted, many_x, many_y)

    with threadpool_limits(threads):
        for rows in (slice(0, 1), slice(1, 3), slice(5, 22), slice(700, 1_700), slice(1, 6_000)):
            np.testing.assert_array_equal(fitted.transform(many_x[rows]), mapped[rows])
            np.testing.assert_array_equal(fitted.transform_target(many_y[rows]), target[rows])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_number_types_and_memory_orders_give_the_same(row, dtype):
    X, Y = (side.astype(np.float16) for side in planted(40, 6, 5))
    expected = row.fit(X.astype(np.float32), Y.astype(np.float32))
    fitted = row.fit(np.asfortranarray(X.astype(dtype)), Y.astype(dtype)[::-1][::-1])

    mapped = fitted.transform(X.astype(dtype).tolist())

    assert mapped.dtype == np.float32
    np.testing.assert_allclose(mapped, expected.transform(X), rtol=1e-3, atol=1e-4)


def test_state_round_trip_is_exact(row, pairs):
    X, Y = pairs
    fitted = row.fit(X, Y)
    state = fitted.get_state()
    params = json.loads(json.dumps(fitted.get_params()))
    params = {name: tuple(v) if isinstance(v, list) else v for name, v in params.items()}

    again = type(fitted).from_state(params, state, dim_source=X.shape[1], dim_target=Y.shape[1])

    assert all(isinstance(array, np.ndarray) and array.dtype != object for array in state.values())
    for one, other in zip(both(fitted, X, Y), both(again, X, Y), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.get_params() == fitted.get_params()


def test_state_that_does_not_fit_is_refused(row):
    X, Y = planted(40, 6, 5)
    fitted = row.fit(X, Y)
    dims = {"dim_source": 6, "dim_target": 5}
    params, state = fitted.get_params(), fitted.get_state()

    def load(params=params, state=state, **other):
        return type(fitted).from_state(params, state, **{**dims, **other})

    with pytest.raises(MalformedArtifactError, match="unknown \\['extra'\\]"):
        load(state={**state, "extra": np.zeros(1)})
    with pytest.raises(MalformedArtifactError, match="unknown parameters \\['speed'\\]"):
        load(params={**params, "speed": 1})
    for name, array in state.items():
        with pytest.raises(MalformedArtifactError, match=f"missing \\['{name}'\\]"):
            load(state={key: value for key, value in state.items() if key != name})
        with pytest.raises(MalformedArtifactError, match="axes; got shape"):
            load(state={**state, name: array[None]})
        if array.size:
            with pytest.raises(MalformedArtifactError, match="finite numbers"):
                load(state={**state, name: np.full(array.shape, np.nan)})
    if state:
        with pytest.raises(MalformedArtifactError, match="expected"):
            load(dim_source=7, dim_target=8)


def test_use_before_fit(row):
    X, Y = planted(20, 4, 4)
    for use in (
        lambda made: made.transform(X),
        lambda made: made.transform_target(Y),
        lambda made: made.get_state(),
    ):
        with pytest.raises(NotFittedError, match=f"a fitted {row.name}; got one that was not"):
            use(row.make())


def test_wrong_width_after_fit(row):
    fitted = row.fit(*planted(20, 4, 5))

    with pytest.raises(DimensionError, match="X with 4 columns; got 5 columns"):
        fitted.transform(np.ones((2, 5)))
    with pytest.raises(DimensionError, match="Y with 5 columns; got 4 columns"):
        fitted.transform_target(np.ones((2, 4)))
    with pytest.raises(InvalidVectorsError, match="NaN or infinity in row 1"):
        fitted.transform([[1.0, 2, 3, 4], [1, np.nan, 3, 4]])


def bad(X, Y):
    with_nan, with_inf = X.copy(), Y.copy()
    with_nan[3, 1], with_inf[2, 0] = np.nan, np.inf
    return {
        "nan": ((with_nan, Y), InvalidVectorsError, "finite numbers in X; got NaN .* row 3"),
        "inf": ((X, with_inf), InvalidVectorsError, "finite numbers in Y; got NaN .* row 2"),
        "huge": (
            (X.astype(np.float64) * 1e39, Y),
            InvalidVectorsError,
            "numbers up to 3.4e.38 in X",
        ),
        "text": ((X.astype(str), Y), InvalidVectorsError, "X as numbers"),
        "counts": ((X, Y[:-1]), CountMismatchError, "got 20 source rows and 19 target rows"),
        "axes": ((X[0], Y), DimensionError, "X with two axes"),
        "none": ((X[:0], Y[:0]), EmptyInputError, "X with at least one row"),
        "columns": ((X[:, :0], Y), EmptyInputError, "X with at least one row and one column"),
    }


@pytest.mark.parametrize("case", list(bad(*planted(20, 4, 5))))
def test_bad_pairs(row, case):
    given, error, text = bad(*planted(20, 4, 5))[case]

    with pytest.raises(error, match=text):
        row.fit(*given)


def test_fewer_pairs_than_needed(row):
    X, Y = planted(row.minimum, 4, 5)

    row.fit(X, Y)
    if row.minimum > 1:
        with pytest.raises(TooFewPairsError, match=f"{row.minimum} pairs; got {row.minimum - 1}"):
            row.fit(X[:-1], Y[:-1])
        with pytest.raises(TooFewPairsError, match="of a weight over 0"):
            row.fit(X, Y, sample_weight=np.arange(len(X)))


def test_rows_that_are_all_equal(row):
    X, Y = planted(20, 4, 5)
    same_x, same_y = np.repeat(X[:1], 20, axis=0), np.repeat(Y[:1], 20, axis=0)

    if not row.learns:
        row.fit(same_x, same_y)
        return
    with pytest.raises(DegenerateVectorsError, match="two different rows in X; got 20 equal rows"):
        row.fit(same_x, Y)
    with pytest.raises(DegenerateVectorsError, match="two different rows in Y; got 20 equal rows"):
        row.fit(X, same_y)


def test_rows_that_differ_only_beyond_float32(row):
    X, Y = planted(20, 4, 5)
    if row.learns:
        with pytest.raises(DegenerateVectorsError, match="two different rows in X"):
            row.fit(X.astype(np.float64) * 1e-200, Y)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_vectors_of_a_scale_that_float32_cannot_learn_from(row, scale):
    X, Y = planted(20, 4, 5)
    if not row.learns:
        row.fit(X * np.float32(scale), Y * np.float32(scale))
        return
    error, text = InvalidVectorsError, "numbers up to 1e.15 in {}; .* Do: scale the vectors down"
    if scale < 1:
        error, text = DegenerateVectorsError, "rows of {} that differ by at least 1e-15"
    with pytest.raises(error, match=text.format("X")):
        row.fit(X * np.float32(scale), Y)
    with pytest.raises(error, match=text.format("Y")):
        row.fit(X, Y * np.float32(scale))


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e200, 1e308])
def test_the_scale_of_extreme_weights_does_not_matter(row, scale):
    X, Y = planted(40, 6, 5)
    weight = np.linspace(0.5, 1, 40)

    extreme = row.fit(X, Y, sample_weight=weight * scale)
    plain = row.fit(X, Y, sample_weight=weight)

    for one, other in zip(both(extreme, X, Y), both(plain, X, Y), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("weight", "error", "text"),
    [
        (np.ones(19), CountMismatchError, "20 weights, one per pair; got shape \\(19,\\)"),
        (np.full(20, -1.0), ParameterError, "not negative and not all zero"),
        (np.zeros(20), ParameterError, "not negative and not all zero"),
        (np.full(20, np.nan), ParameterError, "finite, not negative"),
    ],
)
def test_bad_weights(row, weight, error, text):
    X, Y = planted(20, 4, 5)

    with pytest.raises(error, match=text):
        row.fit(X, Y, sample_weight=weight)


def test_constant_columns_and_duplicate_rows_give_finite_numbers(row):
    X, Y = planted(40, 6, 5)
    X[:, 2], Y[:, 0] = 3.0, 0.0
    X[10:20], Y[10:20] = X[0], Y[0]

    fitted = row.fit(X, Y)

    for out in both(fitted, X * 10, Y * 10):
        assert np.isfinite(out).all()


def test_a_weight_of_zero_is_the_same_as_no_row(row):
    X, Y = planted(40, 6, 5)
    weight = np.r_[np.ones(30), np.zeros(10)]

    weighted = row.fit(X, Y, sample_weight=weight)
    without = row.fit(X[:30], Y[:30], sample_weight=np.ones(30))

    for one, other in zip(both(weighted, X, Y), both(without, X, Y), strict=True):
        np.testing.assert_array_equal(one, other)


def test_weights_of_one_are_the_same_as_none(row):
    X, Y = planted(40, 6, 5)

    weighted = row.fit(X, Y, sample_weight=np.ones(40))
    plain = row.fit(X, Y)

    for one, other in zip(both(weighted, X, Y), both(plain, X, Y), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("row", [row for row in ROWS if row.weight_counts], ids=identify)
@pytest.mark.parametrize("size", [(40, 6, 5), (12, 20, 16)], ids=str)
def test_a_weight_of_k_is_the_same_as_the_row_k_times(row, size):
    X, Y = planted(*size)
    counts = np.random.default_rng(0).integers(1, 4, size[0])

    weighted = row.fit(X, Y, sample_weight=counts)
    repeated = row.fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))

    one, other = both(weighted, X, Y), both(repeated, X, Y)
    if weighted.lands_in == "comparison":  # directions are free up to their sign
        one, other = [[a @ b.T for a in pair for b in pair] for pair in (one, other)]
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


def test_a_composed_map_survives_its_description(row, pairs):
    X, Y = pairs
    width = min(2, X.shape[1], Y.shape[1])
    unfitted = Compose(
        [Normalise(), Centre(), PCA(n_components=width)] if X.shape[1] > 1 else [Centre()],
        row.make(),
        [Normalise(), Whiten()] if Y.shape[1] > 1 else [Whiten()],
    )
    composed = row.fit(X, Y, made=unfitted)
    description = json.loads(json.dumps(composed.describe()))

    again = Compose.from_description(description, composed.get_state())

    for one, other in zip(both(composed, X, Y), both(again, X, Y), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.describe() == description
    assert (again.lands_in, again.freedom) == (row.make().lands_in, row.make().freedom)


def test_zero_rows_where_a_direction_is_needed():
    X, Y = planted(20, 4, 4)
    X[5] = 0
    with pytest.raises(ZeroVectorError, match="only zeros in row 5"):
        make("relative").fit(X, Y)


def test_more_freedom_never_fits_the_training_pairs_worse():
    X, Y = planted(60, 8, 8)
    X, Y = X - X.mean(0), Y - Y.mean(0)
    null = make("null").fit(X, Y)
    order = [
        null,
        Procrustes().fit(X, Y),
        Procrustes(scale=True).fit(X, Y),
        Ridge(penalty=1e-6).fit(X, Y),
    ]
    errors = [float(np.sum((fitted.transform(X) - Y) ** 2)) for fitted in order]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize(
    ("name", "spoiled"),
    [
        ("asif", {"k": -1}),
        ("asif", {"k": 0}),
        ("asif", {"power": 0.0}),
        ("asif", {"power": 1e308}),
        ("sue", {"neighbors": 0}),
        ("cca", {"power": -1.0}),
        ("anchor_cca", {"gamma": -0.5}),
        ("anchordot", {"start": "closed"}),
        ("barycentric", {"neighbors": 0}),
    ],
)
def test_loaded_parameters_are_checked_as_given_ones(name, spoiled):
    row = next(row for row in ROWS if row.name == name)
    fitted = row.fit(*planted(40, 6, 5))
    params = {**fitted.get_params(), **spoiled}

    with pytest.raises(MalformedArtifactError, match=f"parameters that {name} takes"):
        type(fitted).from_state(params, fitted.get_state(), dim_source=6, dim_target=5)
