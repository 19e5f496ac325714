"""The cost model: counts by hand, growth as the paper's table 2 says."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import CountMismatchError, EmptyInputError, ParameterError, UnknownNameError
from isthmus.federate import Federation, Source, common, gather
from isthmus.federate.cost import METHODS, Rates, Setting, cost_of, estimate
from isthmus.federate.similarity import pair_similarity
from isthmus.spaces import Space, VectorSet

TWO = Setting(rows=(100, 300), spaces=(0, 1), k=10, pairs=50)


def test_two_stores_by_hand():
    # queries into one space; ten candidates of each store into the other
    score = cost_of("score", TWO)
    assert (score.maps_trained, score.pairs_trained) == (2, 100)
    assert (score.mapped_per_query, score.similarities_per_query) == (21, 20)
    assert (score.encoders, score.searches) == (1, (100, 300))
    one = cost_of("one_directional", TWO)
    assert (one.mapped_per_query, one.similarities_per_query) == (11, 10)
    agg = cost_of("agg", TWO)
    assert (agg.encoders, agg.maps_trained, agg.mapped_per_query) == (2, 0, 0)
    cca = cost_of("cca", TWO)
    assert (cca.encoders, cca.maps_trained, cca.mapped_per_query) == (2, 1, 21)
    da = cost_of("da", TWO)
    assert (da.pairs_trained, da.mapped_per_query, da.similarities_per_query) == (6, 1, 0)
    ec = cost_of("ec", TWO)
    assert (ec.vectors_mapped, ec.vectors_indexed, ec.searches) == (300, 400, (400,))
    mig = cost_of("mig", TWO)
    assert (mig.vectors_embedded, mig.vectors_indexed, mig.encoders) == (300, 400, 1)


@dataclass(frozen=True)
class Counted:
    """A bridge that counts the rows that it maps, on both sides."""

    source: Space
    target: Space
    lands_in: str
    counts: list
    hash: str = "h"
    method: str = "counted"

    def transform(self, rows):
        return self._land(rows, self.target.dim)

    def transform_target(self, rows):
        return self._land(rows, self.target.dim)

    def _land(self, rows, dim):
        self.counts.append(len(rows))
        landed = np.random.default_rng(0).standard_normal((len(rows), dim))
        return (landed / np.linalg.norm(landed, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("layout", [(0, 1, 2), (0, 0, 1), (1, 2, 2)])
@pytest.mark.parametrize("method", ["score", "score_common", "one_directional", "cca"])
def test_counts_are_those_of_a_search(doubles, monkeypatch, layout, method):
    spaces, rng = (doubles.HUB, doubles.SPOKE, doubles.THIRD), np.random.default_rng(0)
    mapped, compared, sources = [], [], []
    for place, space in enumerate(layout):
        there = spaces[space]
        store = doubles.Store(f"s{place}", there, doubles.unit(rng, 20, there.dim))
        bridges = (
            {}
            if space == 0
            else {
                "to_store": Counted(doubles.HUB, there, "target", mapped),
                "to_hub": Counted(there, doubles.HUB, "target", mapped),
            }
        )
        if space and method in ("score_common", "cca"):
            bridges["common"] = Counted(doubles.HUB, there, "comparison", mapped)
        sources.append(Source(f"s{place}", store, **bridges))

    def counting(queries, landed, rows, *, space):
        compared.append(np.count_nonzero(rows >= 0))
        return pair_similarity(queries, landed, rows, space=space)

    monkeypatch.setattr(gather, "pair_similarity", counting)
    monkeypatch.setattr(common, "pair_similarity", counting)
    federation = Federation(
        doubles.HUB, sources, fusion=method.removesuffix("_common"), timeout=None
    )
    query = VectorSet(["q"], doubles.unit(rng, 1, doubles.HUB.dim), doubles.HUB)
    native = {}
    if method == "cca":  # as in the paper, a query is encoded by every model
        native = {
            source.name: VectorSet(["q"], np.eye(1, spaces[space].dim), spaces[space])
            for source, space in zip(sources, layout, strict=True)
            if space
        }
    federation.search(query, k=10, native_queries=native)
    cost = cost_of(method, Setting(rows=(20,) * 3, spaces=layout, k=10))
    assert (sum(mapped), sum(compared)) == (cost.mapped_per_query, cost.similarities_per_query)


def test_stores_of_one_model_share_their_maps():
    four = Setting(rows=(10,) * 4, spaces=(0, 1, 1, 1))
    assert cost_of("score", four).maps_trained == 2
    assert cost_of("agg", four).encoders == 2


def test_a_hub_without_a_store_is_a_space():
    setting = Setting(rows=(10, 10), spaces=(1, 2))
    assert setting.n_spaces == 3
    assert cost_of("score", setting).maps_trained == 4


def test_one_space_needs_no_map():
    setting = Setting(rows=(10, 10), spaces=(0, 0))
    for method in METHODS:
        cost = cost_of(method, setting)
        assert (cost.maps_trained, cost.mapped_per_query, cost.vectors_embedded) == (0, 0, 0)


@given(n=st.integers(2, 12), rows=st.integers(1, 10**9), k=st.integers(1, 100))
def test_growth_as_table_2_says(n, rows, k):
    def at(method, stores):
        setting = Setting(rows=(rows,) * stores, spaces=tuple(range(stores)), k=k)
        return cost_of(method, setting)

    score, more = at("score", n), at("score", n + 1)
    assert (score.maps_trained, more.maps_trained) == (2 * (n - 1), 2 * n)  # O(N)
    assert score.vectors_embedded == score.vectors_indexed == 0  # not with |D|
    assert score.similarities_per_query == n * (n - 1) * k  # O(N^2)
    assert (score.encoders, at("agg", n).encoders, at("mig", n).encoders) == (1, n, 1)
    assert at("mig", n).vectors_embedded == (n - 1) * rows  # O(N |D|)
    assert len(score.searches) == len(at("agg", n).searches) == n
    assert at("mig", n).searches == (n * rows,)


def test_seconds_by_hand():
    rates = Rates(
        embed=2, train=3, map=5, index=7, encode=11, search=1, search_row=0.5, similarity=13
    )
    ec = estimate(cost_of("ec", TWO), rates)
    assert (ec.embedding, ec.training, ec.converting, ec.indexing) == (0, 150, 1500, 2800)
    assert ec.construction == 4450
    assert (ec.encoding, ec.searching, ec.mapping, ec.ranking) == (11, 201, 0, 0)
    score = estimate(cost_of("score", TWO), rates)
    assert (score.searching, score.mapping, score.ranking) == (202, 105, 260)
    assert score.query == 11 + 202 + 105 + 260


def test_graph_search_grows_with_the_logarithm():
    one = estimate(cost_of("mig", TWO), Rates(search_log_row=1.0)).searching
    four = Setting(rows=(400, 1200), spaces=(0, 1))
    assert estimate(cost_of("mig", four), Rates(search_log_row=1.0)).searching == pytest.approx(
        one + 2
    )


@pytest.mark.parametrize("method", METHODS)
def test_every_cost_is_plain_json_and_names_its_method(method):
    assert json.loads(json.dumps(cost_of(method, TWO).to_dict()))["method"] == method


def test_what_is_refused():
    with pytest.raises(EmptyInputError):
        Setting(rows=(), spaces=())
    with pytest.raises(CountMismatchError):
        Setting(rows=(1, 2), spaces=(0,))
    for bad in ({"k": 0}, {"pairs": -1}, {"adapter_share": 2.0}, {"rows": (-1,)}):
        with pytest.raises(ParameterError):
            Setting(**{"rows": (1,), "spaces": (0,), **bad})
    with pytest.raises(ParameterError, match="embed in seconds"):
        Rates(embed=-1)
    with pytest.raises(UnknownNameError, match="'score'"):
        cost_of("scroe", TWO)
