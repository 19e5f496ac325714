"""Canaries: a few texts embedded again tell whether a model of the same name is still the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus.errors import InputError, ParameterError, SpaceMismatchError, VerdictError
from isthmus.spaces import Space, VectorSet
from isthmus.stores import Store
from isthmus.workflows._doctor_rows import opened
from isthmus.workflows._opening import open_vectors

__all__ = [
    "FEWEST",
    "CanaryCheck",
    "CanaryVerdict",
    "add_canaries",
    "check_canaries",
    "compare_canaries",
]

CanaryVerdict = Literal["unchanged", "transformed", "changed weights"]

SAME, HALF, SHORT, NOISE = 1e-5, 1e-3, 1e-2, 2e-2
"""Median relative error up to which rows are the same, or differ by the rounding of float16, of
bfloat16, or of a model that computes in it."""
TURNED = 3e-3
"""How far a cosine between two canaries may be off after a rotation: the rounding of bfloat16."""
MOST = 1_000
"""Rows whose cosines among each other are compared: all to all."""
FEWEST = 5
"""Different rows without which a rotation cannot be told from other weights."""


@dataclass(frozen=True, kw_only=True)
class CanaryCheck:
    """What became of the vectors of a few fixed texts.

    Parameters
    ----------
    verdict : {"unchanged", "transformed", "changed weights"}
        ``transformed``: the same model, and something was done to its vectors since.
    kind : str
        ``equal``, ``rounding of float16``, ``rounding of bfloat16``, ``numeric noise``;
        ``other lengths``, ``cut to N dimensions``, ``signs of dimensions``, ``order of
        dimensions``, ``rotation``; ``other weights``.
    rows : int
        Canaries that both sides have.
    missing : int
        Canaries that were not embedded again.
    error : float
        Median length of the difference over the length of the canary; NaN where widths differ.
    cosine, lowest_cosine : float
        Mean and smallest cosine of a canary and its new vector; NaN where widths differ.
    similarity_error : float
        How far the cosines among the canaries changed: root mean square. 0 for a rotation.
    """

    verdict: CanaryVerdict
    kind: str
    rows: int
    missing: int = 0
    error: float = float("nan")
    cosine: float = float("nan")
    lowest_cosine: float = float("nan")
    similarity_error: float = float("nan")

    def require(self) -> None:
        """Refuse anything but unchanged canaries, all of them and five at least.

        Raises
        ------
        VerdictError
        """
        if self.missing or self.rows < FEWEST:
            raise VerdictError(
                expected=f"every canary embedded again, {FEWEST} at least",
                got=f"{self.rows:,} of {self.rows + self.missing:,}",
                do="embed the texts of all canaries with the model of today",
            )
        if self.verdict != "unchanged":
            raise VerdictError(
                expected="canaries that are unchanged",
                got=f"{self.verdict}: {self.kind}",
                do="embed with the model of the collection, or fit a bridge from the new one",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dict(vars(self))


def add_canaries(
    place: Store | VectorSet | Path | str, vectors: VectorSet | Path | str, canary_file: Path
) -> int:
    """Keep the vectors of a few fixed texts as the model of today makes them.

    Parameters
    ----------
    place : Store, VectorSet, store URL, or path of a file
        The collection they belong to; nothing is written to it.
    vectors : VectorSet, or path
        Ids name the texts; 20 to 100 texts of different topics are plenty.
    canary_file : Path
        A new file of vectors.

    Returns
    -------
    int
        Canaries kept.

    Raises
    ------
    SpaceMismatchError
        The canaries are not of the collection's space.
    ParameterError
        The file is there already: what the model made then would be lost.
    MissingFileError, UnknownFormatError, CorruptFileError, InputError, StoreError, WriteFailedError
    """
    fresh = open_vectors(vectors)
    space = _space_of(place)
    space.check(fresh.space, what="canaries")
    if canary_file.exists():
        raise ParameterError(
            expected="a new file for the canaries",
            got=f"{canary_file.name!r}, which is there already",
            do="choose another name, or remove it first if its canaries are of no use",
        )
    fresh.save(canary_file, dtype="float32")
    return len(fresh)


def check_canaries(
    place: Store | VectorSet | Path | str, vectors: VectorSet | Path | str, canary_file: Path
) -> CanaryCheck:
    """Compare canaries with the same texts embedded again.

    Parameters
    ----------
    place : Store, VectorSet, store URL, or path of a file
        The collection they belong to.
    vectors : VectorSet, or path
        The same ids, embedded anew.
    canary_file : Path
        See `add_canaries`.

    Raises
    ------
    SpaceMismatchError
        The canaries are not of the collection's space, or the new vectors name another model.
    InputError
        No id in common.
    MissingFileError, UnknownFormatError, CorruptFileError, StoreError
    """
    kept, fresh = open_vectors(canary_file), open_vectors(vectors)
    _space_of(place).check(kept.space, what="canaries")
    if kept.space.model != fresh.space.model:
        raise SpaceMismatchError(
            expected=f"vectors of the model {kept.space.model!r}",
            got=f"of {fresh.space.model!r}",
            do="embed the canaries with the model of the collection",
        )
    places = fresh.find(kept.ids)
    rows = np.flatnonzero(places >= 0)
    if not len(rows):
        raise InputError(
            expected=f"the ids of the canaries, such as {str(kept.ids[0])!r}",
            got="none of them in the vectors",
            do="embed the same texts under the same ids",
        )
    before, after = kept.matrix()[rows], fresh.matrix()[places[rows]]
    return compare_canaries(before, after, missing=len(kept) - len(rows))


def compare_canaries(
    before: npt.ArrayLike, after: npt.ArrayLike, *, missing: int = 0
) -> CanaryCheck:
    """Say what was done to vectors, row by row the same texts.

    Parameters
    ----------
    before : array-like of shape (n, dim)
    after : array-like of shape (n, new_dim)
    missing : int, default 0
        For the result.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((20, 8))
    >>> compare_canaries(rows, rows.astype(np.float16)).kind
    'rounding of float16'
    >>> compare_canaries(rows, rows[:, ::-1]).kind
    'order of dimensions'
    """
    old, new = np.asarray(before, np.float64), np.asarray(after, np.float64)
    similarity = float(np.sqrt(((_cosines(old) - _cosines(new)) ** 2).mean()))
    common: dict[str, Any] = {
        "rows": len(old),
        "missing": missing,
        "similarity_error": similarity,
    }
    if old.shape[1] == new.shape[1]:
        cosines = (_unit(old) * _unit(new)).sum(axis=1)
        cosines[~old.any(axis=1) & ~new.any(axis=1)] = 1.0  # nothing stayed nothing
        common["error"] = _error(old, new)
        common["cosine"], common["lowest_cosine"] = float(cosines.mean()), float(cosines.min())
        for limit, kind in (
            (SAME, "equal"),
            (HALF, "rounding of float16"),
            (SHORT, "rounding of bfloat16"),
            (NOISE, "numeric noise"),
        ):
            if common["error"] <= limit and common["lowest_cosine"] > 0.99:
                return CanaryCheck(verdict="unchanged", kind=kind, **common)
    kind = _kind(old, new)
    if kind:
        return CanaryCheck(verdict="transformed", kind=kind, **common)
    return CanaryCheck(verdict="changed weights", kind="other weights", **common)


def _kind(old: FloatArray, new: FloatArray) -> str:
    """Name what makes the new vectors of the old ones, if it is something simple."""
    dim, new_dim = old.shape[1], new.shape[1]
    several = len(np.unique(_unit(old).round(6), axis=0)) >= FEWEST
    width = new_dim - int(np.argmax((new != 0).any(axis=0)[::-1])) if new.any() else 0
    if width < dim and width and _error(_unit(old[:, :width]), _unit(new[:, :width])) <= NOISE:
        return f"cut to {width} dimensions"
    if new_dim == dim:
        if _error(_unit(old), _unit(new)) <= NOISE:
            return "other lengths"
        old, new = _unit(old), _unit(new)
        signs = np.where((old * new).sum(axis=0) < 0, -1.0, 1.0)
        if several and _error(old * signs, new) <= NOISE:
            return "signs of dimensions"
        if several and _reordered(old, new):
            return "order of dimensions"
    if several and np.abs(_cosines(old) - _cosines(new)).max() <= TURNED:
        return "rotation"
    return ""


def _reordered(old: FloatArray, new: FloatArray) -> bool:
    """Say whether dimensions stand in another order, some perhaps with another sign."""
    from scipy.optimize import linear_sum_assignment

    products = old.T @ new
    squares = (old**2).sum(axis=0)[:, None] + (new**2).sum(axis=0)[None, :]
    places = linear_sum_assignment(squares - 2 * np.abs(products))[1]
    signs = np.where(products[np.arange(len(places)), places] < 0, -1.0, 1.0)
    return _error(old * signs, new[:, places]) <= NOISE


def _error(old: FloatArray, new: FloatArray) -> float:
    lengths = np.linalg.norm(old, axis=1)
    return float(np.median(np.linalg.norm(new - old, axis=1) / np.maximum(lengths, 1e-30)))


def _unit(rows: FloatArray) -> FloatArray:
    unit: FloatArray = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    return unit


def _cosines(rows: FloatArray) -> FloatArray:
    unit = _unit(rows[:MOST])
    cosines: FloatArray = unit @ unit.T
    return cosines


def _space_of(place: Store | VectorSet | Path | str) -> Space:
    collection = opened(place)
    if collection.source is not place:
        collection.close()
    if collection.space is None:
        raise InputError(
            expected="a collection that records its space",
            got="none recorded",
            do="record it first: isthmus store record URL --model NAME, or a file NAME.space.json "
            "beside a file",
        )
    return collection.space
