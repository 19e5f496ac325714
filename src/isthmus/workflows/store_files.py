"""Between a store and a file, batch by batch, with the metadata of the rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from isthmus._files import check_file_writable, check_folder_writable
from isthmus._progress import Track, silent
from isthmus._validate import check_positive
from isthmus.errors import EmptyInputError, UnsupportedOperationError
from isthmus.spaces import Space
from isthmus.spaces.io import FORMATS, Part, format_of, open_records, open_writer
from isthmus.stores import open_store
from isthmus.stores.base import Batch, Store

__all__ = ["Exported", "Imported", "export_store", "import_file"]

BATCH_ROWS = 10_000
JSON_NUMBER = 12
"""Characters of a number in JSON, about: only to guess how many rows a file of lines has."""


@dataclass(frozen=True)
class Imported:
    """What came of an import.

    Parameters
    ----------
    url : str
    rows : int
        Rows that were read and written.
    new : int
        How many of them were not there before.
    count : int
        Rows of the collection now.
    taken : str
        Which columns or keys of the file were read, in words; empty for files of Isthmus.
    without_metadata : int
        Rows whose metadata the store does not keep.
    added_from, there_from : str
        Hash of the bridge that mapped the vectors of the file, and of the one that mapped those
        of the collection; empty for native ones.
    """

    url: str
    rows: int
    new: int
    count: int
    taken: str
    without_metadata: int
    added_from: str
    there_from: str

    @property
    def mixed(self) -> bool:
        """Whether vectors of two origins lie side by side now."""
        return self.new < self.count and self.added_from != self.there_from


@dataclass(frozen=True)
class Exported:
    """What came of an export.

    Parameters
    ----------
    path : Path
    url : str
    rows : int
    with_metadata : int
        Rows whose metadata were written.
    space : Space
    seconds : float
    """

    path: Path
    url: str
    rows: int
    with_metadata: int
    space: Space
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**vars(self), "path": str(self.path), "space": self.space.to_dict()}


def import_file(
    url: str,
    path: Path | str,
    *,
    space: Space | None = None,
    batch_rows: int = BATCH_ROWS,
    track: Track[Part] = silent,
) -> Imported:
    """Write the rows of a file, with their metadata, to a collection.

    It is created when it is not there; rows with ids that are there already are replaced. Batches
    are committed one by one: run it again after an interruption. Memory: see `open_records`.

    Parameters
    ----------
    url : str
        URL of a store.
    path : path
        A file of vectors.
    space : Space, optional
        Needed where the file names none.
    batch_rows : int, default 10,000
    track : Track, default silent
        One step per batch.

    Raises
    ------
    MissingFileError, UnknownFormatError, CorruptFileError, InputError
        Before anything is written, or at the batch where the file is wrong; what was written
        before it stays.
    SpaceMismatchError, StoreError
    """
    records = open_records(path, space=space, batch_rows=batch_rows)
    expected = records.rows or records.path.stat().st_size // (JSON_NUMBER * records.space.dim)
    steps = -(-max(expected, 1) // batch_rows)
    rows = without = 0
    with open_store(url, space=records.space) as store:
        before = store.count()
        for part in track(records, "writing", steps):
            held = sum(map(bool, part.metadata))
            keeps = store.capabilities.filters
            store.upsert(part.vectors, metadata=part.metadata if held and keeps else None)
            rows += len(part.vectors)
            without += 0 if keeps else held
        after, shown, there = store.count(), store.url, store.space.bridged_from
    added = records.space.bridged_from
    return Imported(shown, rows, after - before, after, records.taken, without, added, there)


def export_store(
    store: Store | str,
    out: Path | str,
    *,
    dtype: Literal["float16", "float32"] = "float32",
    metadata: bool = True,
    batch_rows: int = BATCH_ROWS,
    track: Track[Batch] = silent,
) -> Exported:
    """Write a collection to a file, with the metadata of its rows.

    Memory holds one batch and the ids; with ``.safetensors``, ``.faiss`` and ``.index`` all.

    Parameters
    ----------
    store : Store, or its URL
    out : path
        The ending names the format; it appears when all rows are written.
    dtype : {"float16", "float32"}, default "float32"
        Number type on disk; the default keeps what the store gives.
    metadata : bool, default True
        Write the metadata too.
    batch_rows : int, default 10,000
    track : Track, default silent
        One step per batch.

    Raises
    ------
    UnsupportedOperationError
        Rows with metadata, and a format that keeps none.
    EmptyInputError
        A collection without rows.
    CountMismatchError
        Rows that came or went while it was read; nothing is written.
    UnknownFormatError, WriteFailedError, StoreError
    """
    start, path = time.monotonic(), Path(out)
    check_positive(batch_rows, name="batch_rows")
    form = format_of(path)
    (check_folder_writable if form.suffix == ".vdf" else check_file_writable)(path)
    if isinstance(store, str):
        with open_store(store) as opened:
            return export_store(
                opened, path, dtype=dtype, metadata=metadata, batch_rows=batch_rows, track=track
            )
    rows = store.count()
    if not rows:
        raise EmptyInputError(
            expected="a collection with rows", got=f"none in {store.url}", do="name another one"
        )
    batches = track(store.scan(batch_size=batch_rows), "exporting", -(-rows // batch_rows))
    keeps = metadata and form.keeps_metadata
    with open_writer(path, store.space, rows=rows, dtype=dtype, metadata=keeps) as writer:
        count = 0
        for batch in batches:
            held = sum(map(bool, batch.metadata)) if metadata else 0
            if held and not keeps:
                raise _keeps_none(path)
            writer.write(batch.vectors, batch.metadata if keeps else None)
            count += held
    return Exported(path, store.url, rows, count, store.space, time.monotonic() - start)


def _keeps_none(path: Path) -> UnsupportedOperationError:
    able = [name for name, form in FORMATS.items() if form.keeps_metadata]
    return UnsupportedOperationError(
        expected=f"a file that keeps metadata: {', '.join(able)}",
        got=f"rows with metadata for {path.name!r}",
        do="choose one of these endings, or leave the metadata out (--no-metadata)",
    )
