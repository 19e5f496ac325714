"""Pictures of measures, through matplotlib (the extra ``plot``).

Figures are made as objects of their own: no window, no state that a caller's plots share. The same
numbers give the same SVG, byte by byte.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isthmus._files import atomic_path
from isthmus._optional import require
from isthmus.errors import UnknownFormatError
from isthmus.evaluate.consistency import DistanceBins, JaccardCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "check_plot_path", "consistency_figure", "save_figure"]

FORMATS = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}
"""Endings of pictures, and what is left out of them: when and by which version they were made."""

BLUE, GREY = "#1f5c99", "#8a8a8a"


def check_plot_path(path: Path) -> None:
    """Refuse a picture that could not be made, before anything is computed for it.

    Raises
    ------
    UnknownFormatError
        Another ending than ``.svg`` or ``.png``.
    MissingExtraError
        Matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise UnknownFormatError(
            expected=f"a picture ending in {' or '.join(FORMATS)}",
            got=repr(path.name),
            do="rename it",
        )
    require("matplotlib.figure", extra="plot")


def consistency_figure(
    distances: DistanceBins, neighbors: JaccardCurve, *, rows: int | None = None, title: str = ""
) -> Figure:
    """Draw how far two spaces agree, near and far.

    To the left the correlation of distances by distance (vector linking, figure 1), to the right
    the Jaccard index of the k nearest neighbours by k with one standard deviation (figure 8).

    Parameters
    ----------
    distances : DistanceBins
        See `isthmus.evaluate.consistency.distance_correlation`; bins without a value leave a gap.
    neighbors : JaccardCurve
        See `isthmus.evaluate.consistency.jaccard_curve`.
    rows : int, optional
        Rows that neighbours were looked for among: draws what two unrelated spaces would give.
    title : str, default ""

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingExtraError

    Examples
    --------
    >>> from isthmus.evaluate.consistency import distance_correlation, jaccard_curve
    >>> side = np.random.default_rng(0).standard_normal((60, 4))
    >>> figure = consistency_figure(distance_correlation(side, side), jaccard_curve(side, side))
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['distance in A', 'k']
    """
    figure: Figure = require("matplotlib.figure", extra="plot").Figure(
        figsize=(8.0, 3.2), layout="constrained"
    )
    left, right = figure.subplots(1, 2)
    _draw_distances(left, distances)
    _draw_neighbors(right, neighbors, rows)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, alpha=0.3)
    if title:
        figure.suptitle(title.replace("$", r"\$"), fontsize="medium")
    return figure


def _draw_distances(axes: Axes, distances: DistanceBins) -> None:
    axes.plot(distances.median, distances.correlation, color=BLUE, marker="o", markersize=3)
    known = distances.correlation[np.isfinite(distances.correlation)]
    axes.set_ylim(min(0.0, float(known.min(initial=0.0)) - 0.05), 1.0)
    axes.set_xlabel("distance in A")
    axes.set_ylabel("Pearson's r with B")
    axes.set_title("distances, by distance", fontsize="medium")


def _draw_neighbors(axes: Axes, neighbors: JaccardCurve, rows: int | None) -> None:
    low = np.maximum(neighbors.mean - neighbors.std, 0.0)
    high = np.minimum(neighbors.mean + neighbors.std, 1.0)
    axes.fill_between(neighbors.k, low, high, color=BLUE, alpha=0.15, linewidth=0)
    axes.plot(neighbors.k, neighbors.mean, color=BLUE)
    if rows is not None and rows > 1:
        share = np.minimum(neighbors.k / (rows - 1), 1.0)
        axes.plot(neighbors.k, share / (2.0 - share), color=GREY, linestyle=":", label="by chance")
        axes.legend(frameon=False, fontsize="small")
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel("k")
    axes.set_ylabel("Jaccard index")
    axes.set_title("k nearest neighbours, by k", fontsize="medium")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as ``.svg`` or ``.png``, whole or not at all.

    Raises
    ------
    UnknownFormatError, MissingExtraError, WriteFailedError
    """
    check_plot_path(path)
    suffix = path.suffix.lower()
    # names of parts of an SVG are drawn at random without a salt; the settings are put back
    settings = {"svg.hashsalt": "isthmus", "savefig.dpi": 150}
    with (
        require("matplotlib", extra="plot").rc_context(settings),
        warnings.catch_warnings(),
        atomic_path(path) as temporary,
    ):
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)  # of a file's name
        figure.savefig(temporary, format=suffix[1:], metadata=FORMATS[suffix])
