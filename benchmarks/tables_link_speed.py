"""Tables of how long linking takes and what memory it needs."""

from __future__ import annotations

from collections.abc import Sequence

from table_format import Goal, Part, Record, markdown

SECONDS, AIM, MEGABYTES = 45.0, 20.0, 1000.0
VIEW_MS = 300.0
GROWN_ROWS, GROWN_SECONDS = 20_000, 360.0


def speed(records: Sequence[Record]) -> Part:
    """Whole methods with their growth, then one view of `geh`."""
    views = [record for record in records if record["parameters"].get("part") == "view"]
    runs = [
        {**record["parameters"], **cell}
        for record in records
        if record not in views
        for cell in record["result"]["cells"]
    ]
    runs.sort(key=lambda run: (run["method"], run["rows"], run["dims"], run["dataset"]))
    rows = [
        [
            f"`{run['method']}`, {run['dataset']} {run['source']} / {run['target']}",
            size(run),
            f"{run['overlap']:g}",
            str(run["threads"]),
            f"{run['seconds']:.1f}",
            f"{run['peak_mb']:,.0f}",
            f"{run['own']['f1']:.3f}",
        ]
        for run in runs
    ]
    lines = markdown(["", "vectors", "overlap", "threads", "s", "peak MB", "F1"], rows)
    lines += ["", *view_table(views), ""]
    return Part(lines, [*method_goals(runs), *view_goals(views), growth_goal(runs)])


def size(run: Record) -> str:
    return " to ".join(f"{n:,} x {dim}" for n, dim in zip(run["rows"], run["dims"], strict=True))


def view_table(views: Sequence[Record]) -> list[str]:
    rows = []
    for record in views:
        found = record["result"]
        for threads, name in (("one thread", "ms_one_thread"), ("all", "ms_all_threads")):
            times = found[name]
            rows.append(
                [
                    f"{size(found)}, {found['anchors']} anchors, {threads}",
                    f"{times['view']:.0f}",
                    f"{times['product']:.0f}",
                    f"{times['numpy top 50']:.0f}",
                    f"{times['view'] / times['numpy top 50']:.2f}",
                ]
            )
    head = ["one view of `geh`, ms", "view", "bare product", "numpy top 50", "view / numpy"]
    return markdown(head, rows)


def method_goals(runs: Sequence[Record]) -> list[Goal]:
    small = [run for run in runs if run["method"] == "auto" and max(run["rows"]) < GROWN_ROWS / 2]
    asked = "`auto`, 3,406 x 3,406 vectors, 15 seeds"
    if not small:
        return [
            Goal(f"{asked}: under 45 s (aim 20)", "not measured yet", None),
            Goal(f"{asked}: under 1 GB", "not measured yet", None),
        ]
    slow = max(small, key=lambda run: run["seconds"])
    large = max(run["peak_mb"] for run in small)
    above = "" if slow["seconds"] <= AIM else ", above the aim"
    return [
        Goal(
            f"{asked}: under 45 s (aim 20)",
            f"at most {slow['seconds']:.1f} s ({size(slow)}, {slow['threads']} threads){above}",
            slow["seconds"] < SECONDS,
        ),
        Goal(f"{asked}: under 1 GB", f"at most {large:,.0f} MB", large < MEGABYTES),
    ]


def view_goals(views: Sequence[Record]) -> list[Goal]:
    asked = "`geh`: at most 300 ms per view at 100 anchors"
    if not views:
        return [Goal(asked, "not measured yet", None)]
    one = max(record["result"]["ms_one_thread"]["view"] for record in views)
    every = max(record["result"]["ms_all_threads"]["view"] for record in views)
    return [Goal(asked, f"{every:.0f} ms, {one:.0f} ms on one thread", every <= VIEW_MS)]


def growth_goal(runs: Sequence[Record]) -> Goal:
    asked = "`auto`, 20,000 vectors a side: under 6 minutes"
    grown = [run for run in runs if run["method"] == "auto" and min(run["rows"]) >= GROWN_ROWS]
    if not grown:
        return Goal(asked, "not measured yet", None)
    times = [f"{run['seconds']:.0f} s (overlap {run['overlap']:g})" for run in grown]
    return Goal(asked, ", ".join(times), all(run["seconds"] < GROWN_SECONDS for run in grown))
