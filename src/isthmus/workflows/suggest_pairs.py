"""Suggest which rows to pair next, from the vectors and from the pairs that are there already."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_whole
from isthmus.errors import EmptyInputError, ParameterError
from isthmus.spaces import Pairs, VectorSet
from isthmus.spaces._mapped import gather
from isthmus.spaces.free_rows import free_rows
from isthmus.spaces.sampling import draw_rows
from isthmus.spaces.suggestion import Suggestion
from isthmus.workflows._opening import open_vectors

__all__ = ["suggest_pairs"]

COUPLED_ROWS = 5_000
"""Rows of each side that are coupled, drawn at random; a minute on two cores."""
TOLERANCE, MOST_ITERATIONS = 1e-3, 200
"""Which rows are uncertain shows long before the plan is exact."""


def suggest_pairs(
    source: VectorSet | Path | str,
    target: VectorSet | Path | str | None = None,
    pairs: Pairs | Path | str | None = None,
    *,
    n: int,
    strategy: str = "kmeans",
    near: VectorSet | Path | str | None = None,
    seed: int = 0,
) -> Suggestion:
    """Suggest which rows of a set to pair, when every pair has to be paid for.

    Parameters
    ----------
    source : VectorSet, or path of its file
    target : VectorSet, or path of its file, optional
        The other side, needed where there are pairs already.
    pairs : Pairs, or path of a file with ``source,target``, optional
        Pairs that are there already: none of their rows is suggested again.
    n : int
        How many rows.
    strategy : {"random", "fps", "kmeans", "coverage", "uncertainty"}, default "kmeans"
        See `Pairs.suggest`. ``uncertainty`` needs pairs: it couples 5,000 rows of each side by
        anchor-relative transport (AnchorDOT) and suggests rows that the coupling leaves open.
    near : VectorSet, or path of its file, optional
        Vectors in the space of ``source`` that show where partners are to be expected.
    seed : int, default 0

    Returns
    -------
    Suggestion

    Raises
    ------
    UnknownNameError, ParameterError
        Another strategy; more rows than there are; pairs or a target that are missing.
    SpaceMismatchError, UnknownIdError, EmptyInputError, FileError

    Examples
    --------
    >>> from isthmus import sample
    >>> documents = sample.load().documents["mpnet"].select(range(300))
    >>> len(suggest_pairs(documents, n=20))
    20
    """
    left = open_vectors(source)
    check_whole(n, name="n")
    rows, scores = np.arange(len(left)), None
    if pairs is not None:
        right = _open_target(target)
        known = pairs if isinstance(pairs, Pairs) else Pairs.from_file(pairs, left, right)
        left.space.check(known.source_space, what="pairs on the source side")
        right.space.check(known.target_space, what="pairs on the target side")
        rows = free_rows(left, known.source_ids, known.source, seed=seed)
        if not len(rows):
            raise EmptyInputError(
                expected="rows without a pair",
                got=f"none: all {len(left):,} stand in pairs",
                do="give more vectors",
            )
        if strategy == "uncertainty":
            rows = rows[draw_rows(len(rows), max(COUPLED_ROWS, n), seed=seed)]
            scores = _uncertainty(left, rows, right, known, seed=seed)
    elif strategy == "uncertainty":
        raise ParameterError(
            expected="pairs, which the strategy uncertainty starts from",
            got="none",
            do="pair a first half of the budget by kmeans, then give these pairs",
        )
    found = Pairs.suggest(
        left.select(rows),
        None if near is None else open_vectors(near),
        n=n,
        strategy=strategy,
        scores=scores,
        seed=seed,
    )
    return Suggestion(ids=found.ids, rows=rows[found.rows], strategy=strategy, scores=found.scores)


def _open_target(target: VectorSet | Path | str | None) -> VectorSet:
    if target is None:
        raise ParameterError(
            expected="the target's vectors beside the pairs", got="none", do="give them"
        )
    return open_vectors(target)


def _uncertainty(
    source: VectorSet, rows: IntArray, target: VectorSet, pairs: Pairs, *, seed: int
) -> FloatArray:
    """Return how undecided a coupling leaves each of the rows, from 0 to 1."""
    from isthmus.transport import anchor_cost, sinkhorn

    others = free_rows(target, pairs.target_ids, pairs.target, seed=seed)
    if not len(others):
        raise EmptyInputError(
            expected="target rows without a pair, to be uncertain between",
            got=f"none: all {len(target):,} stand in pairs",
            do="use another strategy",
        )
    others = others[draw_rows(len(others), COUPLED_ROWS, seed=seed)]
    left, right = gather(source.vectors, rows), gather(target.vectors, others)
    centres = left.mean(axis=0), right.mean(axis=0)
    cost = anchor_cost(
        left - centres[0], right - centres[1], pairs.source - centres[0], pairs.target - centres[1]
    )
    plan = sinkhorn(cost, tolerance=TOLERANCE, max_iterations=MOST_ITERATIONS, seed=seed)
    return plan.entropy()
