"""Tables and sentences that several commands print."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from isthmus.cli.output import facts, grid
from isthmus.cli.text import printable
from isthmus.errors import UnknownNameError

if TYPE_CHECKING:
    from rich.table import Table

    from isthmus.bridge import Bridge, Provenance
    from isthmus.evaluate import Report, Value
    from isthmus.link import Iteration
    from isthmus.rankings import Hit, Ranking
    from isthmus.workflows import FoundLinks

__all__ = [
    "about_bridge",
    "about_iterations",
    "about_links",
    "is_retrieval",
    "report_table",
    "say_number",
    "say_value",
    "why_table",
]


LAST = 5
"""Iterations that are shown."""

SPACES_ABREAST, HEAD_WIDTH = 6, 9
"""Columns of similarities in one table, and the width of their heads: 80 columns hold them."""


def say_value(value: Value | None) -> str:
    """Say a value with its interval, where it has one.

    Examples
    --------
    >>> from isthmus.evaluate import Value
    >>> say_value(Value("r2", 0.25, 0.2, 0.3)), say_value(Value("r2", 0.25, *[float("nan")] * 2))
    ('0.250 [0.200, 0.300]', '0.250')
    """
    if value is None or math.isnan(value.mean):
        return "-"
    if value.name == "mse":  # a mean over columns: small where rows have unit length
        return f"{value.mean:.1e}"
    return f"{value.mean:.3f}" if math.isnan(value.low) else str(value)


def say_number(number: float, *, digits: int = 3) -> str:
    """Say a number, and a dash for one that is not known.

    Examples
    --------
    >>> say_number(0.25), say_number(float("nan"))
    ('0.250', '-')
    """
    return "-" if math.isnan(number) else f"{number:.{digits}f}"


def report_table(
    report: Report, *, title: str, names: Iterable[str] | None = None, oracle: bool = False
) -> Table:
    """Make a table of values beside the null map and, when asked, the oracle.

    Preservation comes first, reconstruction last.
    """
    shown = sorted(report.values if names is None else names, key=_place)
    columns = ["measure", "bridge [95 %]", "null map [95 %]"]
    sides: list[Mapping[str, Value]] = [report.values, report.null]
    if oracle:
        columns.append("oracle [95 %]")
        sides.append(report.oracle)
    rows = [[name, *(say_value(side.get(name)) for side in sides)] for name in shown]
    return grid(columns, rows, title=title)


def about_bridge(bridge: Bridge) -> Table:
    """Make a table of what a bridge is and what it may be used for."""
    verdict, provenance = bridge.verdict, bridge.provenance
    needed = (
        ()
        if verdict.pairs_needed is None
        else (("pairs needed", f"about {verdict.pairs_needed:,} or more"),)
    )
    return facts(
        [
            ("from", str(bridge.source)),
            ("to", str(bridge.target)),
            ("verdict", f"{verdict.status}: {verdict.reason}"),
            ("usable for", ", ".join(verdict.usable_for) or "nothing that was measured"),
            *needed,
            ("map", f"{bridge.method}; {verdict.chosen_because}"),
            ("lands in", f"{bridge.lands_in} space"),
            ("pairs", f"{provenance.n_pairs:,} ({provenance.source_kind})"),
            *_about_unpaired(provenance),
            ("hash", bridge.hash[:16]),
        ]
    )


def _about_unpaired(made: Provenance) -> Iterator[tuple[str, str]]:
    """Say how many rows without a pair a map was fitted on, where it was on any."""
    if made.n_unpaired_source or made.n_unpaired_target:
        counts = f"{made.n_unpaired_source:,} source and {made.n_unpaired_target:,} target rows"
        yield ("unpaired", counts)


def about_links(found: FoundLinks) -> Table:
    """Make a table of what was linked and how far it can be believed."""
    told = found.to_dict()
    least, verdict = told["threshold"], told["verdict"]
    asked = {name: value for name, value in told["asked"].items() if value is not None}
    name, value = list(asked.items())[-1]  # precision and coverage stand in for a threshold
    posterior = [value for value in told["posterior"].values() if value is not None]
    return facts(
        [
            ("from", f"{told['source']['rows']:,} rows of {told['source']['space']}"),
            ("to", f"{told['target']['rows']:,} rows of {told['target']['space']}"),
            ("seeds", f"{told['seeds']:,}" + ("" if told["seeds_inside"] else ", other objects")),
            ("method", f"{told['method']}, {told['views']:,} views"),
            (
                "links",
                f"{told['links']:,} of {told['candidates']:,} candidates ({name} {value}"
                + ("" if least is None else f", posterior from {least:.3f}")
                + ")",
            ),
            ("posterior quartiles", " / ".join(f"{one:.3f}" for one in posterior) or "-"),
            ("estimated overlap", _overlap(found)),
            ("verdict", ": ".join([verdict["status"], "; ".join(verdict["reasons"])]).rstrip(": ")),
        ]
    )


def _overlap(found: FoundLinks) -> str:
    shared = found.links.overlap
    if shared is None:
        return "not estimated by this method"
    shares = " and ".join(
        f"{shared / len(side):.0%} of {name}"
        for name, side in (("A", found.source), ("B", found.target))
    )
    return f"{shared:,.0f} objects, {shares}"


def about_iterations(history: Sequence[Iteration]) -> Table:
    """Make a table of the last iterations."""
    columns = ["iteration", "views", "anchors", "candidates", "links", "ratio", "least", "s"]
    rows = [
        [
            f"{one.number} {one.phase}",
            f"{one.views:,}",
            f"{one.anchors:,}",
            f"{one.candidates:,}",
            f"{one.links:,}",
            say_number(one.ratio, digits=2),
            say_number(one.threshold, digits=2),
            f"{one.seconds:.1f}",
        ]
        for one in history[-LAST:]
    ]
    return grid(columns, rows)


def is_retrieval(name: str) -> bool:
    """Tell whether a value rests on judgements, or is the share of one that does.

    Examples
    --------
    >>> [is_retrieval(name) for name in ("nDCG@10", "Recall@10/oracle", "nbr_overlap@10")]
    [True, True, False]
    """
    return _family(name) == "retrieval"


def _family(name: str) -> str | None:
    """Return the family of the measure in a name; what stands after it says of what."""
    from isthmus.evaluate import Measure

    try:
        return Measure.parse(re.split("[ /]", name, maxsplit=1)[0]).definition.family
    except UnknownNameError:
        return None  # retention@10, which the verdict rests on


def _place(name: str) -> tuple[int, str]:
    order = (None, "preservation", "retrieval", "hubness", "consistency", "reconstruction")
    return order.index(_family(name)), name


def why_table(ranking: Ranking, row: int) -> list[Table]:
    """Make tables of what made the scores of one query: similarities and, first, their weights.

    None where nothing was explained, or found. Each holds a few spaces, so that 80 columns suffice.
    """
    from isthmus.rankings import COMMON

    hits = ranking.hits(row)
    if ranking.similarities is None or not hits:
        return []
    names = [*ranking.space_names, *([] if ranking.common is None else [COMMON])]
    tables = []
    for start in range(0, len(names), SPACES_ABREAST):
        shown = names[start : start + SPACES_ABREAST]
        rows = [*_weight_rows(hits, shown), *([str(hit.rank), *_why(hit, shown)] for hit in hits)]
        heads = [_narrow(name) for name in shown]
        tables.append(grid(["rank", *heads], rows, title="similarities"))
    return tables


def _weight_rows(hits: Sequence[Hit], names: Sequence[str]) -> list[list[str]]:
    """Return what each similarity counts; for which stores, where that differs."""
    stores: dict[tuple[str, ...], list[str]] = {}
    for hit in hits:
        if hit.weights:
            values = tuple(say_number(hit.weights.get(name, 0.0)) for name in names)
            if hit.store not in stores.setdefault(values, []):
                stores[values].append(hit.store)
    if len(stores) == 1:
        return [["weight", *next(iter(stores))]]
    return [[f"weight in {', '.join(held)}", *values] for values, held in stores.items()]


def _why(hit: Hit, names: Sequence[str]) -> list[str]:
    from isthmus.rankings import COMMON

    values = {**hit.similarities, **({} if hit.common is None else {COMMON: hit.common})}
    return [say_number(values[name], digits=4) for name in names]


def _narrow(name: str) -> str:
    """Return the name of a model without its maker, on lines that are not too wide."""
    return "\n".join(textwrap.wrap(printable(name.rsplit("/", 1)[-1]), HEAD_WIDTH))
