"""FAISS index files: flat ones with ids beside them, and those that other programs made."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from isthmus._types import FloatArray, IntArray, Metric
from isthmus.errors import CorruptFileError, CorruptStoreError, InputError
from isthmus.spaces import Space
from isthmus.spaces.io.asked import Asked
from isthmus.spaces.io.faiss_index import FAISS
from isthmus.spaces.io.faiss_layout import walk
from isthmus.stores._index_rows import IndexRows
from isthmus.stores._index_store import Change, IndexStore, theirs
from isthmus.stores._record import Record
from isthmus.stores.base import Capabilities

__all__ = ["FaissStore"]

L2 = 1
ERRORS = MappingProxyType({"16": 2.0**-8, "8": 0.04, "6": 0.2, "4": 0.7})
"""By the bits of a number: half precision by its digits, the others measured on Gaussian rows."""


class FaissStore(IndexStore):
    """A FAISS index file. Made by `open`.

    Parameters
    ----------
    url : StoreUrl

    Examples
    --------
    >>> import tempfile
    >>> from isthmus.spaces import VectorSet
    >>> space = Space(model="m", dim=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     url = f"faiss:///{folder}/one.index?collection=docs"
    ...     with FaissStore.open(url, space=space) as store:
    ...         store.upsert(VectorSet(["a", "b"], [[1, 0], [0, 2]], space))
    ...         found = store.search([[0, 1]], k=1)
    >>> found.ids.tolist(), found.scores.tolist()
    ([['b']], [[1.0]])
    """

    scheme: ClassVar[str] = "faiss"
    options: ClassVar[tuple[str, ...]] = ("lossy",)
    capabilities: Capabilities = Capabilities(
        native_scores=MappingProxyType({"cosine": "cosine", "dot": "dot", "l2": "squared l2"}),
        stores_raw=True,
        exact_search=True,
        filters=True,
        scan=True,
        notes="with a batch",
        max_batch=None,
        persistent=True,
        concurrency="many writers",
    )

    def _connect(self) -> None:
        """FAISS is a part of every installation."""

    def _read_theirs(self, path: Path) -> IndexRows:
        try:
            content = np.memmap(path, np.uint8, "r").data if path.stat().st_size else b""
            found = walk(memoryview(content), path)
            self._check_loss(found.loss)
            raw = FAISS.read(path, Asked(lossy="yes"))
        except CorruptFileError as error:
            raise theirs(error, path) from error
        self._declare(found.kind, found.loss)
        entries = {} if raw.space is None else Record({}).with_space(raw.space, own=False).entries
        *_, metric = struct.unpack_from("<iqqqBi", content, 4)
        metrics: tuple[Metric, ...] = ("l2",) if metric == L2 else ("cosine", "dot")
        return IndexRows.of_others(raw.ids, raw.vectors, entries, metrics)

    def _check_loss(self, loss: str) -> None:
        if loss and not self._url.flag("lossy"):
            raise InputError(
                expected=f"vectors in {self._index.name!r} as the model gave them",
                got=f"codes of {loss}: what can be read is near to them, and no more",
                do="make a collection of the original vectors, or take the codes as they are: "
                "&lossy=yes",
            )

    def _declare(self, kind: str, loss: str) -> None:
        """Declare what the codes of an index lose."""
        if kind == "scalar":
            bits = loss.split(maxsplit=1)[0] if loss else "16"
            storage, error = f"{bits} bits a number", ERRORS[bits]
        elif kind == "product":
            storage, error = loss, 2.0
        else:
            return
        self.capabilities = replace(self.capabilities, storage=storage, read_back_error=error)

    def _read_own(self, content: bytes, numbers: IntArray, path: Path) -> FloatArray:
        if not len(numbers):
            (dim,) = struct.unpack_from("<i", content, 4)
            return np.empty((0, dim), np.float32)
        found = walk(memoryview(content), path)
        if found.kind != "flat" or found.rows != len(numbers):
            raise CorruptStoreError(
                expected=f"{len(numbers):,} flat vectors in {path.name!r}",
                got=f"{found.rows:,} {found.kind} ones",
                do="restore the index and the files beside it from one copy",
            )
        flat = np.frombuffer(content, "<f4", found.rows * found.dim, found.start)
        return np.asarray(flat.reshape(found.rows, found.dim), np.float32)

    def _dump(self, change: Change, space: Space) -> bytes | memoryview:
        import faiss

        kind = faiss.METRIC_L2 if space.metric == "l2" else faiss.METRIC_INNER_PRODUCT
        index: Any = faiss.IndexFlat(space.dim, kind)
        index.add(np.ascontiguousarray(change.after.vectors))
        return memoryview(faiss.serialize_index(index).data)
