"""Tables and sentences that several commands print."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from isthmus.cli.output import facts, grid
from isthmus.errors import UnknownNameError

if TYPE_CHECKING:
    from rich.table import Table

    from isthmus.bridge import Bridge
    from isthmus.evaluate import Report, Value

__all__ = ["about_bridge", "is_retrieval", "report_table", "say_number", "say_value"]


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
            ("hash", bridge.hash[:16]),
        ]
    )


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
