"""Pictures of alignment from the raw results, as SVG, after figures 2, 3, 4, 6 and 10 of AnchorDOT.

    python benchmarks/plots_align.py

What was not measured yet is left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from align_cells import KS, TASK
from align_numbers import WAYS, Cells, both, by, mean, recall
from align_studies import GAMMAS, RULES
from plots_federate import HERE, Line, Panel, draw
from table_format import load
from tables_align import cells_of

from isthmus.evaluate.plots import save_figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--plots", type=Path, default=HERE.parent / "docs" / "plots")
    args = parser.parse_args()
    by_study = cells_of(load(args.results, TASK))
    for name, make in FIGURES.items():
        panels = [panel for panel in make(by_study) if panel.lines]
        if panels:
            args.plots.mkdir(parents=True, exist_ok=True)
            save_figure(draw(panels), args.plots / f"align_{name}.svg")
            print(f"wrote {args.plots / f'align_{name}.svg'}")


def swept(cells: Cells, key: str) -> dict[str, Line]:
    """Return the mean R@10 of both directions by a key, a line per map."""
    lines = {}
    for name, mine in by(cells, "method").items():
        values = sorted(by(mine, key).items())
        lines[name] = [value for value, _ in values], [both(each, 10) for _, each in values]
    return lines


def sweeps(by_study: Mapping[str, Cells]) -> list[Panel]:
    asked = (("anchors", "anchor pairs"), ("pool", "unpaired rows a side"))
    panels = [
        Panel(title, title, "R@10, both ways", swept(by_study.get(key, []), key), log=True)
        for key, title in asked
    ]
    hidden = swept(by_study.get("overlap", []), "overlap")
    return [*panels, Panel("hidden pairs", "share of the pool", "R@10, both ways", hidden)]


def structure(by_study: Mapping[str, Cells]) -> list[Panel]:
    values = sorted(by(by_study.get("fgw", []), "alpha").items())
    lines: dict[str, Line] = {
        f"R@{k}": ([alpha for alpha, _ in values], [both(each, k) for _, each in values])
        for k in KS
        if values
    }
    return [Panel("structural term", "share of the anchor cost", "recall, both ways", lines)]


def hubs(by_study: Mapping[str, Cells]) -> list[Panel]:
    cells = [cell for cell in by_study.get("hubness", []) if cell["centred"]]
    lines: dict[str, Line] = {}
    for rule in RULES:
        mine = by(cells, "rule").get(rule, [])
        if mine:
            skews = [mean(cell["skewness"][side] for cell in mine) for side in (0, 1)]
            lines[rule] = skews, [recall(mine, way, 10) for way in WAYS]
    return [Panel("rules, both ways", "skewness of N_10", "R@10", lines, points=True)]


def ratios(by_study: Mapping[str, Cells]) -> list[Panel]:
    panels = []
    for count, mine in by(by_study.get("participation", []), "anchors").items():
        lines: dict[str, Line] = {}
        for side, said in (("source", "molecules"), ("target", "texts")):
            for centred, cells in by(mine, "centred").items():
                name = f"{said}{', centred' if centred else ''}"
                lines[name] = GAMMAS, np.mean([cell[side] for cell in cells], axis=0)
        panels.append(Panel(f"{count:,} anchors", "gamma", "participation ratio", lines))
    return panels


FIGURES: Mapping[str, Callable[[Mapping[str, Cells]], list[Panel]]] = {
    "anchors": sweeps,
    "fgw": structure,
    "hubness": hubs,
    "participation": ratios,
}


if __name__ == "__main__":
    main()
