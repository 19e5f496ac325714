"""``isthmus demo``: the main job, on real vectors that come with the package."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from isthmus.cli.options import Json, Quiet, Seed
from isthmus.cli.output import Output, grid

if TYPE_CHECKING:
    from rich.table import Table

    from isthmus.workflows import DemoResult

__all__ = ["demo"]


def demo(
    *,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            metavar="DIR",
            help="New or empty folder to write to. Default: a new one among the temporary files.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Join two stores of two models.

    Runs the main job on real vectors that come with the package, and measures it beside its rivals.
    A third of the bundled documents is in each store, a third embedded by both gives the pairs.
    Queries are encoded by one model only.
    """
    from isthmus.workflows import demo as run_demo

    output = Output("demo", as_json=as_json, quiet=quiet)
    start = time.perf_counter()
    result = run_demo(folder, seed=seed, track=output.track)
    seconds = time.perf_counter() - start
    output.show(_table(result))
    output.show(*_sentences(result))
    output.say(f"Done in {seconds:.1f} s. Everything is in {result.folder}. Try next:", "")
    output.say(*_next(result.folder))
    output.done({**result.to_dict(), "seconds": seconds})


def _table(result: DemoResult) -> Table:
    rows = [
        [
            system.name,
            str(system.ndcg),
            str(system.recall),
            f"{1000 * system.seconds_per_query:.2f}",
        ]
        for system in result.systems
    ]
    title = (
        f"SciFact sample: {result.queries} queries, {result.documents:,} documents in two stores, "
        f"{result.pairs} pairs"
    )
    return grid(["", "nDCG@10 [95 %]", "Recall@10 [95 %]", "ms/query"], rows, title=title)


def _sentences(result: DemoResult) -> list[str]:
    named = zip(
        ("one-two", "two-one"), result.methods, (result.to_spoke, result.to_hub), strict=True
    )
    return [
        "Queries are encoded by one model, or where it says so by both. Oracle: every document in",
        "one store, embedded by one model. Time: search and ranking of all queries in one batch,",
        "without encoding them.",
        *(f"Bridge {name}: {method}, {verdict.status}." for name, method, verdict in named),
    ]


def _next(folder: Path) -> tuple[str, ...]:
    """Say what to try next, as lines that can be pasted."""
    at, run = quote(str(folder)), _program()
    documents = f"{at}/documents.minilm-l6.npz {at}/documents.mpnet.npz"
    queries = f"{at}/queries.minilm-l6.npz"
    native = f"--target-queries {at}/queries.mpnet.npz"
    judged = f"--qrels {at}/qrels.tsv"
    return (
        f"{run} info {at}/bridges/one-two",
        f"{run} search {at}/federation.toml --query-vectors {queries} --out {at}/run.trec",
        f"{run} inspect {documents}",
        f"{run} fit {documents} --pairs {at}/pairs.csv --out {at}/my-bridge",
        f"{run} evaluate {at}/my-bridge {documents} --queries {queries} {native} {judged}",
        f"{run} apply {at}/my-bridge {at}/documents.minilm-l6.npz --out {at}/carried.npz",
    )


def _program() -> str:
    """Return what the user can type: the command where the shell finds it, else how it was run."""
    if shutil.which("isthmus") is not None:
        return "isthmus"
    if Path(sys.argv[0]).name == "isthmus":
        return quote(sys.argv[0])
    return f"{quote(sys.executable)} -m isthmus"
