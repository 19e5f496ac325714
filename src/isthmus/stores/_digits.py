"""Numbers that a database reads back with another last digit: kept a second time, as text.

Qdrant and Chroma read JSON by multiplying the digits of a number with a power of ten, which rounds
twice where one of them is no float.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["ROUNDED", "exact_copy", "reads_back", "restored"]

EXACT = 2**53
POWERS = 22
"""Of ten that a float holds exactly."""
ROUNDED = 1e-14
"""More than what reading a number in that way changes of it, as a share."""
SMALLEST = 1e-307
"""Smaller numbers have fewer digits, and may read back as 0."""


def reads_back(value: Any) -> bool:
    """Whether a JSON value comes back as it is.

    Examples
    --------
    >>> reads_back(90.33333333333333), reads_back([0.1, {"a": 1e22}])
    (False, True)
    """
    if isinstance(value, Mapping):
        return all(map(reads_back, value.values()))
    if isinstance(value, list):
        return all(map(reads_back, value))
    if not isinstance(value, float):
        return True
    digits, _, power = repr(value).lstrip("-").partition("e")
    whole, _, broken = digits.partition(".")
    broken = broken.rstrip("0")
    exponent = int(power or 0) - len(broken)
    return int(whole + broken) < EXACT and abs(exponent) <= POWERS


def exact_copy(fields: Mapping[str, Any]) -> str | None:
    """Return those fields as JSON text that would come back otherwise, None where all are well.

    Examples
    --------
    >>> exact_copy({"a": 0.5, "b": 90.33333333333333})
    '{"b": 90.33333333333333}'
    """
    odd = {key: value for key, value in fields.items() if not reads_back(value)}
    return json.dumps(odd, ensure_ascii=False) if odd else None


def restored(fields: Mapping[str, Any], copy: Any) -> dict[str, Any]:
    """Return fields with their last digits, where no other program changed them since.

    Examples
    --------
    >>> restored({"b": 90.33333333333331}, '{"b": 90.33333333333333}')
    {'b': 90.33333333333333}
    >>> restored({"b": 7}, '{"b": 90.33333333333333}')
    {'b': 7}
    """
    try:
        kept = dict(json.loads(copy))
    except (TypeError, ValueError):  # of another program
        return dict(fields)
    return {
        key: kept[key] if key in kept and _nearly(kept[key], value) else value
        for key, value in fields.items()
    }


def _nearly(one: Any, other: Any) -> bool:
    """Whether two values are the same but for the last digits of their numbers."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_nearly(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_nearly, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return abs(one - other) <= max(abs(one) * ROUNDED, SMALLEST)
    return bool(one == other)
