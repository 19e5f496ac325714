"""CCA: candidates are compared with the query in a common space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isthmus import Bridge, Pairs, VectorSet
from isthmus.errors import (
    ConfigError,
    ParameterError,
    SpaceMismatchError,
    UnsupportedOperationError,
    WrongDirectionError,
)
from isthmus.federate import Federation, Source
from isthmus.federate.config import read
from isthmus.federate.fusion import Cca, Score
from isthmus.rankings import Ranking
from isthmus.spaces import Space
from isthmus.stores import open_store
from isthmus.workflows.search import search_notes

HUB = Space(model="hub", dim=8, normalized=True)
TWO = Space(model="two", dim=10, normalized=True)
THREE = Space(model="three", dim=9, normalized=True)


def unit(matrix):
    return (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def made():
    """Documents in three models; bridges to each spoke and to a common space with it."""
    rng = np.random.default_rng(0)
    ids = [f"d{row}" for row in range(300)]
    latent = rng.standard_normal((300, 8))
    sets = [VectorSet(ids, unit(latent), HUB)]
    for space in (TWO, THREE):
        turned = latent @ rng.standard_normal((8, space.dim))
        noise = 0.1 * rng.standard_normal(turned.shape)
        sets.append(VectorSet(ids, unit(turned + noise), space))
    pairs = [Pairs.from_ids(sets[0], one) for one in sets[1:]]
    into = [Bridge.fit(one, method="ridge") for one in pairs]
    common = [Bridge.fit(one, method="cca") for one in pairs]
    return sets, into, common


def sources_of(made, *, common=True, spokes=(0, 1), name="c"):
    sets, into, joined = made
    sources = []
    for place in (-1, *spokes):
        vectors = sets[place + 1]
        store = open_store(f"memory://cca-{name}{place}?collection=d", space=vectors.space)
        store.upsert(vectors.select(np.arange(100 * (place + 1), 100 * (place + 2))))
        bridges = {} if place < 0 else {"to_store": into[place]}
        if place >= 0 and common:
            bridges["common"] = joined[place]
        sources.append(Source(f"s{place + 1}", store, **bridges))
    return sources


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_by_hand_over_three_spaces(made):
    sets, _, common = made
    queries = sets[0].select([250, 150, 50])
    sources = sources_of(made, name="hand")
    with Federation(HUB, sources, fusion=Cca(directions=4)) as federation:
        candidates = federation.candidates(queries, depth=5)
    scores = candidates.common
    assert scores.shape == (3, 15)
    every = sets[0].ids.tolist()
    for row, query in enumerate(queries.vectors):
        asked = [bridge.transform(query[None])[0, :4] for bridge in common]
        for column, source in enumerate(candidates.source):
            document = every.index(candidates.ids[row, column])
            vector = sets[source].vectors[document][None]
            if source == 0:
                there = [bridge.transform(vector)[0, :4] for bridge in common]
                expected = np.mean([cosine(a, b) for a, b in zip(asked, there, strict=True)])
            else:
                there = common[source - 1].transform_target(vector)[0, :4]
                expected = cosine(asked[source - 1], there)
            assert scores[row, column] == pytest.approx(expected, abs=1e-5)


def test_it_finds_what_is_the_same(made):
    sets, _, _ = made
    queries = sets[0].select(np.arange(300))
    with Federation(HUB, sources_of(made, name="same"), fusion="cca") as federation:
        ranking = federation.search(queries, k=1)
        alone = federation.search(queries.select([123]), k=1)
    assert (ranking.ids[:, 0] == queries.ids).mean() > 0.8
    assert alone.ids[0, 0] == ranking.ids[123, 0]
    np.testing.assert_allclose(alone.scores[0], ranking.scores[123], rtol=1e-6)


def test_a_store_that_gives_fewer_and_one_that_fails(made):
    sets, into, common = made
    store = open_store("memory://cca-few?collection=d", space=TWO)
    store.upsert(sets[1].select([0, 1]))
    sources = [*sources_of(made, spokes=(), name="few"), Source("f", store, into[0], None)]
    sources[1] = Source("f", store, into[0], None, common=common[0])
    with Federation(HUB, sources, fusion="cca") as federation:
        candidates = federation.candidates(sets[0].select([5]), depth=4)
        found = federation.search(sets[0].select([5]), k=6)
    assert np.isnan(candidates.common[0, 6:]).all()
    assert np.isfinite(candidates.common[0, :6]).all()
    assert (found.ids != "").sum() == 6


def test_a_budget_leaves_out_what_it_leaves_out(made):
    from isthmus.federate.budget import Budget

    class First(Budget):
        def choose(self, queries, *, spaces, k):
            assert k == 3
            chosen = np.ones((len(queries[0]), len(spaces)), dtype=bool)
            chosen[0, 1:] = False
            return chosen

    sources = sources_of(made, name="budget")
    with Federation(HUB, sources, fusion="cca", budget=First()) as federation:
        candidates = federation.candidates(made[0][0].select([5, 6]), depth=3)
    assert np.isfinite(candidates.common[1]).all()
    np.testing.assert_array_equal(np.isfinite(candidates.common[0]), candidates.source == 0)


def test_what_is_missing_or_wrong_is_named(made):
    sets, into, common = made
    with pytest.raises(ConfigError, match="common space for source 's1'"):
        Federation(HUB, sources_of(made, common=False, name="no"), fusion="cca")
    with pytest.raises(ConfigError, match="besides the hub's"):
        Federation(HUB, sources_of(made, spokes=(), name="one"), fusion="cca")
    store = open_store("memory://cca-wrong?collection=d", space=TWO)
    with pytest.raises(UnsupportedOperationError, match="lands in a comparison space as common"):
        Source("x", store, common=into[0])
    with pytest.raises(SpaceMismatchError):
        Source("x", store, common=common[1])
    back = Bridge.fit(Pairs.from_ids(sets[1], sets[0]), method="cca")
    with pytest.raises(WrongDirectionError):
        Source("x", store, common=back)
    other = Bridge.fit(Pairs.from_ids(sets[2], sets[1]), method="cca")
    with pytest.raises(SpaceMismatchError):
        Federation(HUB, [Source("x", store, into[0], common=other)], fusion="cca")
    hub_store = open_store("memory://cca-hub?collection=d", space=HUB)
    with pytest.raises(ParameterError, match="it holds the hub's space"):
        Federation(HUB, [Source("h", hub_store, common=back)], fusion="cca")
    twice = [Source("x", store, into[0], common=common[0])]
    again = Bridge.fit(Pairs.from_ids(sets[0], sets[1].select(np.arange(200))), method="cca")
    twice.append(Source("y", store, common=again))
    with pytest.raises(ParameterError, match="one bridge per space and direction, shared by all"):
        Federation(HUB, twice, fusion="cca")


def test_candidates_of_another_method_and_bad_parameters(two_sources):
    with pytest.raises(ParameterError, match="compared in the common space"):
        Cca().score(two_sources)
    with pytest.raises(ParameterError, match="directions"):
        Cca(directions=0)


def test_it_is_read_from_a_file(tmp_path, made):
    sets, into, common = made
    for place, vectors in enumerate(sets[:2]):
        url = f"sqlite:///{tmp_path}/{place}.db?collection=d"
        with open_store(url, space=vectors.space) as store:
            store.upsert(vectors)
    into[0].save(tmp_path / "into")
    common[0].save(tmp_path / "common")
    text = (
        'hub = "a"\nfusion = "cca"\n'
        '[[stores]]\nname = "a"\nurl = "sqlite:///0.db?collection=d"\n'
        '[[stores]]\nname = "b"\nurl = "sqlite:///1.db?collection=d"\n'
        'bridge_to = "into"\nbridge_common = "common"\n'
    )
    (tmp_path / "f.toml").write_text(text)
    with Federation.load(tmp_path / "f.toml") as federation:
        ranking = federation.search(sets[0].select([7]), k=2)
    assert set(ranking.ids[0]) == {"d7"}
    back = Bridge.fit(Pairs.from_ids(sets[1], sets[0]), method="ridge")
    back.save(tmp_path / "back")
    weighed = text.replace('fusion = "cca"', "weights = [2, 1]\ncommon = 0.25\nweight = 0.4", 1)
    (tmp_path / "w.toml").write_text(weighed + 'bridge_from = "back"\n')
    with Federation.load(tmp_path / "w.toml") as federation:
        assert federation.method == Score(weight=0.4, weights=(2.0, 1.0), common=0.25)
        assert federation.search(sets[0].select([7]), k=1).ids[0, 0] == "d7"
    (tmp_path / "x.toml").write_text(text.replace("fusion", "common = 0.5\nfusion", 1))
    with pytest.raises(ParameterError, match="parameters of fusion method 'cca'"):
        Federation.load(tmp_path / "x.toml")
    (tmp_path / "g.toml").write_text(text.replace("hub = ", 'hub = "b"#', 1))
    with pytest.raises(ConfigError, match="needs no bridges"):
        read(tmp_path / "g.toml")


def test_score_may_count_the_common_space_too(made):
    queries = made[0][0].select([10, 150])
    sources = sources_of(made, name="mixed")
    for place, source in enumerate(sources[1:], start=1):
        back = Bridge.fit(Pairs.from_ids(made[0][place], made[0][0]), method="ridge")
        sources[place] = replace(source, to_hub=back)
    with Federation(HUB, sources, fusion=Score(common=0.25)) as federation:
        candidates = federation.candidates(queries, depth=4)
    expected = 0.75 * Score(common=0).score(candidates) + 0.25 * candidates.common
    np.testing.assert_allclose(Score(common=0.25).score(candidates), expected, rtol=1e-6)
    with pytest.raises(ParameterError, match="common from 0 to 1"):
        Score(common=1.5)


def test_the_common_space_counts_by_default_where_every_spoke_has_one(made):
    queries = made[0][0].select([10, 150])
    sources = sources_of(made, name="default")
    for place, source in enumerate(sources[1:], start=1):
        back = Bridge.fit(Pairs.from_ids(made[0][place], made[0][0]), method="ridge")
        sources[place] = replace(source, to_hub=back)
    with Federation(HUB, sources) as federation:
        assert federation.method == Score(common=0.2)
        candidates = federation.candidates(queries, depth=4)
        np.testing.assert_array_equal(
            Score().score(candidates), Score(common=0.2).score(candidates)
        )
        (note,) = search_notes(federation, queries)
        assert note.startswith("bridge_common of store 's1': the verdict is insufficient_pairs")
    with Federation(HUB, sources, fusion=Score(common=0)) as federation:
        assert federation.candidates(queries, depth=4).common is None
    some = [*sources[:2], replace(sources[2], common=None)]
    with Federation(HUB, some) as federation:
        assert federation.method == Score()
        assert federation.candidates(queries, depth=4).common is None
        (note,) = search_notes(federation, queries)
        assert note.startswith("bridge_common is not used")
        assert "'s2' has none" in note


def test_it_does_not_count_by_default_among_other_metrics():
    rows = np.random.default_rng(0).normal(size=(60, 4))
    ids = [f"d{row}" for row in range(60)]
    one = VectorSet(ids, rows, Space(model="one", dim=4, metric="l2"))
    two = VectorSet(ids, rows[:, ::-1], Space(model="two", dim=4, metric="l2"))
    pairs = Pairs.from_ids(one, two)
    sources = []
    for name, vectors in (("one", one), ("two", two)):
        store = open_store(f"memory://l2-{name}?collection=d", space=vectors.space)
        store.upsert(vectors)
        bridges = [Bridge.fit(each, method="ridge") for each in (pairs, pairs.reverse())]
        bridges.append(Bridge.fit(pairs, method="cca"))
        held = {"to_store": bridges[0], "to_hub": bridges[1], "common": bridges[2]}
        sources.append(Source(name, store, **(held if name == "two" else {})))
    with Federation(one.space, sources) as federation:
        assert federation.method == Score()
        assert np.isfinite(federation.search(one).scores).all()


def test_candidates_along_other_directions_are_refused(made):
    sets, _, _ = made
    with Federation(HUB, sources_of(made, name="along"), fusion=Cca(directions=4)) as federation:
        candidates = federation.candidates(sets[0].select([250]), depth=5)
    for method in (Cca(), Cca(directions=3)):
        with pytest.raises(ParameterError, match=r"along \d+ directions.*another fusion.*along 4"):
            method.score(candidates)
    with pytest.raises(ParameterError, match="compared in every space"):
        Score().score(candidates)


@pytest.mark.parametrize("fusion", ["cca", "score"])
def test_the_common_space_is_explained(made, fusion):
    queries = made[0][0].select(np.arange(40))
    sources = sources_of(made, name=f"why-{fusion}")
    if fusion == "score":
        pairs = [Pairs.from_ids(made[0][place], made[0][0]) for place in (1, 2)]
        back = [None, *(Bridge.fit(one, method="procrustes") for one in pairs)]
        sources = [replace(one, to_hub=to) for one, to in zip(sources, back, strict=True)]
    with Federation(HUB, sources, fusion=fusion) as federation:
        plain = federation.search(queries, k=5)
        if fusion == "cca":  # has no bridges back to compare in every space with
            candidates = replace(
                federation.candidates(queries, depth=5), explained=np.zeros((3, 40, 15))
            )
            ranking = federation.rank(candidates, queries.ids, k=5)
        else:
            ranking = federation.search(queries, k=5, explain=True)
    assert plain.common is None
    np.testing.assert_array_equal(plain.scores, ranking.scores)
    for _, hits in ranking:
        for hit in hits:
            values = {**hit.similarities, "common": hit.common}
            assert hit.weights["common"] == (1 if fusion == "cca" else 0.2)
            score = sum(share * values[name] for name, share in hit.weights.items())
            assert score == pytest.approx(hit.score, abs=1e-6)
    both = Ranking.concatenate([ranking, ranking])
    np.testing.assert_array_equal(both.common[40:], ranking.common)


def test_a_map_of_anchors_is_a_common_space_too(made):
    sets, into, _ = made
    few, rest = np.arange(0, 300, 3), np.setdiff1d(np.arange(300), np.arange(0, 300, 3))
    joined = [
        Bridge.fit(
            Pairs.from_rows(sets[0], one, few, few),
            method="anchor_cca",
            params={"gamma": 1.0, "eta": 0.1},
            unpaired_source=sets[0].select(rest[:100]),
            unpaired_target=one.select(rest[100:]),
        )
        for one in sets[1:]
    ]
    queries = sets[0].select([120, 220, 250])

    with Federation(
        HUB, sources_of((sets, into, joined), name="anchors"), fusion=Cca(directions=6)
    ) as federation:
        ranking = federation.search(queries, k=3)

    # the query's own document is stored in another model's vectors alone
    assert [hits[0] for hits in ranking.ids.tolist()] == queries.ids.tolist()
