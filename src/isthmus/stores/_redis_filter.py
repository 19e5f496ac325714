"""``where`` as a query of the search module, and hashes as metadata."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from isthmus.errors import UnsupportedOperationError
from isthmus.stores._redis_index import Field, Index
from isthmus.stores._tokens import token

__all__ = ["filter_of", "to_metadata"]


def filter_of(index: Index, where: Mapping[str, Any]) -> str | None:
    """Return the query of a filter; None where no row can have the values.

    Raises
    ------
    UnsupportedOperationError
        A field that the index cannot compare exactly.
    """
    if not where:
        return "*"
    if index.own:
        return " ".join(f"@tokens:{{{token(key, value)}}}" for key, value in where.items())
    parts = [_equal(index, name, value) for name, value in where.items()]
    return None if None in parts else " ".join(f"({part})" for part in parts)


def _equal(index: Index, name: str, value: str | float | None) -> str | None:
    field = index.fields.get(name)
    if field is None or field.type not in ("TAG", "NUMERIC"):
        able = [one.name for one in index.fields.values() if one.type in ("TAG", "NUMERIC")]
        raise UnsupportedOperationError(
            expected="a filter by fields of the index that are TAG or NUMERIC: "
            + (", ".join(able) or "none"),
            got=repr(name),
            do="add the field to the index: FT.ALTER ... SCHEMA ADD ... TAG",
        )
    if field.type == "NUMERIC":
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return f"@{_escaped(field.attribute)}:[{value!r} {value!r}]" if number else None
    if not isinstance(value, str) or not value.strip():
        return None
    return f"@{_escaped(field.attribute)}:{{{_escaped(value)}}}"


def _escaped(text: str) -> str:
    return re.sub(r"([^\w])", r"\\\1", text, flags=re.ASCII)


def to_metadata(index: Index, fields: Mapping[bytes, bytes]) -> str | None:
    """Return the fields of a hash as JSON text: numbers where the index says so, text otherwise."""
    if index.own:
        text = fields.get(b"metadata")
        return None if text is None else text.decode()
    found = {}
    for key, value in fields.items():
        try:
            name, text_ = key.decode(), value.decode()
        except UnicodeDecodeError:
            continue  # other vectors, and whatever else is not text
        field = index.fields.get(name)
        if field is None or field.type != "VECTOR":
            found[name] = _value(field, text_)
    return json.dumps(found, ensure_ascii=False) if found else None


def _value(field: Field | None, text: str) -> str | float:
    if field is not None and field.type == "NUMERIC":
        try:
            number = float(text)
        except ValueError:
            return text
        if abs(number) <= 1e300:  # neither infinity nor NaN
            return int(number) if number.is_integer() and abs(number) < 2**53 else number
    return text
