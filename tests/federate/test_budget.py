"""Budgets: which stores are searched for which query."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import (
    ConfigError,
    CorruptFileError,
    CountMismatchError,
    EmptyInputError,
    MalformedArtifactError,
    ParameterError,
    SpaceMismatchError,
    UnknownVersionError,
)
from isthmus.federate import Federation, Source
from isthmus.federate.adaptive import Adaptive
from isthmus.federate.outline import StoreOutline, as_products, expected_counts
from isthmus.federate.patience import Clock
from isthmus.federate.sampling import reservoir
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store

DIM = 16
METRICS = ("cosine", "dot", "l2")


def make_space(metric="cosine", model="hub", dim=DIM):
    return Space(model=model, dim=dim, metric=metric, normalized=metric == "cosine")


def topical(n_stores=4, rows=300, seed=0, spread=0.25):
    """Return stores' rows around a direction of their own, and queries near the first store's."""
    rng = np.random.default_rng(seed)
    topics = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0][:n_stores]
    made = [topic + spread * rng.standard_normal((rows + 50, DIM)) for topic in topics]
    made = [(one / np.linalg.norm(one, axis=1, keepdims=True)).astype(np.float32) for one in made]
    return [one[:rows] for one in made], [one[rows:] for one in made]


def open_sources(parts, space, prefix="s"):
    sources = []
    for place, rows in enumerate(parts):
        store = open_store(f"memory://{prefix}{place}?collection=docs", space=space)
        if len(rows):
            store.upsert(VectorSet([f"{place}-{row}" for row in range(len(rows))], rows, space))
        sources.append(Source(f"{prefix}{place}", store))
    return sources


def true_counts(parts, queries, metric, k):
    every = np.concatenate(parts).astype(np.float64)
    owner = np.repeat(np.arange(len(parts)), [len(one) for one in parts])
    if metric == "l2":
        scores = -np.linalg.norm(queries[:, None] - every[None], axis=2)
    else:
        scores = queries @ every.T
    best = np.argsort(-scores, axis=1)[:, :k]
    return np.stack([(owner[best] == place).sum(axis=1) for place in range(len(parts))], axis=1)


@pytest.mark.parametrize("metric", METRICS)
def test_topical_stores_are_left_out_and_little_is_lost(metric):
    parts, asked = topical()
    sources = open_sources(parts, make_space(metric), prefix=f"t-{metric}")
    budget = Adaptive.fit(make_space(metric), sources, loss=0.02, seed=1)
    queries = np.concatenate(asked)
    chosen = budget.choose([queries], spaces=np.zeros(4, int), k=10)
    lost = np.where(chosen, 0, true_counts(parts, queries, metric, 10)).sum(axis=1).mean() / 10
    assert chosen.mean() < 0.6
    assert lost <= 0.04
    assert chosen.any(axis=1).all()


def test_stores_at_random_are_all_searched():
    parts, asked = topical(spread=0.5)
    rng = np.random.default_rng(0)
    mixed = np.array_split(rng.permutation(np.concatenate(parts)), 4)
    budget = Adaptive.fit(make_space(), open_sources(mixed, make_space(), "r"), loss=0.01)
    chosen = budget.choose([np.concatenate(asked)], spaces=np.zeros(4, int), k=10)
    assert chosen.mean() > 0.97


def test_a_query_is_chosen_for_alone_as_in_a_batch():
    parts, asked = topical()
    budget = Adaptive.fit(make_space(), open_sources(parts, make_space(), "b"), loss=0.05)
    queries = np.concatenate(asked)
    batch = budget.choose([queries], spaces=np.zeros(4, int), k=10)
    alone = [budget.choose([row[None]], spaces=np.zeros(4, int), k=10)[0] for row in queries]
    np.testing.assert_array_equal(batch, alone)


def test_no_loss_allowed_leaves_out_nothing_that_could_hold_a_row():
    parts, asked = topical(spread=0.4)
    budget = Adaptive.fit(make_space(), open_sources(parts, make_space(), "n"), loss=0.0)
    chosen = budget.choose([np.concatenate(asked)], spaces=np.zeros(4, int), k=10)
    lost = np.where(chosen, 0, true_counts(parts, np.concatenate(asked), "cosine", 10))
    assert lost.sum() == 0


def test_stores_of_another_model_are_outlined_through_their_bridge(doubles):
    rng = np.random.default_rng(0)
    to_store, to_hub = doubles.bridges(doubles.HUB, doubles.SPOKE)
    rows = doubles.unit(rng, 200, doubles.HUB.dim)
    spoke_rows = doubles.unit(rng, 150, doubles.SPOKE.dim)
    sources = [
        ScannedDouble(doubles, "a", doubles.HUB, rows),
        ScannedDouble(doubles, "b", doubles.SPOKE, spoke_rows),
    ]
    budget = Adaptive.fit(
        doubles.HUB, [Source("a", sources[0]), Source("b", sources[1], to_store, to_hub)]
    )
    assert sum(to_hub.rows) == 150
    assert [one.sizes.sum() for one in budget.outlines] == pytest.approx([200, 150])
    with pytest.raises(ConfigError, match="bridge store to hub"):
        Adaptive.fit(doubles.HUB, [Source("b", sources[1])])


def ScannedDouble(doubles, name, space, rows):  # noqa: N802 - makes an object like a class does
    from isthmus.stores.base import Batch

    class Scanned(doubles.Store):
        def scan(self, *, batch_size=10_000, cursor=""):
            assert (batch_size, cursor) == (10_000, "")
            yield Batch(VectorSet(self.ids, self.vectors, self.space), "end", ())

    return Scanned(name, space, rows)


def test_an_empty_store_is_always_searched():
    parts, asked = topical(n_stores=3)
    sources = open_sources([*parts, parts[0][:0]], make_space(), "e")
    budget = Adaptive.fit(make_space(), sources, loss=0.05)
    chosen = budget.choose([asked[0]], spaces=np.zeros(4, int), k=10)
    assert chosen[:, 3].all()
    assert chosen[:, 1].mean() < 0.3


def test_a_sample_stands_for_the_whole_store():
    parts, _ = topical(n_stores=2)
    budget = Adaptive.fit(make_space(), open_sources(parts, make_space(), "w"), sample=50)
    assert [float(one.sizes.sum()) for one in budget.outlines] == pytest.approx([300, 300])


def test_the_same_seed_gives_the_same_budget():
    parts, _ = topical(n_stores=2)
    sources = open_sources(parts, make_space(), "d")
    one, two = (Adaptive.fit(make_space(), sources, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.outlines[1].centroids, two.outlines[1].centroids)
    assert one.level == two.level


@pytest.mark.parametrize("metric", METRICS)
def test_it_comes_back_from_its_file(tmp_path, metric):
    parts, asked = topical()
    sources = open_sources([*parts, parts[0][:0]], make_space(metric), f"f-{metric}")
    budget = Adaptive.fit(make_space(metric), sources)
    budget.to_file(tmp_path / "budget.safetensors")
    back = Adaptive.from_file(tmp_path / "budget.safetensors")
    spaces = np.zeros(5, int)
    np.testing.assert_array_equal(
        back.choose([asked[1]], spaces=spaces, k=5), budget.choose([asked[1]], spaces=spaces, k=5)
    )
    assert (back.names, back.loss, back.level) == (budget.names, budget.loss, budget.level)
    assert back.measured_loss == budget.measured_loss
    back.check(make_space(metric), sources)


def test_it_refuses_another_federation():
    parts, asked = topical(n_stores=2)
    sources = open_sources(parts, make_space(), "o")
    budget = Adaptive.fit(make_space(), sources)
    with pytest.raises(SpaceMismatchError):
        budget.check(make_space(model="another"), sources)
    with pytest.raises(ConfigError, match=r"o0, o1; got o1, o0"):
        budget.check(make_space(), sources[::-1])
    with pytest.raises(CountMismatchError):
        budget.choose([asked[0]], spaces=np.zeros(3, int), k=10)


def test_it_refuses_other_bridges_to_the_hub(doubles, tmp_path):
    rows = doubles.unit(np.random.default_rng(0), 60, doubles.SPOKE.dim)
    store = ScannedDouble(doubles, "b", doubles.SPOKE, rows)
    used, other = (doubles.bridges(doubles.HUB, doubles.SPOKE, seed=seed) for seed in (0, 1))
    budget = Adaptive.fit(doubles.HUB, [Source("b", store, *used)])
    budget.to_file(tmp_path / "budget.safetensors")
    for one in (budget, Adaptive.from_file(tmp_path / "budget.safetensors")):
        one.check(doubles.HUB, [Source("b", store, other[0], used[1])])
        with pytest.raises(ConfigError, match=r"bridges to the hub.*; got another one for 'b'"):
            one.check(doubles.HUB, [Source("b", store, used[0], other[1])])


@pytest.mark.parametrize("broken", [(1,), (0, 1)])
def test_a_store_that_cannot_be_read_is_always_searched(doubles, queries, monkeypatch, broken):
    rng = np.random.default_rng(0)
    stores = [
        ScannedDouble(doubles, name, doubles.HUB, doubles.unit(rng, 300, doubles.HUB.dim))
        for name in "ab"
    ]
    reached = [0, 0]

    def fail(place):
        def scan(**_):
            reached[place] += 1
            raise ConnectionError("no route to host")

        return scan

    for place in broken:
        monkeypatch.setattr(stores[place], "scan", fail(place))
    sources = [Source(store._name, store) for store in stores]
    with pytest.raises(ConnectionError):
        Adaptive.fit(doubles.HUB, sources)
    with pytest.raises(ConnectionError):
        Federation(doubles.HUB, sources, budget="adaptive", require_all=True)
    federation = Federation(doubles.HUB, sources, budget="adaptive", clock=Clock(sleep=lambda _: 0))
    ranking = federation.search(queries)
    assert reached[broken[0]] == 1 + 1 + 3  # the attempts of the third
    assert not ranking.skipped[:, list(broken)].any()
    assert ranking.complete


@given(st.integers(0, 2**31), st.lists(st.integers(0, 9), max_size=6), st.integers(1, 12))
def test_a_reservoir_holds_distinct_rows_of_all(seed, sizes, limit):
    rows = np.arange(sum(sizes), dtype=np.float32)[:, None]
    batches = np.split(rows, np.cumsum(sizes)[:-1]) if sizes else []
    kept, seen = reservoir(batches, limit, np.random.default_rng(seed))
    assert seen == len(rows)
    assert len(kept) == min(limit, len(rows))
    assert len(np.unique(kept)) == len(kept)
    assert set(kept.ravel().tolist()) <= set(rows.ravel().tolist())


def test_every_row_has_the_same_chance_and_no_input_is_changed():
    rows = np.arange(40, dtype=np.float32)[:, None]
    rng = np.random.default_rng(0)
    times = np.zeros(40)
    for _ in range(4_000):
        kept, _ = reservoir(np.split(rows, 8), 10, rng)
        times[kept.astype(int)] += 1
    assert abs(times / 4_000 - 0.25).max() < 0.03  # over four standard deviations
    np.testing.assert_array_equal(rows[:, 0], np.arange(40))


@pytest.mark.parametrize(
    "bad", [{"loss": -0.1}, {"loss": 1.5}, {"sample": 0}, {"n_centroids": 0}, {"k": 0}]
)
def test_bad_parameters(bad):
    with pytest.raises(ParameterError):
        Adaptive.fit(make_space(), [], **bad)


def test_stores_that_are_all_empty():
    sources = open_sources([np.zeros((0, DIM), np.float32)], make_space(), "z")
    with pytest.raises(EmptyInputError):
        Adaptive.fit(make_space(), sources)


def test_one_row_is_enough():
    budget = Adaptive.fit(make_space(), open_sources([np.eye(DIM)[:1]], make_space(), "one"))
    assert np.isnan(budget.measured_loss)
    assert budget.choose([np.eye(DIM)[:2]], spaces=np.zeros(1, int), k=10).all()


def test_files_that_are_no_budget(tmp_path):
    import json

    from isthmus.bridge.format import write_tensors

    path = tmp_path / "budget.safetensors"
    path.write_bytes(b"short")
    with pytest.raises(CorruptFileError):
        Adaptive.from_file(path)
    write_tensors(path, {"x": np.zeros(2)})
    with pytest.raises(MalformedArtifactError):
        Adaptive.from_file(path)
    for about, error in (
        ({"version": 9}, UnknownVersionError),
        ({"version": 1}, UnknownVersionError),
        ({"version": 2}, MalformedArtifactError),
        ([1], MalformedArtifactError),
    ):
        write_tensors(path, {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)})
        with pytest.raises(error):
            Adaptive.from_file(path)


def test_a_file_with_arrays_of_another_shape(tmp_path):
    import json

    from isthmus.bridge.format import read_tensors, write_tensors

    parts, _ = topical(n_stores=2)
    path = tmp_path / "budget.safetensors"
    Adaptive.fit(make_space(), open_sources(parts, make_space(), "m")).to_file(path)
    tensors = read_tensors(path)
    bad = {
        "0/sizes": tensors["0/sizes"][1:],
        "1/centroids": tensors["1/centroids"] * np.float32("nan"),
        "1/variances": -tensors["1/variances"],
    }
    huge = [("0/sizes", tensors["0/sizes"] * scale) for scale in np.float32([0, 1e30])]
    flat = [("0/sizes", np.float32(3)), ("0/variances", np.float32(3))]
    about = json.loads(tensors["about"].tobytes())
    said = [{"loss": 1e999}, {"loss": -5}, {"measured_loss": 7}, {"bridges": []}]
    wrong = [("about", np.frombuffer(json.dumps(about | one).encode(), np.uint8)) for one in said]
    for name, array in [*bad.items(), *huge, *flat, *wrong]:
        write_tensors(path, {**tensors, name: array})
        with pytest.raises(MalformedArtifactError):
            Adaptive.from_file(path)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(1, 40),
    metric=st.sampled_from(METRICS),
)
def test_expected_counts_sum_to_k(seed, k, metric):
    rng = np.random.default_rng(seed)
    outlines = [
        StoreOutline.fit(
            as_products(rng.standard_normal((n, DIM)), metric, query=False),
            count=n * 10,
            n_centroids=8,
            n_directions=4,
            seed=seed,
        )
        for n in (60, 90)
    ]
    queries = as_products(rng.standard_normal((20, DIM)), metric, query=True)
    counts = expected_counts(outlines, queries, k)
    assert (counts >= 0).all()
    np.testing.assert_allclose(counts.sum(axis=1), k, rtol=0.3)


@given(seed=st.integers(0, 10_000))
def test_l2_as_products_orders_as_l2(seed):
    rng = np.random.default_rng(seed)
    query, rows = rng.standard_normal((1, 5)), rng.standard_normal((30, 5))
    products = as_products(query, "l2", query=True) @ as_products(rows, "l2", query=False).T
    distances = np.linalg.norm(rows - query, axis=1)
    ordered = distances[np.argsort(-products[0])]
    assert (np.diff(ordered) > -1e-4).all()
