"""Table of the stores: what the suite gave in the last run, on what, and how fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from table_format import Goal, Part, Record, markdown

__all__ = ["STORES"]


def stores(records: Sequence[Record]) -> Part:
    """One row per store."""
    rows, goals = [], []
    for record in sorted(records, key=lambda one: str(one["parameters"]["scheme"])):
        scheme, result = record["parameters"]["scheme"], record["result"]
        error = result["read_back_error"]
        passed = f"{result['passed']} of {result['checks']}"
        rows.append(
            [
                f"`{scheme}`",
                result["on"],
                passed,
                f"{result['recall@10']:.3f}",
                "bit for bit" if not error else f"to {error:.0e}",
                *(_rate(result, name) for name in ("write", "scan", "one", "batch")),
            ]
        )
        kept = result["read_back_error"] <= result["declared_error"]
        goals.append(
            Goal(
                f"`{scheme}`: the whole suite, and read-back within what is declared",
                f"{passed}, {result['read_back_error']:.0e} of {result['declared_error']:.0e}",
                not result["failed"] and kept,
            )
        )
    head = ["store", "on", "checks passed", "recall@10", "reads back", "rows written / s"]
    head += ["rows scanned / s", "searches / s, one by one", "in a batch"]
    return Part([*markdown(head, rows), ""], goals)


def _rate(result: Mapping[str, Mapping[str, float]], name: str) -> str:
    if "rates" not in result:
        return "-"
    return f"{result['rates'][name]:,.0f} ({result['ratios'][name]:.2g} x SQLite)"


STORES: dict[str, Callable[[Sequence[Record]], Part]] = {"stores": stores}
