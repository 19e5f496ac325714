"""Nearest neighbours by the search module of Redis."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from isthmus._types import FloatArray
from isthmus.stores._connected import Hits
from isthmus.stores._redis_index import Index

__all__ = ["search"]

AT_ONCE = 100
"""Queries of one round trip."""
SCORE = "isthmus_score"


def search(client: Any, index: Index, queries: FloatArray, *, k: int, chosen: str, ef: int) -> Hits:
    """Return keys and native scores.

    Parameters
    ----------
    client : redis.Redis
    index : Index
    queries : FloatArray of shape (n, dim)
    k : int
    chosen : str
        The rows to look at, as a query of the search module.
    ef : int
        Width of the search in an approximate index; 0: the index is exact.
    """
    width = " EF_RUNTIME $ef" if ef else ""
    name = re.sub(r"([^\w])", r"\\\1", index.vector.attribute, flags=re.ASCII)
    text = f"({chosen})=>[KNN $k @{name} $vector{width} AS {SCORE}]"
    rest = ("SORTBY", SCORE, "LIMIT", 0, k, "RETURN", 1, SCORE, "DIALECT", 2)
    hits: Hits = []
    vectors = index.to_bytes(queries)
    for start in range(0, len(vectors), AT_ONCE):
        with client.pipeline(transaction=False) as pipe:
            for vector in vectors[start : start + AT_ONCE]:
                given = ("k", k, "vector", vector, *(("ef", ef) if ef else ()))
                # No time limit of its own: at one, the module gives what it has so far.
                pipe.execute_command(
                    *("FT.SEARCH", index.name, text, "PARAMS", len(given), *given),
                    *(*rest, "TIMEOUT", 0),
                )
            hits += [_hits(index, answer) for answer in pipe.execute()]
    return hits


def _hits(index: Index, answer: Sequence[Any]) -> list[tuple[str, float]]:
    """Read ids and scores; the cosine of a row of zeros is not a number."""
    found = [
        (index.id_of(answer[at]), float(answer[at + 1][1])) for at in range(1, len(answer) - 1, 2)
    ]
    return [hit for hit in found if not math.isnan(hit[1])]
