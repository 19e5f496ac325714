"""Tables of the studies of federation, and what was asked of skew and of more stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from federate_cells import DEFAULT_MLP
from table_format import REPORTED, Goal, Part, Record, markdown

Cells = list[Mapping[str, Any]]
AGG = "agg, all encoders"
LOSS_SHARE, SKEW_MOST = 1 / 3, 0.01
TITLES = {
    "stores": "N stores over disjoint shards, models by turns; nDCG@10 (figure 8)",
    "skew": "Where relevant documents lie; nDCG@10 (section 5.4.6)",
    "depth": "K candidates and K answers; nDCG@K (figure 13b)",
    "overlap": "Two stores that share documents, merged by id; nDCG@10",
    "sizes": "Pairs and layers: neighbours kept of 2,000 pairs held out (there, back), nDCG@10 of "
    "mapped queries and of score (figure 12a)",
    "composition": "What the maps are trained on; nDCG@10 of score (figure 12b)",
    "similarity": "Overlap of the spaces' own neighbours beside Hit@1, Hit@5 and score (figure 11)",
    "graphs": "Stores that search by HNSW; nDCG@10 and seconds of search (figure 13a)",
}
KEYS = {
    "stores": ("models", "N"),
    "skew": ("models", "layout"),
    "depth": ("models", "K"),
    "overlap": ("overlap",),
    "sizes": ("pairs", "map"),
    "composition": ("trained on", "map"),
    "similarity": ("models",),
    "graphs": ("connections", "effort"),
}


DRAWN = ("stores", "similarity")
"""Studies whose pictures lie beside the page."""


def studies(records: Sequence[Record]) -> Part:
    """Return a table per study and data set: means over the reported splits."""
    lines, goals = [], []
    for study, title in TITLES.items():
        mine = {
            record["parameters"]["dataset"]: reported_cells(record)
            for record in records
            if record["parameters"]["study"] == study and reported_cells(record)
        }
        if not mine:
            continue
        lines += [f"{title}:", ""]
        for dataset, cells in mine.items():
            lines += [f"{dataset}, {splits(cells)}:", "", *table(study, cells), ""]
        if study in DRAWN:
            lines += [f"![{title}](plots/federate_{study}.svg)", ""]
        if study in GOALS:
            goals += GOALS[study](mine)
    return Part(lines, goals)


def reported_cells(record: Record) -> Cells:
    return [cell for cell in record["result"]["cells"] if cell["seed"] in REPORTED]


def splits(cells: Cells) -> str:
    count = len({cell["seed"] for cell in cells})
    return f"{count} split{'' if count == 1 else 's'}"


def means(study: str, cells: Cells) -> dict[tuple[Any, ...], dict[str, float]]:
    """Return the mean of every number over the splits, by what tells a cell apart."""
    keys = KEYS[study]
    found: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for cell in cells:
        row = found.setdefault(tuple(cell[key] for key in keys), {})
        for name, value in cell.items():
            if name in (*keys, "seed"):
                continue
            for part, one in value.items() if isinstance(value, Mapping) else [("", value)]:
                row.setdefault(f"{short(name)} {part}".strip(), []).append(one)
    return {
        key: {name: float(np.mean(values)) for name, values in row.items()}
        for key, row in found.items()
    }


def short(name: str) -> str:
    return name.replace(DEFAULT_MLP, "mlp").replace("mlp:depth=", "mlp, layers ")


def table(study: str, cells: Cells) -> list[str]:
    found = means(study, cells)
    names = list(dict.fromkeys(name for row in found.values() for name in row))
    rows = [
        [", ".join(short(str(one)) for one in key), *(shown(row.get(name)) for name in names)]
        for key, row in found.items()
    ]
    return markdown([", ".join(KEYS[study]), *names], rows)


def shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3f}"


def maps_of(row: Mapping[str, float]) -> list[str]:
    return [name for name in row if name != AGG and not name.startswith("mig ")]


def store_goals(mine: Mapping[str, Cells]) -> list[Goal]:
    """Compare what score and agg lose from the fewest stores to six."""
    lost: dict[str, list[float]] = {}
    for cells in mine.values():
        found = means("stores", cells)
        for models in {key[0] for key in found}:
            sizes = sorted(key[1] for key in found if key[0] == models)
            first, last = found[models, sizes[0]], found[models, sizes[-1]]
            if sizes[-1] == 6 and sizes[0] == 2:
                for name in (AGG, *maps_of(first)):
                    lost.setdefault(name, []).append(first[name] - last[name])
    if not lost:
        return [Goal("from 2 to 6 stores", "not measured yet", None)]
    agg = float(np.mean(lost.pop(AGG)))
    return [
        Goal(
            f"from 2 to 6 stores, `{name}`: loses at most a third of what AGG loses",
            f"{np.mean(values):+.4f} of {agg:+.4f} nDCG@10, mean of {len(values)}",
            float(np.mean(values)) <= LOSS_SHARE * agg,
        )
        for name, values in lost.items()
    ]


def skew_goals(mine: Mapping[str, Cells]) -> list[Goal]:
    """Compare balanced relevance with that of each query in one store."""
    away: dict[str, list[float]] = {}
    for cells in mine.values():
        found = means("skew", cells)
        for models in {key[0] for key in found}:
            even, skewed = (
                found[models, layout] for layout in ("balanced", "each query's in one store")
            )
            for name in (AGG, *maps_of(even)):
                away.setdefault(name, []).append(skewed[name] - even[name])
    return [
        Goal(
            f"skewed against balanced relevance, `{name}`: at most .01 nDCG apart",
            f"{np.mean(values):+.4f}, from {min(values):+.4f} to {max(values):+.4f}",
            abs(float(np.mean(values))) <= SKEW_MOST,
        )
        for name, values in away.items()
        if name != AGG
    ]


GOALS: Mapping[str, Callable[[Mapping[str, Cells]], list[Goal]]] = {
    "stores": store_goals,
    "skew": skew_goals,
}
