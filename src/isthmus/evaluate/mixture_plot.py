"""A picture of the rows that are of another space."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isthmus._optional import require
from isthmus.evaluate.mixture import Mixture
from isthmus.evaluate.plots import BLUE, GREY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["mixture_figure"]

BINS = 60


def mixture_figure(mixture: Mixture, *, title: str = "") -> Figure:
    """Draw how much energy rows have in the directions that most rows leave empty.

    Parameters
    ----------
    mixture : Mixture
    title : str, default ""

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingExtraError

    Examples
    --------
    >>> from isthmus.evaluate.mixture import find_mixture
    >>> rows = np.random.default_rng(0).standard_normal((200, 16)) * np.geomspace(1, 0.01, 16)
    >>> mixture_figure(find_mixture(rows)).axes[0].get_ylabel()
    'rows'
    """
    figure: Figure = require("matplotlib.figure", extra="plot").Figure(
        figsize=(8.0, 3.2), layout="constrained"
    )
    axes = figure.subplots()
    known = np.isfinite(mixture.energy)
    energy, foreign = mixture.energy[known], mixture.posterior[known] > 0.5
    if len(energy):
        low, high = max(float(energy.min()), 1e-4), max(float(energy.max()), 1.0)
        bins = np.geomspace(low / 1.1, high * 1.1, BINS).tolist()
        parts = [np.maximum(energy[~foreign], low), np.maximum(energy[foreign], low)]
        axes.hist(
            parts, bins=bins, stacked=True, color=[BLUE, "#c4572e"], label=["main", "foreign"]
        )
        axes.axvline(1.0, color=GREY, linestyle=":", label="no regard for these directions")
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=1)
        axes.legend(frameon=False, fontsize="small")
    axes.set_xlabel("energy in the directions that most rows leave empty")
    axes.set_ylabel("rows")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, alpha=0.3)
    axes.set_title(f"{mixture.verdict}, share {mixture.share:.1%}", fontsize="medium")
    if title:
        figure.suptitle(title.replace("$", r"\$"), fontsize="medium")
    return figure
