"""A bridge as an ONNX graph gives the numbers of ``transform`` in another runtime."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product

import numpy as np
import onnx
import onnxruntime
import pytest

from isthmus import Bridge
from isthmus.bridge.onnx import ACTIVATIONS, INPUT, OUTPUT, RULES, write_onnx
from isthmus.errors import MissingExtraError, UnsupportedOperationError, WriteFailedError
from isthmus.maps import MAPS, PCA, Centre, Compose, Normalise, Whiten, make
from isthmus.maps.training.network import ACTIVATIONS as KNOWN
from isthmus.spaces import Space

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
    "mlp depth 1": {"depth": 1, "least_steps": 20, "epochs": 1},
    "mlp depth 2 random": {"depth": 2, "width": 5, "start": "random", "least_steps": 20},
    "drift_adapter": {"epochs": 3},
    "drift_adapter orthogonal": {"form": "orthogonal", "scaling": True},
    "drift_adapter low_rank": {"form": "low_rank", "rank": 3, "epochs": 3, "scaling": True},
    "embedding_converter": {"width": 9, "least_steps": 20, "epochs": 1},
    "vec2vec": {"width": 9, "steps": 5, "batch": 20},
}
STEPS = {
    "none": ([], []),
    "usual": ([Normalise(), Centre()], [Normalise(), Centre()]),
    "all": (
        [Centre(), PCA(n_components=6), Whiten(), Normalise()],
        [Whiten(), PCA(n_components=7), Normalise(), Centre()],
    ),
}


def run(path, rows):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run([OUTPUT], {INPUT: np.asarray(rows, dtype=np.float32)})[0]


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


@pytest.mark.parametrize("case", [*product(STEPS, (True, False))], ids=str)
@pytest.mark.parametrize("row", MAP_ROWS)
@pytest.mark.parametrize("dims", [(8, 12), (12, 8), (9, 9)], ids=str)
def test_every_map_and_step_in_another_runtime(bridge, tmp_path, row, case, dims):
    steps, unit = case
    X, Y = planted(60, dims, unit=unit)
    source, target = STEPS[steps]
    made = Compose(source, make(row.split()[0], **MAP_ROWS[row]), target).fit(X, Y)
    some = bridge_of(bridge, made, unit=unit)

    write_onnx(some, tmp_path / "bridge.onnx")

    scale = np.abs(made.transform(X)).max()
    for rows in (X[:1], X, 3 * X[:7]):
        expected = some.transform(rows)
        given = run(tmp_path / "bridge.onnx", rows)
        assert given.dtype == np.float32
        np.testing.assert_allclose(given, expected, rtol=1e-5, atol=1e-5 * max(1.0, scale))


def test_every_map_that_lands_in_the_target_space_has_a_rule_and_a_test():
    lands = {name for name, made in MAPS.items() if made.lands_in == "target"}
    assert lands == {row.split()[0] for row in MAP_ROWS}
    for name in lands:
        assert issubclass(MAPS[name], tuple(RULES))
    assert set(ACTIVATIONS) == set(KNOWN)


def test_rows_without_direction_and_rows_of_extreme_length(bridge, tmp_path):
    X, Y = planted(60, (8, 8), unit=True)
    some = bridge_of(bridge, Compose([Normalise()], make("null"), []).fit(X, Y), unit=True)
    write_onnx(some, tmp_path / "bridge.onnx")
    rows = np.stack([0 * X[0], 1e30 * X[1], 1e-30 * X[2]])

    given = run(tmp_path / "bridge.onnx", rows)

    np.testing.assert_allclose(given, some.transform(rows), atol=1e-6)
    assert not given[0].any()


def test_a_fitted_bridge_and_what_its_file_says_of_it(fitted, planted, tmp_path):
    bridge = fitted("procrustes_ridge")

    bridge.to_onnx(str(tmp_path / "bridge.onnx"))

    model = onnx.load(tmp_path / "bridge.onnx")
    onnx.checker.check_model(model, full_check=True)
    told = {each.key: each.value for each in model.metadata_props}
    assert told == {
        "isthmus.bridge": bridge.hash,
        "isthmus.method": "procrustes_ridge",
        "isthmus.source": bridge.source.fingerprint,
        "isthmus.target": bridge.target.fingerprint,
    }
    rows = planted.source.matrix()
    np.testing.assert_allclose(
        run(tmp_path / "bridge.onnx", rows), bridge.transform(rows), rtol=1e-5, atol=1e-6
    )


def test_the_same_bridge_gives_the_same_bytes_and_replaces_an_older_file(fitted, tmp_path):
    for method, name in (("ridge", "one"), ("procrustes", "two"), ("ridge", "two")):
        write_onnx(fitted(method), tmp_path / name)

    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_a_map_that_lands_in_a_comparison_space_is_refused(fitted, tmp_path):
    with pytest.raises(UnsupportedOperationError, match="fit procrustes or ridge"):
        write_onnx(fitted("cca"), tmp_path / "bridge.onnx")
    assert not list(tmp_path.iterdir())


def test_a_map_without_a_rule_is_refused(bridge, tmp_path, monkeypatch):
    monkeypatch.setattr("isthmus.bridge.onnx.RULES", {MAPS["null"]: RULES[MAPS["null"]]})
    with pytest.raises(UnsupportedOperationError, match=r"one of null, for ONNX; got procrustes"):
        write_onnx(bridge, tmp_path / "bridge.onnx")


def test_arrays_beyond_the_end_of_a_file_are_refused(bridge, tmp_path, monkeypatch):
    monkeypatch.setattr("isthmus.bridge.onnx.MOST_BYTES", 100)
    with pytest.raises(UnsupportedOperationError, match="fit a narrower map"):
        write_onnx(bridge, tmp_path / "bridge.onnx")


def test_without_the_library_the_line_to_install_it_is_told(bridge, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'isthmus\[onnx\]'"):
        write_onnx(bridge, tmp_path / "bridge.onnx")


def test_a_place_that_cannot_be_written(bridge, tmp_path):
    with pytest.raises(WriteFailedError):
        write_onnx(bridge, tmp_path / "no such folder" / "bridge.onnx")
