"""``isthmus fit``: fit a bridge and write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from isthmus.cli.options import (
    Device,
    Json,
    Method,
    MethodParams,
    MinRetention,
    NewBridge,
    PairsOrNone,
    Purpose,
    Quiet,
    Require,
    Seed,
    Source,
    Target,
    TrainingCheckpoint,
    UnpairedSource,
    UnpairedTarget,
)
from isthmus.cli.output import Output, grid
from isthmus.cli.params import as_pairs, as_training_params
from isthmus.cli.place import Place
from isthmus.cli.tables import about_bridge, report_table, say_number

if TYPE_CHECKING:
    from rich.table import Table

    from isthmus.bridge import Bridge

__all__ = ["fit"]

COMPARED = ("nbr_overlap@10", "similarity_error", "cos_to_target")


def fit(
    source: Source,
    target: Target,
    *,
    out: NewBridge,
    pairs: PairsOrNone = None,
    unpaired_source: UnpairedSource = None,
    unpaired_target: UnpairedTarget = None,
    method: Method = "auto",
    param: MethodParams = None,
    device: Device = None,
    checkpoint: TrainingCheckpoint = None,
    purpose: Purpose = "search",
    min_retention: MinRetention = 0.5,
    require: Require = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Fit a bridge from A's space to B's.

    It is measured on held-out pairs, beside the null map, and written with its report. Too few
    pairs, or a map that keeps too little, is a verdict: the bridge is written with it and the exit
    code is 0, unless --require asks for more. Learned maps (mlp, anchordot and others) need the
    extra torch to be fitted, and not to be used. Some maps look at rows without a pair too, and
    some need no pairs at all: see docs/maps.md. Nothing can be measured without pairs, and the
    verdict says so.
    """
    from isthmus.cli.checks import check_required, check_writable, warn_of_verdict
    from isthmus.workflows import fit_bridge
    from isthmus.workflows._opening import open_vectors
    from isthmus.workflows._scope_notes import bridged_notes

    output = Output("fit", as_json=as_json, quiet=quiet)
    check_required(require)
    check_writable(out)
    left, right = open_vectors(source), open_vectors(target)
    for note in bridged_notes(left.space, right.space):
        output.warn(note)
    bridge = fit_bridge(
        left,
        right,
        as_pairs(pairs),
        unpaired_source=unpaired_source,
        unpaired_target=unpaired_target,
        method=method,
        purpose=cast("Any", purpose),  # checked by the fit, with the names that there are
        min_retention=min_retention,
        params=as_training_params(param, device, checkpoint),
        seed=seed,
        track=output.track,
    )
    bridge.save(out)
    _tell_of_unpaired(bridge, output, source=unpaired_source, target=unpaired_target)
    warn_of_verdict(bridge, output)
    if not quiet:
        output.show(*_tables(bridge))
    output.say(f"Written: {out}")
    if require is not None:
        bridge.require(require)
    output.done({"path": out, **_result(bridge)})


def _tell_of_unpaired(
    bridge: Bridge, output: Output, *, source: Place | None, target: Place | None
) -> None:
    """Note rows that were given and that the map did not look at."""
    made = bridge.provenance
    for path, count in ((source, made.n_unpaired_source), (target, made.n_unpaired_target)):
        if path is not None and not count:
            output.warn(f"{bridge.method} does not look at rows without a pair: {path.name} unused")


def _tables(bridge: Bridge) -> list[Table]:
    tables = [about_bridge(bridge)]
    if bridge.report.values:
        title = (
            f"{bridge.report.n_queries:,} held-out rows, each through a map fitted without it; "
            "retention@10 is estimated for the bridge, which is fitted on all pairs"
            if bridge.provenance.paired
            else f"{bridge.report.n_queries:,} held-out rows, through the bridge itself"
        )
        tables.append(report_table(bridge.report, title=title))
    if len(bridge.provenance.candidates) > 1:
        tables.append(_candidates(bridge))
    return tables


def _result(bridge: Bridge) -> dict[str, Any]:
    return {
        "hash": bridge.hash,
        "method": bridge.method,
        "n_pairs": bridge.provenance.n_pairs,
        "n_unpaired_source": bridge.provenance.n_unpaired_source,
        "n_unpaired_target": bridge.provenance.n_unpaired_target,
        "paired": bridge.provenance.paired,
        "verdict": bridge.verdict.to_dict(),
        "report": bridge.report.to_dict(per_query=False),
        "candidates": list(bridge.provenance.candidates),
    }


def _candidates(bridge: Bridge) -> Table:
    """Show the maps that were compared, by the measures that all of them have."""
    compared = bridge.provenance.candidates
    names = [name for name in COMPARED if all(name in one for one in compared)]
    rows = [
        [str(one["method"]), *(say_number(float(one[name])) for name in names)] for one in compared
    ]
    return grid(["candidate", *names], rows)
