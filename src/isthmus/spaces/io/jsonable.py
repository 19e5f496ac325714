"""Metadata as JSON values, in and out."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Mapping
from typing import Any

from isthmus.errors import InputError

__all__ = ["clean", "dump_metadata", "joined", "parse_object", "plain"]


def plain(value: Any) -> Any:
    """Return a cell of a table as a JSON value: times in ISO 8601, bytes in base64, others as text.

    Examples
    --------
    >>> plain(dt.date(2020, 1, 2)), plain((1, float("nan")))
    ('2020-01-02', [1, None])
    """
    match value:
        case None | str() | bool() | int():
            made: Any = value
        case float():
            made = value if math.isfinite(value) else None
        case Mapping():
            made = {str(name): plain(each) for name, each in value.items()}
        case list() | tuple():
            made = [plain(each) for each in value]
        case dt.date() | dt.time():
            made = value.isoformat()
        case bytes():
            made = base64.b64encode(value).decode()
        case _:
            made = str(value)
    return made


def clean(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of a row as JSON values, without those that are empty."""
    made = {name: plain(value) for name, value in row.items()}
    return {name: value for name, value in made.items() if value is not None}


def joined(beside: Mapping[str, Any], inside: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields beside an object of metadata and those in it.

    Raises
    ------
    InputError
        A field in both places with two values.
    """
    twice = [name for name in beside if name in inside and beside[name] != inside[name]]
    if twice:
        raise InputError(
            expected="each field of a row once",
            got=f"{twice[0]!r} beside the metadata and in them, with two values",
            do="rename one of them",
        )
    return {**beside, **inside}


def parse_object(text: Any) -> dict[str, Any] | None:
    """Read a JSON object from text; None where it is something else."""
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def dump_metadata(row: Mapping[str, Any]) -> str:
    """Return the metadata of a row as JSON.

    Raises
    ------
    InputError
        Something that JSON cannot hold.
    """
    try:
        text = json.dumps(dict(row), ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            expected="metadata of JSON values", got=str(error)[:100], do="turn it into text"
        ) from error
    return text
