"""``isthmus apply``: carry a file of vectors into the target space."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.options import BridgeFolder, Json, Quiet, Require, Seed, Source
from isthmus.cli.output import Output

__all__ = ["apply"]


def apply(
    bridge: BridgeFolder,
    source: Source,
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="F",
            help="File to write: .npz, .npy, .parquet, .jsonl or .safetensors.",
            show_default=False,
        ),
    ],
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="TYPE", help="float16 or float32, on disk.")
    ] = "float16",
    require: Require = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Carry vectors into the target space.

    Batch by batch, from a file to a new one. Nothing in it is random: --seed is accepted as by
    every command, and changes nothing.
    """
    del seed
    from isthmus.bridge import Bridge
    from isthmus.cli.checks import as_dtype, check_verdict, warn_of_verdict
    from isthmus.workflows import apply_bridge

    output = Output("apply", as_json=as_json, quiet=quiet)
    fitted = Bridge.load(bridge)
    check_verdict(fitted, require)
    warn_of_verdict(fitted, output)
    applied = apply_bridge(fitted, source, out, dtype=as_dtype(dtype), track=output.track)
    if applied.kind_differs:
        output.warn(
            f"these are {applied.scope.kind} vectors; the bridge was fitted on "
            f"{applied.scope.pairs_kind} vectors, and its report speaks of those"
        )
    if applied.share_outside > 0.1:
        output.warn(
            f"{applied.share_outside:.0%} of the rows lie outside the scope of the bridge "
            "(about 3% is usual): its report does not speak of those"
        )
    output.say(
        f"{applied.rows:,} rows carried to {applied.space} in {applied.seconds:.1f} s, "
        f"{applied.scope.outside:,} outside the scope: {out}"
    )
    output.done(applied.to_dict())
