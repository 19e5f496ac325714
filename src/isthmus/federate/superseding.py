"""Two stores of the same ids, one of which replaces the other row by row: a migration under way.

Where both give a row for a query, that of the newer store counts, and the other is left out, so
that each id comes once. What the newer store does not have yet, or does not find, comes from the
older one: an answer lacks nothing that the older store alone would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from isthmus.errors import ParameterError, UnknownNameError
from isthmus.federate.candidates import first_columns

if TYPE_CHECKING:
    from isthmus.federate.gather import Catch
    from isthmus.federate.source import Source

__all__ = ["check_superseding", "newer_of", "without_superseded"]


def newer_of(sources: Sequence[Source]) -> dict[int, list[int]]:
    """Return, by place, the places of the sources that replace a source, nearest first.

    Raises
    ------
    UnknownNameError
        A source that none is called like.
    ParameterError
        Two sources replace one, or some replace each other in a circle.
    """
    return _newer({source.name: source.supersedes for source in sources})


def check_superseding(older: dict[str, str | None]) -> None:
    """Refuse what `newer_of` refuses; ``older`` is the name that each name replaces, or None."""
    _newer(older)


def _newer(older: dict[str, str | None]) -> dict[int, list[int]]:
    names = list(older)
    newer: dict[str, str] = {}
    for name, old in older.items():
        if old is None:
            continue
        if old not in older:
            raise UnknownNameError.of("store to supersede", old, names)
        if old in newer:
            raise _circle(f"{newer[old]!r} and {name!r} supersede {old!r}")
        newer[old] = name
    found = {}
    for name in newer:
        chain = [name]
        while chain[-1] in newer:
            chain.append(newer[chain[-1]])
            if chain[-1] == name:
                raise _circle(" supersedes ".join(map(repr, reversed(chain))))
        found[names.index(name)] = [names.index(one) for one in chain[1:]]
    return found


def _circle(got: str) -> ParameterError:
    return ParameterError(
        expected="one newer store for a store, in a line", got=got, do="correct supersedes"
    )


def without_superseded(catches: Sequence[Catch], newer: dict[int, list[int]]) -> list[Catch]:
    """Return the catches; a row is left out where a newer source has it for the same query.

    Parameters
    ----------
    catches : sequence of Catch
        One per source, all of one shape (m, depth).
    newer : dict
        What `newer_of` gave.
    """
    kept = list(catches)
    for place, others in newer.items():
        catch = catches[place]
        ids = np.concatenate([*(catches[one].ids for one in others), catch.ids], axis=1)
        before = ids.shape[1] - catch.ids.shape[1]
        gone = (first_columns(ids, merge=True)[:, before:] < before) & (catch.ids != "")
        if not gone.any():
            continue
        nothing = np.float32("nan")
        vectors = catch.vectors
        kept[place] = replace(
            catch,
            ids=np.where(gone, "", catch.ids),
            similarities=np.where(gone, nothing, catch.similarities),
            vectors=None
            if vectors is None
            else replace(vectors, rows=np.where(gone, -1, vectors.rows)),
            common=None if catch.common is None else np.where(gone, nothing, catch.common),
        )
    return kept
