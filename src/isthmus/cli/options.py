"""Options that every command has, and arguments that several share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["BridgeFolder", "Json", "Quiet", "Require", "Seed", "Source", "Target"]

Json = Annotated[bool, typer.Option("--json", help="Write one JSON envelope to stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no notes.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
Require = Annotated[
    str | None,
    typer.Option(
        "--require",
        metavar="VERDICT",
        help="Fail unless the verdict is at least this; 'bridge' accepts 'pre_aligned' too.",
    ),
]
Source = Annotated[
    Path, typer.Argument(metavar="A", help="Vectors of the source space.", show_default=False)
]
Target = Annotated[
    Path, typer.Argument(metavar="B", help="Vectors of the target space.", show_default=False)
]
BridgeFolder = Annotated[
    Path, typer.Argument(metavar="BRIDGE", help="Folder of a bridge.", show_default=False)
]
