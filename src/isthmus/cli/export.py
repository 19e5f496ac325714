"""``isthmus export`` and ``isthmus store export``: write what other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.options import BridgeFolder, Json, NumberType, Quiet, Require, Seed
from isthmus.cli.output import Output
from isthmus.cli.store import Url
from isthmus.errors import ParameterError

__all__ = ["export", "store_export"]


def export(
    bridge: BridgeFolder,
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="PATH",
            help="A file ending in .onnx, or with --model a new folder.",
            show_default=False,
        ),
    ],
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            metavar="FOLDER",
            help="The source's model as sentence-transformers saves it.",
            show_default=False,
        ),
    ] = None,
    require: Require = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Write a bridge for other programs.

    As an ONNX graph (--out FILE.onnx), or together with the source's model as one folder that
    SentenceTransformer(FOLDER) loads (--out FOLDER --model FOLDER). Nothing in it is random: --seed
    changes nothing.
    """
    del seed
    from isthmus.bridge import Bridge
    from isthmus.cli.checks import check_verdict, warn_of_verdict

    output = Output("export", as_json=as_json, quiet=quiet)
    as_graph = out.suffix.lower() == ".onnx"
    if as_graph == (model is not None):
        raise ParameterError(
            expected="--out FILE.onnx, or --out FOLDER with --model FOLDER",
            got=f"--out {out.name}" + (f" with --model {model.name}" if model else ""),
            do="name the model's folder for sentence-transformers, and none for ONNX",
        )
    fitted = Bridge.load(bridge)
    check_verdict(fitted, require)
    warn_of_verdict(fitted, output)
    if model is None:
        fitted.to_onnx(out)
    else:
        fitted.to_sentence_transformers(out, model)
    kind = "onnx" if as_graph else "sentence-transformers"
    output.say(f"{fitted.source} to {fitted.target}, for {kind}: {out}")
    output.done({"path": str(out), "kind": kind, "bridge": fitted.hash, "method": fitted.method})


def store_export(
    url: Url,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="File to write; the ending names the format.", show_default=False
        ),
    ],
    *,
    dtype: NumberType = "float32",
    no_metadata: Annotated[
        bool, typer.Option("--no-metadata", help="Leave the metadata of the rows out.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Write a collection to a file.

    With the metadata of its rows, to .parquet, .jsonl, .ndjson or .vdf; other formats hold vectors
    alone. The file appears when all rows are written. Nothing in it is random: --seed changes
    nothing.
    """
    del seed
    from isthmus.cli.checks import as_dtype
    from isthmus.workflows.store_files import export_store

    output = Output("store export", as_json=as_json, quiet=quiet)
    done = export_store(
        url, file, dtype=as_dtype(dtype), metadata=not no_metadata, track=output.track
    )
    beside = f", {done.with_metadata:,} with metadata" if done.with_metadata else ""
    output.say(f"{done.rows:,} rows of {done.space}{beside}: {file}")
    output.done(done.to_dict())
