"""Metadata as tokens: for databases that filter by words, and not by any JSON value.

A row keeps one token for each key whose value is text, a number, true, false or null. Two values
have the same token exactly where ``where`` calls them equal: numbers as numbers, true and false as
no numbers.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

__all__ = ["token", "tokens"]


def token(key: str, value: str | float | None) -> str:
    """Return the token of one value: 32 hexadecimal digits.

    Examples
    --------
    >>> token("year", 2) == token("year", 2.0), token("year", 1) == token("year", True)
    (True, False)
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = json.dumps([key, type(value).__name__, value], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def tokens(metadata: str | None) -> list[str]:
    """Return the tokens of the metadata of one row, given as JSON text.

    Examples
    --------
    >>> tokens('{"year": 2, "tags": ["a"]}') == [token("year", 2)]
    True
    """
    fields: dict[str, Any] = {} if metadata is None else json.loads(metadata)
    return [
        token(key, value)
        for key, value in fields.items()
        if value is None or isinstance(value, str | int | float)
    ]
