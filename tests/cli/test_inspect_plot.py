"""``isthmus inspect --plot``: the consistency curves as numbers and as a picture."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from isthmus import Space, VectorSet


def test_the_curves_are_numbers_and_a_picture(cli, files, tmp_path: Path):
    out = tmp_path / "curves.svg"
    ran = cli("inspect", files.one, files.two, "--plot", out)
    assert (ran.code, ran.err) == (0, "")
    assert f"Written: {out}" in ran.out
    assert out.read_text().startswith("<?xml")
    both = cli("inspect", files.one, files.two, "--plot", tmp_path / "c.png", "--json").result[
        "both"
    ]
    curve, distances = both["jaccard_curve"], both["distances"]
    assert set(curve) == {"k", "mean", "std"}
    assert curve["k"] == list(range(1, 51))
    assert both["jaccard"]["10"] == curve["mean"][9] > 0.7
    assert [len(distances[name]) for name in ("median", "correlation", "count")] == [20, 20, 20]
    assert sum(distances["count"]) == 240 * 239 / 2
    assert (tmp_path / "c.png").is_file()


def test_nothing_to_compare_is_nothing_to_draw(cli, files, tmp_path: Path):
    other = VectorSet(["x", "y"], np.eye(2, 8), Space(model="z", dim=8))
    other.save(tmp_path / "other.npz")
    ran = cli("inspect", files.one, tmp_path / "other.npz", "--plot", tmp_path / "c.svg")
    assert ran.code == 0
    assert "note: there is nothing to plot: c.svg was not written" in ran.err
    assert not (tmp_path / "c.svg").exists()


@pytest.mark.parametrize(
    ("plot", "told"),
    [
        ("c.pdf", (42, "'c.pdf'")),
        ("none/c.svg", (44, "nothing there")),
        ("folder.svg", (44, "a folder")),
    ],
)
@pytest.mark.usefixtures("no_looking")
def test_a_picture_is_refused_before_anything_is_looked_at(cli, files, tmp_path, plot, told):
    (tmp_path / "folder.svg").mkdir()
    ran = cli("inspect", files.one, files.two, "--plot", tmp_path / plot, "--json")
    assert (ran.code, ran.error["got"]) == told
    assert [path.name for path in tmp_path.iterdir()] == ["folder.svg"]


@pytest.mark.usefixtures("no_looking")
def test_one_file_is_not_drawn_and_the_library_is_asked_for(cli, files, tmp_path, monkeypatch):
    plot = ("--plot", tmp_path / "c.svg", "--json")
    assert cli("inspect", files.one, *plot).error["do"] == "give B, or leave out --plot"
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    ran = cli("inspect", files.one, files.two, *plot)
    assert (ran.code, ran.error["do"]) == (26, "pip install 'isthmus[plot]'")


@pytest.fixture
def no_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.workflows.inspect", None)
