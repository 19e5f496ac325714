"""The result: its order, and every way to ask for the surest links."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isthmus.errors import CountMismatchError, ParameterError
from isthmus.link import Links, LinkVerdict

probabilities = st.lists(st.integers(0, 20).map(lambda part: part / 20), max_size=30)


def links_of(posterior: list[float], **changed: object) -> Links:
    rows = np.arange(len(posterior))
    given = {
        "source_rows": rows,
        "target_rows": rows[::-1],
        "posterior": np.array(posterior, float),
        "votes": rows,
        "views": 40,
        "threshold": 0.5,
        "method": "geh",
        "history": (),
        "verdict": LinkVerdict("not_judged"),
    }
    return Links(**(given | changed))


@given(probabilities)
def test_the_surest_come_first_and_equals_by_source_row(posterior):
    links = links_of(posterior)
    keys = list(zip(-links.posterior, links.source_rows, strict=True))
    assert keys == sorted(keys)
    assert (links.target_rows == len(links) - 1 - links.source_rows).all()
    assert np.array_equal(links.votes, links.source_rows)


@given(probabilities, st.floats(0, 1))
def test_a_threshold_keeps_what_reaches_it(posterior, least):
    found = links_of(posterior).matched_rows(least)
    assert len(found) == sum(value >= least for value in posterior)
    assert (found.confidence >= least).all()


def test_its_own_threshold_is_the_default():
    assert links_of([0.4, 0.5, 0.9]).matched_rows().confidence.tolist() == [0.9, 0.5]


@example([0.0], 1e-9)  # a bound of the test looser than the code's failed here
@given(probabilities, st.floats(0, 1))
def test_precision_keeps_the_most_links_whose_mean_posterior_holds(posterior, precision):
    count = len(links_of(posterior).matched_rows(precision=precision))
    best = sorted(posterior, reverse=True)
    means = [np.mean(best[:n]) for n in range(1, len(best) + 1)]
    allowed = [n for n, mean in enumerate(means, 1) if mean >= precision - 1e-12]
    assert count == max(allowed, default=0)


@pytest.mark.parametrize(("coverage", "count"), [(0, 0), (0.5, 2), (1, 4)])
def test_coverage_keeps_a_share_of_the_candidates(coverage, count):
    found = links_of([0.1, 0.2, 0.3, 0.4]).matched_rows(coverage=coverage)
    assert found.confidence.tolist() == [0.4, 0.3, 0.2, 0.1][:count]


@given(probabilities.filter(any))
def test_max_f1_is_the_best_expected_f1(posterior):
    links = links_of(posterior)
    total = sum(posterior)

    def expected_f1(count):
        return 2 * links.posterior[:count].sum() / (count + total)

    count = len(links.matched_rows("max_f1"))
    assert expected_f1(count) == pytest.approx(max(map(expected_f1, range(1, len(links) + 1))))


def test_max_f1_goes_further_where_more_is_shared_than_the_candidates_hold():
    posterior = [0.9, 0.9, 0.3, 0.3]
    assert len(links_of(posterior).matched_rows("max_f1")) == 2
    assert len(links_of(posterior, overlap=30.0).matched_rows("max_f1")) == 4


def test_nothing_of_nothing():
    links = links_of([])
    assert len(links.matched_rows("max_f1")) == len(links.matched_rows(precision=0.5)) == 0


@pytest.mark.parametrize(
    "asked",
    [
        {"threshold": 1.1},
        {"threshold": np.nan},
        {"threshold": "best"},
        {"precision": -0.1},
        {"coverage": 2},
        {"precision": 0.9, "coverage": 0.5},
        {"threshold": 0.5, "precision": 0.9},
    ],
)
def test_what_cannot_be_asked(asked):
    with pytest.raises(ParameterError):
        links_of([0.5, 0.7]).matched_rows(**asked)


def test_counts_that_differ():
    with pytest.raises(CountMismatchError):
        links_of([0.5, 0.7], votes=np.zeros(3, np.int64))


def test_what_it_says_of_itself():
    said = repr(links_of([0.4, 0.5, 0.9]))
    assert said == "Links(2 of 3 candidates by geh, not_judged)"
