"""Weights fitted on a few labelled queries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import CountMismatchError, ParameterError, TooFewPairsError
from isthmus.federate.candidates import Candidates, first_columns
from isthmus.federate.fusion import Score
from isthmus.federate.weights import fit_weights


def make(m, *, noise, seed=0, n_spaces=2, depth=5):
    """Return candidates of which half are relevant, seen in each space with its own noise."""
    rng = np.random.default_rng(seed)
    width = n_spaces * depth
    relevant = rng.random((m, width)) < 0.4
    relevant[:, 0] = True
    similarities = np.stack(
        [0.3 * relevant + level * rng.standard_normal((m, width)) for level in noise]
    )
    columns = np.arange(width)
    return Candidates(
        ids=np.array([[f"{row}-{column}" for column in columns] for row in range(m)]),
        similarities=similarities.astype(np.float32),
        source=columns // depth,
        rank=columns % depth + 1,
        space=columns // depth,
        same=np.tile(columns, (m, 1)),
    ), relevant.astype(np.float32)


def ideal_of(gains, k=10):
    return -np.sort(-gains, axis=1)[:, :k]


def test_a_space_that_is_all_noise_loses_its_weight():
    candidates, gains = make(60, noise=(0.1, 2.0))
    result = fit_weights(candidates, gains, ideal_of(gains))
    assert result.fitted
    assert result.low > 0.1
    assert result.score.weights is not None
    assert result.score.weights[0] >= 0.8
    assert result.reason.startswith("fitted weights: +")


def test_native_similarity_is_weighed_by_its_worth():
    candidates, gains = make(80, noise=(0.1, 0.1), seed=1)
    similarities = candidates.similarities.copy()
    rng = np.random.default_rng(2)
    for space in (0, 1):  # mapping is noise
        other = candidates.space != space
        similarities[space][:, other] = rng.standard_normal((80, other.sum()))
    noisy = Candidates(
        candidates.ids,
        similarities,
        candidates.source,
        candidates.rank,
        candidates.space,
        candidates.same,
    )
    result = fit_weights(noisy, gains, ideal_of(gains))
    assert result.fitted
    assert result.score.weight is not None
    assert result.score.weight >= 0.8


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), n_spaces=st.integers(2, 4))
def test_where_all_spaces_are_equally_good_the_default_mostly_stays(seed, n_spaces):
    candidates, gains = make(30, noise=(0.3,) * n_spaces, seed=seed, n_spaces=n_spaces)
    result = fit_weights(candidates, gains, ideal_of(gains), seed=seed)
    assert result.fitted == (result.low > 0)
    assert result.fitted or result.score == Score()
    assert result.n_queries == 30


def test_the_same_seed_gives_the_same_weights():
    candidates, gains = make(40, noise=(0.1, 1.0))
    assert fit_weights(candidates, gains, ideal_of(gains), seed=4) == fit_weights(
        candidates, gains, ideal_of(gains), seed=4
    )


def test_queries_without_a_relevant_document_do_not_count():
    candidates, gains = make(40, noise=(0.1, 2.0))
    gains[::2] = 0
    assert fit_weights(candidates, gains, ideal_of(gains)).n_queries == 20


def test_one_space_has_nothing_to_weigh():
    candidates, gains = make(20, noise=(0.1,), n_spaces=1, depth=10)
    result = fit_weights(candidates, gains, ideal_of(gains))
    assert (result.fitted, result.score, result.gain) == (False, Score(), 0.0)


def test_one_document_in_two_columns_counts_once():
    candidates, gains = make(40, noise=(0.1, 2.0))
    ids = candidates.ids.copy()
    ids[:, 5:] = ids[:, :5]
    twice = np.concatenate([gains[:, :5], gains[:, :5]], axis=1)
    merged = Candidates(
        ids,
        candidates.similarities,
        candidates.source,
        candidates.rank,
        candidates.space,
        first_columns(ids, merge=True),
    )
    result = fit_weights(merged, twice, ideal_of(gains[:, :5], 5))
    assert result.gain <= 1.0
    assert result.low >= 0


def test_too_few_queries_and_other_shapes():
    candidates, gains = make(9, noise=(0.1, 2.0))
    with pytest.raises(TooFewPairsError, match="at least 10 queries"):
        fit_weights(candidates, gains, ideal_of(gains))
    with pytest.raises(CountMismatchError, match=r"gains of shape \(9, 10\)"):
        fit_weights(candidates, gains[:, :4], ideal_of(gains))
    with pytest.raises(ParameterError):
        fit_weights(candidates, gains, ideal_of(gains), k=0)
