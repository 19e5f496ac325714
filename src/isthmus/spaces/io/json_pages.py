"""The rows in the JSON that vector databases export: pages of answers, columns, bulk actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from isthmus.errors import CorruptFileError, InputError
from isthmus.spaces.io.base import corrupt

__all__ = ["Row", "lifted", "rows_in", "wrong"]

Row = dict[str, Any]
HELD = ("points", "matches", "objects", "rows", "records")
"""Keys of a page under which several databases put its rows."""


def rows_in(value: Any, *, path: Path, place: str) -> Iterator[Row]:
    """Yield the rows of one JSON value: it is a row itself, or holds some.

    Raises
    ------
    CorruptFileError
        What stands where a row is expected is none.
    InputError
        A page with rows of several collections.
    """
    if isinstance(value, list):
        for number, each in enumerate(value, start=1):
            yield from rows_in(each, path=path, place=f"{place}, entry {number}")
        return
    if not isinstance(value, dict):
        raise wrong(path, place, f"{value!r:.80}")
    for opened in () if _has_numbers(value) else OPENERS:
        inside = opened(value, path, place)
        if inside is not None:
            for number, each in enumerate(inside, start=1):
                if not isinstance(each, dict):
                    raise wrong(path, f"{place}, entry {number}", f"{each!r:.80}")
                yield each
            return
    yield value


def _has_numbers(value: Row) -> bool:
    """Tell a row by a list of numbers: it may hold lists of objects, too, as a page does."""
    return any(
        isinstance(each, list) and each and set(map(type, each)) <= {int, float}
        for each in value.values()
    )


def wrong(path: Path, place: str, got: str) -> CorruptFileError:
    """Make the error for a row that is none."""
    return corrupt(
        path,
        expected=f'{{"id": ..., "vector": [...]}} in {place}',
        got=got.strip() or "an empty line",
        do="export the rows with their vectors, or repair that place",
    )


def _columns(page: Row, path: Path, place: str) -> list[Any] | None:
    """Chroma: lists of ids, embeddings, metadatas and documents side by side."""
    ids, vectors = page.get("ids"), page.get("embeddings")
    if not isinstance(ids, list) or not isinstance(vectors, list):
        return None
    if any(isinstance(each, list) for each in ids):
        raise wrong(path, place, "the answer to a query: lists of lists of ids")
    made: dict[str, list[Any]] = {"id": ids, "embedding": vectors}
    for name, single in (("metadatas", "metadata"), ("documents", "document"), ("uris", "uri")):
        if isinstance(page.get(name), list):
            made[single] = page[name]
    lengths = {name: len(column) for name, column in made.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{count} under {name!r}" for name, count in lengths.items())
        raise corrupt(path, expected=f"columns of one length in {place}", got=told)
    return [dict(zip(made, row, strict=True)) for row in zip(*made.values(), strict=True)]


def _hits(page: Row, path: Path, place: str) -> list[Any] | None:
    """Elasticsearch, OpenSearch (hits in hits) and Typesense (hits with documents)."""
    del path, place
    hits = page.get("hits")
    inner = hits.get("hits") if isinstance(hits, dict) else hits
    return inner if _is_rows(inner) else None


def _vectors(page: Row, path: Path, place: str) -> list[Any] | None:
    """Pinecone: vectors as a list, or by id."""
    del path, place
    held = page.get("vectors")
    if isinstance(held, dict) and held and all(isinstance(each, dict) for each in held.values()):
        return [{"id": name, **each} for name, each in held.items()]
    return held if _is_rows(held) else None


def _result(page: Row, path: Path, place: str) -> list[Any] | None:
    """Qdrant: points in the result, or the result itself; others under the usual keys."""
    del path, place
    result = page.get("result")
    if _is_rows(result):
        return list(result)
    inside = result if isinstance(result, dict) else page
    held = [inside[name] for name in HELD if _is_rows(inside.get(name))]
    return held[0] if len(held) == 1 else None


def _data(page: Row, path: Path, place: str) -> list[Any] | None:
    """Milvus: rows under data; Weaviate's GraphQL: by class under Get."""
    data = page.get("data")
    if _is_rows(data):
        return list(data)
    classes = data.get("Get") if isinstance(data, dict) else None
    if not isinstance(classes, dict) or not classes:
        return None
    if len(classes) > 1:
        raise InputError(
            expected=f"rows of one class in {place} of {path.name!r}",
            got=", ".join(map(repr, classes))[:200],
            do="export each class to a file of its own",
        )
    ((name, rows),) = classes.items()
    return [{**each, "class": name} for each in rows] if _is_rows(rows) else None


def _is_rows(value: Any) -> TypeGuard[list[Any]]:
    """Tell a list of objects, which may be empty."""
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


Opener = Callable[[Row, Path, str], "list[Any] | None"]
OPENERS: tuple[Opener, ...] = (_columns, _hits, _vectors, _data, _result)


def lifted(row: Mapping[str, Any]) -> tuple[Row, str]:
    """Return the fields of a row without what wraps it, and the name of its id where that is sure.

    Examples
    --------
    >>> lifted({"_id": "7", "_index": "docs", "_source": {"id": 1, "emb": [1.0]}})
    ({'id': 1, 'emb': [1.0], '_id': '7'}, '_id')
    """
    source, document, extra = (row.get(name) for name in ("_source", "document", "_additional"))
    if isinstance(source, dict) and "_id" in row:  # Elasticsearch, OpenSearch
        return {**source, "_id": row["_id"]}, "_id"
    if isinstance(document, dict):  # a hit of Typesense
        return dict(document), ""
    if isinstance(extra, dict):  # Weaviate's GraphQL
        own = {name: each for name, each in row.items() if name != "_additional"}
        kept = {name: extra[name] for name in ("id", "vector", "vectors") if name in extra}
        return {**own, **kept}, "id"
    if set(row) == {"key", "value"} and isinstance(row["value"], dict):  # Redis
        return {**row["value"], "key": row["key"]}, "key"
    return dict(row), ""
