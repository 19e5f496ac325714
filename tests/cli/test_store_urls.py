"""Commands take a store URL where they take a file of vectors."""

from __future__ import annotations

import json

import pytest

from isthmus.errors import EmptyInputError, MissingCollectionError, SpaceMismatchError
from isthmus.spaces import Space
from isthmus.stores import open_store
from isthmus.workflows._opening import open_vectors


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """The demo's files, and a store beside each."""
    from isthmus import sample

    folder = tmp_path_factory.mktemp("urls")
    data = sample.load()
    for name, documents in data.documents.items():
        documents.save(folder / f"{name}.npz", dtype="float32")
        url = f"sqlite:///{folder}/{name}.db?collection=docs"
        with open_store(url, space=documents.space) as store:
            store.upsert(documents)
    return folder


def at(folder, model):
    return f"sqlite:///{folder}/{model}.db?collection=docs"


def test_a_bridge_from_two_stores_is_that_of_two_files(cli, sample, tmp_path):
    small, large = at(sample, "minilm-l6"), at(sample, "mpnet")
    places = {"files": (sample / "minilm-l6.npz", sample / "mpnet.npz"), "stores": (small, large)}
    kept = {}
    for name, (source, target) in places.items():
        ran = cli(
            "fit", source, target, "--out", tmp_path / name, "--method", "procrustes", "--json"
        )
        assert ran.code == 0, ran.err
        kept[name] = json.loads(ran.out)["result"]["report"]["values"]["retention@10"]
    assert kept["files"] == kept["stores"]


def test_inspect_names_the_stores(cli, sample):
    ran = cli("inspect", at(sample, "minilm-l6"), at(sample, "mpnet"))
    assert ran.code == 0, ran.err
    assert at(sample, "mpnet") in ran.out.replace("\n", "")


def test_what_is_not_there(cli, sample, tmp_path):
    ran = cli("inspect", f"sqlite:///{sample}/mpnet.db?collection=other")
    assert (ran.code, MissingCollectionError.exit_code) == (61, 61)
    empty = f"sqlite:///{tmp_path}/empty.db?collection=docs"
    open_store(empty, space=Space(model="m", dim=2)).close()
    with pytest.raises(EmptyInputError, match="an empty collection"):
        open_vectors(empty)


class TestRecord:
    def test_the_same_space_again(self, cli, sample):
        space = open_store(at(sample, "mpnet")).space
        asked = ["--model", space.model, "--revision", space.revision]
        asked += ["--preprocessing", space.preprocessing, "--normalized"]
        ran = cli("store", "record", at(sample, "mpnet"), *asked, "--json")
        assert ran.code == 0, ran.err
        told = json.loads(ran.out)["result"]
        assert told["before"] == told["space"]

    def test_another_space_is_refused(self, cli, sample):
        ran = cli("store", "record", at(sample, "mpnet"), "--model", "other")
        assert ran.code == SpaceMismatchError.exit_code
        assert "model" in ran.err
        assert open_store(at(sample, "mpnet")).space.model != "other"
