"""``isthmus search``: one query over several stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isthmus.cli.options import (
    Answers,
    Explain,
    FederationFile,
    HubQueries,
    Json,
    MinProbability,
    Quiet,
    RequireAll,
    RunOut,
    Seed,
)
from isthmus.cli.output import Output, grid
from isthmus.cli.tables import say_number, why_table

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
    explain: Explain = False,
    min_probability: MinProbability = None,
    require_all: RequireAll = False,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Search several stores as one.

    Queries are in the space of the federation's hub; bridges carry them to the other stores and the
    answers back. Without --out, --json holds all answers. A store that fails is left out and named:
    the exit code stays 0 unless --require-all is given or every store fails. --seed is that of the
    pauses between attempts; no answer depends on it.
    """
    import time
    from dataclasses import asdict

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
    changes = {"require_all": True} if require_all else {}
    with Federation.load(federation, seed=seed, **changes) as opened:
        ranking = run_search(
            opened,
            queries,
            k=k,
            explain=explain,
            min_probability=min_probability,
            track=output.track,
        )
        seconds = time.perf_counter() - start
        run = out is not None and out.suffix in {".trec", ".run"}
        for note in search_notes(opened, queries, ranking, lists_once=run):
            output.warn(note)
        if run and explain:
            output.warn(
                "a TREC run has no room for what --explain gives: write .jsonl or .csv to keep it"
            )
    result = {
        "path": out,
        "queries": len(ranking),
        "k": k,
        "seconds": seconds,
        "complete": ranking.complete,
        "outages": [asdict(outage) for outage in ranking.outages],
        "skipped": None if ranking.skipped is None else float(ranking.skipped.mean()),
    }
    if out is None:
        _show(ranking, output)
        output.done({**result, "answers": _answers(ranking)})
    else:
        ranking.save(out)
        output.say(f"{len(ranking):,} queries answered in {seconds:.2f} s: {out}")
        output.done(result)


def _show(ranking: Ranking, output: Output) -> None:
    """Show the answers to the first queries."""
    for row in range(min(SHOWN_QUERIES, len(ranking))):
        output.show(_table(ranking, row), *why_table(ranking, row))
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
            *([] if hit.probability is None else [say_number(hit.probability, digits=4)]),
        ]
        for hit in hits
    ]
    names = ["rank", "id", "store", "score", "native", "mapped"]
    if ranking.probabilities is not None:
        names.append("probability")
    table = grid(names, rows, title=f"query {ranking.query_ids[row]}")
    table.columns[0].no_wrap = True
    for long in table.columns[1:3]:  # ids and names of stores are folded, numbers are not
        long.no_wrap = False
    return table
