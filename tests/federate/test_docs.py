from __future__ import annotations

import re
from pathlib import Path

from isthmus.federate.config import FederationConfig, StoreConfig, read
from isthmus.federate.fusion import names

PAGE = (Path(__file__).parents[2] / "docs" / "federation.md").read_text(encoding="utf-8")


def block(language):
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


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
    exec(block("python"), given)  # noqa: S102 - our own page
    assert len(capsys.readouterr().out.splitlines()) == 10


def test_every_field_and_method_is_on_the_page():
    fields = {f"`{name}`" for name in FederationConfig.model_fields if name != "stores"}
    fields |= {f"`stores.{name}`" for name in StoreConfig.model_fields}
    fields |= {f"`{name}`" for name in names()}
    assert [name for name in fields if name not in PAGE] == []
