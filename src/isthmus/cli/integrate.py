"""``isthmus integrate``: the stores of a federation, in one new store."""

from __future__ import annotations

from typing import Annotated

import typer

from isthmus.cli.named import as_named
from isthmus.cli.options import FederationFile, Json, Quiet, Seed
from isthmus.cli.output import Output

__all__ = ["integrate"]


def integrate(
    federation: FederationFile,
    *,
    into: Annotated[
        str,
        typer.Option("--into", metavar="URL", help="The new store.", show_default=False),
    ],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="ec|mig",
            help="ec: carry stored vectors through their bridges. mig: take vectors that the "
            "target's model made, from files.",
        ),
    ] = "ec",
    space: Annotated[
        str | None,
        typer.Option(
            "--space",
            metavar="NAME",
            help="Store whose space is the target. Default: the hub's space.",
            show_default=False,
        ),
    ] = None,
    native: Annotated[
        list[str] | None,
        typer.Option(
            "--native",
            metavar="NAME=F",
            help="For mig: the documents of one store by the target's model. Once per store.",
            show_default=False,
        ),
    ] = None,
    ids: Annotated[
        str,
        typer.Option(
            "--ids",
            metavar="prefix|keep",
            help="prefix: NAME/id. keep: as they are; an id in two stores is refused.",
        ),
    ] = "prefix",
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Write the stores of a federation into one new store, in one space.

    The stores that are read are never written to. Run it again after an interruption: it goes on
    where it was. Nothing in it is random: --seed changes nothing.
    """
    del seed
    from isthmus.cli.store import check_lasting
    from isthmus.workflows import integrate as run

    output = Output("integrate", as_json=as_json, quiet=quiet)
    check_lasting(into)
    done = run(
        federation,
        into,
        method=method,  # type: ignore[arg-type]  # checked by the workflow
        space=space,
        native=as_named(native, what="--native as NAME=F", command="integrate"),
        ids=ids,  # type: ignore[arg-type]  # checked by the workflow
        track=output.track,
    )
    if done.metadata_dropped:
        output.warn("the new store holds no metadata: those of the rows were left out")
    total = sum(done.rows.values())
    output.say(
        f"{total:,} rows of {len(done.rows)} stores in {done.space}, {done.mapped:,} of them "
        f"mapped, in {done.seconds:.1f} s: {done.url}"
    )
    output.done(done.to_dict())
