"""``isthmus store``: fill and look at stores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.options import Json, Quiet, Seed
from isthmus.cli.output import Output, facts

__all__ = ["store_add", "store_info"]

BATCH_ROWS = 10_000

Url = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help="For example sqlite:///dir/file.db?collection=docs (four slashes: absolute path).",
        show_default=False,
    ),
]


def store_add(
    url: Url,
    vectors: Annotated[
        Path, typer.Argument(metavar="F", help="Vectors to write.", show_default=False)
    ],
    *,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Write vectors to a collection.

    It is created when it is not there. Rows with ids that are there already are replaced. Batches
    are committed one by one; run it again after an interruption. Nothing in it is random: --seed
    changes nothing.
    """
    del seed
    from isthmus.stores import open_store
    from isthmus.workflows._opening import open_vectors

    output = Output("store add", as_json=as_json, quiet=quiet)
    opened = open_vectors(vectors)
    with open_store(url, space=opened.space) as store:
        before = store.count()
        batches = opened.iter_batches(BATCH_ROWS)
        for batch in output.track(batches, "writing", -(-len(opened) // BATCH_ROWS)):
            store.upsert(batch)
        after = store.count()
        shown = store.url
    output.say(f"{len(opened):,} rows written, {after - before:,} of them new: {shown}")
    output.done({"url": shown, "written": len(opened), "new": after - before, "count": after})


def store_info(url: Url, *, as_json: Json = False, quiet: Quiet = False, seed: Seed = 0) -> None:
    """Show a collection and what its store can do.

    Nothing in it is random: --seed changes nothing.
    """
    del seed
    from isthmus.stores import open_store

    output = Output("store info", as_json=as_json, quiet=quiet)
    with open_store(url) as store:
        told, space = store.info(), store.space
    able = told["capabilities"]
    output.show(
        facts(
            [
                ("url", str(told["url"])),
                ("rows", f"{told['count']:,}"),
                ("space", str(space)),
                ("fingerprint", str(told["fingerprint"])[:16]),
                ("metrics", ", ".join(able["metrics"])),
                ("exact search", "yes" if able["exact_search"] else "no"),
                ("reads back exactly", "yes" if able["exact_read_back"] else "no"),
                ("concurrency", str(able["concurrency"])),
            ]
        )
    )
    output.done(told)
