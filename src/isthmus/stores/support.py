"""The table of what every store can do, made from what each declares.

``python -m isthmus.stores.support docs/stores.md`` writes it into the page, between its marks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from isthmus._files import atomic_path
from isthmus._types import Metric
from isthmus.errors import CorruptFileError
from isthmus.stores.base import Capabilities
from isthmus.stores.registry import schemes, store_class

__all__ = ["support_table", "write_table"]

START, END = "<!-- support table: start -->", "<!-- support table: end -->"


def support_table() -> str:
    """Return the table as Markdown: one row per property, one column per registered store.

    Examples
    --------
    >>> support_table().splitlines()[0]
    '| | memory | sqlite |'
    """
    declared = [store_class(scheme).capabilities for scheme in schemes()]
    lines = [
        "| | " + " | ".join(schemes()) + " |",
        "|---" * (1 + len(declared)) + "|",
        *(
            f"| {name} | " + " | ".join(say(one) for one in declared) + " |"
            for name, say in _ROWS.items()
        ),
    ]
    return "\n".join(lines)


def write_table(path: Path) -> None:
    """Put the table between the marks of a page.

    Raises
    ------
    CorruptFileError
        The page has no marks.
    """
    text = path.read_text(encoding="utf-8")
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise CorruptFileError(
            expected=f"{START} and {END} in {path.name!r}", got="no such marks", do="add them"
        )
    page = f"{before}{START}\n{support_table()}\n{END}{after}"
    with atomic_path(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _yes(name: str) -> Callable[[Capabilities], str]:
    return lambda one: "yes" if getattr(one, name) else "no"


def _native(metric: Metric) -> Callable[[Capabilities], str]:
    def say(one: Capabilities) -> str:
        if metric not in one.metrics:
            return "not searched by"
        return "higher is better" if one.higher_is_better[metric] else "lower is better"

    return say


_ROWS: dict[str, Callable[[Capabilities], str]] = {
    "native score for `cosine`": _native("cosine"),
    "native score for `dot`": _native("dot"),
    "native score for `l2`": _native("l2"),
    "keeps vectors": lambda one: "as given" if one.stores_raw else "normalised",
    "float32 reads back bit for bit": _yes("exact_read_back"),
    "search is exact, ties by insertion": _yes("exact_search"),
    "metadata, and filters by them (`where`)": _yes("filters"),
    "scan that resumes from a cursor": _yes("scan"),
    "notes that commit with a batch": _yes("notes"),
    "lasts longer than the object": _yes("persistent"),
    "who may use it at once": lambda one: one.concurrency,
    "rows that commit together": lambda one: (
        "all of a call" if one.max_batch is None else f"{one.max_batch:,}"
    ),
}

if __name__ == "__main__":
    write_table(Path(sys.argv[1]))
