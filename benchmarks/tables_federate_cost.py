"""Tables of what federation costs: parts of a query, growth, construction, training."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from table_format import Goal, Part, Record, markdown

PARTS = ("search", "map", "fetch", "rank")
STATES = ("first", "new", "again", "agg")
HOUR = 3600.0
MOST_SHARE, LEAST_RATE = 0.1, 0.6


def cost(records: Sequence[Record]) -> Part:
    """Processor time by part, powers of growth, and hours to build."""
    lines, goals = [], []
    for record in records:
        given, result = record["parameters"], record["result"]
        lines += [
            f"Map {given['map']}, {given['threads']} thread(s) per library, batches of "
            f"{given['batch']} queries, stores of {given['rows']:,} vectors; medians of "
            f"{given['turns']} turns. Processor ms per batch; by the clock, queries per second. "
            "Encoding is excluded.",
            "",
            *part_table(result["cells"], given["batch"]),
            "",
            "Power of N and of K that each part grows with (first search):",
            "",
            *growth_table(result["growth"]),
            "",
            "Hours to build, reckoned with this machine's rates for 20,000 pairs per map and an "
            "index of exact search (SQLite); embedding is assumed to take "
            f"{1e3 * result['rates']['embed']:g} ms per document (figure 6):",
            "",
            *construction_table(result["reckoned"]),
            "",
            "Counts and growth of the methods (table 2): `score` O(N) maps to train; per query one "
            "encoder, N searches, O(N) mapped vectors per space and O(N²) similarities. `agg` N "
            "encoders and N searches. `mig` O(N |D|) to build, one encoder and one search.",
            "",
        ]
        goals += cost_goals(result["cells"])
    return Part(lines, goals)


def part_table(cells: Sequence[Mapping[str, Any]], batch: int) -> list[str]:
    rows = [
        [
            f"{cell['layout']}, N = {cell['N']}, K = {cell['K']}, {state}",
            *(f"{1e3 * cell[state][part]:.1f}" for part in PARTS),
            f"{cell[state]['share']:.2f}",
            f"{batch / cell[state]['wall']:,.0f}",
        ]
        for cell in cells
        for state in STATES
    ]
    return markdown(["", *PARTS, "(map + rank) / search", "queries per s"], rows)


def growth_table(growth: Mapping[str, Mapping[str, float]]) -> list[str]:
    rows = [[name, *(f"{powers[part]:.2f}" for part in PARTS)] for name, powers in growth.items()]
    return markdown(["", *PARTS], rows)


def construction_table(reckoned: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        [
            f"{one['size']}, N = {one['N']}, {one['method']}",
            *(
                f"{one[part] / HOUR:,.2f}"
                for part in ("embedding", "training", "converting", "indexing")
            ),
        ]
        for one in reckoned
        if one["method"] in ("score", "da", "ec", "mig") and one["N"] in (2, 6)
    ]
    return markdown(["", "embedding", "training", "converting", "indexing"], rows)


def cost_goals(cells: Sequence[Mapping[str, Any]]) -> list[Goal]:
    return [
        Goal(
            f"{cell['layout']}, N = 6, K = 10, batch of 100: mapping and ranking under 10 % of the "
            "search time",
            ", ".join(f"{state} {cell[state]['share']:.0%}" for state in STATES[:3]),
            cell["first"]["share"] < MOST_SHARE,
        )
        for cell in cells
        if (cell["N"], cell["K"]) == (6, 10)
    ]


def training(records: Sequence[Record]) -> Part:
    """Seconds, quality and the rate of products, per fit."""
    rows, goals = [], []
    for record in records:
        given, fits = record["parameters"], record["result"]["fits"]
        kept = [name for name in fits[0] if name.startswith("neighbours kept")]
        what = f"{given['pairs']:,} pairs, {given['dims'][0]} to {given['dims'][1]}"
        rows += [
            [
                f"`{given['map']}`, {what}, {fit['about']}", f"{fit['seconds']:.1f}",
                f"{fit['training seconds']:.1f}", f"{fit['gflops']:.1f}",
                f"{fit['bare gflops']:.1f}", f"{fit['share']:.2f}",
                *(f"{fit[name]:.3f}" for name in kept),
            ]
            for fit in fits
        ]  # fmt: skip
        for name, one in record["result"]["closed forms"].items():
            values = [f"{one[each]:.3f}" for each in kept]
            rows.append([f"`{name}`, {what}", f"{one['seconds']:.1f}", "", "", "", "", *values])
        share = statistics.median(fit["share"] for fit in fits)
        seconds = statistics.median(fit["seconds"] for fit in fits)
        goals.append(
            Goal(
                f"training {what} on {given['threads']} threads: at least 60 % of the bare "
                "products' rate",
                f"{share:.0%}, {seconds:.0f} s (median of {len(fits)})",
                share >= LEAST_RATE,
            )
        )
    head = ["", "s", "training s", "GFLOP/s", "bare GFLOP/s", "share"]
    return Part([*markdown([*head, *(kept if records else [])], rows), ""], goals)
