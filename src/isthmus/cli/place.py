"""Where a command finds vectors: in a file, or in a collection of a store."""

from __future__ import annotations

from pathlib import Path, PurePath

__all__ = ["Place"]


class Place(str):
    """The path of a file, or the URL of a store.

    Examples
    --------
    >>> Place("data/one.npz").name, Place("sqlite:///one.db?collection=docs").name
    ('one.npz', 'sqlite:///one.db?collection=docs')
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """What a table or a note calls it."""
        return str(self) if "://" in self else PurePath(self).name

    @property
    def file(self) -> Path | None:
        """The path, None for a store."""
        return None if "://" in self else Path(self)
