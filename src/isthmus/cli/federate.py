"""``isthmus federate``: stores in, a federation's file and its bridges out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isthmus.cli.named import as_named
from isthmus.cli.options import Device, Json, MethodParams, Quiet, Seed, TrainingCheckpoint
from isthmus.cli.output import Output, grid
from isthmus.cli.params import as_training_params

if TYPE_CHECKING:
    from rich.table import Table

    from isthmus.workflows.fit_federation import FittedBridge, FittedFederation

__all__ = ["federate"]


def federate(
    stores: Annotated[
        list[str],
        typer.Argument(metavar="NAME=URL...", help="The stores, each once.", show_default=False),
    ],
    *,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FEDERATION.toml", help="The new file.", show_default=False),
    ],
    vectors: Annotated[
        list[str] | None,
        typer.Option(
            "--vectors",
            metavar="NAME=F",
            help="Documents by the model of that store, to fit on. Default: what the store holds.",
            show_default=False,
        ),
    ] = None,
    hub: Annotated[
        str | None,
        typer.Option(
            "--hub",
            metavar="NAME",
            help="Store whose space queries come in, or a name under --vectors. Default: the "
            "first store.",
            show_default=False,
        ),
    ] = None,
    bridges: Annotated[
        Path | None,
        typer.Option(
            "--bridges",
            metavar="DIR",
            help="New folder for the bridges. Default: 'bridges' beside the file.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="auto|NAME",
            help="The map from the hub to every store (bridge_to).",
        ),
    ] = "auto",
    method_from: Annotated[
        str,
        typer.Option(
            "--method-from",
            metavar="auto|NAME",
            help="The map from every store back to the hub (bridge_from).",
        ),
    ] = "auto",
    param: MethodParams = None,
    device: Device = None,
    checkpoint: TrainingCheckpoint = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Fit every bridge that a federation of these stores needs, and write its file.

    Pairs are equal ids: documents that the hub's model and a store's have both embedded, in the
    stores themselves or in files. Stores of one space share bridges. From 100 pairs on a common
    space is fitted too. A lesser verdict is a note, not an error. Nothing is overwritten. --param,
    --device and --checkpoint are for the bridges that --method names, both ways where --method-from
    names the same.
    """
    from isthmus.cli.store import check_lasting
    from isthmus.workflows import fit_federation

    output = Output("federate", as_json=as_json, quiet=quiet)
    urls = as_named(stores, what="a store as NAME=URL", command="federate")
    for url in urls.values():
        check_lasting(url)
    made = fit_federation(
        urls,
        out,
        hub=hub,
        vectors=as_named(vectors, what="--vectors as NAME=F", command="federate"),
        bridges=bridges,
        method=method,
        method_from=method_from,
        params=as_training_params(param, device, checkpoint),
        seed=seed,
        track=output.track,
    )
    _warn(made, output)
    if not quiet:
        output.show(_table(made))
    output.say(f"Written: {made.path}")
    output.done(
        {"path": made.path, "hub": made.hub, "bridges": [_about(one) for one in made.bridges]}
    )


def _warn(made: FittedFederation, output: Output) -> None:
    """Say what should be known of the bridges."""
    from isthmus.cli.checks import warn_of_verdict

    for one in made.bridges:
        warn_of_verdict(one.bridge, output, what=f"{one.role} of store {one.stores[0]!r}: ")
    if made.without_common:
        names = ", ".join(map(repr, made.without_common))
        output.warn(f"no common space for {names}: under 100 pairs, or not the cosine")


def _about(one: FittedBridge) -> dict[str, Any]:
    return {
        "role": one.role,
        "stores": list(one.stores),
        "path": one.folder,
        "method": one.bridge.method,
        "n_pairs": one.bridge.provenance.n_pairs,
        "verdict": one.bridge.verdict.to_dict(),
    }


def _table(made: FittedFederation) -> Table:
    rows = [
        [
            ", ".join(one.stores),
            one.role,
            one.bridge.method,
            f"{one.bridge.provenance.n_pairs:,}",
            one.bridge.verdict.status,
        ]
        for one in made.bridges
    ]
    return grid(["store", "bridge", "method", "pairs", "verdict"], rows)
