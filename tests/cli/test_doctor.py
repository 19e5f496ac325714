"""``isthmus doctor``: diagnosis, drift and canaries on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isthmus import Space, VectorSet

DIM = 64
SPACE = Space(model="m", dim=DIM)


def encoded(rows: int, *, model: int = 0, seed: int = 0) -> np.ndarray:
    turn = np.linalg.qr(np.random.default_rng(100 + model).standard_normal((DIM, DIM)))[0]
    draw = np.random.default_rng(seed)
    return draw.standard_normal((rows, DIM)) * np.geomspace(1, 0.03, DIM) @ turn


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    clean = encoded(600)
    mixed = np.concatenate([clean[:520], encoded(80, model=1, seed=5)])
    for name, rows in (
        ("clean", clean),
        ("mixed", mixed),
        ("later", encoded(600, seed=2)),
        ("other", encoded(600, model=1)),
    ):
        ids = [f"d{i}" for i in range(len(rows))]
        VectorSet(ids, rows, SPACE).save(tmp_path / f"{name}.npz", dtype="float32")
    return tmp_path


def test_a_diagnosis_is_a_table_an_envelope_a_picture_and_a_file(cli, folder: Path):
    plot, out = folder / "parts.svg", folder / "out.csv"
    ran = cli("doctor", folder / "mixed.npz", "--plot", plot, "--out", out)
    assert ran.code == 0
    assert "Verdict: mixed" in ran.out
    assert "of another space" in ran.out
    assert plot.read_text().startswith("<?xml")
    assert out.read_text().startswith("id,posterior\nd0,")
    told = cli("doctor", folder / "mixed.npz", "--json").result
    assert told["verdict"] == "mixed"
    assert told["mixture"]["share"] == pytest.approx(80 / 600, abs=0.02)
    assert told["space"]["model"] == "m"
    assert "posterior" not in told
    again = folder / "again.svg"
    cli("doctor", folder / "mixed.npz", "--plot", again)
    assert again.read_bytes() == plot.read_bytes()


def test_a_store_and_a_sample_of_it(cli, folder: Path):
    url = f"sqlite:///{folder}/one.db?collection=docs"  # the path brings the fourth slash
    cli("store", "add", url, folder / "clean.npz")
    ran = cli("doctor", url, "--require", "clean")
    assert (ran.code, ran.err) == (0, "")
    assert cli("doctor", url, "--sample", "450", "--json").result["looked"] == 450


def test_a_verdict_fails_only_where_it_is_required(cli, folder: Path):
    ran = cli("doctor", folder / "mixed.npz", "--require", "clean", "--json")
    assert (ran.code, ran.error["got"].startswith("mixed")) == (32, True)
    wrong = cli("doctor", folder / "mixed.npz", "--require", "perfect", "--json")
    assert wrong.code == 23


def test_drift_against_another_file(cli, folder: Path):
    same = cli("doctor", folder / "clean.npz", "--against", folder / "later.npz", "--json")
    assert same.result["drift"]["verdict"] == "no drift"
    other = ("doctor", folder / "clean.npz", "--against", folder / "other.npz")
    assert "Verdict: drift" in cli(*other).out
    assert cli(*other, "--require", "clean").code == 32


def test_canaries_are_kept_and_checked(cli, folder: Path):
    kept = folder / "canaries.npz"
    again = ("--canary-file", kept, "--vectors")
    place = folder / "clean.npz"
    added = cli("doctor", place, "--canary", "add", *again, folder / "later.npz")
    assert (added.code, f"600 canaries kept: {kept}" in added.out) == (0, True)
    ran = cli("doctor", place, "--canary", "check", *again, folder / "later.npz")
    assert "Verdict: unchanged" in ran.out
    told = cli("doctor", place, "--canary", "check", *again, folder / "mixed.npz", "--json").result
    assert (told["verdict"], told["rows"]) == ("changed weights", 600)
    assert cli("doctor", place, "--canary", "add", *again, folder / "later.npz").code == 22


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--canary", "add"), 22),
        (("--vectors", "x.npz"), 22),
        (("--canary", "look", "--vectors", "x", "--canary-file", "y"), 23),
        (("--against", "x.npz", "--out", "x.csv"), 22),
        (("--plot", "x.pdf"), 42),
    ],
)
def test_options_that_do_not_go_together_are_refused(cli, folder: Path, more, code):
    assert cli("doctor", folder / "clean.npz", *more, "--json").code == code
