"""Real stores, real bridges, a real file: what a user has."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.bridge import Bridge
from isthmus.errors import SpaceMismatchError, WrongDirectionError
from isthmus.federate import Federation
from isthmus.spaces import Pairs, Space, VectorSet
from isthmus.stores.registry import open_store

HERE = Space(model="here", dim=8, normalized=True)
THERE = Space(model="there", dim=12, normalized=True)
FILE = """
hub = "one"
[[stores]]
name = "one"
url = "sqlite:///one.db?collection=docs"
[[stores]]
name = "two"
url = "sqlite:///deep/two.db?collection=docs"
bridge_to = "bridges/there"
bridge_from = "bridges/back"
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A planted rotation: 300 documents, a third in each store, a third as pairs."""
    folder = tmp_path_factory.mktemp("world")
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((12, 12)))[0][:8]
    here = rng.standard_normal((300, 8))
    here = (here / np.linalg.norm(here, axis=1, keepdims=True)).astype(np.float32)
    ids = [f"d{row}" for row in range(300)]
    ones = VectorSet(ids, here, HERE)
    twos = VectorSet(ids, here @ rotation, THERE)
    pairs = Pairs.from_ids(ones.select(np.arange(100)), twos.select(np.arange(100)))
    (folder / "deep").mkdir()
    (folder / "bridges").mkdir()
    Bridge.fit(pairs, method="procrustes").save(folder / "bridges" / "there")
    Bridge.fit(pairs.reverse(), method="procrustes").save(folder / "bridges" / "back")
    for path, vectors, rows in (
        ("one.db", ones, np.arange(100, 200)),
        ("deep/two.db", twos, np.arange(200, 300)),
    ):
        url = f"sqlite:///{folder}/{path}?collection=docs"
        with open_store(url, space=vectors.space) as store:
            store.upsert(vectors.select(rows))
    (folder / "federation.toml").write_text(FILE, encoding="utf-8")
    queries = rng.standard_normal((60, 8)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    return folder, ones, VectorSet([f"q{row}" for row in range(60)], queries, HERE)


@pytest.mark.parametrize("fusion", ["score", "one_directional"])
def test_a_planted_rotation_gives_the_ranking_of_one_big_store(world, fusion):
    folder, ones, queries = world
    path = folder / f"{fusion}.toml"
    path.write_text(f'fusion = "{fusion}"\n' + FILE, encoding="utf-8")
    with open_store("memory://all?collection=docs", space=HERE) as whole:
        whole.upsert(ones.select(np.arange(100, 300)))
        expected = whole.search(queries.matrix(), k=10)
    with Federation.load(path) as federation:
        found = federation.search(queries, k=10)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-4)
    assert (found.ids == expected.ids).mean() > 0.99  # rounding may swap two that are equal
    assert set(found.stores.ravel()) == {"one", "two"}


def test_one_query_and_a_batch_agree(world):
    folder, _, queries = world
    with Federation.load(folder / "federation.toml") as federation:
        whole = federation.search(queries, k=5)
        for row in range(0, 60, 7):
            single = federation.search(queries.select([row]), k=5)
            assert single.ids.tolist() == whole.ids[[row]].tolist()
            np.testing.assert_allclose(single.scores, whole.scores[[row]], atol=1e-6)


def test_exchanged_bridge_folders_are_refused(world):
    folder, _, _ = world
    path = folder / "exchanged.toml"
    text = FILE.replace("bridges/there", "x").replace("bridges/back", "bridges/there")
    path.write_text(text.replace('"x"', '"bridges/back"'), encoding="utf-8")
    with pytest.raises(WrongDirectionError, match=r"exchange the two bridges"):
        Federation.load(path)


def test_queries_of_the_other_model_are_refused(world):
    folder, _, _ = world
    wrong = VectorSet(["q"], np.eye(1, 12), THERE)
    with (
        Federation.load(folder / "federation.toml") as federation,
        pytest.raises(SpaceMismatchError, match=r"queries with model 'here'"),
    ):
        federation.search(wrong)
