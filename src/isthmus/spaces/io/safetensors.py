"""safetensors: ``vectors``, ``ids`` (UTF-8 bytes) and ``id_ends``; the space in the metadata.

Id i is the bytes from ``id_ends[i - 1]`` (0 for the first) to ``id_ends[i]``.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._files import atomic_path
from isthmus._types import FloatArray, IdArray
from isthmus.errors import WriteFailedError
from isthmus.spaces.io.asked import Asked
from isthmus.spaces.io.base import FileFormat, Metadata, Plan, Raw, corrupt
from isthmus.spaces.io.space_json import dump_space, parse_space

__all__ = ["SAFETENSORS"]

NAMES = ("vectors", "ids", "id_ends")


def _read(path: Path, asked: Asked) -> Raw:
    del asked
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            names = sorted(file.keys())
            missing = [name for name in NAMES if name not in names]
            if missing:
                raise corrupt(
                    path,
                    expected=f"the tensors {', '.join(NAMES)}",
                    got=f"no {' and no '.join(missing)} among: {', '.join(names)[:200] or 'none'}",
                )
            arrays = {name: file.get_tensor(name) for name in NAMES}
            text = (file.metadata() or {}).get("space")
    except (SafetensorError, TypeError) as error:  # TypeError: a number type that numpy lacks
        raise corrupt(path, expected="whole tensors that numpy can hold", got=str(error)) from error
    if arrays["vectors"].dtype.kind not in "fiu":  # other libraries may teach numpy bfloat16
        got = f"vectors of {arrays['vectors'].dtype}"
        raise corrupt(path, expected="whole tensors that numpy can hold", got=got)
    return Raw(
        ids=_decode(arrays["ids"], arrays["id_ends"], path),
        vectors=arrays["vectors"],
        space=None if text is None else parse_space(text, path),
    )


def _decode(data: npt.NDArray[Any], ends: npt.NDArray[Any], path: Path) -> list[str]:
    """Cut the bytes into ids, checking every end before it is used."""
    if data.dtype != np.uint8 or data.ndim != 1 or ends.dtype != np.int64 or ends.ndim != 1:
        raise corrupt(
            path,
            expected="ids as uint8 and id_ends as int64, each with one axis",
            got=f"{data.dtype} {data.shape} and {ends.dtype} {ends.shape}",
        )
    starts = np.r_[np.int64(0), ends]
    if (np.diff(starts) < 0).any() or starts[-1] != len(data):
        raise corrupt(path, expected="id_ends that rise to the last byte of the ids", got="others")
    content = data.tobytes()
    bounds = starts.tolist()
    try:
        return [content[a:b].decode() for a, b in itertools.pairwise(bounds)]
    except UnicodeDecodeError as error:
        raise corrupt(path, expected="ids in UTF-8", got=str(error)) from error


class _Sink:
    """Keeps the batches: a safetensors file begins with the sizes of all that follows."""

    def __init__(self) -> None:
        self.ids: list[bytes] = []
        self.vectors: list[FloatArray] = []

    def write(self, ids: IdArray, vectors: FloatArray, metadata: Metadata) -> None:
        """Keep one batch."""
        del metadata
        self.ids += [text.encode() for text in ids.tolist()]
        self.vectors.append(vectors)


@contextlib.contextmanager
def _open_sink(plan: Plan) -> Iterator[_Sink]:
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    with atomic_path(plan.path) as temporary:
        sink = _Sink()
        yield sink
        tensors = {
            "vectors": np.concatenate(sink.vectors),
            "ids": np.frombuffer(b"".join(sink.ids), dtype=np.uint8),
            "id_ends": np.cumsum([len(text) for text in sink.ids], dtype=np.int64),
        }
        temporary.touch()
        mode = temporary.stat().st_mode
        try:
            save_file(tensors, temporary, metadata={"space": dump_space(plan.space)})
            temporary.chmod(mode)  # the library's files can be read by their owner alone
        except SafetensorError as error:
            raise WriteFailedError(
                expected=f"to write {plan.path.name!r}",
                got=str(error),
                do="check free space, permission and that the folder exists; what was there is "
                "unchanged",
            ) from error


SAFETENSORS = FileFormat(suffix=".safetensors", read=_read, open_sink=_open_sink)
