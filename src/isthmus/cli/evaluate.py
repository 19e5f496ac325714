"""``isthmus evaluate``: measure a bridge on what it was not fitted on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isthmus.cli.options import BridgeFolder, Json, Quiet, Require, Seed, Source, Target
from isthmus.cli.output import Output
from isthmus.cli.tables import report_table, say_value

if TYPE_CHECKING:
    from isthmus.bridge import Bridge
    from isthmus.workflows import Evaluation

__all__ = ["evaluate"]


def evaluate(
    bridge: BridgeFolder,
    source: Source,
    target: Target,
    *,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            metavar="FILE",
            help="Pairs of ids, .csv or .parquet with source,target. Default: equal ids.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries",
            metavar="F",
            help="Queries in the source space, to search B through the bridge.",
            show_default=False,
        ),
    ] = None,
    target_queries: Annotated[
        Path | None,
        typer.Option(
            "--target-queries",
            metavar="F",
            help="The same queries encoded by the target's model: the oracle.",
            show_default=False,
        ),
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(
            "--qrels",
            metavar="F",
            help="Judgements: query-id, corpus-id, score between tabs.",
            show_default=False,
        ),
    ] = None,
    require: Require = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Measure a bridge on what it was not fitted on.

    Preservation first, then reconstruction, each beside the null map and with its interval. Pairs
    that the bridge was fitted on are left out: it keeps hashes of their ids.
    """
    from isthmus.bridge import Bridge
    from isthmus.cli.checks import check_verdict
    from isthmus.workflows import evaluate_bridge

    output = Output("evaluate", as_json=as_json, quiet=quiet)
    fitted = Bridge.load(bridge)
    check_verdict(fitted, require)
    result = evaluate_bridge(
        fitted,
        source,
        target,
        pairs,
        queries=queries,
        target_queries=target_queries,
        qrels=qrels,
        seed=seed,
    )
    for note in result.notes:
        output.warn(note)
    output.show(report_table(result, title=_title(result)))
    if result.n_queries:
        output.say(_promise(fitted, result))
    fields = result.to_dict()
    for side in ("values", "null", "oracle"):
        for value in fields[side].values():
            value.pop("per_query")
    output.done({**fields, "verdict": fitted.verdict.to_dict()})


def _title(result: Evaluation) -> str:
    parts = [f"{result.n_queries:,} held-out rows"] if result.n_queries else []
    if result.judged:
        parts.append(f"{result.judged:,} judged queries over {result.searched:,} documents")
    return "; ".join(parts)


def _promise(bridge: Bridge, result: Evaluation) -> str:
    """Put what the bridge reported when it was fitted beside what was measured now."""
    reported = bridge.report.values.get("retention@10")
    if reported is None:
        return "The bridge made no promise: too few pairs to hold any out."
    return (
        f"Top-10 retention: the bridge reports {say_value(reported)}; "
        f"measured here {say_value(result.values['nbr_overlap@10'])}."
    )
