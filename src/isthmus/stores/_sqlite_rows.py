"""The statements on the rows of one collection: what is read comes back checked.

Every row carries a checksum over its id, vector and metadata, because SQLite itself notices damage
only where it breaks the structure of the file.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray
from isthmus.errors import CorruptStoreError

__all__ = ["Block", "RowTable"]

# The rows whose metadata have every pair of a JSON object, bound as the one parameter. Both sides
# are read by the same parser, so that numbers are equal when they were written alike.
MATCHES = """NOT EXISTS (
  SELECT 1 FROM json_each(?) AS asked WHERE NOT EXISTS (
    SELECT 1 FROM json_each(row.metadata) AS field
    WHERE field.key = asked.key AND field.value IS asked.value
      AND replace(field.type, 'integer', 'real') = replace(asked.type, 'integer', 'real')))"""


@dataclass(frozen=True)
class Block:
    """Rows as they were read.

    Parameters
    ----------
    numbers : IntArray of shape (n,)
        Order of insertion.
    ids : list of str
    vectors : FloatArray of shape (n, dim)
    metadata : list of (str or None)
        JSON text.
    """

    numbers: IntArray
    ids: list[str]
    vectors: FloatArray
    metadata: list[str | None]


class RowTable:
    """The table of one collection.

    Parameters
    ----------
    number : int
        Of the collection; the name of the table is made from it.
    dim : int
    where : str
        Path of the file, for messages.
    """

    def __init__(self, number: int, dim: int, where: str) -> None:
        # The only text that is put into SQL below: a name of our own, made of a number.
        self.table = f"isthmus_rows_{int(number)}"
        self.dim = dim
        self.where = where

    def create(self, connection: apsw.Connection) -> None:
        """Make the table."""
        connection.execute(
            f"""CREATE TABLE {self.table} (
              number INTEGER PRIMARY KEY AUTOINCREMENT,
              id TEXT NOT NULL UNIQUE,
              vector BLOB NOT NULL CHECK (length(vector) = {4 * self.dim}),
              metadata TEXT,
              checksum INTEGER NOT NULL
            ) STRICT"""
        )

    def count(self, connection: apsw.Connection) -> int:
        """Count the rows."""
        count: int = connection.execute(f"SELECT count(*) FROM {self.table}").get  # noqa: S608 - see `table`
        return count

    def write(
        self,
        connection: apsw.Connection,
        ids: Sequence[str],
        vectors: FloatArray,
        metadata: Sequence[str | None],
    ) -> None:
        """Insert rows; one whose id is there keeps its number and takes everything else."""
        blobs = _blobs(vectors)
        connection.executemany(
            f"""INSERT INTO {self.table} (id, vector, metadata, checksum) VALUES (?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET
              vector = excluded.vector, metadata = excluded.metadata,
              checksum = excluded.checksum""",  # noqa: S608 - see `table`
            (
                (text, blob, fields, _checksum(text, blob, fields))
                for text, blob, fields in zip(ids, blobs, metadata, strict=True)
            ),
        )

    def delete(self, connection: apsw.Connection, ids: Iterable[str]) -> int:
        """Remove rows by id; return how many were there."""
        before: int = connection.total_changes()
        connection.executemany(
            f"DELETE FROM {self.table} WHERE id = ?",  # noqa: S608 - see `table`
            ((text,) for text in ids),
        )
        return int(connection.total_changes()) - before

    def by_id(self, connection: apsw.Connection, ids: Sequence[str]) -> Block:
        """Read rows by id, in the order asked for; those that are not there are left out."""
        return self._read(
            connection.executemany(
                f"SELECT number, id, vector, metadata, checksum FROM {self.table} WHERE id = ?",  # noqa: S608 - see `table`
                ((text,) for text in ids),
            )
        )

    def by_number(self, connection: apsw.Connection, numbers: IntArray) -> Block:
        """Read rows by number, in the order asked for."""
        return self._read(
            connection.execute(
                f"""SELECT row.number, row.id, row.vector, row.metadata, row.checksum
                FROM json_each(?) AS asked JOIN {self.table} AS row ON row.number = asked.value
                ORDER BY asked.key""",  # noqa: S608 - see `table`
                (json.dumps(numbers.tolist()),),
            )
        )

    def names(self, connection: apsw.Connection, numbers: IntArray) -> npt.NDArray[np.object_]:
        """Return the ids of rows, in the order asked for."""
        found = connection.execute(
            f"""SELECT row.id FROM json_each(?) AS asked
            JOIN {self.table} AS row ON row.number = asked.value ORDER BY asked.key""",  # noqa: S608 - see `table`
            (json.dumps(numbers.tolist()),),
        )
        return np.array([row[0] for row in found], object)

    def after(self, connection: apsw.Connection, number: int, *, limit: int) -> Block:
        """Read the next rows in order of insertion."""
        return self._read(
            connection.execute(
                f"""SELECT number, id, vector, metadata, checksum FROM {self.table}
                WHERE number > ? ORDER BY number LIMIT ?""",  # noqa: S608 - see `table`
                (number, limit),
            )
        )

    def all_names(self, connection: apsw.Connection) -> tuple[IntArray, npt.NDArray[np.object_]]:
        """Return the numbers and ids of all rows, in order of insertion."""
        found = connection.execute(
            f"SELECT number, id FROM {self.table} ORDER BY number"  # noqa: S608 - see `table`
        ).fetchall()
        for _, text in found:
            if not isinstance(text, str):
                raise self._damaged(text)
        numbers = np.array([row[0] for row in found], np.int64)
        return numbers, np.array([row[1] for row in found], object)

    def verify(self, connection: apsw.Connection) -> None:
        """Look at every row, and keep none.

        Raises
        ------
        CorruptStoreError
        """
        for row in connection.execute(
            f"SELECT id, vector, metadata, checksum FROM {self.table}"  # noqa: S608 - see `table`
        ):
            self._check(*row)

    def blocks(self, connection: apsw.Connection, *, rows: int) -> Iterator[Block]:
        """Read all rows in order of insertion, so many at a time."""
        number = 0
        while True:
            block = self.after(connection, number, limit=rows)
            if not block.ids:
                return
            number = int(block.numbers[-1])
            yield block

    def matching(self, connection: apsw.Connection, where: Mapping[str, Any]) -> IntArray:
        """Return the numbers of the rows whose metadata have these values, in order."""
        found = connection.execute(
            f"SELECT number FROM {self.table} AS row WHERE {MATCHES} ORDER BY number",  # noqa: S608 - see `table`
            (json.dumps(where, ensure_ascii=False),),
        )
        return np.fromiter((row[0] for row in found), np.int64)

    def nearest(
        self,
        connection: apsw.Connection,
        distance: str,
        query: FloatArray,
        *,
        limit: int,
        where: Mapping[str, Any],
    ) -> tuple[IntArray, FloatArray]:
        """Let sqlite-vec find the nearest rows: numbers and distances, nearest first.

        Parameters
        ----------
        distance : str
            Name of the SQL function: one of our own constants.
        """
        condition = f"WHERE {MATCHES}" if where else ""
        values = (json.dumps(where, ensure_ascii=False),) if where else ()
        found = connection.execute(
            f"""SELECT number, {distance}(vector, ?) AS distance FROM {self.table} AS row
            {condition} ORDER BY distance, number LIMIT ?""",  # noqa: S608 - see `table`
            (_blobs(query[None, :])[0], *values, limit),
        ).fetchall()
        return (
            np.array([row[0] for row in found], np.int64),
            np.array([row[1] for row in found], np.float64),
        )

    def _read(self, cursor: apsw.Cursor) -> Block:
        rows = cursor.fetchall()
        numbers, ids, blobs, metadata, checksums = zip(*rows, strict=True) if rows else [()] * 5
        for text, blob, fields, expected in zip(ids, blobs, metadata, checksums, strict=True):
            self._check(text, blob, fields, expected)
        vectors = np.frombuffer(b"".join(blobs), "<f4").reshape(-1, self.dim)
        return Block(
            numbers=np.array(numbers, np.int64),
            ids=list(ids),
            vectors=vectors.astype(np.float32, copy=False),
            metadata=list(metadata),
        )

    def _check(self, text: Any, blob: Any, fields: Any, expected: Any) -> None:
        """Refuse a row that is not as it was written; damage may change even the types."""
        try:
            sound = _checksum(text, blob, fields) == expected and len(blob) == 4 * self.dim
        except (AttributeError, TypeError, UnicodeEncodeError):
            sound = False
        if not sound:
            raise self._damaged(text)

    def _damaged(self, text: object) -> CorruptStoreError:
        return CorruptStoreError(
            expected="rows as they were written",
            got=f"a damaged one in {self.where!r}: {text!r}",
            do="restore the file from a copy, or upsert that row again",
        )


def _blobs(vectors: FloatArray) -> list[bytes]:
    data = np.ascontiguousarray(vectors, dtype="<f4").tobytes()
    width = 4 * vectors.shape[1]
    return [data[start : start + width] for start in range(0, len(data), width)]


def _checksum(text: str, blob: bytes, fields: str | None) -> int:
    start = zlib.crc32(blob, zlib.crc32(text.encode()))
    return start if fields is None else zlib.crc32(fields.encode(), start)
