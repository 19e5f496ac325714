"""Which column of a table has the ids and the vectors, where a file of columns is the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from isthmus.errors import (
    DuplicateIdError,
    InvalidIdError,
    MissingCollectionError,
    ParameterError,
)
from isthmus.spaces.io.names import ID_NAMES, looks_like_vector

__all__ = [
    "Given",
    "check_ids",
    "no_first_collection",
    "not_the_first",
    "only",
    "pick_id",
    "pick_vector",
    "unclear",
]


@dataclass(frozen=True)
class Given:
    """What a table has.

    Parameters
    ----------
    columns : mapping of str to str
        Names and types.
    options : mapping of str to str
        Of the URL: ``id``, ``column`` and ``vector`` name columns.
    own : str, default ""
        Column of the vectors in the tables that Isthmus makes; empty where another program made it.
    """

    columns: Mapping[str, str]
    options: Mapping[str, str]
    own: str = ""


def pick_id(given: Given, able: Iterable[str]) -> str:
    """Return the column of the ids: the one asked for, or the only one whose name says so.

    Raises
    ------
    ParameterError
        None or several do; nothing is guessed.

    Examples
    --------
    >>> pick_id(Given({"id": "INT", "doc_id": "TEXT"}, {}), ["id", "doc_id"])
    'id'
    """
    if asked := given.options.get("id"):
        return asked
    names = sorted(able)
    for group in ID_NAMES:
        found = [name for name in names if name.lower() in group]
        if found:
            return only(found, what="the ids", option="id")
    raise _unnamed(given, what="the ids", option="id")


def pick_vector(given: Given, able: Iterable[str], *, further: Iterable[str]) -> str:
    """Return the column of the vectors: the one asked for, or the only one that it can be.

    Parameters
    ----------
    given : Given
    able : iterable of str
        Columns of the type of vectors.
    further : iterable of str
        Those that are recorded as further vectors.

    Raises
    ------
    ParameterError
        None or several can be; nothing is guessed.
    """
    if asked := given.options.get("vector") or given.options.get("column"):
        return asked
    first = sorted(set(able) - set(further))
    if given.own in first:
        return given.own
    found = [name for name in first if looks_like_vector(name)] or first
    if found:
        return only(found, what="the vectors", option="column")
    raise _unnamed(given, what="the vectors", option="column")


def only(found: list[str], *, what: str, option: str) -> str:
    """Return the one column that there is.

    Raises
    ------
    ParameterError
        There are several.
    """
    if len(found) == 1:
        return found[0]
    raise ParameterError(
        expected=f"one column that can only be {what}",
        got=f"{len(found)} of them: {', '.join(map(repr, found))[:300]}",
        do=f"name one in the URL: &{option}={found[0]}",
    )


def _unnamed(given: Given, *, what: str, option: str) -> ParameterError:
    return unclear(
        f"one column that can only be {what}", given.columns, f"name it: &{option}=COLUMN"
    )


def unclear(expected: str, columns: Mapping[str, str], do: str) -> ParameterError:
    """Say that the columns of a table are not what they should be."""
    shown = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return ParameterError(expected=expected, got=f"the columns {shown[:300]}", do=do)


def check_ids(column: str, *, rows: int, there: int, different: int, url: str) -> None:
    """Refuse a column of ids that has none in some rows, or the same in several.

    Raises
    ------
    InvalidIdError, DuplicateIdError
    """
    if there < rows:
        raise InvalidIdError(
            expected=f"an id in every row of {url}",
            got=f"{rows - there:,} rows without one in the column {column!r}",
            do="fill them, or name another column: &id=COLUMN",
        )
    if different < there:
        raise DuplicateIdError(
            expected=f"ids that are all different in {url}",
            got=f"{there - different:,} that repeat in the column {column!r}",
            do="remove them, or name another column: &id=COLUMN",
        )


def not_the_first(column: str) -> ParameterError:
    """Say that ``&vector=`` names the first vector of a collection."""
    return ParameterError(
        expected="the name of a further vector",
        got=f"{column!r}, the first one of the collection",
        do="leave &vector= out",
    )


def no_first_collection(url: str) -> MissingCollectionError:
    """Say that there are no rows to which a further vector could be added."""
    return MissingCollectionError(
        expected="a collection that gets a further vector",
        got=f"none for {url}",
        do="make it first, by the URL without &vector=",
    )
