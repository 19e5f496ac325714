"""Arguments and options of the commands: those that all have, several share, or one needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Answers",
    "BridgeFolder",
    "FederationFile",
    "HubQueries",
    "Json",
    "Judgements",
    "Method",
    "MinRetention",
    "NewBridge",
    "NumberType",
    "Pairs",
    "Purpose",
    "Queries",
    "Quiet",
    "Require",
    "RunOut",
    "Seed",
    "Source",
    "Target",
    "TargetQueries",
    "VectorsOut",
]

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
Pairs = Annotated[
    Path | None,
    typer.Option(
        "--pairs",
        metavar="FILE",
        help="Pairs of ids, .csv or .parquet with source,target. Default: equal ids.",
        show_default=False,
    ),
]

# fit
NewBridge = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="Folder of the bridge.", show_default=False),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="auto|NAME",
        help="A map by name, or auto: the most constrained within noise of the best.",
    ),
]
Purpose = Annotated[
    str,
    typer.Option(
        "--purpose",
        metavar="search|score",
        help="Mapped rows will search B, or be scored beside B's own (candidates of a federation "
        "carried back to its hub).",
    ),
]
MinRetention = Annotated[
    float,
    typer.Option(
        "--min-retention",
        metavar="SHARE",
        help="Share of the native top 10 to keep for the verdict bridge.",
    ),
]

# evaluate
Queries = Annotated[
    Path | None,
    typer.Option(
        "--queries",
        metavar="F",
        help="Queries in the source space, to search B through the bridge.",
        show_default=False,
    ),
]
TargetQueries = Annotated[
    Path | None,
    typer.Option(
        "--target-queries",
        metavar="F",
        help="The same queries encoded by the target's model: the oracle.",
        show_default=False,
    ),
]
Judgements = Annotated[
    Path | None,
    typer.Option(
        "--qrels",
        metavar="F",
        help="Judgements: query-id, corpus-id, score between tabs.",
        show_default=False,
    ),
]

# apply
VectorsOut = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="F",
        help="File to write: .npz, .npy, .parquet, .jsonl or .safetensors.",
        show_default=False,
    ),
]
NumberType = Annotated[
    str,
    typer.Option("--dtype", metavar="TYPE", help="float16 or float32, on disk."),
]

# search
FederationFile = Annotated[
    Path, typer.Argument(metavar="FEDERATION.toml", help="Its file.", show_default=False)
]
HubQueries = Annotated[
    Path,
    typer.Option(
        "--query-vectors", metavar="F", help="Queries in the hub's space.", show_default=False
    ),
]
Answers = Annotated[int, typer.Option("--k", metavar="K", help="Answers per query.")]
RunOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="F",
        help="File to write: .trec, .run, .jsonl or .csv. Default: show the first answers.",
        show_default=False,
    ),
]
