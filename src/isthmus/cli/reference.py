"""Reference pages made from the application and the error classes themselves.

``python -m isthmus.cli.reference docs`` writes them; a test fails where they are stale.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from isthmus import errors
from isthmus.cli.failures import INTERRUPTED, TRACEBACK, UNEXPECTED, USAGE

__all__ = ["cli_page", "errors_page", "write_pages"]

CLI_HEAD = """\
# Command line

<!-- Made by `python -m isthmus.cli.reference docs`; change the commands, not this page. -->

Every command has `--json`, `--quiet` and `--seed`. Tables go to stdout; notes, and progress for
work over two seconds, to stderr. Vectors come from a file, whose ending names the format
([files](files.md)), or from a collection, named by its URL ([stores](stores.md)).

- `--json` writes one line to stdout and nothing else:
  `{"ok": true, "command": ..., "warnings": [...], "result": {...}}`, or
  `{"ok": false, "error": {"kind", "expected", "got", "do", "exit_code"}}`. A number that is not
  known is `null`.
- `--quiet` leaves out progress, notes and what was written where; tables that were asked for
  remain.
- A verdict is a result: `fit` writes the bridge with it, `link` the links, and both exit 0.
  `--require bridge` (`pre_aligned` is enough), or `--require linked`, turns a lesser verdict into
  an error; what was made is written all the same.
- Exit codes: [errors.md](errors.md). A reader that closes the pipe is no error.
"""

ERRORS_HEAD = """\
# Errors and exit codes

<!-- Made by `python -m isthmus.cli.reference docs`; change `isthmus/errors.py`, not this page. -->

Every error says what was expected, what was got, and what to do. In Python each is a class of
`isthmus.errors` with the attributes `expected`, `got`, `do` and `exit_code`, and it is the built-in
exception that fits, too. On the command line it is one or two lines on stderr, or with `--json` one
envelope on stdout, and the exit code of its class.

| exit code | kind | also a | what |
|---|---|---|---|
"""

ERRORS_TAIL = f"""
Other exit codes: 0, done, also where a verdict is less than one hoped for; {UNEXPECTED}, an error
that is not one of these, in one line; {USAGE}, a command line that cannot be read (`UsageError`);
{INTERRUPTED}, interrupted by Ctrl-C (`Interrupted`); 143 and 129, ended by SIGTERM and SIGHUP
(`Terminated`). Set `{TRACEBACK}=1` to see the traceback of
any of them.
"""


def cli_page() -> str:
    """Return the page of all commands."""
    from isthmus.cli.app import command

    return CLI_HEAD + "".join(_sections(command(), "isthmus"))


def errors_page() -> str:
    """Return the page of all error classes, by exit code."""
    classes = sorted(
        (getattr(errors, name) for name in errors.__all__), key=lambda kind: kind.exit_code
    )
    rows = [
        _row([str(kind.exit_code), f"`{kind.__name__}`", _builtin(kind), _first_line(kind)])
        for kind in classes
    ]
    return ERRORS_HEAD + "".join(rows) + ERRORS_TAIL


def write_pages(folder: Path) -> None:
    """Write both pages."""
    (folder / "cli.md").write_text(cli_page(), encoding="utf-8")
    (folder / "errors.md").write_text(errors_page(), encoding="utf-8")


def _sections(command: Any, name: str) -> Iterator[str]:
    """Yield the section of every command below this one."""
    for word, inner in getattr(command, "commands", {}).items():
        # the command that is meant where none is named is shown without a name
        full = name if word == getattr(command, "default", None) else f"{name} {word}"
        if hasattr(inner, "commands"):
            yield from _sections(inner, full)
            continue
        arguments = [one for one in inner.params if one.param_type_name == "argument"]
        options = [one for one in inner.params if one.param_type_name == "option"]
        usage = " ".join([full, *(one.metavar for one in arguments), *map(_usage, options)])
        yield f"\n## {full}\n\n    {usage}\n\n{_paragraphs(inner.help)}\n\n"
        yield _row(["", "default", ""]) + "|---|---|---|\n"
        yield from (_row([f"`{one.metavar}`", "", one.help]) for one in arguments)
        yield from (_row([f"`{_spell(one)}`", _default(one), one.help]) for one in options)


def _usage(option: Any) -> str:
    spelled = _spell(option)
    return spelled if option.required else f"[{spelled}]"


def _spell(option: Any) -> str:
    if option.is_flag:
        return str(option.opts[0])
    return f"{option.opts[0]} {option.metavar or 'N'}"


def _default(option: Any) -> str:
    if option.required:
        return "required"
    return "" if option.is_flag or option.default is None else f"`{option.default}`"


def _paragraphs(text: str) -> str:
    parts = (" ".join(part.split()) for part in text.split("\n\n"))
    return "\n\n".join(textwrap.fill(part, 100, break_on_hyphens=False) for part in parts)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _builtin(kind: type[Exception]) -> str:
    """Name the built-in exceptions that a class is, nearest first."""
    builtin = [base for base in kind.__mro__ if base.__module__ == "builtins"]
    named = [
        base.__name__
        for base in builtin
        if base not in (Exception, BaseException, object)
        and not any(base is not other and issubclass(other, base) for other in builtin)
    ]
    return ", ".join(f"`{name}`" for name in named) or "`Exception`"


def _first_line(kind: type[Exception]) -> str:
    return (kind.__doc__ or "").partition("\n")[0]


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
