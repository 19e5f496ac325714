"""A migration under way: two stores of the same ids, each id once, the newer row first."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus import Bridge, Pairs
from isthmus.errors import ConfigError, ParameterError, UnknownNameError
from isthmus.federate import Federation, Source
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore, open_store

OLD = Space(model="old", dim=6, normalized=True)
NEW = Space(model="new", dim=8, normalized=True)
ROWS = 60


def unit(matrix):
    return (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    ids = [f"d{row}" for row in range(ROWS)]
    rows = unit(rng.standard_normal((ROWS, 6)))
    turned = rows @ np.linalg.qr(rng.standard_normal((8, 6)))[0].T
    old, new = (
        VectorSet(ids, rows, OLD),
        VectorSet(ids, unit(turned + 0.1 * rng.standard_normal(turned.shape)), NEW),
    )
    pairs = Pairs.from_ids(old, new)
    there, back = (Bridge.fit(one, method="procrustes") for one in (pairs, pairs.reverse()))
    asked = VectorSet(
        ["q0", "q1", "q2"], unit(new.matrix()[[3, 30, 50]] + 0.1), NEW.with_kind("query")
    )
    return old, there, back, asked


def federation(made, moved, **more):
    """Return the old store whole, and the new one with the first ``moved`` rows, by the bridge."""
    old, there, back, _ = made
    before, after = MemoryStore(OLD), MemoryStore(NEW)
    before.upsert(old)
    if moved:
        after.upsert(there.apply(old.select(np.arange(moved))))
    sources = [
        Source("old", before, back, there),
        Source("new", after, supersedes="old"),
    ]
    return Federation(NEW, sources, **{"fusion": "one_directional", **more})


@pytest.mark.parametrize("moved", [0, 1, 30, 59, 60])
def test_every_stage_gives_the_same_ranking(made, moved):
    whole = federation(made, ROWS).search(made[3], k=10, depth=ROWS)
    found = federation(made, moved).search(made[3], k=10, depth=ROWS)
    assert found.ids.tolist() == whole.ids.tolist()
    np.testing.assert_allclose(found.scores, whole.scores, atol=1e-6)
    there = {f"d{row}" for row in range(moved)}
    for ids, stores in zip(found.ids.tolist(), found.stores.tolist(), strict=True):
        assert len(set(ids)) == 10
        assert stores == ["new" if text in there else "old" for text in ids]


@pytest.mark.parametrize("fusion", ["score", "rrf", "agg", "combmnz"])
@pytest.mark.parametrize("dedup", ["none", "id", "vector"])
def test_each_id_comes_once_by_every_method(made, fusion, dedup):
    found = federation(made, 30, fusion=fusion, dedup=dedup).search(made[3], k=10, explain=True)
    for ids in found.ids.tolist():
        assert len(set(ids)) == 10


def test_what_the_old_store_alone_would_give_is_there(made):
    before = federation(made, 0).candidates(made[3], depth=5)
    half = federation(made, 30).candidates(made[3], depth=5)
    for one, other in zip(before.ids.tolist(), half.ids.tolist(), strict=True):
        assert set(one) <= set(other)


def test_a_line_of_three(made):
    old, there, _, asked = made
    stores = [MemoryStore(NEW) for _ in range(3)]
    for store, count in zip(stores, (60, 40, 20), strict=True):
        store.upsert(there.apply(old.select(np.arange(count))))
    sources = [
        Source("c", stores[2], supersedes="b"),
        Source("a", stores[0]),
        Source("b", stores[1], supersedes="a"),
    ]
    found = Federation(NEW, sources).search(asked, k=60, depth=60)
    for ids, names in zip(found.ids.tolist(), found.stores.tolist(), strict=True):
        assert sorted(ids[:60]) == sorted(old.ids.tolist())
        where = dict(zip(ids, names, strict=True))
        assert (where["d3"], where["d30"], where["d50"]) == ("c", "b", "a")


@pytest.mark.parametrize(
    ("first", "second", "error", "message"),
    [
        ("none", None, UnknownNameError, "store to supersede"),
        ("a", None, ParameterError, "'a' supersedes 'a'"),
        ("b", "a", ParameterError, "supersedes"),
    ],
)
def test_what_makes_no_line_is_refused(first, second, error, message):
    sources = [
        Source("a", MemoryStore(NEW), supersedes=first),
        Source("b", MemoryStore(NEW), supersedes=second),
    ]
    with pytest.raises(error, match=message):
        Federation(NEW, sources)


def test_two_that_replace_one_are_refused():
    sources = [Source("a", MemoryStore(NEW))]
    sources += [Source(name, MemoryStore(NEW), supersedes="a") for name in "bc"]
    with pytest.raises(ParameterError, match="'b' and 'c' supersede 'a'"):
        Federation(NEW, sources)


def test_a_file_says_so(made, tmp_path):
    old, there, back, asked = made
    there.save(tmp_path / "there")
    back.save(tmp_path / "back")
    for name, space, rows in (("old", OLD, old), ("new", NEW, there.apply(old))):
        with open_store(f"sqlite:///{tmp_path}/{name}.db?collection=docs", space=space) as store:
            store.upsert(rows.select(np.arange(60 if name == "old" else 30)))
    text = (
        'hub = "new"\n[[stores]]\nname = "old"\nurl = "sqlite:///old.db?collection=docs"\n'
        'bridge_to = "back"\nbridge_from = "there"\n'
        '[[stores]]\nname = "new"\nurl = "sqlite:///new.db?collection=docs"\nsupersedes = "old"\n'
    )
    (tmp_path / "f.toml").write_text(text)
    with Federation.load(tmp_path / "f.toml") as opened:
        found = opened.search(asked, k=20)
    assert all(len(set(ids)) == 20 for ids in found.ids.tolist())
    (tmp_path / "bad.toml").write_text(text.replace('supersedes = "old"', 'supersedes = "odl"'))
    with pytest.raises(ConfigError, match="store to supersede"):
        Federation.load(tmp_path / "bad.toml")
