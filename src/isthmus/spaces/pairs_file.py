"""Files of pairs: ``source,target`` and optionally ``posterior``, as csv or parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IdArray, IntArray
from isthmus.errors import (
    CorruptFileError,
    DuplicateIdError,
    EmptyInputError,
    InvalidIdError,
    IsthmusError,
    MissingFileError,
    ParameterError,
    UnknownFormatError,
    UnknownIdError,
)
from isthmus.spaces.ids import as_ids, name_few
from isthmus.spaces.vector_set import VectorSet

__all__ = ["ListedPairs", "read_pairs"]

COLUMNS = ("source", "target")
POSTERIOR = "posterior"


@dataclass(frozen=True)
class ListedPairs:
    """Pairs of ids as a file lists them; each id once on its side.

    Parameters
    ----------
    source_ids, target_ids : IdArray of shape (n,)
    posterior : FloatArray of shape (n,), optional
        From 0 to 1.
    file : str
        Name of the file, for messages.
    """

    source_ids: IdArray
    target_ids: IdArray
    posterior: FloatArray | None
    file: str

    def __post_init__(self) -> None:
        if not len(self.source_ids):
            raise EmptyInputError(
                expected=f"at least one pair in {self.file!r}", got="none", do="add pairs"
            )
        _check_once(self.source_ids, self.target_ids, self.file)
        if self.posterior is not None:
            bad = ~((self.posterior >= 0) & (self.posterior <= 1))  # NaN is bad too
            if bad.any():
                row = int(np.argmax(bad))
                raise ParameterError(
                    expected=f"posteriors from 0 to 1 in {self.file!r}",
                    got=f"{self.posterior[row]:g} in pair {row + 1}",
                    do="give probabilities, or leave the column out",
                )

    def rows(self, source: VectorSet, target: VectorSet) -> tuple[IntArray, IntArray]:
        """Return the rows of the ids in both sets.

        Raises
        ------
        UnknownIdError
            Names the first few ids that a set does not have, and how many there are.
        """
        left, right = source.find(self.source_ids), target.find(self.target_ids)
        if not (left >= 0).any() and not (right >= 0).any():
            swapped = (source.find(self.target_ids) >= 0).any()
            if swapped and (target.find(self.source_ids) >= 0).any():
                raise UnknownIdError(
                    expected=f"{self.file!r} with the ids of the source set under 'source'",
                    got="the ids of the target set there, and those of the source set under "
                    "'target'",
                    do="swap the two columns, or the two sets",
                )
        unknown = [
            f"{np.count_nonzero(rows < 0):,} {side} ids ({name_few(ids[rows < 0])})"
            for side, ids, rows in (
                ("source", self.source_ids, left),
                ("target", self.target_ids, right),
            )
            if (rows < 0).any()
        ]
        if unknown:
            raise UnknownIdError(
                expected=f"ids in {self.file!r} that the two sets have",
                got=f"{' and '.join(unknown)} that they do not have",
                do="drop those pairs, or check which files the pairs belong to",
            )
        return left, right


def read_pairs(path: Path) -> ListedPairs:
    """Read a file of pairs; see `Pairs.from_file`."""
    readers = {".csv": _read_csv, ".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise UnknownFormatError(
            expected=f"a file of pairs ending in {' or '.join(readers)}",
            got=repr(path.name),
            do="rename or convert it",
        )
    if not path.is_file():
        raise MissingFileError(
            expected=f"a file of pairs at {str(path)!r}", got="nothing there", do="check the path"
        )
    source, target, posterior = readers[path.suffix.lower()](path)
    return ListedPairs(
        source_ids=as_ids(source, name=f"source ids in {path.name}"),
        target_ids=as_ids(target, name=f"target ids in {path.name}"),
        posterior=posterior,
        file=path.name,
    )


def _read_csv(path: Path) -> tuple[list[str], list[str], FloatArray | None]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        lines = csv.reader(stream, strict=True)
        places, columns = None, len(COLUMNS)
        rows: list[list[str]] = []
        for cells in _lines(lines, path):
            if places is None:
                places, columns = _places(cells, path), len(cells)
            elif len(cells) != columns:
                raise _broken(
                    path,
                    expected=f"{columns} cells in each line",
                    got=f"{len(cells)} in line {lines.line_num}",
                )
            else:
                rows.append([cells[place] for place in places])
    if places is None:
        raise _broken(path, expected="the header 'source,target'", got="an empty file")
    posterior = None
    if len(places) == 3:
        posterior = _numbers([row[2] for row in rows], path)
    _check_filled(rows, path)
    return [row[0] for row in rows], [row[1] for row in rows], posterior


def _check_filled(rows: list[list[str]], path: Path) -> None:
    """Refuse a sheet of `Pairs.suggest` that is still to be filled in, or was in part."""
    empty = [row[0] for row in rows if row[0] and not row[1]]
    if empty:
        raise InvalidIdError(
            expected=f"a target id in every line of {path.name!r}",
            got=f"none in {len(empty):,} of {len(rows):,} lines, the first that of {empty[0]!r}",
            do="fill them in, or delete the lines that you leave out",
        )


def _lines(lines: Any, path: Path) -> Iterator[list[str]]:
    """Yield the lines that are not empty; say which one is broken."""
    try:
        yield from filter(None, lines)
    except (csv.Error, UnicodeDecodeError) as error:
        raise _broken(
            path,
            expected="csv text in UTF-8",
            got=f"{error} after line {lines.line_num}".replace("\n", " "),
        ) from error


def _places(header: list[str], path: Path) -> list[int]:
    """Find the columns by name."""
    names = [cell.strip() for cell in header]
    wanted = [*COLUMNS, *([POSTERIOR] if POSTERIOR in names else [])]
    if any(names.count(name) != 1 for name in wanted):
        raise _broken(
            path,
            expected="a header with 'source' and 'target', and 'posterior' if there is one",
            got=f"the columns {', '.join(map(repr, names[:8]))[:200]}",
        )
    return [names.index(name) for name in wanted]


def _numbers(texts: list[str], path: Path) -> FloatArray:
    try:
        return np.array(texts, dtype=np.float32)
    except ValueError as error:
        raise _broken(path, expected="numbers under 'posterior'", got=str(error)) from error


def _read_parquet(path: Path) -> tuple[Any, Any, FloatArray | None]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            _places(file.schema_arrow.names, path)
            names = [*COLUMNS, *({POSTERIOR} & set(file.schema_arrow.names))]
            table = file.read(columns=names)
    except IsthmusError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, expected="a parquet file", got=str(error).split("\n")[0]) from error
    for name in names:
        if table[name].null_count:
            raise _broken(
                path,
                expected=f"no empty cell under {name!r}",
                got=f"{table[name].null_count:,} of them",
            )
    posterior = table[POSTERIOR].to_numpy() if POSTERIOR in names else None
    if posterior is not None and posterior.dtype.kind not in "fiu":
        raise _broken(path, expected="numbers under 'posterior'", got=f"{posterior.dtype}")
    weight: npt.NDArray[np.float32] | None = (
        None if posterior is None else posterior.astype(np.float32)
    )
    return table["source"].to_pylist(), table["target"].to_pylist(), weight


def _check_once(source_ids: IdArray, target_ids: IdArray, file: str) -> None:
    """Refuse an id in two pairs: the same pair again, or two pairs that contradict each other."""
    for side, ids, others in (
        ("source", source_ids, target_ids),
        ("target", target_ids, source_ids),
    ):
        texts, where, counts = np.unique(ids, return_inverse=True, return_counts=True)
        if len(texts) == len(ids):
            continue
        first = str(texts[counts > 1][0])
        partners = others[ids == first]
        same = len(np.unique(partners)) == 1
        many = int(np.count_nonzero(counts[where] > 1))
        raise DuplicateIdError(
            expected=f"each id once under {side!r} in {file!r}",
            got=(
                f"{first!r} with {name_few(partners[:1])} {len(partners)} times"
                if same
                else f"{first!r} with {name_few(np.unique(partners))}"
            )
            + f"; {many:,} lines repeat an id",
            do="keep one line for each object" if same else "keep the right pair of each id",
        )


def _broken(path: Path, *, expected: str, got: str) -> CorruptFileError:
    return CorruptFileError(
        expected=f"{path.name!r} with {expected}", got=got, do="fix the file of pairs"
    )
