"""Metadata as Chroma keeps them: flat values and a document, and what it cannot keep beside them.

Chroma keeps text, numbers, true and false under most keys. Everything else (null, lists, mappings,
the empty text as a document, keys that it reserves) goes into one field as JSON, with a token for
each value that ``where`` may ask for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from isthmus.stores._digits import exact_copy, restored
from isthmus.stores._tokens import token

__all__ = ["DOCUMENT", "from_chroma", "to_chroma", "where_chroma"]

DOCUMENT = "document"
"""Key under which the text of a Chroma document is found among the metadata, by default."""
OURS = "isthmus_"
BESIDE = f"{OURS}json"
NUMBERS = f"{OURS}exact"
TOKEN = f"{OURS}token_"
RESERVED = ("$", "#", "chroma:", OURS)


def to_chroma(metadata: str | None, *, document: str) -> tuple[dict[str, Any], str]:
    """Return the metadata of a row, given as JSON text, as Chroma's fields and its document.

    Examples
    --------
    >>> to_chroma('{"year": 2020, "document": "a text"}', document="document")
    ({'year': 2020}, 'a text')
    >>> to_chroma('{"tags": ["a"]}', document="document")
    ({'isthmus_json': '{"tags": ["a"]}'}, '')
    """
    fields: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    text = ""
    for key, value in (json.loads(metadata) if metadata else {}).items():
        if key == document and isinstance(value, str) and value:
            text = value
        elif _is_field(key, value, document):
            fields[key] = value
        else:
            beside[key] = value
            if value is None or isinstance(value, str | int | float):
                fields[TOKEN + token(key, value)] = True
    copy = exact_copy(fields)
    if copy is not None:
        fields[NUMBERS] = copy
    if beside:
        fields[BESIDE] = json.dumps(beside, ensure_ascii=False)
    return fields, text


def from_chroma(fields: Mapping[str, Any] | None, text: str | None, *, document: str) -> str | None:
    """Return Chroma's fields and document as JSON text; a field wins over the document.

    Examples
    --------
    >>> from_chroma({"year": 2020}, "a text", document="document")
    '{"document": "a text", "year": 2020}'
    """
    found: dict[str, Any] = {document: text} if text else {}
    for key, value in (fields or {}).items():
        if key == BESIDE:
            found |= _beside(value)
        elif key != NUMBERS and not key.startswith(TOKEN):
            found[key] = value
    if fields and NUMBERS in fields:
        found = restored(found, fields[NUMBERS])
    return json.dumps(found, ensure_ascii=False, default=vars) if found else None


def _beside(value: Any) -> dict[str, Any]:
    """Read what Chroma cannot keep; a field of that name that another program wrote is a field."""
    try:
        return dict(json.loads(value))
    except (TypeError, ValueError):
        return {BESIDE: value}


def where_chroma(where: Mapping[str, Any], *, document: str) -> dict[str, Any] | None:
    """Return a filter as Chroma writes it; it knows numbers as numbers, and true from 1.

    No text of a document is asked for here: see `ChromaCollection`.

    Examples
    --------
    >>> where_chroma({"year": 2020, "odd": True}, document="document")
    {'$and': [{'year': {'$eq': 2020}}, {'odd': {'$eq': True}}]}
    """
    parts = [
        {key: {"$eq": value}}
        if _is_field(key, value, document)
        else {TOKEN + token(key, value): {"$eq": True}}
        for key, value in where.items()
    ]
    return {"$and": parts} if len(parts) > 1 else parts[0] if parts else None


def _is_field(key: str, value: object, document: str) -> bool:
    if key == document and isinstance(value, str):
        return False
    return isinstance(value, str | int | float) and key != "" and not key.startswith(RESERVED)
