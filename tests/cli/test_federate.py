"""``isthmus federate``: from stores to a federation that can be searched."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from isthmus import VectorSet


@pytest.fixture
def stores(cli, files, tmp_path: Path, monkeypatch) -> list[str]:
    """Two stores with half of the documents each, as NAME=URL."""
    monkeypatch.chdir(tmp_path)
    for name, path, rows in (("one", files.one, range(0, 240, 2)), ("two", files.two, range(240))):
        VectorSet.load(path).select(list(rows)).save(f"{name}-part.npz", dtype="float32")
        url = f"sqlite:///{name}.db?collection=docs"
        assert cli("store", "add", url, f"{name}-part.npz").code == 0
    return [f"{name}=sqlite:///{name}.db?collection=docs" for name in ("one", "two")]


def test_two_commands_make_and_search_a_federation(process, stores, files, tmp_path: Path):
    given = ["--vectors", f"one={files.one}", "--vectors", f"two={files.two}"]
    ran = process("federate", *stores, "--out", "f.toml", *given, "--method", "ridge")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "Written: f.toml"
    assert "bridge_common" in ran.out
    fields = tomllib.loads((tmp_path / "f.toml").read_text(encoding="utf-8"))
    assert fields["stores"][1]["bridge_from"] == "bridges/two/from"
    searched = process("search", "f.toml", "--query-vectors", files.queries, "--json")
    assert searched.code == 0
    assert searched.result["complete"] is True
    again = process("federate", *stores, "--out", "f.toml", "--json")
    assert again.code != 0
    assert again.error["kind"] == "WriteFailedError"


def test_it_says_what_was_fitted_on_what(cli, stores):
    ran = cli("federate", *stores, "--out", "f.toml", "--method", "procrustes", "--json")
    told = ran.result
    assert (told["path"], told["hub"]) == ("f.toml", "one")
    assert [one["role"] for one in told["bridges"]] == ["bridge_to", "bridge_from", "bridge_common"]
    assert {one["n_pairs"] for one in told["bridges"]} == {120}
    assert told["bridges"][0]["path"] == "bridges/two/to"


@pytest.mark.parametrize("bad", ["one", "=x", "one=", "two=sqlite:///x.db?collection=docs"])
def test_what_is_no_store_is_refused(cli, stores, bad):
    ran = cli("federate", *stores, bad, "--out", "f.toml", "--json")
    assert ran.error["kind"] == "InputError"
    assert "NAME=URL" in ran.error["expected"]


def test_lesser_verdicts_and_a_missing_common_space_are_notes(cli, stores, files, tmp_path: Path):
    few = VectorSet.load(files.one).select(list(range(40)))
    few.save(tmp_path / "few.npz", dtype="float32")
    ran = cli("federate", *stores, "--out", "f.toml", "--vectors", "one=few.npz", "--json")
    warnings = ran.envelope["warnings"]
    assert warnings[-1] == "no common space for 'two': under 100 pairs, or not the cosine"
    for said in warnings[:-1]:
        assert said.startswith(("bridge_to of store 'two': ", "bridge_from of store 'two': "))


def test_a_method_has_its_parameters(cli, stores):
    asked = ["federate", *stores, "--out", "f.toml", "--method", "low_rank", "--param", "rank=3"]
    told = cli(*asked, "--method-from", "ridge", "--json").result
    assert [one["method"] for one in told["bridges"]] == ["low_rank", "ridge", "cca"]
    refused = cli(*asked[:-2], "--device", "cpu", "--out", "g.toml", "--bridges", "g", "--json")
    assert refused.error["kind"] == "ParameterError"
    assert "device" in refused.error["got"]
