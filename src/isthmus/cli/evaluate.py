"""``isthmus evaluate``: measure a bridge on what it was not fitted on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus.cli.options import (
    BridgeFolder,
    Json,
    Judgements,
    Pairs,
    Queries,
    Quiet,
    Require,
    Seed,
    Source,
    Target,
    TargetQueries,
)
from isthmus.cli.output import Output
from isthmus.cli.tables import is_retrieval, report_table, say_value

if TYPE_CHECKING:
    from rich.table import Table

    from isthmus.bridge import Bridge
    from isthmus.workflows import Evaluation

__all__ = ["evaluate"]


def evaluate(
    bridge: BridgeFolder,
    source: Source,
    target: Target,
    *,
    pairs: Pairs = None,
    queries: Queries = None,
    target_queries: TargetQueries = None,
    qrels: Judgements = None,
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
        track=output.track,
    )
    for note in result.notes:
        output.warn(note)
    output.show(*_held_out(fitted, result), *_queries(result))
    output.done({**result.to_dict(per_query=False), "verdict": fitted.verdict.to_dict()})


def _held_out(bridge: Bridge, result: Evaluation) -> list[Table | str]:
    """Show the held-out rows, and what the bridge promised when it was fitted."""
    from isthmus.workflows import OF_QUERIES

    if not result.n_queries:
        return []
    names = [name for name in result.values if name != OF_QUERIES and not is_retrieval(name)]
    table = report_table(result, title=f"{result.n_queries:,} held-out rows", names=names)
    reported = bridge.report.values.get("retention@10")
    if reported is None:
        return [table, "The bridge made no promise: there were too few pairs to hold any out."]
    measured = say_value(result.values["nbr_overlap@10"])
    return [
        table,
        f"Top-10 retention: {say_value(reported)} reported; {measured} measured here.",
    ]


def _queries(result: Evaluation) -> list[Table | str]:
    """Show what the queries keep and find, beside the oracle where it is known."""
    from isthmus.workflows import OF_QUERIES

    shown: list[Table | str] = []
    if OF_QUERIES in result.values:
        shown.append(report_table(result, title="Queries", names=[OF_QUERIES]))
    if result.judged:
        title = f"{result.judged:,} judged queries over {result.searched:,} documents"
        names = [name for name in result.values if is_retrieval(name) and "/" not in name]
        shown.append(report_table(result, title=title, names=names, oracle=bool(result.oracle)))
    shown.extend(
        f"Of the oracle's {name} the bridge keeps {say_value(result.values[f'{name}/oracle'])}, "
        f"the null map {say_value(result.null[f'{name}/oracle'])}."
        for name in result.oracle
    )
    return shown
