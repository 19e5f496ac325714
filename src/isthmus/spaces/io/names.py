"""Which column, array or key holds the ids and the vectors, in files that others wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from isthmus.errors import InputError
from isthmus.spaces.io.base import corrupt

__all__ = ["looks_like_vector", "pick_id", "pick_vector"]

ID_NAMES = (
    ("id", "_id", "ids", "uuid"),
    ("doc_id", "document_id", "docid", "pk", "primary_key", "key", "chunk_id", "point_id"),
)
"""Names of ids: only where none of the first group is there, one of the second is taken, since a
``doc_id`` beside an ``id`` names something else, such as the text that a passage is part of."""
VECTOR_NAMES = {"values", "emb", "embs", "vec", "vecs", "dense"}
VECTOR_PARTS = ("vector", "embedding")
VECTOR_ENDS = ("_emb", "_vec")


def looks_like_vector(name: str) -> bool:
    """Tell whether a column of this name is one of vectors.

    Examples
    --------
    >>> [looks_like_vector(name) for name in ("title_vector", "values", "scores", "sparse_vector")]
    [True, True, False, False]
    """
    low = name.lower()
    named = low in VECTOR_NAMES or low.endswith(VECTOR_ENDS)
    return (named or any(part in low for part in VECTOR_PARTS)) and "sparse" not in low


def pick_id(names: Sequence[str], asked: str, *, path: Path, what: str) -> str:
    """Return the name under which the ids stand.

    Parameters
    ----------
    names : sequence of str
        All that are there.
    asked : str
        What the caller named, or empty.
    path : Path
    what : str
        What the names are of, for the message: ``column``, ``array`` or ``key``.

    Raises
    ------
    CorruptFileError
        None is there.
    InputError
        Several are.
    """
    if asked:
        return _asked(names, asked, path=path, what=what)
    for group in ID_NAMES:
        found = [name for name in names if name.lower() in group]
        if len(found) == 1:
            return found[0]
        if found:
            raise several(found, path=path, what=what, of="id")
    raise corrupt(
        path,
        expected=f"ids under one {what}, such as 'id', '_id' or 'doc_id'",
        got=f"{what}s {_few(names)}",
        do=f"name the {what} after the path: {path.name}?id=NAME",
    )


def pick_vector(
    candidates: Iterable[str],
    asked: str,
    *,
    names: Sequence[str],
    path: Path,
    what: str,
    told: Sequence[str] | None = None,
) -> str:
    """Return the name under which the vectors stand.

    Parameters
    ----------
    candidates : iterable of str
        Those that hold one list of numbers a row.
    asked, names, path, what
        See `pick_id`.
    told : sequence of str, optional
        The names with their types, for the message.

    Raises
    ------
    CorruptFileError, InputError
    """
    if asked:
        return _asked(names, asked, path=path, what=what)
    able = list(candidates)
    found = [name for name in able if looks_like_vector(name)] or able
    if len(found) == 1:
        return found[0]
    if found:
        raise several(found, path=path, what=what, of="vector")
    raise corrupt(
        path,
        expected=f"lists of numbers under one {what}, such as 'vector' or 'embedding'",
        got=f"{what}s {_few(names) if told is None else ', '.join(told)[:200]}",
        do=f"write the vectors as lists of numbers, or name the {what}: {path.name}?vector=NAME",
    )


def several(found: Sequence[str], *, path: Path, what: str, of: str) -> InputError:
    """Make the error for names that are all as good."""
    return InputError(
        expected=f"one {what} of {path.name!r} as the {of}",
        got=f"{len(found)}: {_few(found)}",
        do=f"name one after the path: {path.name}?{of}={found[0]}",
    )


def _asked(names: Sequence[str], asked: str, *, path: Path, what: str) -> str:
    if list(names).count(asked) != 1:
        raise corrupt(
            path,
            expected=f"the {what} {asked!r}, once",
            got=f"{what}s {_few(names)}",
            do=f"name one that is there, or leave it away: {path.name}",
        )
    return asked


def _few(names: Sequence[str]) -> str:
    return (", ".join(map(repr, names[:8])) or "none")[:200]
