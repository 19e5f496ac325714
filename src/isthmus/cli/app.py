"""The commands, one module each; a module is loaded with the application, its workflow when run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from isthmus.cli.apply import apply
from isthmus.cli.convert import (
    ConvertGroup,
    convert_cutover,
    convert_rollback,
    convert_run,
    convert_status,
    convert_verify,
)
from isthmus.cli.demo import demo
from isthmus.cli.doctor import doctor
from isthmus.cli.evaluate import evaluate
from isthmus.cli.export import export, store_export
from isthmus.cli.federate import federate
from isthmus.cli.fit import fit
from isthmus.cli.info import info
from isthmus.cli.inspect import inspect
from isthmus.cli.integrate import integrate
from isthmus.cli.link import link
from isthmus.cli.search import search
from isthmus.cli.store import store_add, store_info, store_record
from isthmus.cli.streams import Stopped
from isthmus.cli.suggest import suggest

__all__ = ["GROUPS", "NAMES", "app", "command"]

COMMANDS: Mapping[str, Callable[..., None]] = {
    "demo": demo,
    "inspect": inspect,
    "doctor": doctor,
    "suggest": suggest,
    "link": link,
    "fit": fit,
    "evaluate": evaluate,
    "apply": apply,
    "export": export,
    "info": info,
    "federate": federate,
    "search": search,
    "integrate": integrate,
}
GROUPS: Mapping[str, Mapping[str, Callable[..., None]]] = {
    "convert": {
        "run": convert_run,
        "verify": convert_verify,
        "status": convert_status,
        "cutover": convert_cutover,
        "rollback": convert_rollback,
    },
    "store": {"add": store_add, "export": store_export, "info": store_info, "record": store_record},
}
GROUP_HELP = {
    "convert": "Carry a collection into another space, beside the old one.",
    "store": "Fill and look at stores.",
}
GROUP_KINDS = {"convert": ConvertGroup}
NAMES = (*COMMANDS, *GROUPS)


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        """Run a command; keep what was noted in an interrupt, which would become a bare code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Stopped(stop) from stop


app = typer.Typer(
    name="isthmus",
    cls=_Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:  # noqa: FBT001 - the call of the option's library
    if asked:
        import isthmus

        typer.echo(f"isthmus {isthmus.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def isthmus_command(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Join embedding spaces.

    Fit bridges between the spaces of different models, say honestly how much they keep, and search
    several vector stores as one. Start with 'isthmus demo'. Exit codes are listed in
    docs/errors.md.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _name, _function in COMMANDS.items():
    app.command(_name)(_function)
for _group, _members in GROUPS.items():
    _inner = typer.Typer(
        cls=GROUP_KINDS.get(_group, TyperGroup), help=GROUP_HELP[_group], no_args_is_help=False
    )
    for _name, _function in _members.items():
        _inner.command(_name)(_function)
    app.add_typer(_inner, name=_group)


def command() -> Any:
    """Return the application as one command object."""
    return typer.main.get_command(app)
