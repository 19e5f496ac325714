"""Hashes of Redis as rows, and rows as hashes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from isthmus.errors import InputError
from isthmus.stores._connected import Rows
from isthmus.stores._redis_filter import to_metadata
from isthmus.stores._redis_index import Index
from isthmus.stores._tokens import tokens

__all__ = ["METADATA", "TOKENS", "VECTOR", "fields_of", "list_keys", "piped", "read_rows"]

VECTOR, METADATA, TOKENS = "vector", "metadata", "tokens"
AT_ONCE = 10_000


def fields_of(index: Index, metadata: str | None) -> dict[str, str]:
    """Return what a hash keeps beside the vector.

    Raises
    ------
    InputError
        Values that a hash of another program cannot keep as they are.
    """
    if metadata is None:
        return {}
    if index.own:
        return {METADATA: metadata, TOKENS: ",".join(tokens(metadata))}
    fields = json.loads(metadata)
    for name, value in fields.items():
        if name == index.vector.name or isinstance(value, bool) or not isinstance(value, KEPT):
            raise InputError(
                expected="metadata of text and numbers, as fields of hashes beside the vector",
                got=f"{name!r}: {str(value)[:40]!r}",
                do="write it as text, or leave it out",
            )
    return {
        name: value if isinstance(value, str) else repr(value) for name, value in fields.items()
    }


KEPT = (str, int, float)


def read_rows(client: Any, index: Index, keys: Sequence[bytes], *, vectors: bool) -> Rows:
    """Read hashes; those that are gone, or have no vector, are no rows."""
    found: list[Mapping[bytes, bytes]]
    if index.own:
        names = (VECTOR.encode(), METADATA.encode())
        answers = piped(client, "HMGET", keys, *names)
        found = [
            {name: value for name, value in zip(names, values, strict=True) if value is not None}
            for values in answers
        ]
    else:
        found = piped(client, "HGETALL", keys)
    field = index.vector.name.encode()
    there = [(key, one) for key, one in zip(keys, found, strict=True) if one.get(field)]
    matrix, other = np.empty((len(there), 0), np.float32), None
    if vectors:
        matrix, other = index.to_vectors([one[field] for _, one in there])
    ids = [index.id_of(key) for key, _ in there]
    return Rows(ids, matrix, [to_metadata(index, one) for _, one in there], other)


def piped(client: Any, command: str, keys: Sequence[bytes], *rest: Any) -> list[Any]:
    """Send one command for each key, many in one round trip."""
    answers: list[Any] = []
    for start in range(0, len(keys), AT_ONCE):
        with client.pipeline(transaction=False) as pipe:
            for key in keys[start : start + AT_ONCE]:
                pipe.execute_command(command, key, *rest)
            answers += pipe.execute()
    return answers


def list_keys(client: Any, index: Index) -> list[bytes]:
    """Return the keys of all hashes of an index in the order of their bytes."""
    found: set[bytes] = set()
    for prefix in index.prefixes:
        pattern = re.sub(r"([*?\[\]\\^-])", r"\\\1", "" if prefix == "*" else prefix) + "*"
        found.update(client.scan_iter(match=pattern, count=AT_ONCE, _type="HASH"))
    ours = b"isthmus:record:"
    return sorted(key for key in found if not key.startswith(ours))
