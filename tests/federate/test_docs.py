from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest

from isthmus import Bridge
from isthmus.cli.run import run
from isthmus.federate import Federation
from isthmus.federate.config import FederationConfig, StoreConfig, read
from isthmus.federate.fusion import names
from isthmus.spaces import Qrels, Space, VectorSet
from isthmus.stores import open_store

PAGE = (Path(__file__).parents[2] / "docs" / "federation.md").read_text(encoding="utf-8")


def block(language, place=0):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[place]


def test_the_file_of_the_page_is_valid(tmp_path):
    path = tmp_path / "federation.toml"
    path.write_text(block("toml"), encoding="utf-8")
    assert read(path).hub == "one"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the stores, files and queries that the page starts from."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir").mkdir()
    rng = np.random.default_rng(0)
    rows = unit_rows(rng.standard_normal((200, 8)))
    turned = rows @ np.linalg.qr(rng.standard_normal((8, 8)))[0]
    ids = [f"d{row}" for row in range(len(rows))]
    for name, matrix in (("one", rows), ("two", turned)):
        vectors = VectorSet(ids, matrix, Space(model=name, dim=8))
        vectors.save(f"{name}.npz", dtype="float32")
        with open_store(f"sqlite:///dir/{name}.db?collection=docs", space=vectors.space) as store:
            store.upsert(vectors)
    VectorSet(ids, rows, Space(model="one", dim=8)).save("queries.npz")
    return tmp_path


def commands(verb):
    return re.findall(rf"^    isthmus ({verb} .*)$", PAGE, re.MULTILINE)


def test_the_two_commands_of_the_page_make_the_file_of_the_page(place):
    made, searched = commands("federate")[0], commands("search")[0]
    assert run([*shlex.split(made), "--quiet"]) == 0
    assert run([*shlex.split(searched), "--quiet"]) == 0
    written = tomllib.loads((place / "federation.toml").read_text(encoding="utf-8"))
    assert written == tomllib.loads(block("toml"))
    assert len((place / "run.trec").read_text().splitlines()) == 2000


def test_the_bridges_can_be_fitted_one_by_one_and_the_code_of_the_page_runs(place, capsys):
    (place / "federation.toml").write_text(block("toml"), encoding="utf-8")
    assert [run([*shlex.split(one), "--quiet"]) for one in commands("fit")] == [0, 0, 0]
    capsys.readouterr()
    ids = [f"d{row}" for row in range(200)]
    stores = [open_store(f"sqlite:///dir/{name}.db?collection=docs") for name in ("one", "two")]
    given = {
        "hub": stores[0].space,
        "store_one": stores[0],
        "store_two": stores[1],
        "bridge_to": Bridge.load("bridges/two/to"),
        "bridge_from": Bridge.load("bridges/two/from"),
        "judged": VectorSet.load("queries.npz"),
        "qrels": Qrels(ids, ids, [1] * 200),
    }
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 6
    for one in blocks:
        exec(one, given)  # noqa: S102 - our own page
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Ranking(200 queries x 10, stores 'one', 'two')"
    assert len(said) == 1 + 10 + 1  # the ranking, its hits, no outage, the weights
    assert said[-1].startswith("default weights")
    for store in stores:
        store.close()
    toml = 'calibration = "scores.json"\nbudget = "budget.safetensors"\n' + block("toml")
    (place / "federation.toml").write_text(toml, encoding="utf-8")
    with Federation.load("federation.toml") as federation:
        found = federation.search(given["judged"], k=10, min_probability=0.5)
    assert np.nanmin(found.probabilities) >= 0.5


def unit_rows(matrix):
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def test_every_field_and_method_is_on_the_page():
    fields = {f"`{name}`" for name in FederationConfig.model_fields if name != "stores"}
    fields |= {f"`stores.{name}`" for name in StoreConfig.model_fields}
    fields |= {f"`{name}`" for name in names()}
    assert [name for name in fields if name not in PAGE] == []
