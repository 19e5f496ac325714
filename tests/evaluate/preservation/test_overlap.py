"""Overlaps: obvious loops, ties, chance, own rows, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import (
    CountMismatchError,
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    ParameterError,
    ZeroVectorError,
)
from isthmus.evaluate.preservation import Native, hit, nbr_overlap, retrieval_agreement
from isthmus.evaluate.preservation.overlap import neighbors_kept, overlap_counts
from isthmus.evaluate.view import View

quick = settings(derandomize=True, deadline=None, max_examples=25)
ALL = (nbr_overlap, retrieval_agreement, hit)


def gaussian(seed, rows=40, dim=6):
    return np.random.default_rng(seed).standard_normal((rows, dim))


def slow_list(query, collection, k, own):
    cosines = collection @ query / np.linalg.norm(collection, axis=1)
    if own is not None:
        cosines[own] = -np.inf
    return np.argsort(-cosines, kind="stable")[:k].tolist()


@quick
@given(seed=st.integers(0, 10_000), k=st.integers(1, 15))
def test_equal_the_obvious_loop(seed, k):
    collection = gaussian(seed, rows=60)
    own = np.arange(5, 25)
    target, mapped = collection[own], collection[own] + gaussian(seed + 1, rows=20)
    overlap, agreement, hits = [], [], []
    for row, place in enumerate(own):
        native = slow_list(target[row], collection, k, place)
        overlap.append(len({*native} & {*slow_list(mapped[row], collection, k, place)}) / k)
        found = slow_list(mapped[row], collection, k, None)
        agreement.append(len({*slow_list(target[row], collection, k, None)} & {*found}) / k)
        hits.append(float(place in found))
    options = {"k": k, "collection": collection, "own_rows": own}
    np.testing.assert_allclose(nbr_overlap(mapped, target, **options), overlap)
    np.testing.assert_allclose(retrieval_agreement(mapped, target, **options), agreement)
    np.testing.assert_allclose(hit(mapped, target, **options), hits)


@quick
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(1, 12),
    metric=st.sampled_from(["cosine", "dot", "l2"]),
)
def test_the_identity_keeps_everything_ties_included(seed, k, metric):
    target = np.random.default_rng(seed).integers(-1, 2, (30, 3)).astype(float)
    target[~target.any(axis=1)] = 1.0
    assert (nbr_overlap(target, target, k=k, metric=metric) == 1.0).all()
    assert (retrieval_agreement(target, target, k=k, metric=metric) == 1.0).all()


@quick
@given(seed=st.integers(0, 10_000))
def test_order_of_the_collection_does_not_matter(seed):
    collection, mapped, target = gaussian(seed, rows=60), gaussian(seed + 1), gaussian(seed + 2)
    order = np.random.default_rng(seed).permutation(60)
    np.testing.assert_array_equal(
        nbr_overlap(mapped, target, collection=collection[order]),
        nbr_overlap(mapped, target, collection=collection),
    )


@quick
@given(seed=st.integers(0, 10_000))
def test_overlap_is_symmetric_in_its_sides(seed):
    collection, mapped, target = gaussian(seed, rows=60), gaussian(seed + 1), gaussian(seed + 2)
    for measure in (nbr_overlap, retrieval_agreement):
        np.testing.assert_array_equal(
            measure(mapped, target, collection=collection),
            measure(target, mapped, collection=collection),
        )


def test_a_random_map_keeps_what_chance_keeps():
    collection, mapped = gaussian(0, rows=500, dim=20), gaussian(1, rows=300, dim=20)
    options = {"collection": collection, "own_rows": np.arange(300)}
    target = collection[:300]
    assert nbr_overlap(mapped, target, k=50, **options).mean() == pytest.approx(50 / 499, abs=0.01)
    agreement = retrieval_agreement(mapped, target, k=50, **options)
    assert agreement.mean() == pytest.approx(0.1, abs=0.01)
    assert hit(mapped, target, k=50, **options).mean() == pytest.approx(0.1, abs=0.05)


def test_the_own_row_counts_only_where_it_should():
    # The mapped row lies on its target, but its neighbour is another one.
    collection = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.2, 1.0]])
    options = {"collection": collection, "own_rows": [0]}
    assert hit([[1.0, 0.0]], [[1.0, 0.0]], **options).tolist() == [1.0]
    assert retrieval_agreement([[1.0, 1.0]], [[1.0, 0.0]], k=1, **options).tolist() == [0.0]
    assert nbr_overlap([[1.0, 0.01]], [[1.0, 0.0]], k=1, **options).tolist() == [1.0]
    assert np.isnan(hit([[1.0, 0.0]], [[1.0, 0.0]], collection=collection)).all()


def test_one_row_has_no_neighbour_to_keep():
    assert np.isnan(nbr_overlap([[1.0]], [[1.0]])).all()
    assert retrieval_agreement([[1.0]], [[1.0]]).tolist() == [1.0]


def test_fewer_rows_than_k_share_what_there_is():
    assert nbr_overlap([[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]).tolist() == [1.0, 1.0]


@quick
@given(st.integers(0, 10_000))
def test_overlap_counts_equal_sets(seed):
    draw = np.random.default_rng(seed)
    a = np.stack([draw.permutation(12)[:5] for _ in range(8)])
    b = np.stack([draw.permutation(12)[:7] for _ in range(8)])
    a[:, 4] = -1
    b[:, 6] = -1
    expected = [len(({*x} & {*y}) - {-1}) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert overlap_counts(a, b).tolist() == expected


def test_a_view_that_is_too_shallow_is_refused():
    rows = gaussian(0)
    view = View(rows, Native(rows), depth=5)
    assert neighbors_kept(view, 5).mean() == 1.0
    with pytest.raises(ParameterError, match="k of at most 5, the depth of this view; got 6"):
        neighbors_kept(view, 6)


@pytest.mark.parametrize("measure", ALL)
@pytest.mark.parametrize(
    ("sides", "options", "error", "text"),
    [
        (([[1.0, 2.0]], [[1.0]]), {}, DimensionError, "mapped with 1 columns; got 2 columns"),
        (([[1.0], [2.0]], [[1.0]]), {}, CountMismatchError, "2 source rows and 1 target rows"),
        (([[np.nan]], [[1.0]]), {}, InvalidVectorsError, "finite numbers in mapped"),
        (([[0.0]], [[1.0]]), {}, ZeroVectorError, "only zeros in row 0"),
        ((np.empty((0, 2)), np.empty((0, 2))), {}, EmptyInputError, "at least one row"),
        (([[1.0]], [[1.0]]), {"k": 0}, ParameterError, "k as a whole number over 0; got 0"),
        (([[1.0]], [[1.0]]), {"own_rows": [5]}, ParameterError, "from -1 to 0"),
    ],
)
def test_bad_input_says_expected_got_do(measure, sides, options, error, text):
    with pytest.raises(error, match="Do: ") as caught:
        measure(*sides, **options)
    assert text in str(caught.value)
