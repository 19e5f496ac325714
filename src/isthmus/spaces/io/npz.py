"""numpy archives: arrays ``ids`` and ``vectors``, and ``space``, a JSON string.

Of what others wrote, the arrays are found by their names.
"""

from __future__ import annotations

import contextlib
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from isthmus._files import atomic_path
from isthmus._types import FloatArray, IdArray
from isthmus.errors import IsthmusError
from isthmus.spaces.io.asked import Asked
from isthmus.spaces.io.base import FileFormat, Metadata, Plan, Raw, check_plausible, corrupt
from isthmus.spaces.io.names import looks_like_vector, pick_id, pick_vector
from isthmus.spaces.io.npy_header import read_header, write_header
from isthmus.spaces.io.space_json import dump_space, parse_space

__all__ = ["NPZ"]

# What zipfile and zlib raise for damaged archives, packed or encrypted ones they do not know.
BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError)


def _read(path: Path, asked: Asked) -> Raw:
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(
                name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")
            )
            id_name, vector_name = _names(names, asked, path)
            ids = _member(archive, id_name, path, what="ids")
            vectors = _member(archive, vector_name, path, what="vectors")
            text = _member(archive, "space", path, what="space") if "space" in names else None
    except IsthmusError:
        raise
    except BROKEN as error:
        raise corrupt(path, expected="a whole zip archive", got=str(error)[:200]) from error
    space = None if text is None else parse_space(_as_text(text), path)
    return Raw(ids=ids, vectors=vectors, space=space)


def _names(names: list[str], asked: Asked, path: Path) -> tuple[str, str]:
    """Name the arrays of the ids and the vectors: ours, or the only ones that are called so."""
    ours = {"ids", "vectors"} <= set(names)
    ids = pick_id(names, asked.id or ("ids" if ours else ""), path=path, what="array")
    able = [name for name in names if looks_like_vector(name)]
    wanted = asked.vector or ("vectors" if ours else "")
    return ids, pick_vector(able, wanted, names=names, path=path, what="array")


def _member(archive: zipfile.ZipFile, name: str, path: Path, *, what: str) -> npt.NDArray[Any]:
    """Read one array after its header was checked against the size of the member."""
    member = archive.getinfo(f"{name}.npy")
    check_plausible(path, unpacked=member.file_size, stored=member.compress_size)
    with archive.open(member) as stream:
        read_header(stream, size=member.file_size, what=what, path=path)
    with archive.open(member) as stream:
        array: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
        stream.read(1)  # the archive's checksum is compared only at the end of the member
    return array


def _as_text(array: npt.NDArray[Any]) -> str:
    value = array.item()
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


class _Sink:
    """Streams the vectors into the archive; the ids follow at the end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.ids: list[IdArray] = []

    def write(self, ids: IdArray, vectors: FloatArray, metadata: Metadata) -> None:
        """Append one batch."""
        del metadata
        self._stream.write(vectors.data.cast("B"))
        self.ids.append(ids)


@contextlib.contextmanager
def _open_sink(plan: Plan) -> Iterator[_Sink]:
    with (
        atomic_path(plan.path) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive,
    ):
        with archive.open(_entry("vectors"), "w", force_zip64=True) as stream:
            write_header(stream, shape=(plan.rows, plan.space.dim), dtype=plan.numpy_dtype)
            sink = _Sink(stream)
            yield sink
        _write_array(archive, "ids", np.concatenate(sink.ids))
        _write_array(archive, "space", np.array(dump_space(plan.space)))


def _write_array(archive: zipfile.ZipFile, name: str, array: npt.NDArray[Any]) -> None:
    """Write text, packed: numpy spends four bytes a character."""
    entry = _entry(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(entry, "w", force_zip64=True) as stream:
        write_header(stream, shape=array.shape, dtype=array.dtype.newbyteorder("<"))
        stream.write(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())


def _entry(name: str) -> zipfile.ZipInfo:
    """Name a member; its date stays fixed, so that equal sets give equal bytes."""
    return zipfile.ZipInfo(f"{name}.npy")


NPZ = FileFormat(suffix=".npz", read=_read, open_sink=_open_sink, asks=("id", "vector"))
