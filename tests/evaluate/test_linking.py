"""Measures of links against slow and obvious counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import CountMismatchError, ParameterError
from isthmus.evaluate.linking import are_true, link_curve, reliability, score_links

quick = settings(derandomize=True, deadline=None, max_examples=40)
pairs = st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=20).map(sorted)


@quick
@given(links=pairs, true=pairs, out=st.sets(st.integers(0, 8), max_size=3))
def test_scores_equal_those_of_sets(links, true, out):
    found = score_links(links, true, leave_out=sorted(out))
    left = [{pair for pair in one if pair[0] not in out} for one in (links, true)]
    correct = len(left[0] & left[1])
    assert (found.n_links, found.n_true) == (len(left[0]), len(left[1]))
    assert found.n_correct == correct
    for value, whole, part in (
        (found.precision, len(left[0]), correct),
        (found.recall, len(left[1]), correct),
        (found.f1, len(left[0]) + len(left[1]), 2 * correct),
    ):
        if whole:
            assert value.mean == pytest.approx(part / whole)
        else:
            assert np.isnan([value.mean, value.low, value.high]).all()


def test_intervals_hold_the_value_and_narrow_with_more_rows():
    draw = np.random.default_rng(100)

    def width(n):
        target = np.where(draw.random(n) < 0.8, np.arange(n), n + np.arange(n))
        links = np.stack([np.arange(n), target], axis=1)
        true = np.stack([np.arange(n), np.arange(n)], axis=1)
        found = score_links(links, true, seed=1).precision
        assert found.low < found.mean < found.high
        return found.high - found.low

    # binomial: 2 x 1.96 x sqrt(.8 x .2 / n)
    assert width(1600) == pytest.approx(2 * 1.96 * np.sqrt(0.16 / 1600), rel=0.2)
    assert width(100) > 2 * width(1600)


def test_scores_depend_on_their_seed_only():
    links, true = [(i, i % 3) for i in range(30)], [(i, 0) for i in range(40)]
    one, same, other = (score_links(links, true, seed=seed).to_dict() for seed in (0, 0, 1))
    assert one == same != other
    assert one["precision"]["mean"] == pytest.approx(10 / 30)


def test_the_curve_keeps_equal_posteriors_together():
    curve = link_curve([0.5, 0.9, 0.5, 0.5, 0.1], [True, True, False, True, False], n_true=4)
    assert curve.threshold.tolist() == [0.9, 0.5, 0.1]
    np.testing.assert_allclose(curve.coverage, [0.2, 0.8, 1.0])
    np.testing.assert_allclose(curve.precision, [1, 3 / 4, 3 / 5])
    np.testing.assert_allclose(curve.recall, [1 / 4, 3 / 4, 3 / 4])
    assert curve.precision_at(0.5) == curve.precision_at(0.3) == 0.75
    assert np.isnan(curve.precision_at(0.95))
    assert curve.precision_at_coverage(0.2) == 1.0
    assert curve.precision_at_coverage(0.21) == 0.75
    assert curve.recall_at_precision(0.7) == 0.75
    assert curve.recall_at_precision(0.8) == 0.25
    assert curve.best_f1() == (0.75, 0.5)
    assert link_curve([0.9], [False], n_true=3).recall_at_precision(0.5) == 0.0


@quick
@given(seed=st.integers(0, 10_000), n=st.integers(1, 40))
def test_the_curve_equals_the_obvious_loop(seed, n):
    draw = np.random.default_rng(seed)
    posterior, correct = draw.integers(0, 8, n) / 7, draw.random(n) < 0.5
    n_true = int(correct.sum()) + 3
    curve = link_curve(posterior, correct, n_true=n_true)
    assert curve.threshold.tolist() == sorted(set(posterior.tolist()), reverse=True)
    for place, least in enumerate(curve.threshold):
        kept = posterior >= least
        assert curve.precision[place] == pytest.approx(correct[kept].mean())
        assert curve.recall[place] == pytest.approx(correct[kept].sum() / n_true)
        assert curve.coverage[place] == pytest.approx(kept.mean())


def test_no_candidates_and_no_true_pairs():
    nothing = link_curve([], [], n_true=2)
    assert nothing.recall_at_precision(0.9) == 0.0
    assert np.isnan(nothing.precision_at_coverage(0.5))
    assert nothing.best_f1()[0] == 0.0
    assert np.isnan(link_curve([0.4], [False], n_true=0).recall).all()
    assert np.isnan(reliability([], []).error)


def test_posteriors_drawn_from_what_they_say_are_calibrated():
    draw = np.random.default_rng(101)
    posterior = draw.beta(0.5, 0.5, 20_000)
    honest = reliability(posterior, draw.random(20_000) < posterior)
    assert honest.error < 0.01
    assert honest.count.tolist() == [2000] * 10
    assert (np.diff(honest.posterior) > 0).all()
    # who says p where sqrt(p) is true is off by E sqrt(p) - E p = 2/pi - 1/2 for this beta
    boastful = reliability(posterior, draw.random(20_000) < np.sqrt(posterior))
    assert boastful.error == pytest.approx(2 / np.pi - 0.5, abs=0.01)


def test_the_order_of_equal_posteriors_does_not_matter():
    draw = np.random.default_rng(102)
    posterior, correct = draw.integers(0, 4, 200) / 3, draw.random(200) < 0.6
    order = draw.permutation(200)
    one, other = reliability(posterior, correct), reliability(posterior[order], correct[order])
    np.testing.assert_allclose(one.posterior, other.posterior)
    np.testing.assert_allclose(one.correct, other.correct)
    assert one.error == pytest.approx(other.error)
    assert len(one.count) == 4
    assert reliability([0.25], [True]).error == 0.75


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: are_true([(0, -1)], []), ParameterError, "links as whole numbers from 0"),
        (lambda: are_true([(0.5, 1)], []), ParameterError, "type float64"),
        (lambda: are_true([0, 1], []), ParameterError, "shape (2,)"),
        (lambda: are_true([], [(0, 1), (0, 1)]), ParameterError, "each pair of true once"),
        (lambda: link_curve([0.5], [], n_true=1), CountMismatchError, "shapes (1,) and (0,)"),
        (lambda: link_curve([1.5], [True], n_true=1), ParameterError, "posteriors from 0 to 1"),
        (lambda: link_curve([np.nan], [True], n_true=1), ParameterError, "posteriors from 0"),
        (lambda: link_curve([0.5], [True], n_true=0), ParameterError, "at least 1 true pairs"),
        (lambda: reliability([0.5], [True], bins=0), ParameterError, "bins as a whole number"),
        (
            lambda: link_curve([0.5], [True], n_true=1).recall_at_precision(1.5),
            ParameterError,
            "precision from 0 to 1",
        ),
        (
            lambda: link_curve([0.5], [True], n_true=1).precision_at_coverage(np.nan),
            ParameterError,
            "coverage from 0 to 1",
        ),
    ],
)
def test_bad_input_says_expected_got_do(call, error, text):
    with pytest.raises(error, match="Do: ") as caught:
        call()
    assert text in str(caught.value)
