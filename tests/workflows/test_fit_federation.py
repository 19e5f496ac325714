"""Everything that a federation needs, fitted and written at once."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

from isthmus.errors import (
    ConfigError,
    EmptyInputError,
    ParameterError,
    SpaceMismatchError,
    UnknownNameError,
    WriteFailedError,
)
from isthmus.federate import Federation, Score
from isthmus.federate.config import read
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store
from isthmus.workflows import fit_bridge, fit_federation
from isthmus.workflows.fit_federation import _folders, _Group

IDS = [f"d{row}" for row in range(200)]
WIDTHS = {"one": 8, "two": 10, "three": 9}
METHOD = "procrustes"


@pytest.fixture
def sets():
    """The same documents in three models."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 8)) * np.linspace(1, 0.2, 8)
    made = {}
    for name, dim in WIDTHS.items():
        turned = rows @ np.linalg.qr(rng.standard_normal((10, 10)))[0][:8, :dim]
        turned /= np.linalg.norm(turned, axis=1, keepdims=True)
        made[name] = VectorSet(IDS, turned, Space(model=name, dim=dim, normalized=True))
    return made


@pytest.fixture
def urls(sets, tmp_path, monkeypatch):
    """A store per model with a third of the documents, and a second one of model two."""
    monkeypatch.chdir(tmp_path)
    kept = {}
    for place, (name, model) in enumerate(
        {"one": "one", "two": "two", "three": "three", "two again": "two"}.items()
    ):
        kept[name] = f"sqlite:///{place}.db?collection=docs"
        rows = np.arange(place % 3, 200, 3)
        with open_store(kept[name], space=sets[model].space) as store:
            store.upsert(sets[model].select(rows))
    return kept


def test_what_is_written_is_searched(urls, sets, tmp_path):
    for name, one in sets.items():
        one.save(f"{name}.npz", dtype="float32")
    files = {name: f"{name}.npz" for name in sets}
    made = fit_federation(urls, "federation.toml", vectors=files, method=METHOD)
    assert [(one.role, one.stores) for one in made.bridges] == [
        (role, stores)
        for stores in (("two", "two again"), ("three",))
        for role in ("bridge_to", "bridge_from", "bridge_common")
    ]
    assert made.without_common == ()
    assert {one.bridge.provenance.n_pairs for one in made.bridges} == {200}
    purposes = [one.bridge.provenance.purpose for one in made.bridges[:2]]
    assert purposes == ["search", "score"]
    fields = tomllib.loads((tmp_path / "federation.toml").read_text(encoding="utf-8"))
    assert fields["hub"] == "one"
    assert fields["stores"][0] == {"name": "one", "url": urls["one"]}
    assert fields["stores"][3] == {
        "name": "two again",
        "url": urls["two again"],
        "bridge_to": "bridges/two/to",
        "bridge_from": "bridges/two/from",
        "bridge_common": "bridges/two/common",
    }
    with Federation.load("federation.toml") as federation:
        assert federation.method == Score(common=0.2)
        found = federation.search(sets["one"], k=1)
    assert (found.ids[:, 0] == sets["one"].ids).mean() > 0.9


@pytest.mark.usefixtures("urls")
def test_without_files_the_stores_themselves_are_the_pairs(sets, tmp_path):
    stores = {name: f"sqlite:///all-{name}.db?collection=docs" for name in ("one", "two")}
    for name, url in stores.items():
        with open_store(url, space=sets[name].space) as store:
            store.upsert(sets[name].select(np.arange(150)))
    out = tmp_path / "elsewhere" / "f.toml"
    out.parent.mkdir()
    made = fit_federation(stores, out, hub="two", bridges=tmp_path / "maps", method=METHOD)
    assert {one.bridge.provenance.n_pairs for one in made.bridges} == {150}
    assert made.bridges[0].bridge.source.model == "two"
    assert read(out).stores[0].bridge_to == str(tmp_path / "maps" / "one" / "to")
    with Federation.load(out) as federation:  # its URLs are absolute: it lies in another folder
        assert len(federation.search(sets["two"].select([0, 1]))) == 2


def test_a_hub_that_no_store_holds(urls, sets):
    stores = {"two": urls["two"], "three": urls["three"]}
    made = fit_federation(stores, "f.toml", hub="one", vectors=sets, method=METHOD)
    assert len(made.bridges) == 6
    with Federation.load("f.toml") as federation:
        assert federation.hub == sets["one"].space
        assert len(federation.search(sets["one"].select([0]))) == 1


def test_a_common_space_needs_a_hundred_pairs(urls, sets):
    few = {name: sets[name].select(np.arange(99)) for name in ("one", "two")}
    made = fit_federation({"one": urls["one"], "two": urls["two"]}, "f.toml", vectors=few)
    assert [one.role for one in made.bridges] == ["bridge_to", "bridge_from"]
    assert made.without_common == ("two",)


def test_names_that_are_no_folders(urls, sets):
    stores = {"one": urls["one"], "../two": urls["two"], 'th"ree\x7f': urls["three"]}
    vectors = {"one": sets["one"], "../two": sets["two"], 'th"ree\x7f': sets["three"]}
    made = fit_federation(stores, "f.toml", vectors=vectors, method=METHOD)
    assert {one.folder.parent.as_posix() for one in made.bridges} == {
        "bridges/store-1",
        "bridges/store-2",
    }
    assert [one.name for one in read(made.path).stores] == list(stores)


def test_nothing_is_overwritten_and_nothing_half_written(urls, sets, tmp_path):
    both = {"one": urls["one"], "two": urls["two"]}
    (tmp_path / "f.toml").write_text("mine")
    with pytest.raises(WriteFailedError, match=r"'f.toml' not to be there yet.* got a file"):
        fit_federation(both, "f.toml", vectors=sets)
    (tmp_path / "bridges" / "mine").mkdir(parents=True)
    with pytest.raises(WriteFailedError, match="'bridges' not to be there yet"):
        fit_federation(both, "g.toml", vectors=sets)
    with pytest.raises(UnknownNameError, match="store"):
        fit_federation(both, "g.toml", vectors=sets, bridges="b")
    two = {name: sets[name] for name in both}
    with pytest.raises(UnknownNameError, match="hub"):
        fit_federation(both, "g.toml", hub="twoo", vectors=two, bridges="b")
    with pytest.raises(SpaceMismatchError, match="vectors for store 'one'"):
        fit_federation(both, "g.toml", vectors={"one": sets["two"]}, bridges="b")
    with pytest.raises(ConfigError, match="same collection"):
        fit_federation({**both, "three": urls["two"]}, "g.toml", vectors=two, bridges="b")
    with pytest.raises(EmptyInputError) as caught:  # the two stores have no document in common
        fit_federation(both, "g.toml", bridges="b")
    (note,) = caught.value.__notes__
    assert note.startswith("between the hub 'one' and store 'two'; ")
    assert "--vectors NAME=F" in note
    assert (tmp_path / "f.toml").read_text() == "mine"
    assert not (tmp_path / "g.toml").exists()
    assert not (tmp_path / "b").exists()


def test_methods_there_and_back_and_their_parameters(urls, sets):
    two = {name: urls[name] for name in ("one", "two")}
    files = {name: sets[name] for name in two}
    made = fit_federation(
        two, "a.toml", vectors=files, method="low_rank", params={"rank": 3}, bridges="a"
    )
    there, back, _ = (one.bridge for one in made.bridges)
    assert there.method == "low_rank"
    assert there.map.get_params()["inner__rank"] == 3
    assert back.method == fit_bridge(sets["two"], sets["one"], purpose="score").method
    same = fit_federation(
        two, "b.toml", vectors=files, method="low_rank", method_from="low_rank",
        params={"rank": 3}, bridges="b",
    )  # fmt: skip
    assert [one.bridge.map.get_params()["inner__rank"] for one in same.bridges[:2]] == [3, 3]
    other = fit_federation(
        two, "c.toml", vectors=files, method="low_rank", method_from="ridge",
        params={"rank": 3}, bridges="c",
    )  # fmt: skip
    assert [one.bridge.method for one in other.bridges] == ["low_rank", "ridge", "cca"]
    with pytest.raises(ParameterError, match="with method auto"):
        fit_federation(two, "d.toml", vectors=files, params={"rank": 3}, bridges="d")


def test_no_two_spaces_share_a_folder(urls, sets):
    named = {"one": urls["one"], "store-2": urls["two"], "my store": urls["three"]}
    files = {"one": sets["one"], "store-2": sets["two"], "my store": sets["three"]}
    made = fit_federation(named, "federation.toml", vectors=files, method=METHOD)
    folders = [one.folder for one in made.bridges]
    assert len(set(folders)) == len(folders) == 6
    with Federation.load("federation.toml") as federation:
        spaces = [spoke.into.target.model for spoke in federation.spokes[1:]]
    assert spaces == ["two", "three"]


def test_folders_differ_where_case_does_not_count_and_names_are_long():
    groups = [_Group((name,), None) for name in ("a", "A", "x" * 300, "store-2", "é", "..", "b/c")]
    folders = _folders(groups)
    assert folders == ["a", "store-3", "store-4", "store-2", "é", "store-6", "store-7"]
