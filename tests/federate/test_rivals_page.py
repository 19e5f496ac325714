"""docs/federation_rivals.md: its code runs, and every method is on it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from isthmus import Bridge, Pairs, VectorSet
from isthmus.federate import Source
from isthmus.federate.cost import METHODS
from isthmus.federate.fusion import names
from isthmus.spaces import Qrels, Space
from isthmus.stores import open_store

PAGE = (Path(__file__).parents[2] / "docs" / "federation_rivals.md").read_text(encoding="utf-8")
HUB = Space(model="hub", dim=8, normalized=True)
TWO = Space(model="two", dim=8, normalized=True)


@pytest.fixture
def given():
    rng = np.random.default_rng(0)
    ids = [f"d{row}" for row in range(200)]
    rows = rng.standard_normal((200, 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    one = VectorSet(ids, rows, HUB)
    two = VectorSet(ids, rows @ np.linalg.qr(rng.standard_normal((8, 8)))[0], TWO)
    pairs = Pairs.from_ids(one, two)
    bridges = [Bridge.fit(each, method="procrustes") for each in (pairs, pairs.reverse())]
    sources = []
    for name, vectors, bridge in (("one", one, ()), ("two", two, bridges)):
        store = open_store(f"memory://page-{name}?collection=d", space=vectors.space)
        half = np.arange(100) + 100 * (name == "two")
        store.upsert(vectors.select(half))
        sources.append(Source(name, store, *bridge))
    queries = VectorSet([f"q{row}" for row in range(60)], rows[70:130], HUB.with_kind("query"))
    qrels = Qrels(queries.ids, ids[70:130], [1] * 60)
    return {"hub": HUB, "sources": sources, "queries": queries, "qrels": qrels}


def test_the_code_of_the_page_runs(given, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(block, given)  # noqa: S102 - our own page
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("default weights: ")
    assert [line.split()[0] for line in said[1:]] == ["score", "da", "ec", "mig"]
    assert {path.name for path in tmp_path.iterdir()} == {"budget.safetensors", "scores.json"}
    found, probability = given["found"], given["probability"]
    np.testing.assert_array_equal(np.isnan(probability), found.ids == "")
    known = probability[found.ids != ""]
    assert 0 < known.min() < known.max() < 1
    assert repr(found) == "Candidates(1,200 for 60 queries, 2 spaces, 0 outages)"
    assert repr(given["curves"]) == "ScoreCalibration(score() of 'one', 'two')"
    assert repr(given["budget"]) == "Adaptive('one', 'two', loss=0.01)"


def test_every_method_is_on_the_page():
    known = {f"`{name}`" for name in METHODS} | {f'"{name}"' for name in names() if name != "score"}
    assert [name for name in known if name not in PAGE] == []
