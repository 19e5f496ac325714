"""What Isthmus records with a collection: its space, its layout and the notes of jobs.

A record is a mapping of text to text, kept wherever the database has a place for it. Its keys begin
with the name of the vector that they are about (empty: the first one), so that one record serves a
collection whose rows have several.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from isthmus._types import Metric
from isthmus.errors import CorruptStoreError, InputError
from isthmus.spaces import Space
from isthmus.spaces.io.space_json import dump_space

__all__ = ["LAYOUT", "Record", "is_unrecorded", "unrecorded"]

UNRECORDED = "not recorded: "
LAYOUT = "isthmus 1"
"""Layout of the collections that Isthmus makes; those of other programs have none recorded."""


@dataclass(frozen=True)
class Record:
    """The entries of one collection, seen from one of its vectors.

    Parameters
    ----------
    entries : mapping of str to str
        All of them.
    vector : str, default ""
        Name of the vector.

    Examples
    --------
    >>> record = Record({}).with_space(Space(model="m", dim=2), own=True)
    >>> record.space().dim, record.own, record.with_notes({"cursor": "4"}).notes()
    (2, True, {'cursor': '4'})
    """

    entries: Mapping[str, str]
    vector: str = ""

    def space(self) -> Space | None:
        """Return the recorded space, None where there is none.

        Raises
        ------
        CorruptStoreError
        """
        text = self.entries.get(f"{self.vector}:space")
        if text is None:
            return None
        try:
            space = Space.from_json(text)
        except InputError as error:
            raise CorruptStoreError(
                expected="the record of a space", got=error.got, do="record it again"
            ) from error
        if self.entries.get(f"{self.vector}:fingerprint") != space.fingerprint:
            raise CorruptStoreError(
                expected="a recorded space and its fingerprint",
                got="two that do not belong together",
                do="find out who changed the record; then record the space again",
            )
        return space

    @property
    def own(self) -> bool:
        """Whether Isthmus made the collection."""
        return self.entries.get(":layout") == LAYOUT

    def with_space(self, space: Space, *, own: bool) -> Record:
        """Return the record with a space, and with the layout where Isthmus made the collection."""
        added = {
            f"{self.vector}:space": dump_space(space),
            f"{self.vector}:fingerprint": space.fingerprint,
        }
        if own:
            added[":layout"] = LAYOUT
        return Record({**self.entries, **added}, self.vector)

    def notes(self) -> dict[str, str]:
        """Return the notes of jobs."""
        start = f"{self.vector}:note:"
        return {
            key.removeprefix(start): text
            for key, text in self.entries.items()
            if key.startswith(start)
        }

    def with_notes(self, notes: Mapping[str, str]) -> Record:
        """Return the record with notes; the empty text removes one."""
        added = {f"{self.vector}:note:{key}": text for key, text in notes.items()}
        entries = {key: text for key, text in {**self.entries, **added}.items() if text}
        return Record(entries, self.vector)


def unrecorded(url: str, dim: int, metric: Metric) -> Space:
    """Return the space of a collection of which nobody said what made it: it matches no other.

    Examples
    --------
    >>> unrecorded("duckdb:///a.db?collection=docs", 2, "cosine").model
    'not recorded: duckdb:///a.db?collection=docs'
    """
    return Space(model=f"{UNRECORDED}{url}", dim=dim, metric=metric)


def is_unrecorded(space: Space) -> bool:
    """Whether a space is that of a collection of which nobody said what made it."""
    return space.model.startswith(UNRECORDED)
