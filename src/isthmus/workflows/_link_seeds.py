"""The problem of linking, out of two sets and seed pairs: rows of the sets, or of other objects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray
from isthmus.errors import InputError, ParameterError
from isthmus.link import LinkProblem
from isthmus.spaces import Pairs, VectorSet
from isthmus.spaces._mapped import gather
from isthmus.spaces.pairs_file import read_pairs
from isthmus.workflows._opening import open_vectors

__all__ = ["SeedVectors", "make_problem"]

SeedVectors = tuple[VectorSet | Path | str, VectorSet | Path | str]
"""Two sets of other objects in the spaces of the source and of the target."""

SAME = 1e-2
"""How far apart two copies of a row may be, relative to its length: float16 costs a tenth of it."""


def make_problem(
    source: VectorSet,
    target: VectorSet,
    seeds: Pairs | Path | str | IntArray | None,
    seed_vectors: SeedVectors | None,
) -> LinkProblem:
    """Return the problem of `find_links`; see there. Seeds may be rows of both sets, (n, 2), too.

    Raises
    ------
    SpaceMismatchError
        Seeds of other spaces than the two sets.
    ParameterError, InputError
        Neither seeds nor their vectors; seeds of which some are rows of the sets and some are not.
    """
    if isinstance(seeds, np.ndarray):
        return _of_rows(source, target, seeds[:, 0], seeds[:, 1])
    if seed_vectors is None and seeds is None:
        raise ParameterError(
            expected="seed pairs: a file of ids, Pairs, or two sets of seed vectors",
            got="none of them",
            do="give a few pairs that you are sure of; 15 to 30 is what linking is made for; "
            "or 'none' in their place, which needs large sets that share many objects",
        )
    if seed_vectors is not None:
        return _of_vectors(source, target, _pair_up(seeds, seed_vectors))
    if isinstance(seeds, Pairs):
        return _of_pairs(source, target, seeds)
    left, right = read_pairs(Path(str(seeds))).rows(source, target)
    return _of_rows(source, target, left, right)


def _pair_up(seeds: Pairs | Path | str | None, seed_vectors: SeedVectors) -> Pairs:
    """Pair the seed vectors by the ids of a file, or by equal ids."""
    if isinstance(seeds, Pairs):
        raise ParameterError(
            expected="seeds as Pairs, or as sets of seed vectors",
            got="both",
            do="leave one of them out: Pairs have their vectors",
        )
    left, right = (open_vectors(one) for one in seed_vectors)
    return Pairs.from_ids(left, right) if seeds is None else Pairs.from_file(seeds, left, right)


def _of_rows(source: VectorSet, target: VectorSet, left: IntArray, right: IntArray) -> LinkProblem:
    return LinkProblem.of_rows(source.matrix(), target.matrix(), np.column_stack([left, right]))


def _of_vectors(source: VectorSet, target: VectorSet, pairs: Pairs) -> LinkProblem:
    _check_spaces(source, target, pairs)
    return LinkProblem.of_vectors(source.matrix(), target.matrix(), pairs.source, pairs.target)


def _of_pairs(source: VectorSet, target: VectorSet, pairs: Pairs) -> LinkProblem:
    """Take pairs for rows of the sets where ids and vectors are theirs; equal ids may be chance."""
    _check_spaces(source, target, pairs)
    left, right = source.find(pairs.source_ids), target.find(pairs.target_ids)
    inside = (left >= 0) & (right >= 0)
    inside[inside] &= _same(source, left[inside], pairs.source[inside])
    inside[inside] &= _same(target, right[inside], pairs.target[inside])
    if inside.all():
        return _of_rows(source, target, left, right)
    if inside.any():
        raise InputError(
            expected="seeds that are all rows of the two sets, or all of other objects",
            got=f"{np.count_nonzero(inside):,} of {len(pairs):,} that are rows of the sets",
            do="leave out those that are not, or those that are",
        )
    return _of_vectors(source, target, pairs)


def _check_spaces(source: VectorSet, target: VectorSet, pairs: Pairs) -> None:
    source.space.check(pairs.source_space, what="seeds on the source side")
    target.space.check(pairs.target_space, what="seeds on the target side")


def _same(vectors: VectorSet, rows: IntArray, copies: FloatArray) -> npt.NDArray[np.bool_]:
    own = gather(vectors.vectors, rows)
    same: npt.NDArray[np.bool_] = np.linalg.norm(own - copies, axis=1) <= SAME * np.linalg.norm(
        own, axis=1
    )
    return same
