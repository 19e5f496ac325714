"""numpy archives: arrays ``ids`` and ``vectors``, and ``space``, a JSON string."""

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
from isthmus.spaces.io.base import FileFormat, Plan, Raw, check_plausible, corrupt
from isthmus.spaces.io.npy_header import read_header, write_header
from isthmus.spaces.io.space_json import dump_space, parse_space

__all__ = ["NPZ"]

# What zipfile and zlib raise for damaged archives, packed or encrypted ones they do not know.
BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError)


def _read(path: Path, memory_map: bool) -> Raw:  # noqa: FBT001 - the registry's call
    del memory_map
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            missing = [name for name in ("ids", "vectors") if f"{name}.npy" not in names]
            if missing:
                found = ", ".join(sorted(name.removesuffix(".npy") for name in names)) or "none"
                raise corrupt(
                    path,
                    expected="the arrays 'ids' and 'vectors'",
                    got=f"no {' and no '.join(map(repr, missing))} among: {found[:200]}",
                    do="save the arrays under these names: numpy.savez(path, ids=..., vectors=...)",
                )
            ids = _member(archive, "ids", path)
            vectors = _member(archive, "vectors", path)
            text = _member(archive, "space", path) if "space.npy" in names else None
    except IsthmusError:
        raise
    except BROKEN as error:
        raise corrupt(path, expected="a whole zip archive", got=str(error)[:200]) from error
    space = None if text is None else parse_space(_as_text(text), path)
    return Raw(ids=ids, vectors=vectors, space=space)


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> npt.NDArray[Any]:
    """Read one array after its header was checked against the size of the member."""
    member = archive.getinfo(f"{name}.npy")
    check_plausible(path, unpacked=member.file_size, stored=member.compress_size)
    with archive.open(member) as stream:
        read_header(stream, size=member.file_size, what=name, path=path)
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

    def write(self, ids: IdArray, vectors: FloatArray) -> None:
        """Append one batch."""
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


NPZ = FileFormat(suffix=".npz", read=_read, open_sink=_open_sink)
