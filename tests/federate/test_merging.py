from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.federate import Federation, Source
from isthmus.federate.gather import Catch, Vectors
from isthmus.federate.merging import agreeing_columns
from isthmus.spaces import Space, VectorSet


def unit(rows):
    rows = np.asarray(rows, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def catch(native, in_hub=None, rows=None):
    """Return what a source found for one query: each of its rows once."""
    native = unit(native)
    places = np.arange(len(native))[None, :] if rows is None else np.asarray(rows)
    ids = np.where(places < 0, "", np.char.add("d", places.astype(str)))
    vectors = Vectors(native, native if in_hub is None else unit(in_hub), places)
    return Catch(ids, np.zeros((1, *ids.shape), np.float32), vectors)


def around(degrees):
    angle = np.deg2rad(degrees)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def test_copies_in_one_space_are_merged_and_neighbours_are_not():
    copies = catch(around([0, 40, 80])), catch(around([40, 0.5, 120]))
    same = agreeing_columns(copies, np.array([1, 1]), similarity=0.0)
    assert same.tolist() == [[0, 1, 2, 1, 4, 5]]


@pytest.mark.parametrize("metric", ["dot", "l2"])
def test_where_lengths_count_they_have_to_agree(metric):
    def made(rows):
        rows = np.array(rows, dtype=np.float32)
        return replace(catch(np.eye(len(rows))), vectors=Vectors(rows, rows, np.arange(3)[None]))

    one = made([[1, 0], [0, 0], [1e25, 1e25]])
    other = made([[3, 0], [0, 0], [1e25, 1e25]])
    for scale in (1, 1e-12):
        first = made(scale * np.array([[1, 0], [0, 0], [0, 9]]))
        second = made(scale * np.array([[3, 0], [0, 0], [0, 9]]))
        same = agreeing_columns((first, second), np.array([0, 0]), similarity=0.9, metrics=[metric])
        assert same.tolist() == [[0, 1, 2, 3, 1, 2]]
    same = agreeing_columns((one, other), np.array([0, 0]), similarity=0.9, metrics=[metric])
    assert same[0, 5] == 2  # no overflow
    same = agreeing_columns(
        (first, second), np.array([0, 1]), similarity=0.9, metrics=[metric, "cosine"]
    )
    assert same.tolist() == [[0, 1, 2, 3, 1, 2]]  # the hub's metric counts between spaces
    by_angle = agreeing_columns((first, second), np.array([0, 0]), similarity=0.9)
    assert by_angle[0, 3] == 0


def agree(one, other, similarity):
    """Say whether the first candidates of two lists, in different spaces, are one document."""
    same = agreeing_columns((one, other), np.array([0, 1]), similarity=similarity)
    return bool(same[0, len(one.ids[0])] == 0)


def test_between_spaces_the_lead_counts_too():
    one = catch(around([0, 90]))
    cosine, rival = np.cos(np.deg2rad(20)), np.cos(np.deg2rad(30))
    edge = float(cosine + cosine - rival)
    other = catch(around([20, 30]))
    assert agree(one, other, edge - 1e-3)
    assert not agree(one, other, edge + 1e-3)
    assert agree(other, one, edge - 1e-3)
    assert not agree(other, one, edge + 1e-3)


def test_no_more_of_a_lead_counts_than_fifteen_hundredths():
    one, other = catch(around([0, 90])), catch(around([31, 200]))
    edge = float(np.cos(np.deg2rad(31))) + 0.15
    assert agree(one, other, edge - 1e-3)
    assert not agree(one, other, edge + 1e-3)


def test_without_a_rival_there_is_no_lead():
    one, other = catch(around([0])), catch(around([20]))
    alone = catch(around([0, 0]), rows=[[0, -1]]), catch(around([20, 20]), rows=[[0, -1]])
    for pair in ((one, other), alone):
        assert agree(*pair, 0.93)
        assert not agree(*pair, 0.95)


def test_what_is_compared_between_spaces_is_the_vector_in_the_hubs():
    one, other = catch([[1, 0]]), catch([[0, 0, 1]], in_hub=[[1, 0]])
    assert agreeing_columns((one, other), np.array([0, 1]), similarity=0.9).tolist() == [[0, 0]]


def test_three_copies_are_one_document():
    three = [catch(around([10, 70])), catch(around([70, 10])), catch(around([130, 10]))]
    same = agreeing_columns(three, np.array([0, 0, 0]), similarity=0.9)
    assert same.tolist() == [[0, 1, 1, 0, 4, 0]]


def test_empty_places_and_sources_without_vectors_are_left_alone():
    one = catch(around([0, 50]), rows=[[0, -1], [-1, -1], [1, 0]])
    other = catch(around([0, 50]), rows=[[-1, 0], [-1, -1], [-1, 1]])
    nothing = Catch.nothing(1, 3, 2)
    same = agreeing_columns((one, nothing, other), np.array([0, 0, 0]), similarity=0.9)
    assert same.tolist() == [[0, 1, 2, 3, 4, 0], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 0]]


@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans())
def test_shared_rows_are_found_and_merging_does_not_depend_on_the_batch(seed, shared, mapped):
    rng = np.random.default_rng(seed)
    common = unit(rng.standard_normal((shared, 16)))
    lists = []
    for _ in range(2):
        own = unit(rng.standard_normal((6 - shared, 16)))
        rows = np.concatenate([common, own])
        lists.append((rows, np.stack([rng.permutation(6) for _ in range(3)])))
    catches = [catch(rows, rows=places) for rows, places in lists]
    spaces = np.array([0, int(mapped)])
    same = agreeing_columns(catches, spaces, similarity=0.999)
    for query in range(3):
        (_, here), (_, there) = lists
        for place, row in enumerate(there[query]):
            expected = int(np.flatnonzero(here[query] == row)[0]) if row < shared else place + 6
            assert same[query, place + 6] == expected
        single = [catch(rows, rows=places[[query]]) for rows, places in lists]
        alone = agreeing_columns(single, spaces, similarity=0.999)
        np.testing.assert_array_equal(alone[0], same[query])


# --- in a federation -----------------------------------------------------------------------------


HERE = Space(model="here", dim=16, normalized=True)
THERE = Space(model="there", dim=24, normalized=True)


@pytest.fixture
def copies(doubles):
    """Two stores of two spaces, a rotation apart, which share the last documents of ``a``."""
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((24, 24)))[0][:16].astype(np.float32)
    documents = doubles.unit(rng, 30, 16)
    a = doubles.Store("a", HERE, documents[:20], [f"a{row}" for row in range(20)])
    b = doubles.Store("b", THERE, documents[10:] @ rotation, [f"b{row}" for row in range(10, 30)])
    bridges = doubles.Bridge(HERE, THERE, rotation), doubles.Bridge(THERE, HERE, rotation.T)
    return [Source("a", a), Source("b", b, *bridges)]


@pytest.fixture
def queries(doubles):
    rows = doubles.unit(np.random.default_rng(7), 9, 16)
    return VectorSet([f"q{row}" for row in range(9)], rows, HERE)


def test_copies_under_other_ids_are_one_hit_that_names_both(copies, queries):
    federation = Federation(HERE, copies, dedup="vector", dedup_similarity=1.0)
    ranking = federation.search(queries, k=30, depth=20)
    for row in range(len(queries)):
        hits = ranking.hits(row)
        assert len(hits) == 30
        numbers = [int(hit.id[1:]) for hit in hits]
        assert sorted(numbers) == list(range(30))
        for hit, number in zip(hits, numbers, strict=True):
            if 10 <= number < 20:
                other = "b" if hit.store == "a" else "a"
                assert hit.also == ((other, f"{other}{number}"),)
            else:
                assert hit.also == ()


def test_copies_are_found_whatever_the_fusion_compares(copies, queries):
    federation = Federation(HERE, copies, dedup="vector", dedup_similarity=1.0)
    ranking = replace(federation, fusion="rrf").search(queries, k=30, depth=20)
    assert all(len(ranking.hits(row)) == 30 for row in range(len(queries)))
    assert sum(bool(hit.also) for hit in ranking.hits(0)) == 10


def test_without_vectors_to_compare_nothing_is_merged(copies, queries, doubles):
    emptied = [
        replace(copies[0], store=doubles.Store("a", HERE)),
        replace(copies[1], store=doubles.Store("b", THERE)),
    ]
    ranking = Federation(HERE, emptied, dedup="vector").search(queries)
    assert ranking.hits(0) == []


def test_merging_by_id_names_the_other_store(doubles):
    space = Space(model="m", dim=2)
    a = doubles.Store("a", space, [[1, 1], [0, 1]], ["x", "y"])
    b = doubles.Store("b", space, [[1, 0], [-1, 1]], ["x", "z"])
    federation = Federation(space, [Source("a", a), Source("b", b)], dedup="id")
    ranking = federation.search(VectorSet(["q"], [[1, 0]], space), k=3)
    assert [(hit.id, hit.store, hit.also) for hit in ranking.hits(0)] == [
        ("x", "b", (("a", "x"),)),
        ("y", "a", ()),
        ("z", "b", ()),
    ]
