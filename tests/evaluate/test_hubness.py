"""Hubness: counts, skewness against scipy, planted hubs, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import skew

from isthmus.errors import DimensionError, ParameterError
from isthmus.evaluate.hubness import hubness, hubness_both_ways, k_occurrence, skewness
from isthmus.neighbors import top_k

quick = settings(derandomize=True, deadline=None, max_examples=40)


@quick
@given(st.lists(st.integers(0, 9), min_size=2, max_size=50))
def test_skewness_is_the_population_moment(counts):
    expected = skew(counts) if len(set(counts)) > 1 else 0.0
    assert skewness(counts) == pytest.approx(expected, abs=1e-9)


def test_occurrences_add_up():
    rows = np.array([[0, 3], [3, -1], [1, 3]])
    assert k_occurrence(rows, n=5).tolist() == [1, 1, 0, 3, 0]


def test_a_planted_hub_is_seen():
    draw = np.random.default_rng(0)
    queries, database = draw.standard_normal((2, 300, 30))
    plain = hubness(queries, database, k=5)
    database[:3] = 0.01 * database[:3]  # near to all in Euclidean distance
    hubs = hubness(queries, database, k=5, metric="l2")
    assert hubs.name == "hubness@5"
    assert hubs.mean > plain.mean + 3
    assert np.isnan([hubs.low, hubs.high]).all()
    assert len(hubs.per_query) == 0


def test_own_rows_are_left_out():
    rows = np.random.default_rng(0).standard_normal((50, 4))
    with_own = hubness(rows, rows, k=1)
    assert with_own.mean == 0.0  # every row finds itself once
    assert hubness(rows, rows, k=1, exclude=np.arange(50)).mean != 0.0


def test_bad_input_says_expected_got_do():
    with pytest.raises(ParameterError, match="from -1 to 4; got an array of type int64, from 0 to"):
        k_occurrence([[0, 5]], n=5)
    with pytest.raises(ParameterError, match="got an array of type float64"):
        k_occurrence([[0.5]], n=5)
    with pytest.raises(DimensionError, match="queries with 3 columns"):
        hubness([[1.0]], [[1.0, 2.0, 3.0]])


def test_both_ways_counts_each_side_among_the_other():
    draw = np.random.default_rng(0)
    source, target = draw.standard_normal((30, 4)), draw.standard_normal((50, 4))
    there, back = top_k(source, target, k=7).rows, top_k(target, source, k=7).rows
    of_target, of_source = hubness_both_ways(there, back, k=5)
    assert of_target == hubness(source, target, k=5).mean
    assert of_source == hubness(target, source, k=5).mean
    with pytest.raises(ParameterError, match="k as a whole number of at least 1"):
        hubness_both_ways(there, back, k=0)
