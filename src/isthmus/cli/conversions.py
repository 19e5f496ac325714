"""What ``isthmus convert`` says of plans, runs, comparisons, states and cutovers."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.cli.tables import say_value

if TYPE_CHECKING:
    from isthmus.workflows import (
        ConversionPlan,
        ConversionStatus,
        Converted,
        Switch,
        Verification,
    )

__all__ = ["done_lines", "plan_rows", "status_rows", "verified_rows", "way_back"]


def plan_rows(plan: ConversionPlan) -> list[tuple[str, str]]:
    """Return the facts of a plan."""
    total = (
        f"{plan.seconds:,.0f} s, at the rate of the earlier run"
        if plan.seconds is not None
        else "not known: a dry run writes nothing, so it cannot say how fast DST writes"
    )
    texts = f"about {_size(plan.text_bytes)} of texts"
    if plan.in_place:
        texts = "ids and metadata stay as they are"
    rows = [
        ("from", f"{plan.source}, {plan.source_space}"),
        ("to", f"{plan.target}, {plan.space}{'' if plan.exists else '; it will be made'}"),
        ("rows", f"{plan.rows:,}" + (f", {plan.done:,} written" if plan.done else "")),
        ("size", f"{_size(plan.vector_bytes)} of vectors, {texts}"),
        ("reading", f"{plan.read_seconds:,.1f} s, by {plan.sampled:,} rows"),
        ("mapping", f"{plan.map_seconds:,.1f} s, while rows are written"),
        ("in all", total),
    ]
    if plan.status is not None:
        rows += [
            ("verdict", f"{plan.status}: {plan.reason}"),
            ("retention@10", say_value(plan.retention)),
        ]
    return rows


def _size(count: int) -> str:
    """Say a number of bytes with three digits or so."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count} bytes"


def done_lines(done: Converted) -> list[str]:
    """Say what a run wrote, and what its second pass found."""
    lines = []
    if done.copied:
        lines.append(f"{done.copied:,} rows written, {done.seconds:.1f} s in all: {done.target}")
    gone = "removed" if done.removed_too else "there and not in the source (--remove removes them)"
    found = [
        f"{count:,} {what}"
        for count, what in (
            (done.added, "added"),
            (done.changed, "changed"),
            (done.removed, gone),
        )
        if count
    ]
    if found:
        lines.append(f"second pass: {', '.join(found)}; run it again until nothing is")
    elif done.settled:
        lines.append(f"second pass: both sides hold the same {done.rows:,} rows")
    else:
        lines.append(
            f"second pass: {done.rows:,} rows, the source has {done.source_rows:,} and changes; "
            "run it again until both are the same"
        )
    return lines


def verified_rows(found: Verification) -> list[tuple[str, str]]:
    """Return the facts of a comparison."""
    return [
        ("rows of SRC", f"{found.source_rows:,}"),
        ("rows of DST", f"{found.target_rows:,}"),
        ("compared", f"{found.checked:,}"),
        ("missing", f"{found.missing:,}"),
        ("differing", f"{found.differing:,}"),
        ("searched for", f"{found.queries:,}"),
        ("same neighbours, SRC and DST", say_value(found.overlap)),
        ("  by the null map", say_value(found.null)),
        ("retention@10 of the bridge", say_value(found.retention)),
    ]


def status_rows(told: ConversionStatus) -> list[tuple[str, str]]:
    """Return how far a conversion is."""
    rows = [("target", told.target), ("rows", f"{told.rows:,}")]
    if not told.exists:
        begun = "not begun: no collection of that name (since a cutover it may have another)"
        rows.append(("conversion", begun))
    elif told.state is None:
        rows.append(("conversion", "not begun: none wrote here"))
    else:
        state = told.state
        at = {
            "copy": f"first pass, {state.rows:,} rows written",
            "compare": f"second pass, {state.rows:,} rows compared",
            "done": "done; the same command again compares both sides once more",
        }
        found = f"{state.added:,} added, {state.changed:,} changed, {state.removed:,} removed"
        rows += [
            ("source", state.source),
            ("bridge", state.bridge[:16] or "none, a copy"),
            ("stage", at.get(state.stage, state.stage)),
            ("second pass", found if state.passes or state.stage == "compare" else "not yet"),
        ]
    rows.append(("name", told.switched or "none moved to it"))
    return rows


def way_back(done: Switch, checkpoint: Path | None) -> str:
    """Return the command that undoes a cutover, ready for a shell."""
    if not (done.before or done.renames):
        return "remove the alias with the database's own tools; it led nowhere before"
    words = ["isthmus", "convert", "rollback", done.url]
    words += [] if checkpoint is None else ["--checkpoint", str(checkpoint)]
    return shlex.join(words)
