"""An adaptive budget as a file: safetensors, with everything that is not an array as JSON bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isthmus._files import atomic_path
from isthmus.bridge.format import read_tensors, write_tensors
from isthmus.errors import (
    IsthmusError,
    MalformedArtifactError,
    MissingFileError,
    UnknownVersionError,
)
from isthmus.federate.outline import StoreOutline
from isthmus.spaces import Space

if TYPE_CHECKING:
    from isthmus.federate.adaptive import Adaptive

__all__ = ["read_adaptive", "write_adaptive"]

VERSION = 2
FIELDS = ("loss", "level", "measured_loss", "measured_searched")
MOST_ROWS = 1e15
"""More than any store has; from there on float32 counts nothing."""

ARRAYS = ("centroids", "sizes", "directions", "variances")


def write_adaptive(budget: Adaptive, path: Path) -> None:
    """Write the budget; nothing is left half written.

    Raises
    ------
    WriteFailedError
    """
    numbers = {name: float(getattr(budget, name)) for name in FIELDS}
    about = {
        "version": VERSION,
        "hub": budget.hub.to_dict(),
        "names": list(budget.names),
        "bridges": list(budget.bridges),
        **{name: None if np.isnan(value) else value for name, value in numbers.items()},
    }
    tensors: dict[str, npt.NDArray[Any]] = {
        "about": np.frombuffer(json.dumps(about, sort_keys=True).encode(), np.uint8)
    }
    for place, outline in enumerate(budget.outlines):
        tensors |= {f"{place}/{name}": getattr(outline, name) for name in ARRAYS}
    with atomic_path(path) as temporary:
        write_tensors(temporary, tensors)


def read_adaptive(path: Path) -> Adaptive:
    """Read the budget, trusting nothing in the file.

    Raises
    ------
    MissingFileError, CorruptFileError, MalformedArtifactError, UnknownVersionError
    """
    from isthmus.federate.adaptive import Adaptive

    if not path.is_file():
        raise MissingFileError(
            expected="the file of a budget",
            got=f"no file at {str(path)[:300]!r}",
            do="check the path",
        )
    tensors = read_tensors(path)
    about = _about(tensors, path.name)
    try:
        hub = Space.from_dict(about["hub"])
        names, bridges = (tuple(map(str, about[part])) for part in ("names", "bridges"))
        numbers = {
            name: float("nan") if about[name] is None else float(about[name]) for name in FIELDS
        }
    except (KeyError, TypeError, ValueError, OverflowError, IsthmusError) as error:
        raise _malformed(path.name, f"{type(error).__name__}: {error}") from error
    if len(bridges) != len(names):
        raise _malformed(path.name, f"{len(bridges)} bridges for {len(names)} sources")
    for name, value in numbers.items():
        unknown = name.startswith("measured") and np.isnan(value)
        if not (unknown or 0 <= value <= 1):
            raise _malformed(path.name, f"{name} {value}")
    width = hub.dim + (hub.metric == "l2")
    outlines = tuple(
        _outline(tensors, place, width=width, name=path.name) for place in range(len(names))
    )
    return Adaptive(outlines, names, bridges, hub, **numbers)


def _about(tensors: dict[str, npt.NDArray[Any]], name: str) -> dict[str, Any]:
    try:
        about = json.loads(tensors["about"].astype(np.uint8).tobytes())
    except (KeyError, ValueError, RecursionError) as error:
        raise _malformed(name, f"{type(error).__name__} in its description") from error
    if not isinstance(about, dict):
        raise _malformed(name, f"a {type(about).__name__} as its description")
    if about.get("version") != VERSION:
        raise UnknownVersionError(
            expected=f"version {VERSION} of the file of a budget",
            got=f"{about.get('version')!r}"[:80],
            do="fit the budget again, or use the version of Isthmus that wrote it",
        )
    return about


def _outline(
    tensors: dict[str, npt.NDArray[Any]], place: int, *, width: int, name: str
) -> StoreOutline:
    """Read one outline and check its shapes and numbers."""
    arrays = {part: tensors.get(f"{place}/{part}", np.zeros(0)) for part in ARRAYS}
    count, rank = arrays["sizes"].size, max(0, arrays["variances"].size - 1)
    shapes = {
        "centroids": (count, width),
        "sizes": (count,),
        "directions": (width, rank),
        "variances": (rank + 1,),
    }
    for part, shape in shapes.items():
        array = arrays[part]
        if array.dtype != np.float32 or array.shape != shape or not np.isfinite(array).all():
            raise _malformed(name, f"{place}/{part}: {array.dtype} of shape {array.shape}")
    if (arrays["sizes"] < 0).any() or (arrays["variances"] < 0).any():
        raise _malformed(name, f"numbers under 0 in outline {place}")
    if count and not 0 < arrays["sizes"].sum(dtype=np.float64) <= MOST_ROWS:
        raise _malformed(name, f"sizes in outline {place} that are no rows of a store")
    return StoreOutline(**arrays)


def _malformed(name: str, got: str) -> MalformedArtifactError:
    return MalformedArtifactError(
        expected=f"an adaptive budget in {name!r}", got=got[:200], do="fit the budget again"
    )
