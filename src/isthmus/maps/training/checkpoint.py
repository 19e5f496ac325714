"""A file that training can be taken up from: weights, Adam's moments, and whose training it is.

Safetensors with JSON in the metadata. The file's name is a hash of the vectors, the first weights,
the parameters and the version, so that another training never takes it up.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus._files import atomic_path
from isthmus._types import FloatArray
from isthmus.errors import CorruptFileError, WriteFailedError

__all__ = ["Checkpoint", "remove_at_the_end"]

FORMAT = "isthmus training checkpoint 1"

HOSTILE = (TypeError, RecursionError)
"""What a type that numpy does not have, and JSON without an end to its brackets, lead to."""


_later: ContextVar[list[Checkpoint] | None] = ContextVar("later", default=None)
"""Fits of one bridge lie deep below it, behind the signature that every ``fit`` has."""


@contextlib.contextmanager
def remove_at_the_end() -> Iterator[None]:
    """Keep the files of the fits in the block until all of it has succeeded.

    Otherwise a bridge that is stopped in its last fit would begin with its first again.
    """
    kept: list[Checkpoint] = []
    token = _later.set(kept)
    try:
        yield
    finally:
        _later.reset(token)
    for each in kept:
        each.remove()


@dataclass(frozen=True)
class Checkpoint:
    """Where a training keeps its state.

    Parameters
    ----------
    path : Path
    """

    path: Path

    @classmethod
    def of(
        cls, folder: Path | str, *data: npt.NDArray[Any], params: Mapping[str, Any]
    ) -> Checkpoint:
        """Name the file of one training in a folder, which is made where it is not there.

        Parameters
        ----------
        folder : Path or str
        *data : arrays
            What is trained on, the first weights included.
        params : mapping
            Everything else that decides the outcome.

        Raises
        ------
        WriteFailedError
            The folder cannot be made.
        """
        digest = hashlib.sha256(version("isthmus").encode())
        digest.update(json.dumps(dict(params), sort_keys=True, default=str).encode())
        for array in data:
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteFailedError(
                expected=f"a folder for the state of training, {folder}",
                got=f"{error.strerror or error}",
                do="choose another folder, or look after its permissions",
            ) from error
        return cls(Path(folder) / f"training-{digest.hexdigest()[:24]}.safetensors")

    def write(self, arrays: Mapping[str, FloatArray], numbers: Mapping[str, Any]) -> None:
        """Write the state, whole or not at all.

        Raises
        ------
        WriteFailedError
        """
        from safetensors.numpy import save

        content = save(
            {name: np.ascontiguousarray(array) for name, array in arrays.items()},
            metadata={"format": FORMAT, "numbers": json.dumps(dict(numbers))},
        )
        with atomic_path(self.path) as temporary:
            temporary.write_bytes(content)

    def read(
        self, shapes: Mapping[str, Sequence[int]]
    ) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return the arrays and numbers of the state, or nothing where there is no file.

        Raises
        ------
        CorruptFileError
            Not a regular file, not a checkpoint, or arrays of other shapes than ``shapes``.
        """
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return {}, {}
        if not self.path.is_file():  # a pipe would be waited for without end
            raise self.corrupt("something that is not a regular file")
        try:
            with safe_open(self.path, framework="numpy") as file:
                metadata = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            numbers = json.loads(metadata["numbers"])
        except (SafetensorError, OSError, ValueError, LookupError, *HOSTILE) as error:
            raise self.corrupt(f"{type(error).__name__}: {error}") from error
        found = {name: tuple(array.shape) for name, array in arrays.items()}
        if metadata.get("format") != FORMAT or not isinstance(numbers, dict):
            raise self.corrupt("another format")
        if found != {name: tuple(shape) for name, shape in shapes.items()}:
            raise self.corrupt("arrays of other names or shapes")
        if not all(
            array.dtype == np.float32 and np.isfinite(array).all() for array in arrays.values()
        ):
            raise self.corrupt("numbers that are not finite float32")
        return arrays, numbers

    def remove(self) -> None:
        """Remove the file after the fit, or after all fits of a `remove_at_the_end` around it."""
        later = _later.get()
        if later is not None:
            later.append(self)
            return
        with contextlib.suppress(OSError):  # what is left over hinders nothing
            self.path.unlink(missing_ok=True)

    def corrupt(self, got: str) -> CorruptFileError:
        """Return the error that says what is wrong with the file."""
        return CorruptFileError(
            expected=f"a checkpoint of this training in {self.path.name}",
            got=got[:200],
            do="delete that file; training then starts from the beginning",
        )
