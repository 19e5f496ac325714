"""``isthmus search``: one query over several stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isthmus.cli.options import Answers, FederationFile, HubQueries, Json, Quiet, RunOut, Seed
from isthmus.cli.output import Output, grid
from isthmus.cli.tables import say_number

if TYPE_CHECKING:
    from rich.table import Table

    from isthmus.rankings import Ranking

__all__ = ["search"]

SHOWN_QUERIES = 3


def search(
    federation: FederationFile,
    *,
    query_vectors: HubQueries,
    k: Answers = 10,
    out: RunOut = None,
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
    from isthmus.federate import Federation
    from isthmus.rankings import check_run_path
    from isthmus.workflows import search as run_search
    from isthmus.workflows._opening import open_vectors
    from isthmus.workflows.search import search_notes

    output = Output("search", as_json=as_json, quiet=quiet)
    if out is not None:
        check_run_path(out)
        check_file_writable(out)
    queries = open_vectors(query_vectors)
    start = time.perf_counter()
    with Federation.load(federation) as opened:
        ranking = run_search(opened, queries, k=k, track=output.track)
        seconds = time.perf_counter() - start
        listed = ranking if out is not None and out.suffix in {".trec", ".run"} else None
        for note in search_notes(opened, queries, listed):
            output.warn(note)
    result = {"path": out, "queries": len(ranking), "k": k, "seconds": seconds}
    if out is None:
        _show(ranking, output)
        output.done({**result, "answers": _answers(ranking)})
    else:
        ranking.save(out)
        output.say(f"{len(ranking):,} queries answered in {seconds:.2f} s: {out}")
        output.done(result)


def _show(ranking: Ranking, output: Output) -> None:
    """Show the answers to the first queries."""
    output.show(*(_table(ranking, row) for row in range(min(SHOWN_QUERIES, len(ranking)))))
    if len(ranking) > SHOWN_QUERIES:
        output.say(f"{len(ranking) - SHOWN_QUERIES:,} more queries: write them with --out.")


def _answers(ranking: Ranking) -> list[dict[str, Any]]:
    from isthmus.rankings import plain

    return [{"query": query, "hits": [plain(hit) for hit in hits]} for query, hits in ranking]


def _table(ranking: Ranking, row: int) -> Table:
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
