"""``isthmus info``: what a bridge says about itself."""

from __future__ import annotations

from isthmus.cli.options import BridgeFolder, Json, Quiet, Require, Seed
from isthmus.cli.output import Output
from isthmus.cli.tables import about_bridge, report_table

__all__ = ["info"]


def info(
    bridge: BridgeFolder,
    *,
    require: Require = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Show a bridge with its verdict and report.

    Nothing in it is random: --seed is accepted as by every command, and changes nothing.
    """
    del seed
    from isthmus.bridge import Bridge
    from isthmus.cli.checks import check_verdict

    output = Output("info", as_json=as_json, quiet=quiet)
    fitted = Bridge.load(bridge)
    check_verdict(fitted, require)
    title = f"Held-out rows: {fitted.report.n_queries:,}"
    output.show(about_bridge(fitted))
    if fitted.report.values:
        output.show(report_table(fitted.report, title=title))
    provenance = fitted.provenance
    output.done(
        {
            "path": bridge,
            "hash": fitted.hash,
            "source": {**fitted.source.to_dict(), "fingerprint": fitted.source.fingerprint},
            "target": {**fitted.target.to_dict(), "fingerprint": fitted.target.fingerprint},
            "method": fitted.method,
            "lands_in": fitted.lands_in,
            "verdict": fitted.verdict.to_dict(),
            "report": fitted.report.to_dict(per_query=False),
            "provenance": {
                name: value for name, value in vars(provenance).items() if name != "pair_hashes"
            },
        }
    )
