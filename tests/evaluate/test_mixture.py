"""Rows of another encoder are found, another topic of the same is not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import DimensionError, EmptyInputError, InvalidVectorsError
from isthmus.evaluate.mixture import find_mixture
from isthmus.evaluate.mixture_plot import mixture_figure

DIM = 96


def encoded(rows: int, *, model: int = 0, topic: int = 0, dim: int = DIM) -> np.ndarray:
    """Rows of a made-up encoder: topics differ in its wide directions, never in its empty ones."""
    turn = np.linalg.qr(np.random.default_rng(1000 + model).standard_normal((dim, dim)))[0]
    spread = np.geomspace(1, 0.03, dim)
    draw = np.random.default_rng(topic)
    middle = draw.standard_normal(dim) * spread
    own = spread * draw.uniform(0.3, 1.0, dim)
    drawn = np.random.default_rng(17 * topic + model).standard_normal((rows, dim))
    return (drawn * own + middle) @ turn


def shuffled(*parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = np.concatenate(parts)
    part = np.repeat(np.arange(len(parts)), [len(one) for one in parts])
    order = np.random.default_rng(5).permutation(len(rows))
    return rows[order], part[order] > 0


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("topic", [0, 1])
def test_rows_of_another_encoder_are_found_and_named(share, topic):
    foreign = round(share * 1200)
    rows, truth = shuffled(encoded(1200 - foreign), encoded(foreign, model=1, topic=topic))
    found = find_mixture(rows)
    assert found.verdict == "mixed"
    wrong = ((found.posterior > 0.5) != truth).mean()
    assert (min(wrong, 1 - wrong) if share == 0.5 else wrong) < 0.01
    assert found.share_low <= share <= found.share_high
    assert 0.3 < found.contrast_low < found.contrast < found.contrast_high
    assert found.own_energy < 0.1 < found.foreign_energy


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_another_topic_of_the_same_encoder_is_no_second_space(share):
    foreign = round(share * 1200)
    rows, _ = shuffled(encoded(1200 - foreign), encoded(foreign, topic=1))
    found = find_mixture(rows)
    assert found.verdict == "one space"
    assert not found.posterior.any()
    assert found.smallest_share <= 0.1
    assert found.share == 0.0


def test_lengths_and_the_order_of_rows_do_not_count():
    rows, _ = shuffled(encoded(700), encoded(80, model=1))
    found = find_mixture(rows)
    longer = find_mixture(rows * np.random.default_rng(0).lognormal(0, 2, (len(rows), 1)))
    np.testing.assert_allclose(longer.posterior, found.posterior, atol=1e-3)
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((DIM, DIM)))[0]
    np.testing.assert_allclose(find_mixture(rows @ turn).posterior, found.posterior, atol=1e-2)


def test_rows_that_were_not_seen_are_scored_as_those_that_were():
    found = find_mixture(shuffled(encoded(1000), encoded(100, model=1))[0])
    posterior, energy = found.score(np.concatenate([encoded(50), encoded(50, model=1)]))
    assert (posterior[:50] < 0.5).all()
    assert (posterior[50:] > 0.5).mean() > 0.95
    assert np.median(energy[50:]) > 10 * np.median(energy[:50])
    one_by_one = np.concatenate([found.score(row[None])[0] for row in encoded(5)])
    np.testing.assert_allclose(one_by_one, found.score(encoded(5))[0], atol=1e-6)
    with pytest.raises(DimensionError):
        found.score(np.ones((2, 3)))


def test_bad_and_zero_rows_have_no_posterior_and_do_no_harm():
    rows, truth = shuffled(encoded(700), encoded(80, model=1))
    rows[:4] = 0
    rows[4:8] = np.nan
    rows[8, 0] = np.inf
    found = find_mixture(rows)
    assert found.verdict == "mixed"
    assert np.isnan(found.posterior[:9]).all()
    assert ((found.posterior[9:] > 0.5) == truth[9:]).mean() > 0.98
    assert found.rows == len(rows) - 9


def test_repeated_rows_count_once():
    rows = np.concatenate([encoded(700), np.repeat(encoded(1, model=1), 400, axis=0)])
    found = find_mixture(rows)
    assert (found.verdict, found.rows) == ("one space", 701)


@pytest.mark.parametrize(
    "rows",
    [
        np.ones((1, 8)),
        np.ones((500, 8)),
        np.zeros((10, 4)),
        np.full((10, 4), np.nan),
        np.random.default_rng(0).standard_normal((500, 1)),
        np.random.default_rng(0).standard_normal((39, 3)),
    ],
)
def test_too_little_is_not_enough_data(rows):
    found = find_mixture(rows)
    assert found.verdict == "not enough data"
    assert found.posterior.shape == (len(rows),)
    assert not np.nansum(found.posterior)
    assert found.to_dict()["reason"]


def test_more_dimensions_than_rows_is_not_enough_data():
    rows = np.random.default_rng(0).standard_normal((60, 100))
    found = find_mixture(rows)
    assert found.verdict == "not enough data"
    assert "take 500" in found.reason


def test_a_ball_leaves_no_direction_empty_and_the_verdict_says_so():
    found = find_mixture(np.random.default_rng(0).standard_normal((600, 12)))
    assert found.verdict == "undecided"
    assert "no direction empty" in found.reason
    assert (found.share_low, found.share_high) == (0.0, 1.0)


@pytest.mark.parametrize(("rows", "dim"), [(300, 64), (300, 16), (100, 30), (1000, 200)])
def test_chance_is_no_second_space(rows, dim):
    for seed in range(3):
        found = find_mixture(np.random.default_rng(seed).integers(-128, 127, (rows, dim)))
        assert found.verdict in ("undecided", "not enough data")


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        (np.ones(3), DimensionError),
        (np.empty((0, 3)), EmptyInputError),
        ([["a", "b"]], InvalidVectorsError),
        ([[1.0], [1.0, 2.0]], InvalidVectorsError),
    ],
)
def test_what_is_no_matrix_is_refused(rows, error):
    with pytest.raises(error):
        find_mixture(rows)


@given(
    scale=st.floats(-30, 30),
    rows=st.integers(1, 60),
    dim=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_any_rows_get_a_posterior_from_zero_to_one(scale, rows, dim, seed):
    found = find_mixture(np.random.default_rng(seed).standard_normal((rows, dim)) * 10.0**scale)
    assert ((found.posterior >= 0) & (found.posterior <= 1)).all()
    assert 0 <= found.share_low <= found.share <= found.share_high <= 1
    json.dumps(found.to_dict())


def test_the_same_seed_gives_the_same_numbers_and_the_input_stays():
    rows, _ = shuffled(encoded(600), encoded(114, model=1))
    before = rows.copy()
    first, second = find_mixture(rows, seed=3), find_mixture(rows, seed=3)
    np.testing.assert_array_equal(first.posterior, second.posterior)
    np.testing.assert_array_equal(rows, before)


def test_the_picture_shows_both_parts_and_an_empty_one_is_drawn():
    figure = mixture_figure(find_mixture(shuffled(encoded(600), encoded(114, model=1))[0]))
    assert figure.axes[0].get_title().startswith("mixed, share 1")
    assert mixture_figure(find_mixture(np.ones((3, 3))), title="$").axes[0].get_ylabel() == "rows"


def test_rows_that_a_rotation_carried_into_more_columns_are_found_as_before(draw_two):
    rows, foreign = draw_two
    turned = np.linalg.qr(np.random.default_rng(5).standard_normal((48, rows.shape[1])))[0]
    wide = (rows @ turned.T).astype(np.float32)
    found = find_mixture(wide)
    assert (found.verdict, found.dimensions) == ("mixed", rows.shape[1])
    assert ((found.posterior > 0.5) == foreign).mean() > 0.99
    posterior, _ = found.score(wide[:50])
    assert ((posterior > 0.5) == foreign[:50]).mean() > 0.9


def test_mapped_rows_are_never_called_one_space(draw_two):
    rows, foreign = draw_two
    turned = np.linalg.qr(np.random.default_rng(5).standard_normal((48, rows.shape[1])))[0]
    found = find_mixture(rows[~foreign] @ turned.T)
    assert found.verdict == "undecided"
    assert "of 48 directions, as a linear map makes them" in found.reason
    assert np.isnan(found.smallest_share)


@pytest.fixture(scope="module")
def draw_two():
    """Rows of two made-up encoders of 16 dimensions, one in ten of the second."""
    draw = np.random.default_rng(0)
    flat = draw.standard_normal((900, 16)) @ np.diag(np.geomspace(1, 0.01, 16))
    foreign = np.arange(900) % 10 == 0
    turn = np.linalg.qr(draw.standard_normal((16, 16)))[0]
    return np.where(foreign[:, None], flat @ turn, flat).astype(np.float32), foreign
