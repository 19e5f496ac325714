"""USearch index files: graphs of float32 vectors with ids beside them, and those of others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from isthmus._optional import require
from isthmus._types import FloatArray, IntArray, Metric
from isthmus.errors import CorruptFileError, CorruptStoreError
from isthmus.spaces import Space
from isthmus.spaces.io.faiss_index import ids_beside
from isthmus.stores._index_rows import IndexRows
from isthmus.stores._index_store import Change, IndexStore, theirs
from isthmus.stores._url import StoreUrl
from isthmus.stores._usearch_layout import read_usearch
from isthmus.stores.base import Capabilities

__all__ = ["UsearchStore"]

METRICS: MappingProxyType[Metric, str] = MappingProxyType(
    {"cosine": "cos", "dot": "ip", "l2": "l2sq"}
)
ERRORS = MappingProxyType({"float16": 2.0**-11, "bfloat16": 2.0**-8})


class UsearchStore(IndexStore):
    """A USearch index file. Made by `open`.

    Parameters
    ----------
    url : StoreUrl

    Examples
    --------
    >>> import tempfile
    >>> from isthmus.spaces import VectorSet
    >>> space = Space(model="m", dim=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     url = f"usearch:///{folder}/one.usearch?collection=docs"
    ...     with UsearchStore.open(url, space=space) as store:
    ...         store.upsert(VectorSet(["a", "b"], [[1, 0], [0, 2]], space))
    ...         found = store.search([[0, 1]], k=1)
    >>> found.ids.tolist(), found.scores.tolist()
    ([['b']], [[1.0]])
    """

    scheme: ClassVar[str] = "usearch"
    capabilities: Capabilities = Capabilities(
        native_scores=MappingProxyType(
            {"cosine": "1 - cosine", "dot": "1 - dot", "l2": "squared l2"}
        ),
        stores_raw=True,
        exact_search=True,
        filters=True,
        scan=True,
        notes="with a batch",
        max_batch=None,
        persistent=True,
        concurrency="many writers",
    )

    def __init__(self, url: StoreUrl) -> None:
        super().__init__(url)
        self._live: tuple[IndexRows, Any] | None = None  # the graph of one state

    def _connect(self) -> None:
        require("usearch.index", extra="usearch")

    def _disconnect(self) -> None:
        super()._disconnect()
        self._live = None

    def _read_theirs(self, path: Path) -> IndexRows:
        content = np.memmap(path, np.uint8, "r").data if path.stat().st_size else b""
        found = read_usearch(content, path.name)
        error = ERRORS.get(found.storage, 0.0)
        self.capabilities = replace(self.capabilities, storage=found.storage, read_back_error=error)
        order = np.argsort(found.keys)
        try:
            ids = ids_beside(path, len(order), found.keys[order])
        except CorruptFileError as reason:
            raise theirs(reason, path) from reason
        return IndexRows.of_others(ids, found.vectors[order], {}, (found.metric,))

    def _read_own(self, content: bytes, numbers: IntArray, path: Path) -> FloatArray:
        found = read_usearch(content, path.name)
        order = np.argsort(found.keys)
        if not np.array_equal(found.keys[order], _keys(numbers)):
            raise CorruptStoreError(
                expected=f"the keys that were written with {path.name!r}",
                got="other keys",
                do="restore the index and the files beside it from one copy",
            )
        return found.vectors[order]

    def _dump(self, change: Change, space: Space) -> bytes | memoryview:
        """Change the graph in place: to make it anew takes minutes where this takes seconds."""
        index = self._graph(change.before, space)
        rows = change.after
        written = rows.numbers[change.written]
        replaced = written[written <= change.before.last]
        gone = np.concatenate([change.removed, replaced])
        if len(gone):
            index.remove(_keys(gone))
        if len(written):
            index.add(_keys(written), np.ascontiguousarray(rows.vectors[change.written]))
        self._live = rows, index
        return memoryview(index.save())

    def _graph(self, rows: IndexRows, space: Space) -> Any:
        live, self._live = self._live, None
        if live is not None and live[0] is rows:
            return live[1]
        client = require("usearch.index", extra="usearch")
        index = client.Index(ndim=space.dim, metric=METRICS[space.metric], dtype="f32")
        if len(rows):
            index.load(self._files.now(self._index).read_bytes())  # as its hash says it was written
        return index


def _keys(numbers: IntArray) -> npt.NDArray[np.uint64]:
    """Return the keys of rows: from 0 on, so that they are places in the list of ids at first."""
    return (numbers - 1).astype(np.uint64)
