"""The index of a collection, kept in a file beside the store: never trusted, only checked.

It is a safetensors file with the rows in the order of insertion (``rows``) and, for HNSW, the links
of the graph (``levels``, ``links``). The store file records, in the transaction that makes it
valid, for which change counter it was written, of how many rows, and its SHA-256. A file that does
not match that record, byte for byte, is as good as none. Faiss's own format is not used, because
faiss trusts what it reads.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import apsw
import numpy as np
import numpy.typing as npt

from isthmus._files import atomic_path
from isthmus._types import FloatArray
from isthmus.errors import (
    InputError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreFullError,
    WriteFailedError,
)
from isthmus.neighbors import Exact, Hnsw
from isthmus.neighbors.graph import Graph
from isthmus.stores._resident import Resident
from isthmus.stores._sqlite_collection import Collection
from isthmus.stores._sqlite_file import SqliteFile

__all__ = ["load_index", "save_index", "sidecar_path"]


@dataclass(frozen=True)
class _Record:
    """What the store file says about the file beside it."""

    count: int
    size: int
    sha256: str


def sidecar_path(collection: Collection, kind: str) -> Path:
    """Return the path of the file beside the store."""
    name = f"{collection.path.name}.{collection.token}.{kind}.safetensors"
    return collection.path.with_name(name)


def load_index(
    connection: apsw.Connection, collection: Collection, kind: str
) -> Exact | Hnsw | None:
    """Read the index of the state that the connection sees; None when there is no such file."""
    record = _recorded(connection, collection, kind)
    tensors = None if record is None else _read(sidecar_path(collection, kind), record)
    if record is None or tensors is None:
        return None
    rows = tensors.get("rows")
    shape = (record.count, collection.space.dim)
    if rows is None or rows.shape != shape or rows.dtype != np.float32:
        return None
    try:
        return _put_together(rows, tensors, collection, kind)
    except InputError:  # rows that are not finite, links that do not fit
        return None


def save_index(file: SqliteFile, collection: Collection, kind: str, resident: Resident) -> str:
    """Write the index beside the store and record it; return why not, or nothing.

    A search does not fail because its index cannot be kept.
    """
    path = sidecar_path(collection, kind)
    try:
        with atomic_path(path) as temporary:
            _write(temporary, resident.index)
            temporary.chmod(collection.path.stat().st_mode & 0o666)  # who reads the store reads it
            size = temporary.stat().st_size
            with temporary.open("rb") as written:
                digest = hashlib.file_digest(written, "sha256").hexdigest()
            with file.writing(wait=False) as connection:
                if collection.change(connection) != resident.change:
                    return "the collection has changed meanwhile"
                connection.execute(
                    "INSERT OR REPLACE INTO isthmus_indexes"
                    " (collection, kind, change, count, bytes, sha256) VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        collection.number,
                        kind,
                        resident.change,
                        len(resident.numbers),
                        size,
                        digest,
                    ),
                )
    except (WriteFailedError, StoreBusyError, StoreFullError, ReadOnlyStoreError) as error:
        return str(error)
    return ""


def _recorded(connection: apsw.Connection, collection: Collection, kind: str) -> _Record | None:
    found = connection.execute(
        "SELECT count, bytes, sha256 FROM isthmus_indexes"
        " WHERE collection = ? AND kind = ? AND change = ?",
        (collection.number, kind, collection.change(connection)),
    ).fetchone()
    if found is None or not all(isinstance(one, int) for one in found[:2]):
        return None
    return _Record(found[0], found[1], str(found[2]))


def _read(path: Path, record: _Record) -> dict[str, npt.NDArray[np.generic]] | None:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        if not path.is_file() or path.stat().st_size != record.size:
            return None
        # Read once, so that what is used is what was checked.
        data = path.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(data).hexdigest() != record.sha256:
        return None
    try:
        tensors: dict[str, npt.NDArray[np.generic]] = load(data)
    except (SafetensorError, ValueError, KeyError):
        return None
    return tensors


def _write(path: Path, index: Exact | Hnsw) -> None:
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    tensors: dict[str, npt.NDArray[np.generic]] = {"rows": np.ascontiguousarray(index.database)}
    if isinstance(index, Hnsw):
        graph = index.graph
        tensors |= {"levels": graph.levels, "links": graph.links}
        tensors["entry"] = np.array([graph.entry], np.int64)
    try:
        save_file(tensors, path)
    except SafetensorError as error:
        raise OSError(str(error)) from error


def _put_together(
    rows: npt.NDArray[np.generic],
    tensors: dict[str, npt.NDArray[np.generic]],
    collection: Collection,
    kind: str,
) -> Exact | Hnsw | None:
    vectors: FloatArray = rows.astype(np.float32, copy=False)
    metric = collection.space.metric
    if kind != "hnsw":
        return Exact(vectors, metric=metric)
    if not {"levels", "links", "entry"} <= set(tensors) or tensors["entry"].shape != (1,):
        return None
    graph = Graph(
        levels=cast("npt.NDArray[np.int32]", tensors["levels"]),
        links=cast("npt.NDArray[np.int32]", tensors["links"]),
        entry=int(tensors["entry"][0]),
    )
    return Hnsw(vectors, metric=metric, graph=graph)
