"""Tables of speed: every number is a ratio or a median within one run, on the machine it names."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from table_format import Goal, Part, Record, markdown

ROWS = 1_000_000


def apply_speed(records: Sequence[Record]) -> Part:
    """Rate beside the bare loop, and memory."""
    rows = [
        [
            f"{record['rows']:,}",
            record["method"],
            record["dtype"],
            f"{record['ratio']:.2f}",
            f"{record['peak_mb']:,.0f}",
            str(record["machine"]["cores"]),
        ]
        for record in sorted(records, key=lambda record: record["rows"])
    ]
    head = ["rows", "map", "stored as", "rate / bare loop", "peak MB", "cores"]
    goals = [
        goal
        for record in records
        if record["rows"] >= ROWS
        for goal in (
            Goal(
                f"{record['rows']:,} x 384 to 768, {record['method']}, {record['dtype']}: at least "
                "80 % of the bare loop's rate",
                f"{record['ratio']:.0%}",
                record["ratio"] >= 0.8,
            ),
            Goal(
                "the same: memory under 500 MB",
                f"{record['peak_mb']:,.0f} MB",
                record["peak_mb"] < 500,
            ),
        )
    ]
    return Part([*markdown(head, rows), ""], goals or [missing(f"apply on {ROWS:,} rows")])


def store_search(records: Sequence[Record]) -> Part:
    """SQLite store beside faiss in memory."""
    lines: list[str] = []
    goals = []
    for record in records:
        given, result = record["parameters"], record["result"]
        lines += [f"{given['rows']:,} rows, {given['queries']:,} queries, {threads(given)}:", ""]
        rows = [[name, f"{value:.2f}"] for name, value in result["ratios"].items()]
        lines += [*markdown(["ratio of medians", ""], rows), ""]
        times = {**result["once"], **medians_ms(result["seconds"])}
        rows = [[name, f"{value:,.2f}"] for name, value in times.items()]
        lines += [*markdown(["time", ""], rows), ""]
        name = "minilm-l6: store over faiss, 1,000 queries"
        ratio = result["ratios"][name]
        goals.append(
            Goal(
                f"1,000 queries at once over 10,000 x 384 in SQLite, {threads(given)}: at most 2 "
                "times a flat faiss search in memory",
                f"{ratio:.2f} times",
                ratio <= 2.0,
            )
        )
    return Part(lines, goals)


def threads(given: Mapping[str, Any]) -> str:
    count = given["faiss threads"]
    return f"{count} thread{'' if count == 1 else 's'}"


def medians_ms(seconds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {f"{name}, ms": statistics.median(times) * 1e3 for name, times in seconds.items()}


REMEMBERED = {"first": "nothing", "new": "some", "again": "all"}


def federated_overhead(records: Sequence[Record]) -> Part:
    """Federated search over the two searches alone, with nothing, some, all rows remembered."""
    lines: list[str] = []
    goals = []
    for record in records:
        given, rows = record["parameters"], []
        threads = f"{given['threads']} thread{'' if given['threads'] == '1' else 's'}"
        for cell in record["result"]["cells"]:
            alone = medians(cell, "alone")
            kinds = {
                kind: {clock: seconds / alone[clock] for clock, seconds in found.items()}
                for kind, found in ((kind, medians(cell, kind)) for kind in REMEMBERED)
            }
            count = cell["queries at a time"]
            shown = [f"{one['wall']:.2f} ({one['processor']:.2f})" for one in kinds.values()]
            rows.append(
                [cell["layout"], f"{count:,}", f"{alone['wall'] / cell['searches']:.4f}", *shown]
            )
            said = [f"{REMEMBERED[kind]} {one['wall']:.2f}" for kind, one in kinds.items()]
            goals.append(
                Goal(
                    f"{count:,} at a time, {cell['layout']}, {threads}: at most 1.3 x the two "
                    "searches, whatever is remembered",
                    ", ".join(said),
                    all(one["wall"] <= 1.3 for one in kinds.values()),
                )
            )
        head = ["", "queries", "two searches, s", *REMEMBERED.values()]
        lines += [f"{given['dataset']}, maps {given['method']}, {threads}:", ""]
        lines += [*markdown(head, rows), ""]
    return Part(lines, goals)


def medians(cell: Mapping[str, Any], kind: str) -> dict[str, float]:
    """Return the median seconds of a kind of search, by clock."""
    return {clock: statistics.median(each) for clock, each in cell["seconds"][kind].items()}


def fit_speed(records: Sequence[Record]) -> Part:
    """Time of fitting over that of the reference calls, and memory."""
    lines: list[str] = []
    goals = []
    for record in records:
        times, memory = record["result"]["times"], record["result"]["memory_mb"]
        for clock, said in CLOCKS.items():
            names = list(times[0][clock])
            rows = [
                [size_of(one["size"]), *(f"{one[clock][name]:.2f}" for name in names)]
                for one in times
            ]
            lines += [f"Ratios, {said}:", "", *markdown(["pairs", *names], rows), ""]
            worst = {
                name: max(times, key=lambda one, clock=clock, name=name: one[clock][name])
                for name in names
            }
            slow = max(names, key=lambda name: worst[name][clock][name])
            most = worst[slow][clock][slow]
            where = f"{slow}, {size_of(worst[slow]['size'])}"
            asked = f"every map at most 1.5 times the reference calls, {said}"
            goals.append(Goal(asked, f"at most {most:.2f} times ({where})", most <= 1.5))
        if memory:
            size = size_of(record["parameters"]["memory size"])
            peaks = {name: each["peak"] for name, each in memory.items()}
            rows = [[name, f"{peak:,.0f}"] for name, peak in peaks.items()]
            lines += [*markdown([f"peak memory, {size}", "MB"], rows), ""]
            most_memory = max(peaks.values())
            goals.append(
                Goal(f"{size}: under 1 GB", f"{most_memory:,.0f} MB at most", most_memory < 1000)
            )
        else:
            goals.append(missing("20,000 x 768: under 1 GB"))
    return Part(lines, goals)


CLOCKS = {
    "ratios_one_thread": "processor time of one thread",
    "ratios_all_threads": "clock time of all threads",
}


def size_of(size: Sequence[int]) -> str:
    rows, source, target = size
    return f"{rows:,} x {source} to {target}"


def anything(records: Sequence[Record]) -> Part:
    """List every number of a result, for benchmarks without a table of their own."""
    lines: list[str] = []
    for record in records:
        given = record.get("parameters", {})
        if given:
            lines += [", ".join(f"{name} {value}" for name, value in given.items()) + ":", ""]
        shown = record.get("result", record)
        rows = [[name, f"{value:,.4g}"] for name, value in numbers(shown)]
        lines += [*markdown(["", ""], rows), ""]
    return Part(lines)


def numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Walk through nested results; of a list of times the median is shown."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from numbers(each, f"{name}, {key}" if name else str(key))
    elif isinstance(value, list):
        if value and all(isinstance(each, int | float) for each in value):
            yield f"{name} (median of {len(value)})", float(statistics.median(value))
        else:
            for place, each in enumerate(value):
                yield from numbers(each, f"{name}, {place}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value)


def missing(what: str) -> Goal:
    return Goal(what, "nothing yet", None)


SPEED: dict[str, Callable[[Sequence[Record]], Part]] = {
    "apply_speed": apply_speed,
    "store_search": store_search,
    "federated_overhead": federated_overhead,
    "fit_speed": fit_speed,
    "neighbors_speed": anything,
}
