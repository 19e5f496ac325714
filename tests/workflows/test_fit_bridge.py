"""Fit: how pairs are found, and what is recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isthmus import Pairs, Space, VectorSet, fit_bridge
from isthmus.errors import EmptyInputError, UnknownIdError


@pytest.fixture(scope="module")
def sets() -> tuple[VectorSet, VectorSet]:
    draw = np.random.default_rng(5)
    rows = draw.normal(size=(120, 6))
    ids = [f"d{i}" for i in range(120)]
    turned = rows @ np.linalg.qr(draw.normal(size=(6, 6)))[0]
    return (
        VectorSet(ids, rows, Space(model="a", dim=6)),
        VectorSet(ids[::-1], turned[::-1], Space(model="b", dim=6)),
    )


def test_equal_ids_are_pairs(sets):
    bridge = fit_bridge(*sets, method="procrustes")
    assert bridge.provenance.n_pairs == 120
    assert bridge.provenance.coverage is not None
    assert bridge.provenance.coverage["source"]["covered"] == 1.0
    mapped, native = bridge.apply(sets[0]).matrix(), sets[1].matrix()[::-1]
    cosines = (mapped * native).sum(axis=1)
    assert cosines == pytest.approx(
        np.linalg.norm(mapped, axis=1) * np.linalg.norm(native, axis=1), rel=1e-4
    )


def test_pairs_come_from_a_file_or_an_object(sets, tmp_path: Path):
    for path, vectors in zip(("a.npz", "b.npy"), sets, strict=True):
        vectors.save(tmp_path / path, dtype="float32")
    listed = "".join(f"d{i},d{i}\n" for i in range(50))
    (tmp_path / "pairs.csv").write_text(f"source,target\n{listed}")
    by_file = fit_bridge(
        tmp_path / "a.npz", tmp_path / "b.npy", tmp_path / "pairs.csv", method="procrustes"
    )
    pairs = Pairs.from_rows(*sets, np.arange(50), 119 - np.arange(50))
    by_object = fit_bridge(*sets, pairs, method="procrustes")
    assert by_file.provenance.n_pairs == by_object.provenance.n_pairs == 50
    assert by_file.report.values["retention@10"] == by_object.report.values["retention@10"]


def test_pairs_that_are_not_there(sets, tmp_path: Path):
    (tmp_path / "pairs.csv").write_text("source,target\nd0,nobody\n")
    with pytest.raises(UnknownIdError, match="nobody"):
        fit_bridge(*sets, tmp_path / "pairs.csv")
    stranger = VectorSet(["x"], np.ones((1, 6)), sets[1].space)
    with pytest.raises(EmptyInputError, match="ids that stand in both sets"):
        fit_bridge(sets[0], stranger)
