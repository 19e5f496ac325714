"""``isthmus apply``: carry a file of vectors into the target space."""

from __future__ import annotations

from isthmus.cli.options import (
    BridgeFolder,
    Json,
    NumberType,
    Quiet,
    Require,
    Seed,
    Source,
    VectorsOut,
)
from isthmus.cli.output import Output

__all__ = ["apply"]


def apply(
    bridge: BridgeFolder,
    source: Source,
    *,
    out: VectorsOut,
    dtype: NumberType = "float16",
    require: Require = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Carry vectors into the target space.

    Batch by batch, from a file to a new one. A bridge of anchordot, cca and their like has a space
    of its own, in which both sides meet: it carries vectors of either side there. Nothing in it is
    random: --seed is accepted as by every command, and changes nothing.
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
    for note in applied.notes:
        output.warn(note)
    outside = f", {applied.share_outside:.1%} outside the scope" if applied.scope.rows else ""
    output.say(
        f"{applied.rows:,} rows carried to {applied.space} in {applied.seconds:.1f} s{outside}: "
        f"{out}"
    )
    output.done(applied.to_dict())
