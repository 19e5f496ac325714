"""``isthmus suggest``: which vectors to pair, when every pair has to be paid for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.options import Json, Quiet, Seed, Source
from isthmus.cli.output import Output
from isthmus.cli.place import Place

__all__ = ["suggest"]

OtherSide = Annotated[
    Place | None,
    typer.Argument(
        parser=Place,
        metavar="[B]",
        help="Vectors of the target space, beside --pairs.",
        show_default=False,
    ),
]
HowMany = Annotated[int, typer.Option("--n", metavar="N", help="How many vectors.")]
Sheet = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Sheet to fill in, .csv: source,target with empty targets; then a file of pairs.",
        show_default=False,
    ),
]
KnownPairs = Annotated[
    Path | None,
    typer.Option(
        "--pairs",
        metavar="FILE",
        help="Pairs that are there already, .csv or .parquet with source,target.",
        show_default=False,
    ),
]
Strategy = Annotated[
    str,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="random, fps, kmeans, coverage, or uncertainty, which needs --pairs.",
    ),
]
Near = Annotated[
    Place | None,
    typer.Option(
        "--near",
        parser=Place,
        metavar="F",
        help="Vectors in A's space that show where partners are to be expected.",
        show_default=False,
    ),
]


def suggest(
    source: Source,
    target: OtherSide = None,
    *,
    n: HowMany,
    out: Sheet,
    pairs: KnownPairs = None,
    strategy: Strategy = "kmeans",
    near: Near = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Suggest which vectors of A to pair, when every pair has to be paid for.

    Spread over A by default; with pairs that are there already, rows of these are left out. The
    sheet has the most wanted first.
    """
    from isthmus._files import check_file_writable
    from isthmus.spaces.suggestion import check_suggestion_path
    from isthmus.workflows import suggest_pairs

    output = Output("suggest", as_json=as_json, quiet=quiet)
    check_suggestion_path(out)
    check_file_writable(out)
    found = suggest_pairs(source, target, pairs, n=n, strategy=strategy, near=near, seed=seed)
    found.save(out)
    output.say(f"Written: {out}, {len(found):,} vectors to pair, chosen by {found.strategy}")
    output.done({"path": out, "n": len(found), "strategy": found.strategy})
