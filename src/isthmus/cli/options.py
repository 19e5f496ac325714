"""Arguments and options of the commands: those that all have, several share, or one needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.place import Place

__all__ = [
    "Answers",
    "BridgeFolder",
    "Coverage",
    "EveryCandidate",
    "Explain",
    "FederationFile",
    "HubQueries",
    "Json",
    "Judgements",
    "LinkMethod",
    "LinksOut",
    "Method",
    "MethodParams",
    "MinProbability",
    "MinRetention",
    "NewBridge",
    "NumberType",
    "Pairs",
    "PairsOrNone",
    "PlotOut",
    "Precision",
    "Purpose",
    "Queries",
    "Quiet",
    "Require",
    "RequireAll",
    "RequireLinked",
    "Resume",
    "RunOut",
    "Seed",
    "SeedFile",
    "SeedVectorFiles",
    "Source",
    "Target",
    "TargetQueries",
    "Threshold",
    "UnpairedSource",
    "UnpairedTarget",
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
    Place,
    typer.Argument(
        parser=Place,
        metavar="A",
        help="Vectors of the source space: a file, or a store URL.",
        show_default=False,
    ),
]
Target = Annotated[
    Place,
    typer.Argument(
        parser=Place,
        metavar="B",
        help="Vectors of the target space: a file, or a store URL.",
        show_default=False,
    ),
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

# inspect
PlotOut = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw how far both agree, by distance and by number of neighbours: .svg or .png.",
        show_default=False,
    ),
]

# link
SeedFile = Annotated[
    Path | None,
    typer.Option(
        "--seeds",
        metavar="FILE|none",
        help="Pairs known to be equal, .csv or .parquet with source,target: ids of A and of B; "
        "'none': there are none.",
        show_default=False,
    ),
]
SeedVectorFiles = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        "--seed-vectors",
        metavar="A2 B2",
        help="Vectors of other objects in the spaces of A and B as seeds, paired by equal ids or "
        "by the ids in --seeds.",
        show_default=False,
    ),
]
LinksOut = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        help="File of links, .csv or .parquet: source,target,posterior,votes.",
        show_default=False,
    ),
]
LinkMethod = Annotated[
    str,
    typer.Option("--method", metavar="NAME", help="A method by name; see docs/linking.md."),
]
MethodParams = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="A parameter of the method; may be given several times.",
        show_default=False,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="cpu|cuda|mps",
        help="Where a learned map is trained; cpu by default.",
        show_default=False,
    ),
]
TrainingCheckpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Folder in which the training of a learned map keeps its state; the same command goes "
        "on from there.",
        show_default=False,
    ),
]
Threshold = Annotated[
    str,
    typer.Option(
        "--threshold",
        metavar="own|max_f1|POSTERIOR",
        help="Which candidates are links: the method's own choice, the highest expected F1, or a "
        "least posterior.",
    ),
]
Precision = Annotated[
    float | None,
    typer.Option(
        "--precision",
        metavar="SHARE",
        help="Instead: as many as are expected to be right in this share.",
        show_default=False,
    ),
]
Coverage = Annotated[
    float | None,
    typer.Option(
        "--coverage",
        metavar="SHARE",
        help="Instead: this share of the candidates, the surest.",
        show_default=False,
    ),
]
EveryCandidate = Annotated[
    bool, typer.Option("--all", help="Write every candidate, not only the links.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from where a run with this --out was stopped.")
]
RequireLinked = Annotated[
    str | None,
    typer.Option("--require", metavar="VERDICT", help="Fail unless the verdict is this: 'linked'."),
]

# fit
NewBridge = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="Folder of the bridge.", show_default=False),
]
PairsOrNone = Annotated[
    Path | None,
    typer.Option(
        "--pairs",
        metavar="FILE|none",
        help="Pairs of ids, .csv or .parquet with source,target. Default: equal ids; 'none': equal "
        "ids are chance, for a map that needs no pairs.",
        show_default=False,
    ),
]
UnpairedSource = Annotated[
    Place | None,
    typer.Option(
        "--unpaired-source",
        parser=Place,
        metavar="F",
        help="More vectors of A's space, without a pair. Default: the rows of A without one.",
        show_default=False,
    ),
]
UnpairedTarget = Annotated[
    Place | None,
    typer.Option(
        "--unpaired-target",
        parser=Place,
        metavar="F",
        help="More vectors of B's space, without a pair. Default: the rows of B without one.",
        show_default=False,
    ),
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
    Place | None,
    typer.Option(
        "--queries",
        parser=Place,
        metavar="F",
        help="Queries in the source space, to search B through the bridge.",
        show_default=False,
    ),
]
TargetQueries = Annotated[
    Place | None,
    typer.Option(
        "--target-queries",
        parser=Place,
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
        help="File to write; the ending names the format (docs/files.md).",
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
    Place,
    typer.Option(
        "--query-vectors",
        parser=Place,
        metavar="F",
        help="Queries in the hub's space.",
        show_default=False,
    ),
]
Answers = Annotated[int, typer.Option("--k", metavar="K", help="Answers per query.")]
RequireAll = Annotated[
    bool,
    typer.Option(
        "--require-all", help="Fail when a store fails. Default: answer without it, and say so."
    ),
]
Explain = Annotated[
    bool,
    typer.Option(
        "--explain",
        help="Also give the similarity of every hit in every space and in the common one, and the "
        "weights that make the score.",
    ),
]
MinProbability = Annotated[
    float | None,
    typer.Option(
        "--min-probability",
        metavar="P",
        help="Leave out hits that are less likely to be relevant; the federation needs a "
        "calibration.",
        show_default=False,
    ),
]
RunOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="F",
        help="File to write: .trec, .run, .jsonl or .csv. Default: show the first answers.",
        show_default=False,
    ),
]
