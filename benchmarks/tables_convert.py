"""Tables of conversions: rate beside a bulk copy, memory, search half-way."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from table_format import Goal, Part, Record, markdown

BARE = 0.8
GROWTH = 1.2
ADVISED = "one_directional"


def convert(records: Sequence[Record]) -> Part:
    """All three studies, each where it was measured."""
    by: dict[str, list[Record]] = {"speed": [], "memory": [], "halfway": []}
    for record in records:
        by[record["parameters"]["what"]].append(record)
    parts = [speed(by["speed"]), memory(by["memory"]), halfway(by["halfway"])]
    return Part(
        [line for part in parts for line in part.lines],
        [goal for part in parts for goal in part.goals],
    )


def speed(records: Sequence[Record]) -> Part:
    """Rate over that of scan and upsert alone."""
    rows, goals = [], []
    for record in records:
        given, result = record["parameters"], record["result"]
        rates = [
            f"{given['rows'] / statistics.median(result['seconds'][name]):,.0f}"
            for name in ("bulk_copy", "conversion")
        ]
        ratios = [f"{result[name]:.2f}" for name in ("ratio", "processor_ratio")]
        rows.append([given["store"], given["method"], *rates, *ratios])
        goals.append(
            Goal(
                f"{given['store']}, {given['rows']:,} x 384 to 768, {given['method']}: at least "
                "80 % of the store's own bulk copy, by the clock (by the processor)",
                f"{result['ratio']:.0%} ({result['processor_ratio']:.0%})",
                result["ratio"] >= BARE,
            )
        )
    head = ["store", "map", "copy, rows/s", "convert, rows/s", "clock", "processor"]
    if not rows:
        asked = "at least 80 % of the store's own bulk copy"
        return Part(["The rate was not measured yet.", ""], [Goal(asked, "not measured yet", None)])
    return Part([*markdown(head, rows), ""], goals)


def memory(records: Sequence[Record]) -> Part:
    """Peaks of whole processes."""
    lines: list[str] = []
    goals = []
    for record in records:
        result: Mapping[str, Any] = record["result"]
        peaks = result["peak_mb"]
        rows = [["nothing, modules loaded", f"{result['idle_mb']:,.0f}"]]
        rows += [[f"{int(rows):,} rows", f"{peak:,.0f}"] for rows, peak in peaks.items()]
        lines += [*markdown(["SQLite, 384 to 768", "peak MB"], rows), ""]
        few, many = (peaks[key] for key in sorted(peaks, key=int))
        goals.append(
            Goal(
                "memory bounded by the batch: ten times the rows take at most 1.2 times the peak",
                f"{many / few:.2f}",
                many <= GROWTH * few,
            )
        )
    return Part(lines, goals)


def halfway(records: Sequence[Record]) -> Part:
    """nDCG@10 of a federation over both stores, by the share that is converted."""
    if not records:
        return Part([], [])
    names = list(records[0]["result"])
    shares = list(records[0]["result"][names[0]])
    rows = []
    means: dict[str, list[float]] = {}
    for name in names:
        means[name] = [
            statistics.mean(record["result"][name][share] for record in records) for share in shares
        ]
        rows.append([name, *(f"{mean:.3f}" for mean in means[name])])
    head = ["nDCG@10, mean of seeds", *(f"{float(share):.0%} converted" for share in shares)]
    goals = [
        Goal(
            f"half-migrated search ({ADVISED}) is no worse than the worse of before and after, "
            "within .01",
            f"{min(found):.3f} beside {min(found[0], found[-1]):.3f}",
            min(found) >= min(found[0], found[-1]) - 0.01,
        )
        for found in [means[ADVISED]]
    ]
    return Part([*markdown(head, rows), ""], goals)


CONVERTING: Mapping[str, Callable[[Sequence[Record]], Part]] = {"convert": convert}
