"""Tables of what bridges keep: queries, reports, scope, Lab 19."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import lab19_tables
import numpy as np
from honesty import MODELS, SIZES
from table_format import REPORTED, Goal, Part, Record, markdown, reported

CELLS = len(SIZES) * len(REPORTED) * sum(len(each) * (len(each) - 1) for each in MODELS.values())


def query_mapping(records: Sequence[Record]) -> Part:
    """Mean ratio to native queries, a row per number of pairs."""
    lines: list[str] = []
    goals: list[Goal] = []
    for key, cells in grouped(records, "dataset", "source", "target").items():
        rows = []
        names = dict.fromkeys(maker(name) for cell in cells for name in cell["result"]["ratio"])
        for (size,), some in sorted(grouped(cells, "pairs").items()):
            means = mean_ratios(some)
            rows.append([f"{size:,}", *(shown(means.get(name)) for name in names)])
            ours = means.pop("isthmus")
            best = max(means, key=lambda name: means[name])
            goals.append(
                Goal(
                    f"{said(key)}, {size:,} pairs: at or above the best peer",
                    f"{ours:.4f}, {best} {means[best]:.4f}{so_far(some)}",
                    ours >= means[best],
                )
            )
        lines += [f"{said(key)}; {seeds_of(cells)}:", ""]
        lines += [*markdown(["pairs", *names], rows), ""]
    return Part(lines, goals)


def mean_ratios(cells: Sequence[Record]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for cell in cells:
        for name, ratio in cell["result"]["ratio"].items():
            found.setdefault(maker(name), []).append(ratio)
    return {name: float(np.mean(ratios)) for name, ratios in found.items()}


def maker(name: str) -> str:
    """Drop the chosen map from "isthmus (ridge)": it may differ between splits."""
    return name.split(" ", maxsplit=1)[0]


def shown(ratio: float | None) -> str:
    return "refuses" if ratio is None else f"{ratio:.3f}"


def honesty(records: Sequence[Record]) -> Part:
    """Whether reported intervals hold on the rest, their width, and the verdicts."""
    cells = reported(records)
    if not cells:
        return Part(["Only tuning seeds so far."])
    lines = [f"{len(cells):,} of {CELLS} cells; {seeds_of(cells)}.", ""]
    head = ["", "cells", "holds", "width / plain", "reported - measured", "measured", "bridge"]
    lines += [*markdown(head, [honesty_row("all", cells)]), ""]
    for first, keys in (("pairs", ("pairs",)), ("data set", ("dataset", "source", "target"))):
        rows = [honesty_row(said(key), some) for key, some in sorted(grouped(cells, *keys).items())]
        lines += [*markdown([first, *head[1:]], rows), ""]
    return Part(lines, honesty_goals(cells))


def said(key: Sequence[Any]) -> str:
    return f"{key[0]:,}" if len(key) == 1 else "{}, {} to {}".format(*key)


def honesty_row(name: str, cells: Sequence[Record]) -> list[str]:
    reports, plain, measured, bridges = honesty_arrays(cells)
    held = (reports[:, 1] <= measured) & (measured <= reports[:, 2])
    return [
        name,
        f"{len(cells):,}",
        f"{held.mean():.3f}",
        f"{widths(reports) / widths(plain):.2f}",
        f"{np.mean(reports[:, 0] - measured):+.4f}",
        f"{measured.mean():.3f}",
        f"{bridges.sum():,}",
    ]


def honesty_arrays(cells: Sequence[Record]) -> tuple[np.ndarray, ...]:
    results = [cell["result"] for cell in cells]
    return (
        np.array([result["reported"] for result in results]),
        np.array([result["plain"] for result in results]),
        np.array([result["measured"] for result in results]),
        np.array([result["verdict"] in ("bridge", "pre_aligned") for result in results]),
    )


def widths(intervals: np.ndarray) -> float:
    return float(np.mean(intervals[:, 2] - intervals[:, 1]))


def honesty_goals(cells: Sequence[Record]) -> list[Goal]:
    reports, plain, measured, bridges = honesty_arrays(cells)
    held = float(np.mean((reports[:, 1] <= measured) & (measured <= reports[:, 2])))
    wide = widths(reports) / widths(plain)
    wrong = int((bridges & (measured < reports[:, 0] / 2)).sum())
    high = measured >= 0.8
    share = float(bridges[high].mean()) if high.any() else None
    note = "" if len(cells) == CELLS else f" ({len(cells)} of {CELLS} cells so far)"
    return [
        Goal(
            "interval of retention@10 holds the value on the rest in at least 93 % of the cells",
            f"{held:.1%}{note}",
            held >= 0.93,
        ),
        Goal(
            "mean width at most 2 times the plain query bootstrap's",
            f"{wide:.2f} times{note}",
            wide <= 2.0,
        ),
        Goal(
            "never `bridge` where the measured value is under half of the reported one",
            f"{wrong} cells{note}",
            wrong == 0,
        ),
        Goal(
            "`bridge` in at least 80 % of the cells whose measured value is .8 or more",
            "no such cell" if share is None else f"{share:.1%} of {int(high.sum())}{note}",
            None if share is None else share >= 0.8,
        ),
    ]


def lab19(records: Sequence[Record]) -> Part:
    """The statement; the page of its own has the tables."""
    cells = lab19_tables.pooled(records)
    if not cells:
        return Part(["No data set and direction is complete yet."])
    return Part([*lab19_tables.statement(cells, records), "", "Tables: [lab19.md](lab19.md).", ""])


def scope(records: Sequence[Record]) -> Part:
    """Share of rows outside the scope: new rows of the same set, its queries, other sets."""
    cells = [cell for record in records for cell in record["result"]["cells"]]
    rows = []
    for rule, n in dict.fromkeys((cell["rule"], cell["pairs"]) for cell in cells):
        same, asked, others = shares_outside(
            [cell for cell in cells if (cell["rule"], cell["pairs"]) == (rule, n)]
        )
        rows.append(
            [
                rule,
                f"{n:,}",
                f"{np.mean(same):.3f} ({min(same):.3f} to {max(same):.3f})",
                f"{np.mean(asked):.3f}" if asked else "",
                f"{np.mean(others):.3f} ({min(others):.3f})" if others else "",
            ]
        )
    head = ["rule", "pairs", "same set (range)", "its queries", "other sets (least)"]
    return Part([*markdown(head, sorted(rows, key=lambda row: row[0], reverse=True)), ""])


def shares_outside(cells: Sequence[Record]) -> tuple[list[float], list[float], list[float]]:
    same, asked, others = [], [], []
    for cell in cells:
        for name, share in cell["outside"].items():
            if name == cell["home"]:
                same.append(share)
            elif name == f"{cell['home']} queries":
                asked.append(share)
            elif not name.startswith(cell["home"]):
                others.append(share)
    return same, asked, others


def grouped(records: Sequence[Record], *keys: str) -> dict[tuple[Any, ...], list[Record]]:
    """Group the reported records by some of their parameters, in the order in which they come."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in reported(records):
        values = (record["parameters"][key] for key in keys)
        key = tuple(tuple(value) if isinstance(value, list) else value for value in values)
        groups.setdefault(key, []).append(record)
    return groups


def seeds_of(cells: Sequence[Record]) -> str:
    seeds = sorted({cell["parameters"]["seed"] for cell in cells})
    if len(seeds) == 1:
        return f"1 split, seed {seeds[0]}"
    return f"mean of {len(seeds)} splits, seeds {', '.join(map(str, seeds))}"


def so_far(cells: Sequence[Record]) -> str:
    """Say so where splits are missing."""
    splits = len({cell["parameters"]["seed"] for cell in cells})
    return "" if splits == len(REPORTED) else f" ({splits} of {len(REPORTED)} splits so far)"


QUALITY: dict[str, Callable[[Sequence[Record]], Part]] = {
    "query_mapping": query_mapping,
    "honesty": honesty,
    "lab19": lab19,
    "scope": scope,
}
