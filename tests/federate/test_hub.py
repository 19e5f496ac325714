from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from isthmus.errors import (
    ConfigError,
    CountMismatchError,
    DuplicateIdError,
    EmptyInputError,
    InputError,
    InvalidVectorsError,
    ParameterError,
    SpaceMismatchError,
    UnknownNameError,
    UnsupportedOperationError,
    WrongDirectionError,
)
from isthmus.federate import Federation, Source, gather, hub
from isthmus.federate.fusion import OneDirectional, Rrf, Score
from isthmus.spaces import Space, VectorSet

FIELDS = ("ids", "scores", "stores", "spaces", "native_scores", "mapped_scores")


@pytest.fixture
def sources(stores, doubles):
    a, b, _ = stores
    return [Source("a", a), Source("b", b, *doubles.bridges(doubles.HUB, doubles.SPOKE))]


@pytest.fixture
def three(stores, sources, doubles):
    return [*sources, Source("c", stores[2], *doubles.bridges(doubles.HUB, doubles.THIRD, seed=1))]


def one_hit(ranking, row=0, place=0):
    return ranking.hits(row)[place]


# --- the numbers ---------------------------------------------------------------------------------


def score2(doubles, sources, query, weight, k):
    """Return SCORE2 by its formula: (id, store, native, mapped, score), best first."""
    a, b = (source.store for source in sources)
    there, back = sources[1].to_store.weight, sources[1].to_hub.weight
    in_spoke = query @ there
    rows = []
    for store, own, other, matrix in ((a, query, in_spoke, there), (b, in_spoke, query, back)):
        native = doubles.similarity(own[None], store.vectors, "cosine")[0]
        mapped = doubles.similarity(other[None], store.vectors @ matrix, "cosine")[0]
        best = np.argsort(-native, kind="stable")[:k]
        rows += [
            (store.ids[row], store._name, native[row], mapped[row],
             weight * native[row] + (1 - weight) * mapped[row])
            for row in best
        ]  # fmt: skip
    return sorted(rows, key=lambda row: -row[4])[:k]


@pytest.mark.parametrize("weight", [0.0, 0.4, 0.7, 1.0])
def test_score2_agrees_with_the_formula(sources, queries, doubles, weight):
    federation = Federation(doubles.HUB, sources, weight=weight)
    ranking = federation.search(queries, k=5)
    assert ranking.query_ids.tolist() == queries.ids.tolist()
    for row, query in enumerate(queries.matrix()):
        expected = score2(doubles, sources, query, weight, 5)
        hits = ranking.hits(row)
        assert [(hit.id, hit.store) for hit in hits] == [one[:2] for one in expected]
        np.testing.assert_allclose(
            [(hit.native_score, hit.mapped_score, hit.score) for hit in hits],
            [one[2:] for one in expected],
            atol=1e-5,
        )
        assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]
        spaces = {"a": doubles.HUB.fingerprint, "b": doubles.SPOKE.fingerprint}
        assert [hit.space for hit in hits] == [spaces[hit.store] for hit in hits]


def test_the_hub_path_agrees_with_the_formula_for_three_spaces(three, queries, doubles):
    federation = Federation(doubles.HUB, three)
    ranking = federation.search(queries, k=60, depth=20)
    query = queries.matrix()[0]
    into = [np.eye(4), three[1].to_store.weight, three[2].to_store.weight]
    back = [np.eye(4), three[1].to_hub.weight, three[2].to_hub.weight]

    def unit(rows):
        return rows / np.linalg.norm(rows, axis=-1, keepdims=True)

    scores = {}
    for own, source in enumerate(three):
        in_hub = unit(source.store.vectors @ back[own])  # spoke -> hub, the gathered pool
        each = [
            doubles.similarity(
                (query @ into[space])[None],
                source.store.vectors if space == own else in_hub @ into[space],  # hub -> spoke
                "cosine",
            )[0]
            for space in range(3)
        ]
        scores |= dict(zip(source.store.ids, np.mean(each, axis=0), strict=True))
    got = {hit.id: hit.score for hit in ranking.hits(0)}
    assert len(got) == 60
    np.testing.assert_allclose(
        [got[name] for name in got], [scores[name] for name in got], atol=1e-5
    )
    assert list(got.values()) == sorted(got.values(), reverse=True)


def test_perfect_bridges_give_the_ranking_of_one_big_store(doubles, queries):
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0][:4].astype(np.float32)
    documents = doubles.unit(rng, 40, 4)
    one = doubles.Store("one", doubles.HUB, documents[:20], [f"d{row}" for row in range(20)])
    two = doubles.Store(
        "two", doubles.SPOKE, documents[20:] @ rotation, [f"d{row}" for row in range(20, 40)]
    )
    bridges = (
        doubles.Bridge(doubles.HUB, doubles.SPOKE, rotation),
        doubles.Bridge(doubles.SPOKE, doubles.HUB, rotation.T),
    )
    whole = doubles.Store("all", doubles.HUB, documents, [f"d{row}" for row in range(40)])
    expected = whole.search(queries.matrix(), k=10)
    for fusion in ("score", "one_directional", OneDirectional(space=1)):
        federation = Federation(
            doubles.HUB, [Source("one", one), Source("two", two, *bridges)], fusion=fusion
        )
        found = federation.search(queries)
        assert found.ids.tolist() == expected.ids.tolist()
        np.testing.assert_allclose(found.scores, expected.scores, atol=1e-6)


def test_agg_alternates(sources, queries, doubles):
    ranking = Federation(doubles.HUB, sources, fusion="agg").search(queries, k=4)
    assert ranking.stores.tolist() == [["a", "b", "a", "b"]] * 9
    a = sources[0].store.search(queries.matrix(), k=2)
    np.testing.assert_array_equal(ranking.ids[:, 0::2], a.ids)
    assert np.isnan(ranking.mapped_scores).all()
    assert sources[0].store.fetched == []  # nothing is fetched where nothing is mapped


def test_one_directional_fetches_only_what_it_maps(sources, queries, doubles):
    ranking = Federation(doubles.HUB, sources, fusion="one_directional").search(queries)
    assert sources[0].store.fetched == []
    assert len(sources[1].store.fetched) == 1
    from_b = ranking.stores == "b"
    assert from_b.any()
    np.testing.assert_array_equal(ranking.scores[from_b], ranking.mapped_scores[from_b])
    np.testing.assert_array_equal(ranking.scores[~from_b], ranking.native_scores[~from_b])


def test_a_document_found_by_many_queries_is_mapped_once(sources, doubles):
    rng = np.random.default_rng(0)
    many = VectorSet([f"q{row}" for row in range(200)], doubles.unit(rng, 200, 4), doubles.HUB)
    Federation(doubles.HUB, sources).search(many)
    assert sources[1].to_store.rows == [200, len(sources[0].store.fetched[0])]
    assert sources[1].to_hub.rows == [len(sources[1].store.fetched[0])]
    for source in sources:
        (ids,) = source.store.fetched
        assert len(ids) == len(set(ids)) <= 30


def test_a_document_found_by_a_later_search_is_not_mapped_again(sources, queries, doubles):
    federation = Federation(doubles.HUB, sources)
    whole = federation.search(queries)
    again = federation.search(queries)
    mapped = len(sources[0].store.fetched[0]), len(sources[1].store.fetched[0])
    assert sources[1].to_store.rows == [9, mapped[0], 9]
    assert sources[1].to_hub.rows == [mapped[1]]
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(whole, name), getattr(again, name))
    forgetful = Federation(doubles.HUB, sources, remember=0)
    for _ in range(2):
        np.testing.assert_array_equal(forgetful.search(queries).scores, whole.scores)
    assert sources[1].to_hub.rows == [mapped[1]] * 3
    with pytest.raises(ParameterError, match="remember as a whole number of at least 0; got -1"):
        Federation(doubles.HUB, sources, remember=-1)


def test_a_document_that_was_replaced_is_mapped_anew(sources, queries, doubles):
    federation = Federation(doubles.HUB, sources)
    federation.search(queries)
    sources[1].store.vectors[:] = doubles.unit(np.random.default_rng(99), 25, 6)
    fresh = Federation(doubles.HUB, sources, remember=0).search(queries)
    np.testing.assert_array_equal(federation.search(queries).scores, fresh.scores)


@pytest.mark.parametrize("fusion", ["score", "agg", "rrf", "combmnz", "one_directional"])
def test_one_query_and_a_batch_give_the_same_numbers(three, queries, doubles, fusion, monkeypatch):
    federation = Federation(doubles.HUB, three, fusion=fusion)
    whole = federation.search(queries, k=7)
    single = [federation.search(queries.select([row]), k=7) for row in range(len(queries))]
    monkeypatch.setattr(hub, "QUERY_BLOCK", 4)
    blocks = federation.search(queries, k=7)
    for name in FIELDS:
        np.testing.assert_array_equal(
            getattr(whole, name), np.concatenate([getattr(one, name) for one in single])
        )
        np.testing.assert_array_equal(getattr(whole, name), getattr(blocks, name))


@pytest.mark.parametrize("metric", ["dot", "l2"])
def test_other_metrics(doubles, metric):
    rng = np.random.default_rng(1)
    here, there = (Space(model=name, dim=dim, metric=metric) for name, dim in (("h", 3), ("s", 5)))
    to_store, to_hub = doubles.bridges(here, there)
    a = doubles.Store("a", here, rng.standard_normal((8, 3)))
    b = doubles.Store("b", there, rng.standard_normal((8, 5)))
    query = rng.standard_normal((1, 3)).astype(np.float32)
    federation = Federation(here, [Source("a", a), Source("b", b, to_store, to_hub)])
    ranking = federation.search(VectorSet(["q"], query, here), k=16)
    mapped = {
        **dict(zip(a.ids, doubles.similarity(query @ to_store.weight, a.vectors @ to_store.weight,
                                             metric)[0], strict=True)),
        **dict(zip(b.ids, doubles.similarity(query, b.vectors @ to_hub.weight, metric)[0],
                   strict=True)),
    }  # fmt: skip
    for hit in ranking.hits(0):
        np.testing.assert_allclose(hit.mapped_score, mapped[hit.id], rtol=1e-4)
        np.testing.assert_allclose(
            hit.score, 0.5 * hit.native_score + 0.5 * hit.mapped_score, rtol=1e-4
        )


# --- stores, spaces and bridges ------------------------------------------------------------------


def test_sources_of_one_model_share_the_bridges(stores, sources, queries, doubles):
    rng = np.random.default_rng(5)
    twin = doubles.Store("b2", doubles.SPOKE, doubles.unit(rng, 10, 6))
    federation = Federation(doubles.HUB, [*sources, Source("b2", twin)])
    ranking = federation.search(queries, k=30)
    assert federation.spaces == (doubles.HUB, doubles.SPOKE)
    assert set(ranking.stores.ravel()) == {"a", "b", "b2"}
    queries_and_a = sources[1].to_store.rows
    assert queries_and_a == [9, 30]  # the queries once, although two stores are asked with them
    assert np.array_equal(twin.searched[0], stores[1].searched[0])


def test_two_different_bridges_for_one_space_are_refused(sources, doubles):
    other = doubles.bridges(doubles.HUB, doubles.SPOKE, seed=9)
    with pytest.raises(ParameterError, match=r"one bridge per space and direction.*source 'b2'"):
        Federation(doubles.HUB, [*sources, Source("b2", sources[1].store, *other)])


def test_the_hub_needs_no_store(stores, sources, queries, doubles):
    federation = Federation(doubles.HUB, sources[1:])
    ranking = federation.search(queries, k=3)
    assert set(ranking.stores.ravel()) == {"b"}
    back = sources[1].to_hub.weight
    hit = one_hit(ranking)
    vector = stores[1].vectors[stores[1].ids.index(hit.id)]
    expected = doubles.similarity(queries.matrix()[:1], (vector @ back)[None], "cosine")
    np.testing.assert_allclose(hit.mapped_score, expected[0, 0], atol=1e-6)


def test_one_store_of_the_hubs_space_is_searched_as_it_is(stores, queries, doubles):
    ranking = Federation(doubles.HUB, [Source("a", stores[0])]).search(queries, k=5)
    found = stores[0].search(queries.matrix(), k=5)
    np.testing.assert_array_equal(ranking.ids, found.ids)
    np.testing.assert_array_equal(ranking.scores, found.scores)
    assert np.isnan(ranking.mapped_scores).all()


def test_native_queries_replace_the_mapped_ones(sources, queries, doubles):
    rng = np.random.default_rng(11)
    native = VectorSet(queries.ids, doubles.unit(rng, 9, 6), doubles.SPOKE)
    federation = Federation(doubles.HUB, sources, fusion="agg")
    federation.search(queries, native_queries={"b": native})
    np.testing.assert_array_equal(sources[1].store.searched[-1], native.matrix())
    assert sources[1].to_store.rows == []


def test_native_queries_do_without_bridges(stores, queries, doubles):
    rng = np.random.default_rng(11)
    native = VectorSet(queries.ids, doubles.unit(rng, 9, 6), doubles.SPOKE)
    federation = Federation(
        doubles.HUB, [Source("a", stores[0]), Source("b", stores[1])], fusion="rrf"
    )
    assert len(federation.search(queries, native_queries={"b": native})) == 9
    with pytest.raises(ConfigError, match=r"a bridge hub to store for source 'b'.*; got none"):
        federation.search(queries)


def test_native_queries_of_one_space_do_not_overwrite_each_other(stores, queries, doubles):
    twin = doubles.Store("twin", doubles.SPOKE, stores[1].vectors)
    sources = [Source(one._name, one) for one in (stores[0], stores[1], twin)]
    federation = Federation(doubles.HUB, sources, fusion="agg")
    rows = doubles.unit(np.random.default_rng(11), 9, 6)
    native, other = (VectorSet(queries.ids, each, doubles.SPOKE) for each in (rows, -rows))
    rounded = VectorSet(queries.ids, rows + np.float32(1e-6), doubles.SPOKE)
    federation.search(queries, native_queries={"b": native, "twin": rounded})
    np.testing.assert_array_equal(twin.searched[-1], rows)
    with pytest.raises(ParameterError, match=r"native queries of source 'b' and native queries of"):
        federation.search(queries, native_queries={"b": native, "twin": other})
    turned = VectorSet(queries.ids, -queries.matrix(), doubles.HUB)
    with pytest.raises(ParameterError, match=r"the queries and native queries of source 'a'"):
        federation.search(queries, native_queries={"a": turned, "b": native})


def test_native_queries_are_checked(sources, queries, doubles):
    federation = Federation(doubles.HUB, sources)
    rng = np.random.default_rng(11)
    rows = doubles.unit(rng, 9, 6)
    with pytest.raises(UnknownNameError, match=r"a source among a, b; got 'z'"):
        federation.search(queries, native_queries={"z": queries})
    with pytest.raises(SpaceMismatchError, match=r"native queries of source 'b' with model"):
        federation.search(queries, native_queries={"b": queries})
    reversed_ids = VectorSet(queries.ids[::-1].copy(), rows, doubles.SPOKE)
    with pytest.raises(CountMismatchError, match=r"native queries of source 'b' with the ids"):
        federation.search(queries, native_queries={"b": reversed_ids})


def test_queries_of_another_space_are_refused(sources, doubles):
    rng = np.random.default_rng(0)
    wrong = VectorSet(["q"], doubles.unit(rng, 1, 6), doubles.SPOKE)
    with pytest.raises(SpaceMismatchError, match=r"queries with model 'hub-model'"):
        Federation(doubles.HUB, sources).search(wrong)


def test_a_missing_direction_is_refused(stores, doubles):
    a, b, _ = stores
    to_store, to_hub = doubles.bridges(doubles.HUB, doubles.SPOKE)
    with pytest.raises(ConfigError, match=r"bridge hub to store for source 'b'.*bridge_to"):
        Federation(doubles.HUB, [Source("a", a), Source("b", b, None, to_hub)])
    with pytest.raises(ConfigError, match=r"bridge store to hub for source 'b'.*bridge_from"):
        Federation(doubles.HUB, [Source("a", a), Source("b", b, to_store)])


def test_one_directional_needs_one_direction(stores, queries, doubles):
    a, b, _ = stores
    to_store, _ = doubles.bridges(doubles.HUB, doubles.SPOKE)
    sources = [Source("a", a), Source("b", b, to_store)]
    federation = Federation(doubles.HUB, sources, fusion=OneDirectional(space=1))
    assert len(federation.search(queries)) == 9
    with pytest.raises(ConfigError, match="bridge store to hub"):
        Federation(doubles.HUB, sources, fusion=OneDirectional(space=0))


def test_exchanged_bridges_are_refused(stores, doubles):
    to_store, to_hub = doubles.bridges(doubles.HUB, doubles.SPOKE)
    with pytest.raises(WrongDirectionError, match=r"as to_store of source 'b'.*exchange the two"):
        Source("b", stores[1], to_hub, to_store)


def test_a_bridge_of_another_space_is_refused(stores, doubles):
    to_third, from_third = doubles.bridges(doubles.HUB, doubles.THIRD)
    to_store, _ = doubles.bridges(doubles.HUB, doubles.SPOKE)
    with pytest.raises(SpaceMismatchError, match=r"ends in spoke-model .* as to_store of source"):
        Source("b", stores[1], to_third)
    with pytest.raises(SpaceMismatchError, match=r"starts in spoke-model .* as to_hub of source"):
        Source("b", stores[1], to_store, from_third)


def test_a_bridge_from_another_hub_is_refused(stores, doubles):
    to_store, to_hub = doubles.bridges(doubles.THIRD, doubles.SPOKE)
    with pytest.raises(SpaceMismatchError, match=r"starts in hub-model .* as to_store"):
        Federation(doubles.HUB, [Source("b", stores[1], to_store)])
    with pytest.raises(SpaceMismatchError, match=r"ends in hub-model .* as to_hub"):
        Federation(doubles.HUB, [Source("b", stores[1], None, to_hub)])


def test_bridges_in_a_circle_are_refused(stores, doubles):
    """Each spoke is joined with the other one, and none with the hub."""
    b_to_c, c_to_b = doubles.bridges(doubles.SPOKE, doubles.THIRD)
    circle = [
        Source("a", stores[0]),
        Source("b", stores[1], c_to_b, b_to_c),
        Source("c", stores[2], b_to_c, c_to_b),
    ]
    message = r"from the hub's space, hub-model .*'b'; got one from the space of source 'c'"
    with pytest.raises(SpaceMismatchError, match=message):
        Federation(doubles.HUB, circle)
    back_only = [circle[0], replace(circle[1], to_store=None), circle[2]]
    with pytest.raises(SpaceMismatchError, match=r"to the hub's space.* got one to the space of"):
        Federation(doubles.HUB, back_only)


def test_a_hub_that_no_bridge_leads_to_is_refused(sources, doubles):
    with pytest.raises(SpaceMismatchError, match=r"from the hub's space, third-model"):
        Federation(doubles.THIRD, sources)
    with pytest.raises(ConfigError, match=r"a bridge hub to store for source 'a'"):
        Federation(doubles.THIRD, sources[:1])


def test_a_bridge_for_a_store_of_the_hubs_space_is_refused(stores, doubles):
    eye = doubles.Bridge(doubles.HUB, doubles.HUB, np.eye(4, dtype=np.float32))
    with pytest.raises(ParameterError, match=r"no bridges for source 'a'"):
        Federation(doubles.HUB, [Source("a", stores[0], eye, eye)])


def test_a_bridge_into_a_comparison_space_is_refused(stores, doubles):
    to_store, _ = doubles.bridges(doubles.HUB, doubles.SPOKE)
    with pytest.raises(UnsupportedOperationError, match=r"comparison space \(cca\)"):
        Source("b", stores[1], replace(to_store, lands_in="comparison", method="cca"))


def test_a_bridge_that_gives_nan_is_refused(stores, queries, doubles):
    to_store, to_hub = doubles.bridges(doubles.HUB, doubles.SPOKE)
    broken = replace(to_store, weight=np.full_like(to_store.weight, np.nan))
    federation = Federation(
        doubles.HUB, [Source("a", stores[0]), Source("b", stores[1], broken, to_hub)]
    )
    with pytest.raises(InvalidVectorsError, match=r"finite vectors from the bridge to spoke-model"):
        federation.search(queries)


def test_no_sources_and_equal_names_are_refused(sources, doubles):
    with pytest.raises(EmptyInputError, match="at least one source"):
        Federation(doubles.HUB, [])
    with pytest.raises(DuplicateIdError, match=r"got b more than once"):
        Federation(doubles.HUB, [*sources, sources[1]])
    with pytest.raises(ParameterError, match="a name for each source"):
        Source("", sources[0].store)


# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3"])
def test_k_is_a_whole_number_of_at_least_one(sources, queries, doubles, k):
    with pytest.raises(ParameterError, match=r"k as a whole number of at least 1; got"):
        Federation(doubles.HUB, sources).search(queries, k=k)


def test_depth_is_checked_and_never_under_k(sources, queries, doubles):
    with pytest.raises(ParameterError, match="depth as a whole number"):
        Federation(doubles.HUB, sources, depth=0)
    with pytest.raises(ParameterError, match="depth as a whole number"):
        Federation(doubles.HUB, sources).search(queries, depth=0)
    shallow = Federation(doubles.HUB, sources, depth=2).search(queries, k=5)
    plain = Federation(doubles.HUB, sources).search(queries, k=5)
    np.testing.assert_array_equal(shallow.scores, plain.scores)
    # with every document a candidate the ranking is that of the formula over all of them
    deep = Federation(doubles.HUB, sources, depth=30).search(queries, k=5)
    whole = Federation(doubles.HUB, sources).search(queries, k=5, depth=55)
    np.testing.assert_array_equal(deep.ids, whole.ids)
    assert (deep.scores >= plain.scores).all()


def test_fusion_by_name_weight_or_method(sources, queries, doubles):
    by_weight = Federation(doubles.HUB, sources, weight=0.4).search(queries)
    by_method = Federation(doubles.HUB, sources, fusion=Score(weight=0.4)).search(queries)
    np.testing.assert_array_equal(by_weight.scores, by_method.scores)
    with pytest.raises(UnknownNameError, match="a fusion method among"):
        Federation(doubles.HUB, sources, fusion="best")
    with pytest.raises(ParameterError, match=r"parameters of fusion method 'rrf': c; got weight"):
        Federation(doubles.HUB, sources, fusion="rrf", weight=0.4)
    with pytest.raises(ParameterError, match="the weight inside the fusion method"):
        Federation(doubles.HUB, sources, fusion=Rrf(), weight=0.4)
    with pytest.raises(ParameterError, match=r"a space under 2"):
        Federation(doubles.HUB, sources, fusion=OneDirectional(space=2))


def test_metrics_are_not_added_up(stores, doubles):
    space = Space(model="dotted", dim=3, metric="dot")
    store = doubles.Store("d", space, np.ones((2, 3)))
    sources = [Source("a", stores[0]), Source("d", store, *doubles.bridges(doubles.HUB, space))]
    with pytest.raises(ParameterError, match=r"spaces of one metric .* got cosine and dot"):
        Federation(doubles.HUB, sources)
    Federation(doubles.HUB, sources, fusion="one_directional")


def test_one_search_can_be_ranked_in_several_ways(sources, queries, doubles):
    federation = Federation(doubles.HUB, sources)
    candidates = federation.candidates(queries, depth=10)
    for weight in (0.2, 0.9):
        other = replace(federation, weight=weight)
        ranked = other.rank(candidates, queries.ids, k=10)
        np.testing.assert_array_equal(ranked.scores, other.search(queries).scores)


@pytest.mark.parametrize("fusion", ["agg", "rrf", "combmnz", "one_directional"])
def test_candidates_that_were_not_compared_are_refused(sources, queries, doubles, fusion):
    candidates = Federation(doubles.HUB, sources, fusion=fusion).candidates(queries, depth=5)
    for method in (Score(), Score(weight=0.3), OneDirectional(space=1)):
        with pytest.raises(ParameterError, match=r"compared in every space.*; got those of anoth"):
            method.score(candidates)
    alone = Federation(doubles.HUB, sources[:1], fusion=fusion).candidates(queries, depth=5)
    np.testing.assert_array_equal(Score().score(alone), alone.native)


def test_a_space_that_counts_for_nothing_need_not_be_compared(sources, queries, doubles):
    federation = Federation(doubles.HUB, sources, fusion="one_directional")
    candidates = federation.candidates(queries, depth=5)
    scores = Score(weights=(1, 0)).score(candidates)
    np.testing.assert_array_equal(scores, federation.method.score(candidates))


# --- documents in two stores ---------------------------------------------------------------------


@pytest.fixture
def shared(doubles):
    """Two stores of one space with the same two ids; b's copy of ``x`` is the nearer one."""
    space = Space(model="m", dim=2)
    a = doubles.Store("a", space, [[1, 1], [0, 1]], ["x", "y"])
    b = doubles.Store("b", space, [[1, 0], [-1, 1]], ["x", "y"])
    return space, [Source("a", a), Source("b", b)], VectorSet(["q"], [[1, 0]], space)


def test_equal_ids_are_two_documents_unless_asked(shared):
    space, sources, query = shared
    ranking = Federation(space, sources).search(query, k=4)
    assert ranking.ids.tolist() == [["x", "x", "y", "y"]]
    assert ranking.stores.tolist() == [["b", "a", "a", "b"]]


def test_equal_ids_are_merged_when_asked(shared):
    space, sources, query = shared
    ranking = Federation(space, sources, dedup="id").search(query, k=4)
    assert ranking.ids.tolist() == [["x", "y", "", ""]]
    assert ranking.stores.tolist() == [["b", "a", "", ""]]
    assert [hit.id for hit in ranking.hits(0)] == ["x", "y"]


def test_rrf_adds_up_merged_documents(shared):
    space, sources, query = shared
    ranking = Federation(space, sources, fusion="rrf", dedup="id").search(query, k=2)
    assert ranking.ids.tolist() == [["x", "y"]]
    np.testing.assert_allclose(ranking.scores, [[2 / 61, 2 / 62]], rtol=1e-6)


def test_an_unknown_way_to_merge_is_refused(shared):
    space, sources, _ = shared
    with pytest.raises(UnknownNameError, match=r"\(dedup\) among id, none, vector; got 'ids'"):
        Federation(space, sources, dedup="ids")


# --- side by side --------------------------------------------------------------------------------


def test_sources_are_searched_side_by_side(sources, queries, doubles, monkeypatch):
    monkeypatch.setattr(gather, "PARALLEL_QUERIES", 1)
    barrier = threading.Barrier(2, timeout=10)  # passed only if both searches run at one time

    def meet(found):
        barrier.wait()
        return found

    for source in sources:
        source.store._fault = meet
    federation = Federation(doubles.HUB, sources)
    in_threads = federation.search(queries)
    for source in sources:
        source.store._fault = None
    monkeypatch.setattr(gather, "PARALLEL_QUERIES", 1000)
    one_by_one = federation.search(queries)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(in_threads, name), getattr(one_by_one, name))


def test_the_first_error_in_the_order_of_the_sources_is_raised(
    sources, queries, doubles, monkeypatch
):
    monkeypatch.setattr(gather, "PARALLEL_QUERIES", 1)
    failed = threading.Event()

    def fail_late(_):
        failed.wait(timeout=10)
        raise ParameterError(expected="a query", got="none", do="change it")

    def fail_at_once(_):
        failed.set()
        raise ParameterError(expected="another k", got="this one", do="change it")

    sources[0].store._fault, sources[1].store._fault = fail_late, fail_at_once
    with pytest.raises(ParameterError, match="a query") as caught:
        Federation(doubles.HUB, sources).search(queries)
    assert caught.value.__notes__ == ["in source 'a', double://a"]


# --- stores that are empty, short, or at fault ---------------------------------------------------


def test_an_empty_store_gives_nothing(sources, queries, doubles):
    empty = doubles.Store("b", doubles.SPOKE)
    with_empty = [sources[0], replace(sources[1], store=empty)]
    ranking = Federation(doubles.HUB, with_empty).search(queries, k=5)
    assert set(ranking.stores.ravel()) == {"a"}
    assert empty.fetched == []
    nothing = Federation(doubles.HUB, [replace(sources[1], store=empty)]).search(queries, k=5)
    assert nothing.ids.shape == (9, 5)
    assert set(nothing.ids.ravel()) == {""}
    assert np.isnan(nothing.scores).all()
    assert nothing.hits(0) == []


@pytest.mark.parametrize("fusion", ["score", "agg", "rrf", "combmnz", "one_directional"])
def test_fewer_hits_than_k_end_in_empty_ids(sources, queries, doubles, fusion):
    ranking = Federation(doubles.HUB, sources, fusion=fusion).search(queries, k=100)
    assert ranking.ids.shape == (9, 100)
    for row in range(9):
        hits = ranking.hits(row)
        assert len(hits) == len({hit.id for hit in hits}) == 55
    for name in ("scores", "native_scores", "mapped_scores"):
        assert np.isnan(getattr(ranking, name)[:, 55:]).all()
    assert set(ranking.stores[:, 55:].ravel()) == {""}
    assert set(ranking.spaces[:, 55:].ravel()) == {""}
    assert np.isfinite(ranking.scores[:, :55]).all()


def test_closing_closes_every_store(sources, doubles):
    with Federation(doubles.HUB, sources) as federation:
        assert federation.sources == tuple(sources)
    assert [source.store.closed for source in sources] == [1, 1]


@pytest.mark.parametrize("k", [1_001, 10**6, 10**12, 10**30])
def test_no_more_is_allocated_than_there_are_rows(sources, queries, doubles, k):
    federation = Federation(doubles.HUB, sources)
    rows = sum(source.store.count() for source in sources)
    ranking = federation.search(queries, k=k)
    assert ranking.ids.shape == (9, rows)
    whole = federation.search(queries, k=1_000)
    assert whole.ids.shape == (9, 1_000)
    np.testing.assert_array_equal(ranking.ids, whole.ids[:, :rows])
    np.testing.assert_array_equal(ranking.scores, whole.scores[:, :rows])
    deep = federation.search(queries, k=3, depth=k)
    np.testing.assert_array_equal(deep.ids, whole.ids[:, :3])
    most = max(source.store.count() for source in sources)
    assert federation.candidates(queries, depth=k).ids.shape == (9, most * len(sources))


def test_an_array_is_refused_because_it_names_no_space(sources, queries, doubles):
    federation = Federation(doubles.HUB, sources)
    for given in (queries.matrix(), queries.matrix().tolist(), None):
        with pytest.raises(InputError, match=r"queries as a VectorSet in hub-model .*pass Vector"):
            federation.search(given)
