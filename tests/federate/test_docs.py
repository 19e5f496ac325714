from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from isthmus.cli.run import run
from isthmus.federate.config import FederationConfig, StoreConfig, read
from isthmus.federate.fusion import names
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store

PAGE = (Path(__file__).parents[2] / "docs" / "federation.md").read_text(encoding="utf-8")


def block(language, place=0):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[place]


def test_the_file_of_the_page_is_valid(tmp_path):
    path = tmp_path / "federation.toml"
    path.write_text(block("toml"), encoding="utf-8")
    assert read(path).hub == "one"


def test_the_example_of_the_page_runs(doubles, stores, queries, capsys):
    to_store, to_hub = doubles.bridges(doubles.HUB, doubles.SPOKE)
    given = {
        "hub": doubles.HUB,
        "store_one": stores[0],
        "store_two": stores[1],
        "bridge_to": to_store,
        "bridge_from": to_hub,
        "queries": queries,
    }
    exec(block("python", 1), given)  # noqa: S102 - our own page
    assert len(capsys.readouterr().out.splitlines()) == 10


def test_the_commands_and_the_file_of_the_page_work_together(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir").mkdir()
    (tmp_path / "federation.toml").write_text(block("toml"), encoding="utf-8")
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
    commands = re.findall(r"^    isthmus (fit .*)$", PAGE, re.MULTILINE)
    assert [run([*command.split(), "--quiet"]) for command in commands] == [0, 0]
    capsys.readouterr()
    exec(block("python", 0), {})  # noqa: S102 - our own page
    assert capsys.readouterr().out == "Ranking(200 queries x 10, stores 'one', 'two')\n"


def unit_rows(matrix):
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def test_every_field_and_method_is_on_the_page():
    fields = {f"`{name}`" for name in FederationConfig.model_fields if name != "stores"}
    fields |= {f"`stores.{name}`" for name in StoreConfig.model_fields}
    fields |= {f"`{name}`" for name in names()}
    assert [name for name in fields if name not in PAGE] == []
