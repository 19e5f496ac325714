"""Checks and notes that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from isthmus.cli.output import Output
from isthmus.errors import UnknownNameError

if TYPE_CHECKING:
    from isthmus.bridge import Bridge

__all__ = ["as_dtype", "check_required", "check_verdict", "check_writable", "warn_of_verdict"]

DType = Literal["float16", "float32"]
REQUIRABLE = ("bridge", "pre_aligned")


def as_dtype(name: str) -> DType:
    """Return the number type of that name.

    Raises
    ------
    UnknownNameError
    """
    if name not in get_args(DType):
        raise UnknownNameError.of("number type", name, get_args(DType))
    return cast("DType", name)


def check_writable(folder: Path) -> None:
    """Refuse a folder that no bridge can be written to, before one is fitted for it.

    Raises
    ------
    WriteFailedError
    """
    from isthmus._files import check_folder_writable
    from isthmus.bridge.artifact import _check_replaceable

    check_folder_writable(folder.resolve())
    _check_replaceable(folder.resolve())


def check_required(required: str | None) -> None:
    """Refuse a verdict that nobody can require, before any work is done.

    Raises
    ------
    UnknownNameError
    """
    if required is not None and required not in REQUIRABLE:
        raise UnknownNameError.of("verdict to require", required, REQUIRABLE)


def check_verdict(bridge: Bridge, required: str | None) -> None:
    """Refuse a bridge whose verdict is less than what ``--require`` names.

    Raises
    ------
    UnknownNameError, VerdictError
    """
    check_required(required)
    if required is not None:
        bridge.require(required)


def warn_of_verdict(bridge: Bridge, output: Output, *, what: str = "") -> None:
    """Note a verdict that says: do not rely on this; ``what`` says of what, where it needs it."""
    if bridge.verdict.status not in REQUIRABLE:
        output.warn(f"{what}the verdict is {bridge.verdict.status}: {bridge.verdict.reason}")
