"""The tables of what every store can do, made from what each declares.

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
    """Return the tables as Markdown: one row per registered store, grouped by what they tell.

    Examples
    --------
    >>> support_table().splitlines()[0]
    '### What it was tested on, and how it scores'
    """
    declared = {scheme: store_class(scheme).capabilities for scheme in schemes()}
    return "\n\n".join(
        "\n".join(
            [
                f"### {title}",
                "",
                "| store | " + " | ".join(columns) + " |",
                "|---" * (1 + len(columns)) + "|",
                *(
                    f"| `{scheme}` | "
                    + " | ".join(_cell(say(one)) for say in columns.values())
                    + " |"
                    for scheme, one in declared.items()
                ),
            ]
        )
        for title, columns in _TABLES.items()
    )


def write_table(path: Path) -> None:
    """Put the tables between the marks of a page.

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


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _yes(name: str) -> Callable[[Capabilities], str]:
    return lambda one: "yes" if getattr(one, name) else "no"


def _native(metric: Metric) -> Callable[[Capabilities], str]:
    return lambda one: one.native_scores.get(metric, "not searched by")


def _limit(name: str) -> Callable[[Capabilities], str]:
    def say(one: Capabilities) -> str:
        limit = getattr(one, name)
        return "-" if limit is None else f"{limit:,}"

    return say


def _read_back(one: Capabilities) -> str:
    return "bit for bit" if one.read_back_error == 0 else f"to {one.read_back_error:.0e}"


def _size(one: Capabilities) -> str:
    return "all of a call" if one.max_batch is None else f"{one.max_batch:,}"


_TABLES: dict[str, dict[str, Callable[[Capabilities], str]]] = {
    "What it was tested on, and how it scores": {
        "tested on": lambda one: one.proof,
        "native score for `cosine`": _native("cosine"),
        "for `dot`": _native("dot"),
        "for `l2`": _native("l2"),
        "search misses nothing": _yes("exact_search"),
        "equal scores": lambda one: "by insertion" if one.ties_by_insertion else "in any order",
    },
    "What it keeps": {
        "vectors": lambda one: "as given" if one.stores_raw else "normalised",
        "stored as": lambda one: one.storage,
        "float32 reads back": _read_back,
        "metadata and filters": _yes("filters"),
        "notes of jobs": lambda one: one.notes or "none",
        "second vector in place": _yes("several_vectors"),
        "bytes of an id": _limit("max_id_bytes"),
        "of metadata": _limit("max_metadata_bytes"),
        "collection names": lambda one: one.names.words,
    },
    "How it works": {
        "scan goes by": lambda one: one.scan_order if one.scan else "no scan",
        "rows in one request": _size,
        "written as a whole": _yes("atomic"),
        "name moves by": lambda one: one.switch or "two steps",
        "lasts": _yes("persistent"),
        "who may use it at once": lambda one: one.concurrency,
    },
}

if __name__ == "__main__":
    write_table(Path(sys.argv[1]))
