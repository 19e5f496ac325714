"""Pictures of federation from the raw results, as SVG, after figures 6 and 8 to 13 of HVMap.

    python benchmarks/plots_federate.py

What was not measured yet is left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from federate_cells import DEFAULT_MLP
from matplotlib.figure import Figure
from table_format import Record, load
from tables_federate import SHARES, grouped, mean, name_of
from tables_federate_studies import Cells, means, reported_cells, short

from isthmus.evaluate.plots import save_figure

HERE = Path(__file__).parent
Line = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class Panel:
    """One pair of axes: its lines by name, or single points where ``points``."""

    title: str
    x: str
    y: str
    lines: Mapping[str, Line]
    log: bool = False
    points: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--plots", type=Path, default=HERE.parent / "docs" / "plots")
    args = parser.parse_args()
    tasks = ("federate", "federate_studies", "federate_cost")
    records = {task: load(args.results, task) for task in tasks}
    for name, (task, make) in FIGURES.items():
        panels = [panel for panel in make(records[task]) if panel.lines]
        if panels:
            args.plots.mkdir(parents=True, exist_ok=True)
            save_figure(draw(panels), args.plots / f"federate_{name}.svg")
            print(f"wrote {args.plots / f'federate_{name}.svg'}")


def draw(panels: Sequence[Panel]) -> Figure:
    """Draw panels side by side."""
    figure = Figure(figsize=(4.2 * len(panels), 3.4), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for name, (x, y) in panel.lines.items():
            axes.plot(x, y, "o" if panel.points else "o-", markersize=3, linewidth=1, label=name)
        if panel.log:
            axes.set_xscale("log")
        axes.set(xlabel=panel.x, ylabel=panel.y)
        axes.set_title(panel.title, fontsize="medium")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(frameon=False, fontsize="x-small")
    return figure


def studied(records: Sequence[Record], study: str) -> dict[str, Cells]:
    """Return the reported cells of a study by data set."""
    return {
        record["parameters"]["dataset"]: reported_cells(record)
        for record in records
        if record["parameters"]["study"] == study and reported_cells(record)
    }


def weights(records: Sequence[Record]) -> list[Panel]:
    places = grouped(records)
    x = [int(row[-1]) / 10 for row in SHARES]
    panels = []
    for auxiliary, count in dict.fromkeys((place[0], len(place[2])) for place in places):
        mine = [m for p, m in places.items() if (p[0], len(p[2])) == (auxiliary, count)]
        lines = {
            name_of((spec, "")): (
                x,
                [np.mean([mean(one, spec, row) for one in mine if spec in one]) for row in SHARES],
            )
            for spec in ("auto", "ridge", DEFAULT_MLP)
            if any(spec in one for one in mine)
        }
        panels.append(Panel(f"pairs {auxiliary}, {count} stores", "w1", "nDCG@10", lines))
    return panels


def stores(records: Sequence[Record]) -> list[Panel]:
    panels = []
    for dataset, cells in studied(records, "stores").items():
        found = means("stores", cells)
        for models in dict.fromkeys(key[0] for key in found):
            rows = {n: row for (used, n), row in found.items() if used == models}
            title = f"{dataset}, {models.count(',') + 1} models"
            panels.append(Panel(title, "stores", "nDCG@10", lines_of(rows)))
    return panels


def lines_of(rows: Mapping[float, Mapping[str, float]]) -> dict[str, Line]:
    """Return a line per column of a table, over its rows in order."""
    names = dict.fromkeys(name for row in rows.values() for name in row)
    return {
        name: ([x for x in sorted(rows) if name in rows[x]],
               [rows[x][name] for x in sorted(rows) if name in rows[x]])
        for name in names
    }  # fmt: skip


def sizes(records: Sequence[Record]) -> list[Panel]:
    panels = []
    for dataset, cells in studied(records, "sizes").items():
        found = means("sizes", cells)
        for measure in ("neighbours kept", "mapped queries", "score"):
            lines = {
                short(spec): tuple(
                    zip(*((n, row[measure]) for (n, s), row in found.items() if s == spec),
                        strict=True)
                )
                for spec in dict.fromkeys(key[1] for key in found)
            }  # fmt: skip
            panels.append(Panel(f"{dataset}: {measure}", "pairs", measure, lines, log=True))
    return panels


def similarity(records: Sequence[Record]) -> list[Panel]:
    lines: dict[str, dict[str, Line]] = {"Hit@1": {}, "Hit@5": {}, "gain over dummy": {}}
    for dataset, cells in studied(records, "similarity").items():
        rows = means("similarity", cells).values()
        x = [row["NNO@10"] for row in rows]
        maps = {name[:-6] for row in rows for name in row if name.endswith(" score")} - {"dummy"}
        for spec in sorted(maps):
            for hit in ("Hit@1", "Hit@5"):
                lines[hit][f"{dataset}, {spec}"] = x, [row[f"{spec} {hit}"] for row in rows]
            gained = [row[f"{spec} score"] / row["dummy score"] - 1 for row in rows]
            lines["gain over dummy"][f"{dataset}, {spec}"] = x, gained
    return [Panel(name, "NNO@10", name, each, points=True) for name, each in lines.items()]


def graphs(records: Sequence[Record]) -> list[Panel]:
    panels = []
    for dataset, cells in studied(records, "graphs").items():
        rows = list(means("graphs", cells).values())
        names = [name[:-8] for name in rows[0] if name.endswith(" nDCG@10")]
        lines = {
            name: (
                [row[f"{name} search seconds"] for row in rows],
                [row[f"{name} nDCG@10"] for row in rows],
            )
            for name in names
        }
        panels.append(Panel(f"{dataset}, HNSW", "seconds of search", "nDCG@10", lines))
    return panels


def cost(records: Sequence[Record]) -> list[Panel]:
    panels = []
    for record in records:
        cells = [cell for cell in record["result"]["cells"] if cell["K"] == 10]
        for layout in dict.fromkeys(cell["layout"] for cell in cells):
            mine = [cell for cell in cells if cell["layout"] == layout]
            lines = {
                part: ([cell["N"] for cell in mine], [1e3 * cell["first"][part] for cell in mine])
                for part in ("search", "map", "fetch", "rank")
            }
            panels.append(Panel(layout, "stores", "ms per batch of 100, K = 10", lines))
    return panels


def construction(records: Sequence[Record]) -> list[Panel]:
    panels = []
    for record in records[:1]:
        reckoned = record["result"]["reckoned"]
        parts = ("embedding", "training", "converting", "indexing")
        for size in dict.fromkeys(one["size"] for one in reckoned):
            lines: dict[str, Line] = {}
            for method in ("score", "da", "ec", "mig"):
                mine = [one for one in reckoned if (one["size"], one["method"]) == (size, method)]
                hours = [sum(one[part] for part in parts) / 3600 for one in mine]
                lines[method] = [one["N"] for one in mine], np.log10(np.maximum(hours, 1e-6))
            title = f"{size} vectors in all"
            panels.append(Panel(title, "stores", "hours to build, log10", lines))
    return panels


FIGURES: Mapping[str, tuple[str, Callable[[Sequence[Record]], list[Panel]]]] = {
    "weights": ("federate", weights),
    "stores": ("federate_studies", stores),
    "sizes": ("federate_studies", sizes),
    "similarity": ("federate_studies", similarity),
    "graphs": ("federate_studies", graphs),
    "cost": ("federate_cost", cost),
    "construction": ("federate_cost", construction),
}


if __name__ == "__main__":
    main()
