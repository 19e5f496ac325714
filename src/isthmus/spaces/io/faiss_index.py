"""FAISS index files: a flat index, with ``v.faiss.ids.txt`` and ``v.faiss.space.json`` beside it.

Of what others wrote: flat, IDMap, HNSW, scalar and product quantized, with ids in the index, in a
file beside it, or by row number.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._files import atomic_set
from isthmus._types import FloatArray, IdArray
from isthmus.errors import InputError
from isthmus.spaces.io.asked import Asked
from isthmus.spaces.io.base import FileFormat, Metadata, Plan, Raw, corrupt
from isthmus.spaces.io.faiss_layout import Found, walk
from isthmus.spaces.io.npy import check_lines
from isthmus.spaces.io.npy_header import read_header
from isthmus.spaces.io.space_json import parse_space
from isthmus.spaces.space import Space

__all__ = ["FAISS", "INDEX", "ids_beside"]

FORMAT = "isthmus-faiss-1"
MAX_JSON_BYTES = 1 << 18
ID_ENDINGS = (".ids.txt", ".ids.npy", ".ids.json")


def _read(path: Path, asked: Asked) -> Raw:
    if not path.stat().st_size:
        raise corrupt(path, expected="a FAISS index", got="an empty file")
    content = np.memmap(path, np.uint8, "r")
    found = walk(content.data, path)
    _check_loss(found, asked, path)
    vectors = _vectors(content, found, path)
    own: npt.NDArray[np.int64] | None = None
    if found.kind == "lists":
        vectors, own = _in_order(vectors, _numbers(content, found))
    if found.ids_start is not None:
        if own is not None:
            raise corrupt(path, expected="rows numbered from 0 on under their ids", got="others")
        own = np.frombuffer(content, "<i8", found.rows, found.ids_start).copy()
    return Raw(ids=ids_beside(path, found.rows, own), vectors=vectors, space=_space(path))


def _check_loss(found: Found, asked: Asked, path: Path) -> None:
    if found.loss and not asked.lossy:
        raise InputError(
            expected=f"vectors in {path.name!r} as the model gave them",
            got=f"codes of {found.loss}: what can be read is near to them, and no more",
            do=f"take them as they are with {path.name}?lossy=yes, or export the original vectors",
        )


def _vectors(content: npt.NDArray[np.uint8], found: Found, path: Path) -> npt.NDArray[Any]:
    """Copy flat vectors out of the file, or let FAISS decode the codes."""
    if found.kind == "flat":
        flat = np.frombuffer(content, "<f4", found.rows * found.dim, found.start)
        return flat.reshape(found.rows, found.dim).astype(np.float32)
    if found.kind == "lists":
        parts = [np.frombuffer(content, "<f4", n * found.dim, at) for n, at, _ in found.lists]
        return np.concatenate(parts).reshape(found.rows, found.dim).astype(np.float32)
    import faiss

    try:
        index = faiss.deserialize_index(np.array(content[found.start : found.stop]))
        decoded: npt.NDArray[Any] = index.reconstruct_n(0, index.ntotal)
    except RuntimeError as error:
        message = (str(error).splitlines() or ["nothing said"])[-1]
        raise corrupt(path, expected="an index that FAISS reads", got=message[:200]) from error
    return decoded


def _numbers(content: npt.NDArray[np.uint8], found: Found) -> npt.NDArray[np.int64]:
    return np.concatenate([np.frombuffer(content, "<i8", n, at) for n, _, at in found.lists])


def _in_order(
    vectors: npt.NDArray[Any], numbers: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]:
    """Sort the rows of inverted lists by number; None where the numbers are those of rows."""
    order = np.argsort(numbers, kind="stable")
    plain = np.array_equal(numbers[order], np.arange(len(numbers)))
    return vectors[order], None if plain else numbers[order]


# --- ids and space ---------------------------------------------------------------------------


def ids_beside(path: Path, rows: int, own: npt.NDArray[Any] | None) -> Any:
    """Return ids from the one file beside an index, or of the index itself, or row numbers.

    A file under the full name of the index goes before one that may belong to another format.

    Parameters
    ----------
    path : Path
        Of the index.
    rows : int
    own : array of int of shape (rows,) or None
        What the index calls its rows; the file beside it has an id for each of these numbers.

    Raises
    ------
    InputError, CorruptFileError
    """
    own_names = [_beside(path, ending) for ending in ID_ENDINGS]
    shared = [path.with_suffix(ending) for ending in ID_ENDINGS]
    beside = [name for name in own_names if name.is_file()]
    beside = beside or [name for name in shared if name.is_file()]
    if len(beside) > 1:
        raise InputError(
            expected=f"one file of ids beside {path.name!r}",
            got=", ".join(repr(name.name) for name in beside),
            do="remove or rename the others",
        )
    if not beside:
        return (np.arange(rows) if own is None else own).astype(np.str_)
    ids = _read_ids(beside[0])
    if own is None:
        if len(ids) != rows:
            raise corrupt(beside[0], expected=f"{rows:,} ids, one a vector", got=f"{len(ids):,}")
        return ids
    if own.min() < 0 or own.max() >= len(ids):
        raise corrupt(
            beside[0],
            expected=f"an id for every number in {path.name!r}, from {own.min()} to {own.max()}",
            got=f"{len(ids):,}",
        )
    return [ids[number] for number in own.tolist()]


def _read_ids(path: Path) -> list[Any]:
    if path.suffix == ".npy":
        with path.open("rb") as stream:
            read_header(stream, size=path.stat().st_size, what="ids", path=path)
            stream.seek(0)
            listed: list[Any] = np.lib.format.read_array(stream, allow_pickle=False).tolist()
            return listed
    try:
        text = path.read_bytes().decode("utf-8-sig")
        if path.suffix == ".txt":
            lines = text.replace("\r\n", "\n").split("\n")
            return lines[:-1] if lines[-1] == "" else lines
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise corrupt(path, expected="ids in UTF-8", got=str(error)[:100]) from error
    if not isinstance(values, list):
        raise corrupt(path, expected="a JSON list of ids", got=f"a {type(values).__name__}")
    return values


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _space(path: Path) -> Space | None:
    """Read the space beside the index, and check that the files were written together."""
    beside = _beside(path, ".space.json")
    if not beside.is_file():
        return None
    if beside.stat().st_size > MAX_JSON_BYTES:
        raise corrupt(
            beside, expected=f"at most {MAX_JSON_BYTES:,} bytes", got=f"{beside.stat().st_size:,}"
        )
    try:
        content = json.loads(beside.read_bytes())
    except (ValueError, RecursionError) as error:
        raise corrupt(beside, expected="a space as JSON", got=str(error)[:100]) from error
    if not isinstance(content, dict) or content.get("format", FORMAT) != FORMAT:
        raise corrupt(beside, expected=f"a space, of the format {FORMAT!r}", got="another object")
    if "format" not in content:
        return parse_space(json.dumps(content), beside)
    files = {"index_sha256": path, "ids_sha256": _beside(path, ".ids.txt")}
    differing = [
        name
        for name, file in files.items()
        if not file.is_file() or content.get(name) != _hash(file)
    ]
    if differing:
        raise corrupt(
            path,
            expected=f"the {' and '.join(differing)} that {beside.name!r} records",
            got="others: the three files were not written together",
        )
    return parse_space(json.dumps(content.get("space")), beside)


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# --- writing ---------------------------------------------------------------------------------


class _Sink:
    """Fills a flat index in memory: FAISS writes an index as a whole."""

    def __init__(self, plan: Plan) -> None:
        import faiss

        metric = faiss.METRIC_L2 if plan.space.metric == "l2" else faiss.METRIC_INNER_PRODUCT
        self.index = faiss.IndexFlat(plan.space.dim, metric)
        self.ids: list[str] = []

    def write(self, ids: IdArray, vectors: FloatArray, metadata: Metadata) -> None:
        """Add one batch."""
        del metadata
        check_lines(ids.tolist())
        self.index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        self.ids += ids.tolist()


@contextlib.contextmanager
def _open_sink(plan: Plan) -> Iterator[_Sink]:
    import faiss

    path = plan.path
    paths = [path, _beside(path, ".ids.txt"), _beside(path, ".space.json")]
    with atomic_set(paths) as (index_file, ids_file, space_file):
        sink = _Sink(plan)
        yield sink
        with index_file.open("wb") as out:  # not by FAISS, whose errors are not those of the disk
            out.write(faiss.serialize_index(sink.index).data)
        mark = "\ufeff" if sink.ids[0].startswith("\ufeff") else ""
        ids_file.write_bytes((mark + "\n".join(sink.ids) + "\n").encode())
        content = {
            "format": FORMAT,
            "space": plan.space.to_dict(),
            "index_sha256": _hash(index_file),
            "ids_sha256": _hash(ids_file),
        }
        text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
        space_file.write_text(text + "\n", encoding="utf-8")


FAISS = FileFormat(suffix=".faiss", read=_read, open_sink=_open_sink, half=False, asks=("lossy",))
INDEX = replace(FAISS, suffix=".index")
