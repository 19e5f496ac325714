"""Files of vectors with their metadata, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from isthmus._validate import check_positive
from isthmus.errors import DuplicateIdError
from isthmus.spaces.io.asked import Asked
from isthmus.spaces.io.base import Stream
from isthmus.spaces.io.npy import space_beside
from isthmus.spaces.io.registry import agree, find, format_of, telling
from isthmus.spaces.space import Space
from isthmus.spaces.vector_set import VectorSet

__all__ = ["Part", "Records", "open_records"]

BATCH_ROWS = 10_000


class Part(NamedTuple):
    """Some rows of a file.

    Parameters
    ----------
    vectors : VectorSet
    metadata : tuple of dict, one a row
        Empty where a row has none.
    """

    vectors: VectorSet
    metadata: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Records:
    """The rows of a file, read anew each time it is iterated over; made by `open_records`.

    Parameters
    ----------
    path : Path
    space : Space
    rows : int or None
        None where only the end of the file tells.
    taken : str
        Which of its columns or keys are read, in words; empty for files of Isthmus.
    """

    path: Path
    space: Space
    rows: int | None
    taken: str
    asked: Asked
    batch_rows: int

    def __iter__(self) -> Iterator[Part]:
        """Yield the rows in order, each batch checked as every `VectorSet` is.

        Raises
        ------
        DuplicateIdError
            An id that stood in an earlier batch; what came before was yielded.
        """
        seen: set[str] = set()
        with telling(self.path):
            for part in self._parts():
                again = [text for text in part.vectors.ids.tolist() if text in seen]
                if again:
                    raise DuplicateIdError(
                        expected="every one of the ids once",
                        got=f"{len(again)} that stood before: {', '.join(map(repr, again[:3]))}",
                        do="drop the repeated rows, or make the ids differ",
                    )
                seen.update(part.vectors.ids.tolist())
                yield part

    def _parts(self) -> Iterator[Part]:
        form = format_of(self.path)
        if form.stream is None:
            raw = form.read(self.path, self.asked)
            for batch in VectorSet(raw.ids, raw.vectors, self.space).iter_batches(self.batch_rows):
                yield Part(batch, tuple({} for _ in range(len(batch))))
            return
        for block in form.stream(self.path, self.asked).blocks:
            for start in range(0, len(block.ids), self.batch_rows):
                stop = start + self.batch_rows
                yield Part(
                    VectorSet(block.ids[start:stop], block.vectors[start:stop], self.space),
                    tuple(block.metadata[start:stop]),
                )


def open_records(
    path: Path | str, *, space: Space | None = None, batch_rows: int = BATCH_ROWS
) -> Records:
    """Open a file of vectors for reading in batches, with the metadata of its rows.

    Memory holds one batch and the ids with ``.parquet``, ``.jsonl``, ``.ndjson``, ``.npy`` and
    ``.vdf``; other files are read whole, and have no metadata but for ``.json``.

    Parameters
    ----------
    path : path
        See `VectorSet.load`.
    space : Space, optional
        Needed where the file names none; where it does, both must agree.
    batch_rows : int, default 10,000

    Raises
    ------
    MissingFileError, UnknownFormatError, CorruptFileError, SpaceMismatchError, InputError

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "theirs.jsonl"
    >>> _ = path.write_text('{"_id": 7, "embedding": [1, 2], "year": 2020}')
    >>> for part in open_records(path, space=Space(model="m", dim=2)):
    ...     part.vectors.ids.tolist(), part.metadata
    (['7'], ({'year': 2020},))
    """
    check_positive(batch_rows, name="batch_rows")
    found, asked = find(Path(path))
    form = format_of(found)
    asked = replace(asked, memory_map=form.memory_maps)
    with telling(found):
        if form.stream is not None:
            opened = form.stream(found, asked)
        else:
            raw = form.read(found, asked)
            opened = Stream((), len(raw.ids), raw.space, found.stat().st_size, raw.partial)
        recorded = opened.space if opened.space is not None else space_beside(found)
        agreed = agree(recorded, space, opened.partial, path=found)
    return Records(found, agreed, opened.rows, opened.taken, asked, batch_rows)
