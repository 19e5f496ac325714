"""Tables of the studies of linking: like 4 and 7 of the paper, and what its figures show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from link_geh import ABLATION
from link_studies import STRATEGIES
from table_format import REPORTED, Goal, Part, Record, markdown

Cells = list[dict[str, Any]]
FAITHFUL = 0.876
PROXIMITY_BINS = 5
ORDERS = {"variant": list(ABLATION), "strategy": list(STRATEGIES)}


def studies(records: Sequence[Record]) -> Part:
    """Every study that was run, in one order; draws are averaged."""
    by_study: dict[str, Cells] = {}
    for record in records:
        given = record["parameters"]
        by_study.setdefault(given["study"], []).extend(
            {**given, **cell} for cell in record["result"]["cells"] if cell["draw"] in REPORTED
        )
    lines: list[str] = []
    for name, (title, maker) in TABLES.items():
        if by_study.get(name):
            lines += [f"{title}", "", *maker(by_study[name]), ""]
    return Part(lines, [faithful_goal(by_study), unrelated_goal(by_study)])


def faithful_goal(by_study: Mapping[str, Cells]) -> Goal:
    asked = f"`geh` on the rotated problem, overlap .3, 15 seeds: F1 of at least {FAITHFUL}"
    cells = [
        cell
        for cell in by_study.get("faithful", [])
        if (cell["overlap"], cell["n_seeds"], cell["method"]) == (0.3, 15, "geh")
    ]
    if not cells:
        return Goal(asked, "not measured yet", None)
    means = [
        np.mean([cell["own"][name] for cell in cells]) for name in ("precision", "recall", "f1")
    ]
    steps = np.mean([cell["iterations"] for cell in cells])
    measured = "P {:.3f}, R {:.3f}, F1 {:.3f}".format(*means)
    note = f" in {steps:.0f} iterations, {len(cells)} of {len(REPORTED)} draws"
    return Goal(asked, measured + note, bool(means[2] >= FAITHFUL))


def unrelated_goal(by_study: Mapping[str, Cells]) -> Goal:
    asked = (
        "`auto` on unrelated clouds: no link at precision=0.95 and the verdict `no_overlap_found`"
    )
    cells = [cell for cell in by_study.get("unrelated", []) if cell["method"] == "auto"]
    if not cells:
        return Goal(asked, "not measured yet", None)
    clear = sum(cell["new_at_95"] == 0 for cell in cells)
    said = sum(cell["verdict"]["status"] == "no_overlap_found" for cell in cells)
    measured = f"no link in {clear}, the verdict in {said} of {len(cells)} runs"
    return Goal(asked, measured, clear == said == len(cells))


def by(*rows: str, column: str = "method") -> Callable[[Cells], list[str]]:
    """Return a maker of tables: P / R / F1, a row per pair and these, a column per that."""
    named = ("dataset", "source", "target", *rows, column)

    def table(cells: Cells) -> list[str]:
        cells = sorted(cells, key=lambda cell: [placed(name, cell[name]) for name in named])
        columns = list(dict.fromkeys(cell[column] for cell in cells))
        groups = grouped(cells, named[:-1])
        body = [
            [said(key, rows), *(triple([c for c in some if c[column] == one]) for one in columns)]
            for key, some in groups.items()
        ]
        return markdown([", ".join(["", *rows]).lstrip(", "), *map(str, columns)], body)

    return table


def placed(name: str, value: Any) -> Any:
    """Return what to sort by: the order of the paper's tables where there is one."""
    return ORDERS[name].index(value) if name in ORDERS else value


def grouped(cells: Cells, keys: Sequence[str]) -> dict[tuple[Any, ...], Cells]:
    groups: dict[tuple[Any, ...], Cells] = {}
    for cell in cells:
        groups.setdefault(tuple(cell[key] for key in keys), []).append(cell)
    return groups


def said(key: Sequence[Any], rows: Sequence[str]) -> str:
    shown = ", ".join(f"{value}" for value in key[3:])
    return "{} {} / {}".format(*key[:3]) + (f"; {shown}" if rows else "")


def triple(cells: Cells) -> str:
    """Write mean precision / recall / F1 in percent, and the spread of F1 over draws."""
    if not cells:
        return ""
    shown = []
    for name in ("precision", "recall", "f1"):
        known = [cell["own"][name] for cell in cells if cell["own"][name] is not None]
        shown.append(f"{100 * np.mean(known):.1f}" if known else "-")
    spread = 100 * np.std([cell["own"]["f1"] or 0.0 for cell in cells])
    warned = sum(cell["verdict"]["status"] not in ("linked", "not_judged") for cell in cells)
    return f"{' / '.join(shown)} ± {spread:.1f}" + (f" ({warned} warned)" if warned else "")


def unrelated(cells: Cells) -> list[str]:
    keys = ("dataset", "source", "target", "method", "clouds", "seeds", "n_seeds")
    body = []
    for key, some in grouped(cells, keys).items():
        counted = Counter(cell["verdict"]["status"] for cell in some)
        body.append(
            [
                said(key, keys[3:]),
                f"{np.mean([cell['own']['links'] for cell in some]):.1f}",
                f"{np.mean([cell['new_at_95'] for cell in some]):.1f}",
                ", ".join(f"{count} {status}" for status, count in counted.most_common()),
            ]
        )
    return markdown(["", "links, own threshold", "found at precision .95", "verdicts"], body)


def proximity(cells: Cells) -> list[str]:
    """Write the bins of the paper's figure, six by six."""
    body = []
    for key, some in grouped(cells, ("dataset", "source", "target")).items():
        for stage in ("first", "last"):
            bins = np.array([row for cell in some for row in cell[stage]])
            if not len(bins):
                continue
            order = np.argsort(bins[:, 1], kind="stable")
            for part in np.array_split(order, PROXIMITY_BINS):
                count, away, right, sure = bins[part].T
                means = [np.average(each, weights=count) for each in (away, right, sure)]
                body.append([f"{said(key, ())}, {stage} iteration", *(f"{v:.3f}" for v in means)])
    return markdown(["", "distance to nearest anchor", "precision", "mean posterior"], body)


def votes(cells: Cells) -> list[str]:
    body = []
    for cell in cells:
        kinds = cell["histogram"]
        low, high = ([count for _, count in kinds[name]] for name in ("spurious", "true"))
        median = cell["median_true"]
        over = sum(count for value, count in kinds["spurious"] if value >= (median or 0))
        body.append(
            [
                said((cell["dataset"], cell["source"], cell["target"], cell["draw"]), ("draw",)),
                f"{sum(high):,}",
                "-" if median is None else f"{median:.0f} of {cell['views']}",
                f"{sum(low):,}",
                f"{over:,}",
            ]
        )
    head = ["draw", "true pairs", "their median votes", "spurious pairs", "of them as high"]
    return markdown(head, body)


TABLES: dict[str, tuple[str, Callable[[Cells], list[str]]]] = {
    "other": (
        "Seeds from another data set (section 5.4, figure 5):",
        by("seeds_from", "overlap", "n_seeds"),
    ),
    "wrong": (
        "A share of the seeds is wrong; wrong seeds that a method keeps count against it:",
        by("wrong", "overlap", "n_seeds"),
    ),
    "strategies": (
        "How the seeds lie in the shared objects (table 7):",
        by("method", "overlap", "n_seeds", column="strategy"),
    ),
    "sizes": ("Overlap and sizes of the clouds:", by("shape", "overlap", "n_seeds")),
    "unrelated": ("Clouds that share nothing:", unrelated),
    "faithful": ("`geh` on the rotated problem:", by("overlap", "n_seeds")),
    "ablation": (
        "`geh` without its parts (table 4), ± standard deviation of F1 over draws:",
        by("variant", "n_seeds", column="overlap"),
    ),
    "sensitivity": (
        "Parameters of `geh` (figure 10): growth is c, fraction rho0:",
        by("parameter", "value", "n_seeds", column="overlap"),
    ),
    "views": (
        "How views are drawn and distances encoded, over the overlap (figure 4):",
        by("views_by", "encoding", "n_seeds", column="overlap"),
    ),
    "proximity": ("Precision by the distance to the nearest anchor (figure 9):", proximity),
    "votes": ("Votes of pairs from views of true anchors (figure 2):", votes),
}
