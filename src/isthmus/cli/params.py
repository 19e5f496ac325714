"""Parameters of a method on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isthmus.errors import ParameterError

__all__ = ["as_pairs", "as_params", "as_training_params"]


def as_pairs(path: Path | None) -> Path | str | None:
    """Read what stands for pairs or seeds: a file, or the word ``none``.

    Examples
    --------
    >>> as_pairs(Path("none")), as_pairs(None)
    ('none', None)
    """
    from isthmus.workflows._opening import NONE_GIVEN

    return NONE_GIVEN if path == Path(NONE_GIVEN) else path


def as_params(texts: list[str]) -> dict[str, Any]:
    """Read ``NAME=VALUE``: numbers, true, false and null as JSON has them, all else as text."""
    params: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier() or name in {"name", *params}:
            raise ParameterError(
                expected="--param NAME=VALUE, each name once",
                got=repr(text),
                do="give a parameter of the method",
            )
        try:
            params[name] = json.loads(value)
        except (ValueError, RecursionError):
            params[name] = value
    return params


def as_training_params(
    texts: list[str] | None, device: str | None, checkpoint: Path | None
) -> dict[str, Any]:
    """Return the parameters of a method with those that have options of their own."""
    params = as_params(texts or [])
    if device is not None:
        params["device"] = device
    if checkpoint is not None:
        params["checkpoint"] = str(checkpoint)
    return params
