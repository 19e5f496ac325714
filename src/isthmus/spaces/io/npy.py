"""numpy's own format: ``v.npy`` with ``v.ids.txt`` and ``v.space.json`` beside it.

The vectors can stay on disk (memory map). Three files cannot be replaced in one step, so the last
one written, ``.space.json``, vouches for the others: it records the number of rows, a SHA-256 of
the ids and one of a sample of the vectors. A set that was mixed up by a crash or a copy is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from isthmus._files import atomic_set
from isthmus._types import FloatArray, IdArray
from isthmus.errors import InvalidIdError, MissingFileError
from isthmus.spaces.ids import as_ids
from isthmus.spaces.io.asked import Asked
from isthmus.spaces.io.base import FileFormat, Metadata, Plan, Raw, corrupt
from isthmus.spaces.io.npy_header import read_header, write_header
from isthmus.spaces.io.space_json import parse_space
from isthmus.spaces.space import Space

__all__ = ["NPY", "check_lines", "read_bare", "space_beside"]

FORMAT = "isthmus-npy-1"
SAMPLED_ROWS = 256
BLOCK_BYTES = 1 << 20
MAX_JSON_BYTES = 1 << 18
LINE_BREAKS = ("\n", "\r")
MARK = "\ufeff"
"""Byte order mark, which some editors put before the first line: it is no part of the first id."""


def ids_path(path: Path) -> Path:
    """Name the file of ids beside ``path``.

    Examples
    --------
    >>> ids_path(Path("docs.npy")).name
    'docs.ids.txt'
    """
    return path.with_suffix(".ids.txt")


def space_path(path: Path) -> Path:
    """Name the file of the space beside ``path``.

    Examples
    --------
    >>> space_path(Path("docs.npy")).name
    'docs.space.json'
    """
    return path.with_suffix(".space.json")


def _read(path: Path, asked: Asked) -> Raw:
    with path.open("rb") as stream:
        vectors, start = _read_vectors(stream, path, memory_map=asked.memory_map)
        ids, ids_hash = _read_ids(ids_path(path))
        found = {
            "rows": len(vectors),
            "ids_sha256": ids_hash,
            "sample_sha256": _hash_sample(stream, vectors, start=start),
        }
    return Raw(ids=ids, vectors=vectors, space=_read_space(path, found))


def read_bare(path: Path) -> Raw:
    """Map a matrix that has no ids beside it; its rows are numbered.

    Raises
    ------
    CorruptFileError
    """
    with path.open("rb") as stream:
        vectors, _ = _read_vectors(stream, path, memory_map=True)
    return Raw(ids=np.arange(len(vectors)).astype(np.str_), vectors=vectors, space=None)


def _read_vectors(
    stream: IO[bytes], path: Path, *, memory_map: bool
) -> tuple[npt.NDArray[Any], int]:
    """Read or map the matrix; return where its bytes start, too."""
    shape, fortran_order, dtype = read_header(
        stream, size=path.stat().st_size, what="vectors", path=path
    )
    start = stream.tell()
    if memory_map:
        return np.memmap(path, dtype, "r", start, shape, "F" if fortran_order else "C"), start
    stream.seek(0)
    vectors: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return vectors, start


def _read_ids(path: Path) -> tuple[IdArray, str]:
    """Read one id a line, and the SHA-256 of the file; Python's text for few lines at a time."""
    if not path.is_file():
        raise MissingFileError(
            expected=f"the ids in {path.name!r}, one a line, beside the vectors",
            got="nothing there",
            do="copy it as well, or write the ids, and the space into "
            f"{path.name.removesuffix('.ids.txt') + '.space.json'!r}",
        )
    digest = hashlib.sha256()
    parts: list[IdArray] = [np.empty(0, dtype=np.str_)]
    try:
        with path.open("rb") as stream:
            while lines := stream.readlines(BLOCK_BYTES):
                block = b"".join(lines)
                digest.update(block)
                text = block.decode().replace("\r\n", "\n")
                texts = (text.removeprefix(MARK) if len(parts) == 1 else text).split("\n")
                parts.append(as_ids(texts[:-1] if texts[-1] == "" else texts))
    except UnicodeDecodeError as error:
        raise corrupt(path, expected="ids in UTF-8", got=str(error)) from error
    return np.concatenate(parts), digest.hexdigest()


def _read_space(path: Path, found: dict[str, Any]) -> Space | None:
    """Read the space and check that its file vouches for the rows and hashes that were found.

    A file that holds only the space, written by other means, vouches for nothing.
    """
    content = _space_content(path)
    if content is None:
        return None
    beside = space_path(path)
    if "format" not in content:
        return parse_space(json.dumps(content), beside)
    if content["format"] != FORMAT:
        raise corrupt(beside, expected=f"the format {FORMAT!r}", got=repr(content["format"]))
    differing = [name for name, value in found.items() if content.get(name) != value]
    if differing:
        raise corrupt(
            path,
            expected=f"the {' and '.join(differing)} that {beside.name!r} records",
            got="others: the three files were not written together",
        )
    return parse_space(json.dumps(content.get("space")), beside)


def space_beside(path: Path) -> Space | None:
    """Read the space that somebody wrote beside a file, of any format, that names none itself.

    One that was written for a ``.npy`` file of the same name is not this file's.

    Raises
    ------
    CorruptFileError
    """
    content = _space_content(path)
    if content is None or "format" in content:
        return None
    return parse_space(json.dumps(content), space_path(path))


def _space_content(path: Path) -> dict[str, Any] | None:
    """Read the JSON object beside a file; None where there is no such file."""
    beside = space_path(path)
    if not beside.is_file():
        return None
    if beside.stat().st_size > MAX_JSON_BYTES:
        raise corrupt(
            beside,
            expected=f"at most {MAX_JSON_BYTES:,} bytes",
            got=f"{beside.stat().st_size:,} bytes",
        )
    try:
        content = json.loads(beside.read_bytes())
    except (ValueError, RecursionError) as error:
        raise corrupt(beside, expected="a space as JSON", got=str(error)) from error
    if not isinstance(content, dict):
        raise corrupt(beside, expected="a space as a JSON object", got=type(content).__name__)
    return content


def _sampled_rows(rows: int) -> npt.NDArray[np.int64]:
    """Return up to 256 rows spread over the file, the first and the last among them."""
    return np.unique(np.linspace(0, rows - 1, min(rows, SAMPLED_ROWS)).round().astype(np.int64))


def _hash_sample(stream: IO[bytes], vectors: npt.NDArray[Any], *, start: int) -> str:
    """Hash the bytes of the sampled rows; reading all would take as long as using them.

    They are read from the file: through the memory map, each row would bring megabytes with it.
    """
    digest = hashlib.sha256()
    row_bytes = vectors[:1].nbytes
    for row in _sampled_rows(len(vectors)).tolist():
        stream.seek(start + row * row_bytes)
        digest.update(stream.read(row_bytes))
    return digest.hexdigest()


class _Sink:
    """Streams vectors and ids into their files, hashing on the way."""

    def __init__(self, vectors: IO[bytes], ids: IO[bytes], plan: Plan) -> None:
        self._vectors = vectors
        self._ids = ids
        self._sampled = _sampled_rows(plan.rows)
        self._rows = 0
        self.ids_hash = hashlib.sha256()
        self.sample_hash = hashlib.sha256()

    def write(self, ids: IdArray, vectors: FloatArray, metadata: Metadata) -> None:
        """Append one batch."""
        del metadata
        texts = ids.tolist()
        check_lines(texts)
        mark = MARK if not self._rows and texts[0].startswith(MARK) else ""
        text = (mark + "\n".join(texts) + "\n").encode()  # the reader takes one mark away
        self._ids.write(text)
        self.ids_hash.update(text)
        self._vectors.write(vectors.data.cast("B"))
        here = self._sampled - self._rows
        here = here[(here >= 0) & (here < len(vectors))]
        self.sample_hash.update(np.ascontiguousarray(vectors[here]).tobytes())
        self._rows += len(vectors)


def check_lines(ids: list[str]) -> None:
    """Refuse ids that one line each cannot hold."""
    together = "".join(ids)
    if any(mark in together for mark in LINE_BREAKS):
        bad = next(text for text in ids if any(mark in text for mark in LINE_BREAKS))
        raise InvalidIdError(
            expected="ids without line breaks in a .ids.txt file",
            got=repr(bad[:80]),
            do="save as .npz, .parquet or .safetensors",
        )


@contextlib.contextmanager
def _open_sink(plan: Plan) -> Iterator[_Sink]:
    paths = [plan.path, ids_path(plan.path), space_path(plan.path)]
    with atomic_set(paths) as (vectors_path, ids_file, space_file):
        with vectors_path.open("wb") as vectors, ids_file.open("wb") as ids:
            write_header(vectors, shape=(plan.rows, plan.space.dim), dtype=plan.numpy_dtype)
            sink = _Sink(vectors, ids, plan)
            yield sink
        content = {
            "format": FORMAT,
            "space": plan.space.to_dict(),
            "rows": plan.rows,
            "ids_sha256": sink.ids_hash.hexdigest(),
            "sample_sha256": sink.sample_hash.hexdigest(),
        }
        text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
        space_file.write_text(text + "\n", encoding="utf-8")


NPY = FileFormat(suffix=".npy", read=_read, open_sink=_open_sink, memory_maps=True)
