"""``isthmus search``: one query over several stores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isthmus.cli.options import Json, Quiet, Seed
from isthmus.cli.output import Output, grid
from isthmus.cli.tables import say_number

if TYPE_CHECKING:
    from rich.table import Table

    from isthmus.rankings import Ranking

__all__ = ["search"]

SHOWN_QUERIES = 3


def search(
    federation: Annotated[
        Path, typer.Argument(metavar="FEDERATION.toml", help="Its file.", show_default=False)
    ],
    *,
    query_vectors: Annotated[
        Path,
        typer.Option(
            "--query-vectors", metavar="F", help="Queries in the hub's space.", show_default=False
        ),
    ],
    k: Annotated[int, typer.Option("--k", metavar="K", help="Answers per query.")] = 10,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="F",
            help="File to write: .trec, .run, .jsonl or .csv. Default: show the first answers.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Search several stores as one.

    Queries are in the space of the federation's hub; bridges carry them to the other stores and the
    answers back. Without --out, --json holds all answers. Nothing in it is random: --seed changes
    nothing.
    """
    del seed
    import time

    from isthmus._files import check_file_writable
    from isthmus.rankings import check_run_path, plain
    from isthmus.workflows import search as run_search
    from isthmus.workflows._opening import open_vectors

    output = Output("search", as_json=as_json, quiet=quiet)
    if out is not None:
        check_run_path(out)
        check_file_writable(out)
    queries = open_vectors(query_vectors)
    start = time.perf_counter()
    ranking = run_search(federation, queries, k=k, track=output.track)
    seconds = time.perf_counter() - start
    if out is None:
        output.show(*(_answers(ranking, row) for row in range(min(SHOWN_QUERIES, len(ranking)))))
        if len(ranking) > SHOWN_QUERIES:
            output.say(f"{len(ranking) - SHOWN_QUERIES:,} more queries: write them with --out.")
    else:
        ranking.save(out)
        output.say(f"{len(ranking):,} queries answered in {seconds:.2f} s: {out}")
    answers = (
        {}
        if out is not None
        else {
            "answers": [
                {"query": query, "hits": [plain(hit) for hit in hits]} for query, hits in ranking
            ]
        }
    )
    output.done({"path": out, "queries": len(ranking), "k": k, "seconds": seconds, **answers})


def _answers(ranking: Ranking, row: int) -> Table:
    hits = ranking.hits(row)
    rows = [
        [
            str(hit.rank),
            hit.id,
            hit.store,
            say_number(hit.score, digits=4),
            say_number(hit.native_score, digits=4),
            say_number(hit.mapped_score, digits=4),
        ]
        for hit in hits
    ]
    names = ["rank", "id", "store", "score", "native", "mapped"]
    return grid(names, rows, title=f"query {ranking.query_ids[row]}")
