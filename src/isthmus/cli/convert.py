"""``isthmus convert``: a collection into another space, beside the old one; and around it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from isthmus.cli.conversions import (
    done_lines,
    plan_rows,
    status_rows,
    verified_rows,
    way_back,
)
from isthmus.cli.options import Json, Quiet, Require, Seed
from isthmus.cli.output import Output, facts
from isthmus.errors import UnknownNameError, VerdictError

__all__ = [
    "ConvertGroup",
    "convert_cutover",
    "convert_rollback",
    "convert_run",
    "convert_status",
    "convert_verify",
]

REQUIRABLE = ("same",)

SourceUrl = Annotated[
    str, typer.Argument(metavar="SRC", help="Store URL that is read.", show_default=False)
]
TargetUrl = Annotated[
    str,
    typer.Argument(
        metavar="DST",
        help="Store URL of a new collection, or of a new vector of SRC's rows: &vector=NAME.",
        show_default=False,
    ),
]
BridgeOption = Annotated[
    Path | None,
    typer.Option(
        "--bridge",
        metavar="FOLDER",
        help="From SRC's space to DST's. Default: none, the vectors are copied as they are.",
        show_default=False,
    ),
]
CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Keep the cursor in this file: for stores that keep no notes.",
        show_default=False,
    ),
]


class ConvertGroup(TyperGroup):
    """A group whose first command is meant where none is named: ``isthmus convert SRC DST``."""

    default: ClassVar[str] = "run"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the first command where the first word is a store or one of its options.

        Any other word is a command or a slip of one, and alone ``--help`` is asked of the group.
        """
        known = {option for one in self.commands[self.default].params for option in one.opts}
        meant = bool(args) and ("://" in args[0] or args[0].partition("=")[0] in known)
        return super().parse_args(ctx, [self.default, *args] if meant else args)


def convert_run(
    source: SourceUrl,
    target: TargetUrl,
    *,
    bridge: BridgeOption = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what would be done, and write nothing."),
    ] = False,
    batch_size: Annotated[
        int, typer.Option("--batch-size", metavar="N", min=1, help="Rows in memory at a time.")
    ] = 4_800,
    remove: Annotated[
        bool,
        typer.Option("--remove", help="Remove from DST what SRC does not have any more."),
    ] = False,
    checkpoint: CheckpointFile = None,
    require: Require = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Carry all rows of SRC through a bridge into DST, a collection beside it.

    SRC is never written to. Run the same command again after an interruption: it goes on where it
    was. At its end it compares both sides, and writes what was added or changed in SRC meanwhile;
    run it again until nothing is. Nothing in it is random: --seed changes nothing.

    Then: 'isthmus convert verify SRC DST', 'isthmus convert cutover DST', which prints the command
    that goes back; 'isthmus convert status DST' at any time.
    """
    del seed
    from isthmus.cli.checks import check_required, check_verdict
    from isthmus.cli.store import check_lasting
    from isthmus.workflows import convert, plan_conversion

    output = Output("convert", as_json=as_json, quiet=quiet)
    check_lasting(target)
    check_required(require)
    fitted = _bridge(bridge)
    if fitted is not None:
        check_verdict(fitted, require)
    plan = plan_conversion(source, target, bridge=fitted, checkpoint=checkpoint)
    for warning in plan.warnings:
        output.warn(warning)
    if dry_run:
        output.show(facts(plan_rows(plan)))
        output.done({"dry_run": True, **plan.to_dict()})
        return
    if plan.done and plan.done < plan.rows:
        output.warn(f"going on after {plan.done:,} of {plan.rows:,} rows")
    done = convert(
        source,
        target,
        bridge=fitted,
        batch_rows=batch_size,
        checkpoint=checkpoint,
        remove=remove,
        counting=output.counting,
    )
    if done.metadata_dropped:
        output.warn("the target holds no metadata: those of the rows were left out")
    output.say(*done_lines(done))
    output.done({"dry_run": False, **done.to_dict()})


def convert_verify(
    source: SourceUrl,
    target: TargetUrl,
    *,
    bridge: BridgeOption = None,
    sample: Annotated[
        int, typer.Option("--sample", metavar="N", min=1, help="Rows to map again and compare.")
    ] = 1_000,
    queries: Annotated[
        int, typer.Option("--queries", metavar="N", min=1, help="Of these, rows to search for.")
    ] = 200,
    require: Annotated[
        str | None,
        typer.Option(
            "--require",
            metavar="VERDICT",
            help="Fail unless the verdict is this: 'same', no row is missing or differs.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Compare DST with SRC: counts, sampled rows mapped again, sampled searches.

    The same neighbours: the share of a row's ten neighbours in SRC that a search of DST finds,
    beside what doing nothing finds, and beside the share of the neighbours that DST's own model
    would give, which the bridge's report estimates. Nothing is written.
    """
    from isthmus.workflows import verify_conversion

    output = Output("convert verify", as_json=as_json, quiet=quiet)
    if require is not None and require not in REQUIRABLE:
        raise UnknownNameError.of("verdict to require", require, REQUIRABLE)
    found = verify_conversion(
        source, target, bridge=_bridge(bridge), sample=sample, queries=queries, seed=seed
    )
    output.show(facts(verified_rows(found)), f"verdict: {found.verdict}")
    if not found.ok:
        shown = f", such as {', '.join(found.examples)}" if found.examples else ""
        output.warn(f"DST is not what SRC gives{shown}; run the conversion again, which repairs it")
    if require is not None and not found.ok:
        raise VerdictError(
            expected="a target with every row of its source, as the bridge gives it",
            got=found.verdict,
            do="run the conversion again, which repairs it",
        )
    output.done(found.to_dict())


def convert_status(
    target: TargetUrl,
    *,
    checkpoint: CheckpointFile = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Say how far the conversion into DST has come, and whether a name leads to it.

    Nothing in it is random: --seed changes nothing.
    """
    del seed
    from isthmus.workflows import conversion_status

    output = Output("convert status", as_json=as_json, quiet=quiet)
    told = conversion_status(target, checkpoint=checkpoint)
    output.show(facts(status_rows(told)))
    output.done(told.to_dict())


def convert_cutover(
    target: TargetUrl,
    *,
    name: Annotated[
        str,
        typer.Option(
            "--name", metavar="NAME", help="Name that applications use.", show_default=False
        ),
    ],
    former: Annotated[
        str | None,
        typer.Option(
            "--former",
            metavar="NAME",
            help="New name for what has it, where the store renames. Default: NAME_former.",
            show_default=False,
        ),
    ] = None,
    checkpoint: CheckpointFile = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Make a name lead to DST at one instant: by an alias, or by renaming.

    Nothing is deleted. What was switched is noted with DST, for 'isthmus convert rollback'. Nothing
    in it is random: --seed changes nothing.
    """
    del seed
    from isthmus.workflows import cut_over

    output = Output("convert cutover", as_json=as_json, quiet=quiet)
    done = cut_over(target, name, former=former, checkpoint=checkpoint)
    before = f"; what it led to is {done.before!r}" if done.before else ""
    output.say(f"{name!r} leads to the converted collection, by {done.how}{before}")
    for warning in done.warnings:
        output.warn(warning)
    output.say(f"to go back: {way_back(done, checkpoint)}")
    output.done(done.to_dict())


def convert_rollback(
    target: TargetUrl,
    *,
    checkpoint: CheckpointFile = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Let the name lead back to where it led before the cutover.

    Where the store renames, DST is called by the name that it took. Nothing is deleted. Nothing in
    it is random: --seed changes nothing.
    """
    del seed
    from isthmus.workflows import roll_back

    output = Output("convert rollback", as_json=as_json, quiet=quiet)
    done = roll_back(target, checkpoint=checkpoint)
    output.say(f"{done.name!r} leads to what it led to before; the converted one is {done.own!r}")
    output.done(done.to_dict())


def _bridge(folder: Path | None) -> Any:
    from isthmus.bridge import Bridge

    return None if folder is None else Bridge.load(folder)
