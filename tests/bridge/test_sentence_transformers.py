"""Model and bridge as one SentenceTransformer give the numbers of the bridge on the model's."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isthmus import Bridge
from isthmus.bridge.chain import RULES
from isthmus.bridge.sentence_transformers import write_sentence_transformer
from isthmus.errors import (
    CorruptFileError,
    DimensionError,
    MissingFileError,
    UnsupportedOperationError,
    WriteFailedError,
)
from isthmus.maps import MAPS, PCA, Centre, Compose, Normalise, Whiten, make
from isthmus.spaces import Space

DIM = 12
TEXTS = ["hello world", "a", "the other one", "hello hello", "zebra"]
MAP_ROWS = {
    "null": {},
    "dummy": {},
    "procrustes": {"scale": True},
    "barycentric": {},
    "unpaired_iterative": {},
    "mini_vec2vec": {},
    "low_rank": {"rank": 3},
    "ridge": {},
    "procrustes_ridge": {},
    "mlp_small": {"hidden": (9, 7), "max_epochs": 5},
    "mlp": {"width": 9, "least_steps": 20, "epochs": 1, "learning_rate": 1e-2},
    "mlp depth 2 random": {"depth": 2, "width": 5, "start": "random", "least_steps": 20},
    "drift_adapter": {"epochs": 3},
    "drift_adapter orthogonal": {"form": "orthogonal", "scaling": True},
    "drift_adapter low_rank": {"form": "low_rank", "rank": 3, "epochs": 3, "scaling": True},
    "embedding_converter": {"width": 9, "least_steps": 20, "epochs": 1},
    "vec2vec": {"width": 9, "steps": 5, "batch": 20},
}
STEPS = {
    "usual": ([Normalise(), Centre()], [Normalise(), Centre()]),
    "all": (
        [Centre(), PCA(n_components=6), Whiten(), Normalise()],
        [Whiten(), PCA(n_components=7), Normalise(), Centre()],
    ),
}
REFUSED = {"mlp", "drift_adapter", "vec2vec"}
"""Those with a branch that skips a bent layer: the modules cannot express it."""
CASES = [("usual", True, (DIM, 16)), ("all", False, (DIM, 8))]


@pytest.fixture(scope="module")
def library():
    """Import the library as a machine without a network has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("TRANSFORMERS_OFFLINE", "1")
        import sentence_transformers

        yield sentence_transformers


@pytest.fixture(scope="module")
def folder(library, tmp_path_factory):
    """Save a transformer of random weights: letters, one layer, mean pooling."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizer

    torch.manual_seed(0)
    base = tmp_path_factory.mktemp("base")
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{x}" for x in letters)]
    (base / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(str(base / "vocab.txt")).save_pretrained(base)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=DIM,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    BertModel(config).save_pretrained(base)
    modules = [Transformer(str(base)), Pooling(DIM), Normalize()]
    made = tmp_path_factory.mktemp("model") / "old"
    library.SentenceTransformer(modules=modules, device="cpu").save(str(made))
    return made


def planted(n, dims, *, unit, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dims[0])) + 0.3
    Y = X @ rng.standard_normal(dims) + 0.1 * rng.standard_normal((n, dims[1])) - 0.2
    if unit:
        X, Y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (X, Y))
    return X.astype(np.float32), Y.astype(np.float32)


def bridge_of(bridge: Bridge, made: Compose, *, unit: bool) -> Bridge:
    """Return a bridge around another map, between spaces of its widths."""
    spaces = [
        Space(model=name, dim=dim, normalized=unit)
        for name, dim in (("old", made.n_features_in_), ("new", made.n_features_target_))
    ]
    return replace(bridge, source=spaces[0], target=spaces[1], map=made)


def fitted_as(bridge, row, case):
    """Return a bridge of a map with steps around it."""
    steps, unit, dims = case
    source, target = STEPS[steps]
    X, Y = planted(60, dims, unit=unit)
    made = Compose(source, make(row.split()[0], **MAP_ROWS[row]), target).fit(X, Y)
    return bridge_of(bridge, made, unit=unit)


def load(library, path):
    return library.SentenceTransformer(str(path), device="cpu", trust_remote_code=False)


@pytest.fixture(scope="module")
def embedded(library, folder):
    return load(library, folder).encode(TEXTS, convert_to_numpy=True)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("row", [row for row in MAP_ROWS if row not in REFUSED])
def test_every_map_and_step_in_the_library(  # noqa: PLR0917 - fixtures, by name
    bridge, tmp_path, folder, library, embedded, row, case
):
    some = fitted_as(bridge, row, case)
    write_sentence_transformer(some, tmp_path / "new", folder)
    given = load(library, tmp_path / "new").encode(TEXTS, convert_to_numpy=True)
    expected = some.transform(embedded)
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(given, expected, rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("row", sorted(REFUSED))
def test_what_cannot_be_expressed_is_refused(bridge, tmp_path, row, case):
    with pytest.raises(UnsupportedOperationError, match="fit procrustes_ridge or ridge"):
        write_sentence_transformer(fitted_as(bridge, row, case), tmp_path / "new", tmp_path)
    assert not list(tmp_path.iterdir())


def test_every_map_has_a_rule_or_a_reason():
    lands = {name for name, made in MAPS.items() if made.lands_in == "target"}
    without = {name for name in lands if not issubclass(MAPS[name], tuple(RULES))}
    assert without == {"vec2vec"}  # adds what it bends to what it was given


def test_a_bridge_and_what_its_folder_says_of_it(fitted, folder, library, embedded, tmp_path):
    bridge: Bridge = fitted("procrustes_ridge")
    bridge.to_sentence_transformers(tmp_path / "new", str(folder))

    model = load(library, tmp_path / "new")
    given = model.encode(TEXTS, convert_to_numpy=True)
    np.testing.assert_allclose(given, bridge.transform(embedded), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(given, axis=1), 1, atol=1e-6)
    assert model.similarity_fn_name == "cosine"
    assert model.get_embedding_dimension() == bridge.target.dim
    assert [type(module).__name__ for module in model] == [
        *("Transformer", "Pooling", "Normalize"),
        *("Normalize", "Dense", "Normalize"),
    ]
    record = json.loads((tmp_path / "new" / "isthmus_bridge.json").read_text())
    assert (record["bridge"], record["target"]["model"]) == (bridge.hash, "new")
    assert bridge.hash in (tmp_path / "new" / "README.md").read_text()
    assert not list((folder).glob("isthmus*"))


def test_a_model_in_memory_and_a_folder_give_the_same(fitted, folder, library, tmp_path):
    bridge = fitted("ridge")
    bridge.to_sentence_transformers(tmp_path / "one", load(library, folder))
    bridge.to_sentence_transformers(tmp_path / "two", folder)
    one, two = (load(library, tmp_path / name).encode(TEXTS) for name in ("one", "two"))
    assert one.tolist() == two.tolist()


def test_a_model_that_an_old_version_saved(fitted, folder, library, embedded, tmp_path):
    """Its modules have the old names, and it has no file of settings."""
    shutil.copytree(folder, tmp_path / "old")
    (tmp_path / "old" / "config_sentence_transformers.json").unlink()
    modules = json.loads((tmp_path / "old" / "modules.json").read_text())
    for module in modules:
        module["type"] = "sentence_transformers.models." + module["type"].rpartition(".")[2]
    (tmp_path / "old" / "modules.json").write_text(json.dumps(modules))
    bridge = fitted("ridge")
    bridge.to_sentence_transformers(tmp_path / "new", tmp_path / "old")
    given = load(library, tmp_path / "new").encode(TEXTS, convert_to_numpy=True)
    np.testing.assert_allclose(given, bridge.transform(embedded), atol=1e-6)


def test_what_comes_out_can_be_saved_and_loaded_again(fitted, folder, library, tmp_path):
    fitted("ridge").to_sentence_transformers(tmp_path / "one", folder)
    first = load(library, tmp_path / "one")
    first.save(str(tmp_path / "two"))
    again = load(library, tmp_path / "two").encode(TEXTS)
    np.testing.assert_allclose(again, first.encode(TEXTS), atol=1e-7)


def test_a_bridge_after_a_bridge(fitted, planted_back, folder, library, tmp_path):
    """The folder is a model like any other: of the target space."""
    forth = fitted("ridge")
    forth.to_sentence_transformers(tmp_path / "one", folder)
    planted_back.to_sentence_transformers(tmp_path / "two", tmp_path / "one")
    between = load(library, tmp_path / "one").encode(TEXTS)
    given = load(library, tmp_path / "two").encode(TEXTS)
    np.testing.assert_allclose(given, planted_back.transform(between), atol=1e-6)


@pytest.fixture
def planted_back(bridge):
    X, Y = planted(60, (16, DIM), unit=True)
    made = Compose([Normalise()], make("procrustes"), []).fit(X, Y)
    return bridge_of(bridge, made, unit=True)


def test_what_is_refused(fitted, folder, tmp_path):
    with pytest.raises(UnsupportedOperationError, match="fit procrustes or ridge"):
        fitted("cca").to_sentence_transformers(tmp_path / "new", folder)
    for model in (tmp_path, "all-MiniLM-L6-v2"):
        with pytest.raises(MissingFileError, match=r"SentenceTransformer\(NAME\)\.save"):
            fitted("ridge").to_sentence_transformers(tmp_path / "new", model)
    (tmp_path / "full").mkdir()
    with pytest.raises(WriteFailedError, match="something there"):
        fitted("ridge").to_sentence_transformers(tmp_path / "full", folder)
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_a_model_of_another_width(planted_back, folder, tmp_path):
    with pytest.raises(DimensionError, match=r"a model of 16 dimensions.*; got 12"):
        planted_back.to_sentence_transformers(tmp_path / "new", folder)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"{}", b"[]", b"\xff", b"[" * 99_999, b'[{"path": "../up"}]', b'[{"path": "/etc"}]',
     b'[{"idx": 0}, 7]'],
)  # fmt: skip
def test_a_broken_model(fitted, tmp_path, content):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "modules.json").write_bytes(content)
    with pytest.raises(CorruptFileError):
        fitted("ridge").to_sentence_transformers(tmp_path / "new", tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_example_of_the_page(fitted, folder, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    found = re.search(
        r"<!-- example: sentence-transformers -->\n```python\n(.*?)```", page, re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    fitted("procrustes").save("old-new")
    (tmp_path / "old-model").symlink_to(folder)
    names: dict[str, object] = {}
    exec(found[1], names)  # noqa: S102 - our own page
    assert names["vectors"].shape == (1, 16)
