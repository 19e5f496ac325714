"""A file that linking can be taken up from: the state after an iteration, and whose state it is.

Safetensors with JSON in the metadata. What is read is not trusted: every number is checked against
the problem before it is used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import isthmus
from isthmus._files import atomic_path
from isthmus.errors import CorruptFileError, ParameterError
from isthmus.link import Iteration, Linker, LinkProblem, LinkState

__all__ = ["identify", "read_checkpoint", "write_checkpoint"]

FORMAT = "isthmus link checkpoint 1"
ARRAYS = {
    "source_rows": np.dtype(np.int64),
    "target_rows": np.dtype(np.int64),
    "posterior": np.dtype(np.float64),
    "pairs": np.dtype(np.int64),
    "votes": np.dtype(np.int64),
}
LARGEST = 2**53
"""Whole numbers over this are no counts."""

Identity = Mapping[str, str]
"""What a state belongs to, by the name that a user would give it."""


def identify(problem: LinkProblem, linker: Linker, *, seed: int) -> dict[str, str]:
    """Name a run: its vectors, seeds, method, parameters, seed and version of Isthmus.

    Vectors by the SHA-256 of their bytes, the rest as text.
    """
    inside = () if problem.seed_rows is None else (problem.seed_rows,)
    return {
        "source vectors": _hash(problem.source),
        "target vectors": _hash(problem.target),
        "seed pairs": _hash(problem.seed_source, problem.seed_target, *inside),
        "method": linker.name,
        "parameters": repr(linker),
        "seed": str(seed),
        "version of Isthmus": isthmus.__version__,
    }


def write_checkpoint(path: Path, state: LinkState, identity: Identity) -> None:
    """Write a state, whole or not at all.

    Raises
    ------
    WriteFailedError
    """
    from safetensors.numpy import save

    arrays = {
        name: np.ascontiguousarray(getattr(state, name), dtype=dtype)
        for name, dtype in ARRAYS.items()
    }
    history = [asdict(one) for one in state.history]
    numbers = {"views": int(state.views), "done": bool(state.done), "history": history}
    texts = {
        "format": FORMAT,
        "identity": json.dumps(dict(identity), sort_keys=True),
        "state": json.dumps(numbers, default=float),  # numpy's numbers
    }
    content = save(arrays, metadata={**texts, "digest": _digest(arrays, texts)})
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def read_checkpoint(path: Path, problem: LinkProblem, identity: Identity) -> LinkState:
    """Read a state of this problem and run.

    Raises
    ------
    CorruptFileError
        Cut short, changed, or no checkpoint at all; rows that the problem does not have.
    ParameterError
        The state of another run: names what differs.
    """
    arrays, texts = _read(path)
    _check_same_run(path, _parse(path, texts["identity"], "the run"), identity)
    numbers = _parse(path, texts["state"], "the state")
    _check_arrays(path, arrays, problem)
    views, done, history = (numbers.get(name) for name in ("views", "done", "history"))
    if not _is_count(views) or not isinstance(done, bool) or not isinstance(history, list):
        raise _corrupt(path, "views, done and history as they are written", "others")
    return LinkState(
        **arrays,
        views=int(numbers["views"]),
        done=done,
        history=tuple(_iteration(path, *one) for one in enumerate(history, start=1)),
    )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Read arrays and texts that fit their digest."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise _corrupt(path, "a plain file", "something else")
    try:
        with safe_open(path, framework="np") as file:
            texts = dict(file.metadata() or {})
            names = set(file.keys())
            if texts.get("format") != FORMAT or names != set(ARRAYS):
                raise _corrupt(path, f"the format {FORMAT!r}", repr(texts.get("format"))[:80])
            arrays = {name: file.get_tensor(name) for name in ARRAYS}
    except (SafetensorError, TypeError) as error:  # TypeError: a number type that numpy lacks
        raise _corrupt(path, "whole tensors", str(error)) from error
    digest = texts.pop("digest", "")
    if set(texts) != {"format", "identity", "state"} or digest != _digest(arrays, texts):
        raise _corrupt(path, "content that fits its hash", "content that was changed")
    return arrays, texts


def _check_same_run(path: Path, kept: Mapping[str, Any], asked: Identity) -> None:
    differing = [name for name in asked if kept.get(name) != asked[name]]
    if differing:
        raise ParameterError(
            expected=f"the run that {path.name!r} was kept of",
            got=f"one that differs in: {', '.join(differing)}",
            do="give what that run was given, or start anew, without resuming",
        )


def _check_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]], problem: LinkProblem) -> None:
    """Check number types, shapes, ranges and order before any of it is used."""
    sizes = len(problem.source), len(problem.target)
    n_links, n_pairs = arrays["source_rows"].size, arrays["pairs"].size // 2
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(ARRAYS, (n_links,))
    shapes |= {"pairs": (n_pairs, 2), "votes": (n_pairs,)}
    for name, dtype in ARRAYS.items():
        array = arrays[name]
        if array.dtype != dtype or array.shape != shapes[name]:
            expected = f"{name} as {dtype} of shape {shapes[name]}"
            raise _corrupt(path, expected, f"{array.dtype} of shape {array.shape}")
    pairs, posterior = arrays["pairs"], arrays["posterior"]
    rows = [(arrays["source_rows"], sizes[0]), (arrays["target_rows"], sizes[1])]
    within = [*rows, *((pairs[:, side], sizes[side]) for side in (0, 1))]
    if any(len(one) and (one.min() < 0 or one.max() >= size) for one, size in within):
        raise _corrupt(path, "rows that the two sets have", "others")
    if any(len(np.unique(one)) < len(one) for one, _ in rows):
        raise _corrupt(path, "each row in one link", "a row in two")
    if (np.diff(pairs[:, 0] * sizes[1] + pairs[:, 1]) <= 0).any():
        raise _corrupt(path, "candidates in order, each once", "others")
    if not ((posterior >= 0) & (posterior <= 1)).all() or (arrays["votes"] < 0).any():
        raise _corrupt(path, "posteriors from 0 to 1 and votes from 0", "others")


def _iteration(path: Path, number: int, values: Any) -> Iteration:
    known = {one.name: str(one.type) for one in fields(Iteration)}
    if not isinstance(values, dict) or set(values) != set(known):
        raise _corrupt(path, f"iterations with {', '.join(known)}", "others")
    for name, kind in known.items():
        value = values[name]
        fits = {
            "int": _is_count(value),
            "float": isinstance(value, int | float) and not isinstance(value, bool),
            "str": isinstance(value, str),
        }
        if not fits[kind]:
            raise _corrupt(path, f"{name} of an iteration as {kind}", repr(value)[:80])
    if values["number"] != number:
        raise _corrupt(path, "iterations in order", f"number {values['number']} in place {number}")
    return Iteration(**values)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def _parse(path: Path, text: str, what: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _corrupt(path, f"{what} as JSON", str(error)[:80]) from error
    if not isinstance(parsed, dict):
        raise _corrupt(path, f"{what} as a JSON object", type(parsed).__name__)
    return parsed


def _hash(*arrays: npt.NDArray[Any]) -> str:
    """Hash the types, shapes and bytes of arrays."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def _digest(arrays: Mapping[str, npt.NDArray[Any]], texts: Mapping[str, str]) -> str:
    """Hash all that a checkpoint holds: against damage, not against forgers."""
    found = hashlib.sha256(_hash(*(arrays[name] for name in ARRAYS)).encode())
    for name in sorted(texts):
        found.update(json.dumps([name, texts[name]]).encode())
    return found.hexdigest()


def _corrupt(path: Path, expected: str, got: str) -> CorruptFileError:
    return CorruptFileError(
        expected=f"{path.name!r} as a checkpoint with {expected}",
        got=got,
        do="remove it and start anew, without resuming",
    )
