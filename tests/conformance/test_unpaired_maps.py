"""What every map must do that learns from two clouds without pairs: one row per map."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone

from isthmus.errors import (
    DegenerateVectorsError,
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    MalformedArtifactError,
    NotFittedError,
    ParameterError,
    TooFewPairsError,
)
from isthmus.maps import MAPS, Compose, Normalise, make

ROWS = [
    ("mini_vec2vec", {"n_clusters": 14, "attempts": 4}),
    ("unpaired_iterative", {"n_clusters": 14, "attempts": 4}),
    ("unpaired_iterative", {"start": "gaussian", "attempts": 2}),
    ("vec2vec", {"width": 8, "steps": 10, "batch": 20}),
]
FINDS = ROWS[:2]
"""Those that find what a few hundred rows tell."""


@pytest.fixture(params=ROWS, ids=lambda row: "-".join(map(str, (row[0], *row[1].values()))))
def made(request):
    name, params = request.param
    return make(name, **params)


def planted(rows=300, dims=(12, 12), *, seed=0):
    """Return two clouds of the same objects, each turned and the second shuffled, and which belong.

    Fourteen kinds of uneven size. The third value has the target row of every source row.
    """
    rng = np.random.default_rng(seed)
    width = min(dims)
    centres = rng.standard_normal((14, width)) * 3 * np.linspace(1.5, 0.5, width)
    kinds = rng.choice(14, size=rows, p=np.arange(1, 15) / 105)
    latent = centres[kinds] + 0.7 * rng.standard_normal((rows, width))
    frames = [np.linalg.qr(rng.standard_normal((dim, dim)))[0][:width] for dim in dims]
    sides = [
        latent @ frame + 0.02 * rng.standard_normal((rows, frame.shape[1])) for frame in frames
    ]
    order = rng.permutation(rows)
    source = (sides[0] + 0.5).astype(np.float32)
    target = (2 * sides[1][order] - 1).astype(np.float32)
    return source, target, np.argsort(order)


def unrelated(seed):
    """Return two clouds of a few tight groups each, that have nothing to do with each other."""
    return planted(seed=seed)[0], planted(seed=seed + 1)[1]


def found(fitted, source, target, truth):
    """Return the share of source rows whose nearest target row is theirs."""
    mapped = fitted.transform(source)
    distances = ((mapped[:, None] - target[None]) ** 2).sum(axis=2)
    return float(np.mean(distances.argmin(axis=1) == truth))


def test_every_unpaired_map_has_a_row():
    assert {name for name, _ in ROWS} == {name for name, each in MAPS.items() if not each.paired}


def test_constructor_only_stores(made):
    assert not [name for name in vars(made) if name.endswith("_")]
    assert clone(made).get_params() == made.get_params()
    assert made.costly


@pytest.mark.parametrize(
    ("counts", "dims"), [((120, 90), (7, 11)), ((60, 50), (30, 9)), ((80, 80), (2, 2))], ids=str
)
def test_clouds_of_other_sizes_give_numbers_in_the_target_space(made, counts, dims):
    source, target = planted(120, dims)[:2]
    source, target = source[: counts[0]], target[: counts[1]]

    assert made.fit(source, target) is made

    mapped = made.transform(source)
    assert mapped.dtype == np.float32
    assert mapped.shape == (counts[0], dims[1])
    assert np.isfinite(mapped).all()
    np.testing.assert_array_equal(made.transform_target(target), target)
    assert 0 <= float(made.confidence_) <= 1
    assert made.reliable is bool(made.confidence_ >= 0.3)


def test_the_order_of_rows_says_nothing():
    """One side shuffled against the other: what was found is found again."""
    source, target, truth = planted()
    order = np.random.default_rng(5).permutation(len(source))
    for name, params in FINDS:
        plain = make(name, **params).fit(source, target)
        shuffled = make(name, **params).fit(source[order], target)

        assert found(plain, source, target, truth) > 0.95
        assert found(shuffled, source, target, truth) > 0.95
        assert plain.reliable
        assert shuffled.reliable


def test_pairing_is_of_no_use(made):
    """Rows in the order of their pairs, of clouds without any shape: nothing may be found."""
    rng = np.random.default_rng(1)
    source = rng.standard_normal((300, 12)).astype(np.float32)
    target = source @ np.linalg.qr(rng.standard_normal((12, 12)))[0].astype(np.float32)
    target += 0.5 * rng.standard_normal(target.shape).astype(np.float32)

    fitted = made.fit(source, target)

    assert found(fitted, source, target, np.arange(300)) < 0.1
    assert not fitted.reliable


@pytest.mark.parametrize("row", FINDS, ids=lambda row: row[0])
@pytest.mark.parametrize("seed", [1, 11])
def test_few_groups_that_match_in_one_best_way_are_no_success(row, seed):
    """Attempts agree about them, which is why agreement alone says nothing."""
    fitted = make(row[0], **row[1]).fit(*unrelated(seed))

    assert fitted.agreement_ > 0
    assert fitted.confidence_ == 0
    assert not fitted.reliable


@pytest.mark.parametrize("row", FINDS, ids=lambda row: row[0])
def test_confidence_is_what_attempts_agree_on_where_there_is_more_than_chance(row):
    fitted = make(row[0], **row[1]).fit(*planted()[:2])

    assert fitted.confidence_ == fitted.agreement_ > 0.5


def test_wider_and_narrower_sides():
    for dims in ((14, 10), (10, 14)):
        source, target, truth = planted(dims=dims)
        for name, params in FINDS:
            fitted = make(name, **params).fit(source, target)
            assert found(fitted, source, target, truth) > 0.9
            assert fitted.reliable


def test_more_rows_of_a_cloud_are_the_same_as_rows(made):
    source, target = planted(160)[:2]

    whole = made.fit(source, target).get_state()
    parts = (
        clone(made)
        .fit(source[:60], target[:90], unpaired_source=source[60:], unpaired_target=target[90:])
        .get_state()
    )

    for name, array in whole.items():
        np.testing.assert_array_equal(parts[name], array)


def test_a_seed_decides(made):
    source, target = planted(160)[:2]
    once = made.fit(source, target).get_state()
    np.random.seed(7)  # noqa: NPY002 - the global state is what is tested
    expected = np.random.RandomState(7).random_sample()

    again = clone(made).fit(source, target).get_state()

    assert np.random.random_sample() == expected  # noqa: NPY002
    for name, array in once.items():
        np.testing.assert_array_equal(again[name], array)


def test_the_numbers_of_a_row_do_not_depend_on_the_batch(made):
    source, target = planted(100, (33, 21))[:2]
    fitted = made.fit(source, target)
    many = np.random.default_rng(3).standard_normal((3_000, 33)).astype(np.float32)
    mapped = fitted.transform(many)

    for rows in (slice(0, 1), slice(5, 22), slice(700, 1_700)):
        np.testing.assert_array_equal(fitted.transform(many[rows]), mapped[rows])


def test_state_round_trip(made):
    source, target = planted(100, (7, 11))[:2]
    fitted = made.fit(source, target)
    params, state = json.loads(json.dumps(fitted.get_params())), fitted.get_state()
    dims = {"dim_source": 7, "dim_target": 11}

    again = type(fitted).from_state(params, state, **dims)

    np.testing.assert_array_equal(again.transform(source), fitted.transform(source))
    assert again.confidence_ == fitted.confidence_
    for name in state:
        with pytest.raises(MalformedArtifactError, match=f"missing \\['{name}'\\]"):
            type(fitted).from_state(
                params, {key: value for key, value in state.items() if key != name}, **dims
            )
        broken = {**state, name: np.full(np.shape(state[name]), np.nan)}
        with pytest.raises(MalformedArtifactError, match="finite numbers"):
            type(fitted).from_state(params, broken, **dims)


def test_nothing_is_changed_and_compose_carries_it(made):
    source, target = planted(100)[:2]
    copies = source.copy(), target.copy()
    source.flags.writeable = target.flags.writeable = False

    composed = Compose([Normalise()], made, [Normalise()]).fit(source, target)

    assert composed.transform(source).shape == target.shape
    for array, copy in zip((source, target), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_use_before_fit(made):
    for use in (lambda: made.transform(np.ones((2, 3))), lambda: made.reliable, made.get_state):
        with pytest.raises(NotFittedError, match="call fit"):
            use()


def test_bad_clouds(made):
    source, target = planted(60, (5, 6))[:2]
    with_nan = source.copy()
    with_nan[3, 1] = np.nan
    for given, error, text in (
        ((source[:49], target), TooFewPairsError, "at least 50 rows in X; got 49"),
        ((source, target[:49]), TooFewPairsError, "at least 50 rows in Y; got 49"),
        ((source[:0], target), EmptyInputError, "X with at least one row"),
        ((with_nan, target), InvalidVectorsError, "finite numbers in X; got NaN .* row 3"),
        ((source[:, :1], target), DimensionError, "X with at least two columns; got 1 column"),
        ((source, target[:, :1]), DimensionError, "Y with at least two columns; got 1 column"),
        ((np.repeat(source[:1], 60, 0), target), DegenerateVectorsError, "different rows in X"),
        ((source, np.repeat(target[:1], 60, 0)), DegenerateVectorsError, "different rows in Y"),
        ((source * 1e20, target), InvalidVectorsError, "numbers up to 1e.15 in X"),
        ((source[0], target), DimensionError, "two axes"),
    ):
        with pytest.raises(error, match=text):
            made.fit(*given)
    with pytest.raises(DimensionError, match="unpaired_source with 5 columns"):
        made.fit(source, target, unpaired_source=target)
    with pytest.raises(ParameterError, match=r"no sample_weight: .* leave them out"):
        made.fit(source, target, sample_weight=np.ones(60))


def test_clouds_with_few_different_rows(made):
    source, target = planted(60, (5, 6))[:2]

    with pytest.raises(DegenerateVectorsError, match="25 different rows in X; got 3 among 60"):
        made.fit(np.repeat(source[:3], 20, axis=0), target)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attempts", 1),
        ("rounds", 0),
        ("tolerance", 0.0),
        ("tolerance", 2.0),
        ("sample", 10),
        ("seed", -1),
        ("n_clusters", 1),
        ("width", 0),
        ("steps", 0),
        ("batch", 1),
        ("learning_rate", 0.0),
        ("judge_rate", float("nan")),
        ("device", "nowhere"),
    ],
)
def test_bad_parameters(name, value):
    having = [(one, params) for one, params in ROWS if name in make(one).get_params()]
    assert having
    for one, params in having:
        with pytest.raises(ParameterError, match=name):
            make(one, **{**params, name: value}).fit(*planted(60)[:2])
