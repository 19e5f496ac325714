"""Files of links: ``source,target,posterior,votes``, as csv or parquet; each is a file of pairs."""

from __future__ import annotations

import csv
from pathlib import Path

from isthmus._files import atomic_path
from isthmus._types import FloatArray, IdArray, IntArray
from isthmus.errors import CountMismatchError, UnknownFormatError

__all__ = ["COLUMNS", "SUFFIXES", "check_links_path", "write_links"]

COLUMNS = ("source", "target", "posterior", "votes")
SUFFIXES = (".csv", ".parquet")


def check_links_path(path: Path) -> None:
    """Refuse a file whose ending names no format, before any link is sought for it.

    Raises
    ------
    UnknownFormatError
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UnknownFormatError(
            expected=f"a file of links ending in {' or '.join(SUFFIXES)}",
            got=repr(path.name),
            do="rename it",
        )


def write_links(
    path: Path,
    source_ids: IdArray,
    target_ids: IdArray,
    posterior: FloatArray,
    votes: IntArray,
) -> None:
    """Write links in the order given, whole or not at all; `Pairs.from_file` reads them.

    Parameters
    ----------
    path : Path
        ``.csv`` (posteriors with nine digits) or ``.parquet``.
    source_ids, target_ids : IdArray of shape (n,)
    posterior : FloatArray of shape (n,)
        From 0 to 1.
    votes : IntArray of shape (n,)

    Raises
    ------
    UnknownFormatError, CountMismatchError, WriteFailedError
    """
    check_links_path(path)
    columns = (source_ids, target_ids, posterior, votes)
    if len({len(column) for column in columns}) > 1:
        raise CountMismatchError(
            expected="as many ids of both sides, posteriors and votes",
            got=", ".join(str(len(column)) for column in columns),
            do="give one of each per link",
        )
    with atomic_path(path) as temporary:
        {".csv": _write_csv, ".parquet": _write_parquet}[path.suffix.lower()](temporary, columns)


def _write_csv(path: Path, columns: tuple[IdArray, IdArray, FloatArray, IntArray]) -> None:
    source, target, posterior, votes = (column.tolist() for column in columns)
    # The writer does not quote a carriage return that does not end its own lines.
    returns = any("\r" in one for one in (*source, *target))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(
            stream, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
        )
        writer.writerow(COLUMNS)
        writer.writerows(zip(source, target, map("{:.9g}".format, posterior), votes, strict=True))


def _write_parquet(path: Path, columns: tuple[IdArray, IdArray, FloatArray, IntArray]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = (pa.string(), pa.string(), pa.float64(), pa.int64())
    arrays = [pa.array(one.tolist(), kind) for one, kind in zip(columns, types, strict=True)]
    pq.write_table(pa.table(dict(zip(COLUMNS, arrays, strict=True))), path)
