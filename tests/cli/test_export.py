"""``isthmus export`` and ``isthmus store export``."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from isthmus import Space, VectorSet
from isthmus.spaces.io import open_records
from isthmus.stores import open_store


@pytest.fixture
def filled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = Space(model="m", dim=2)
    rows = VectorSet(["a", "b"], [[1, 2], [3, 4.0001]], space)
    with open_store("sqlite:///one.db?collection=docs", space=space) as store:
        store.upsert(rows, metadata=[{"year": 2020}, {}])
    return "sqlite:///one.db?collection=docs"


def test_a_collection_to_a_file(cli, filled):
    ran = cli("store", "export", filled, "docs.parquet")
    assert ran.code == 0, ran.err
    assert "2 rows of m (2, cosine), 1 with metadata: docs.parquet" in ran.out
    ((vectors, metadata),) = open_records("docs.parquet")
    assert vectors.matrix().tolist() == np.float32([[1, 2], [3, 4.0001]]).tolist()
    assert metadata == ({"year": 2020}, {})


def test_what_it_says_in_json(cli, filled):
    result = cli("store", "export", filled, "docs.vdf", "--dtype", "float16", "--json").result
    assert (result["rows"], result["with_metadata"], result["path"]) == (2, 1, "docs.vdf")
    assert json.loads(Path("docs.vdf/VDF_META.json").read_text())["indexes"]["docs"]


def test_metadata_for_a_format_that_keeps_none(cli, filled):
    ran = cli("store", "export", filled, "docs.npz", "--json")
    assert ran.error["kind"] == "UnsupportedOperationError"
    assert not Path("docs.npz").exists()
    assert cli("store", "export", filled, "docs.npz", "--no-metadata").code == 0
    assert len(VectorSet.load("docs.npz")) == 2


@pytest.fixture
def model(tmp_path):
    """Write as much of a model's folder as an export reads, 8 dimensions wide."""
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    types = ("Transformer", "Pooling")
    modules = [
        {
            "idx": place,
            "name": str(place),
            "path": path,
            "type": f"sentence_transformers.models.{x}",
        }
        for place, (path, x) in enumerate(zip(("", "1_Pooling"), types, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling" / "config.json").write_text('{"word_embedding_dimension": 8}')
    return folder


def test_a_bridge_for_other_programs(cli, files, tmp_path, model):
    graph, folder = tmp_path / "b.onnx", tmp_path / "both"
    ran = cli("export", files.bridge, "--out", graph, "--json")
    assert ran.result["kind"] == "onnx"
    onnx.checker.check_model(onnx.load(graph))
    ran = cli("export", files.bridge, "--out", folder, "--model", model, "--json")
    assert ran.result["kind"] == "sentence-transformers"
    modules = json.loads((folder / "modules.json").read_text())
    assert [each["path"] for each in modules][:2] == ["", "1_Pooling"]
    assert {each["type"].rsplit(".")[-1] for each in modules[2:]} <= {"Dense", "Normalize"}


def test_what_does_not_go_together(cli, files, tmp_path, model):
    for arguments in (
        ("--out", tmp_path / "new"),
        ("--out", tmp_path / "b.onnx", "--model", model),
    ):
        ran = cli("export", files.bridge, *arguments, "--json")
        assert ran.error["kind"] == "ParameterError"
    assert not (tmp_path / "b.onnx").exists()
