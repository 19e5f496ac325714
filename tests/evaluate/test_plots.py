"""Pictures: what is in them, the same bytes twice, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from isthmus.errors import MissingExtraError, UnknownFormatError, WriteFailedError
from isthmus.evaluate.consistency import DistanceBins, distance_correlation, jaccard_curve
from isthmus.evaluate.plots import check_plot_path, consistency_figure, save_figure


@pytest.fixture(scope="module")
def curves():
    draw = np.random.default_rng(100)
    one = draw.standard_normal((80, 6))
    other = one + 0.5 * draw.standard_normal((80, 6))
    return distance_correlation(one, other), jaccard_curve(one, other)


def line(axes, place=0):
    return axes.get_lines()[place].get_xydata()


def test_the_curves_are_drawn(curves):
    distances, neighbors = curves
    left, right = consistency_figure(*curves, rows=80).axes
    np.testing.assert_allclose(line(left), np.c_[distances.median, distances.correlation])
    np.testing.assert_allclose(line(right), np.c_[neighbors.k, neighbors.mean])
    shares = neighbors.k / 79
    np.testing.assert_allclose(line(right, 1)[:, 1], shares / (2 - shares))
    (band,) = right.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.max() == pytest.approx(min(1, (neighbors.mean + neighbors.std).max()))
    assert heights.min() == pytest.approx(max(0, (neighbors.mean - neighbors.std).min()))


def test_negative_correlations_and_empty_bins_fit_in(curves):
    nothing = np.full(3, np.nan)
    empty = DistanceBins(nothing, nothing, np.zeros(3, np.int64))
    assert consistency_figure(empty, curves[1]).axes[0].get_ylim() == (-0.05, 1.0)
    opposed = DistanceBins(np.arange(3.0), np.array([0.5, -0.6, np.nan]), np.full(3, 40))
    assert consistency_figure(opposed, curves[1]).axes[0].get_ylim()[0] < -0.6


@pytest.mark.parametrize("name", ["a.svg", "a.PNG"])
def test_the_same_numbers_give_the_same_bytes(curves, tmp_path: Path, name):
    written = []
    for place in range(2):
        folder = tmp_path / str(place)
        folder.mkdir()
        save_figure(consistency_figure(*curves, title="$x_1 and 文"), folder / name)
        assert [path.name for path in folder.iterdir()] == [name]
        written.append((folder / name).read_bytes())
    assert written[0] == written[1]
    head = {".svg": b"<?xml", ".png": b"\x89PNG"}[Path(name).suffix.lower()]
    assert written[0].startswith(head)
    assert b"matplotlib" not in written[0].lower().replace(b"matplotlib.axis", b"")


def test_nothing_that_others_share_is_touched(curves, tmp_path: Path):
    def settings():
        return {name: mpl.rcParams[name] for name in mpl.rcParams if name != "backend"}

    before = settings()
    save_figure(consistency_figure(*curves), tmp_path / "a.svg")
    assert settings() == before
    assert "matplotlib.pyplot" not in sys.modules


def test_what_cannot_be_written(curves, tmp_path: Path, monkeypatch):
    with pytest.raises(UnknownFormatError, match=r"ending in \.svg or \.png"):
        check_plot_path(tmp_path / "a.pdf")
    with pytest.raises(WriteFailedError):
        save_figure(consistency_figure(*curves), tmp_path / "none" / "a.svg")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'isthmus\[plot\]'"):
        check_plot_path(tmp_path / "a.svg")
