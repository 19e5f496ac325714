"""Which rows to pair next, when every pair has to be paid for.

Before anything is paired, only the rows of one side are known, so the strategies of
`isthmus.spaces.sampling` choose by where these lie. With a first coupling or map there is also how
sure it is of each row: ``uncertainty`` cuts the rows into as many clusters as are wanted and takes
from each the one that it is least sure of. Taking the least sure ones of all, spread or not, was
worse than chance: these are copies of one another, or rows that no map gets right
(benchmarks/pair_choice.py, seeds 101 and 102).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isthmus._files import atomic_path
from isthmus._types import FloatArray, IdArray, IntArray
from isthmus._validate import check_whole
from isthmus.errors import (
    CountMismatchError,
    InvalidVectorsError,
    ParameterError,
    UnknownFormatError,
    UnknownNameError,
)
from isthmus.neighbors import top_k
from isthmus.spaces._mapped import gather
from isthmus.spaces.sampling import (
    as_points,
    choose,
    draw_rows,
    find_centroids,
    nearest_distance,
)
from isthmus.spaces.vector_set import VectorSet

__all__ = ["STRATEGIES", "Suggestion", "check_suggestion_path", "suggest"]

STRATEGIES = ("random", "fps", "kmeans", "coverage", "uncertainty")
MOST_ROWS = 20_000
"""Of more rows than this, that many are drawn to choose from."""
NEAR = 0.5
"""Share of the rows that counts as near to where partners will be sought."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Suggestion:
    """Rows to pair, the most wanted first.

    Parameters
    ----------
    ids : IdArray of shape (n,)
    rows : IntArray of shape (n,)
        Where they stand in the set.
    strategy : str
    scores : FloatArray of shape (n,), optional
        As they were given for these rows.
    """

    ids: IdArray
    rows: IntArray
    strategy: str
    scores: FloatArray | None = None

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Suggestion({len(self):,} rows by {self.strategy})"

    def save(self, path: Path | str) -> None:
        """Write a sheet to fill in: ``source,target`` as csv, the targets left empty.

        Filled in, it is a file of pairs; whole or not at all.

        Raises
        ------
        UnknownFormatError, WriteFailedError
        """
        check_suggestion_path(Path(path))
        with (
            atomic_path(Path(path)) as temporary,
            temporary.open("w", encoding="utf-8", newline="") as stream,
        ):
            writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
            writer.writerow(("source", "target"))
            writer.writerows((one, "") for one in self.ids.tolist())


def check_suggestion_path(path: Path) -> None:
    """Refuse a file whose ending names no format.

    Raises
    ------
    UnknownFormatError
    """
    if path.suffix.lower() != ".csv":
        raise UnknownFormatError(
            expected="a sheet to fill in that ends in .csv", got=repr(path.name), do="rename it"
        )


def suggest(
    a: VectorSet,
    b: VectorSet | None = None,
    *,
    n: int,
    strategy: str = "kmeans",
    scores: npt.ArrayLike | None = None,
    seed: int = 0,
) -> Suggestion:
    """Suggest which rows to pair; see `Pairs.suggest`."""
    if strategy not in STRATEGIES:
        raise UnknownNameError.of("strategy of suggestion", str(strategy), STRATEGIES)
    check_whole(n, name="n", maximum=len(a))
    check_whole(seed, name="seed", minimum=0)
    worth = _check_scores(scores, strategy=strategy, rows=len(a))
    rows = np.arange(len(a))
    if b is not None:
        a.space.check(b.space, what="rows to be near to")
        rows = _near(a, b, n)
    if strategy != "random":  # which needs no vectors
        rows = rows[draw_rows(len(rows), max(MOST_ROWS, n), seed=seed)]
    if worth is not None:
        rows = rows[np.argsort(-worth[rows], kind="stable")]
    picked = rows[_pick(a, rows, n, strategy, worth, seed=seed)]
    return Suggestion(
        ids=a.ids[picked],
        rows=picked,
        strategy=strategy,
        scores=None if worth is None else worth[picked],
    )


def _pick(
    a: VectorSet, rows: IntArray, n: int, strategy: str, worth: FloatArray | None, *, seed: int
) -> IntArray:
    """Return places among the rows that are left to choose from, in the order of choice."""
    if strategy == "random":
        return np.random.default_rng(seed).choice(len(rows), n, replace=False)
    vectors = gather(a.vectors, rows)
    if worth is None:
        return choose(vectors, n, strategy=strategy, metric=a.space.metric, seed=seed)
    return _spread(as_points(vectors, a.space.metric), n, seed=seed)


def _spread(points: FloatArray, n: int, *, seed: int) -> IntArray:
    """Take the first row of each of n clusters; rows come with the least sure one first."""
    if n == len(points):
        return np.arange(n)
    centroids = find_centroids(points, n, seed=seed)
    cluster = top_k(points, centroids, k=1, metric="l2").rows[:, 0]
    first = np.unique(cluster, return_index=True)[1]
    left = np.setdiff1d(np.arange(len(points)), first)
    # fewer clusters than rows that are wanted: copies of one another, so no matter which
    return np.concatenate([np.sort(first), left])[:n]


def _near(a: VectorSet, b: VectorSet, n: int) -> IntArray:
    """Return the half of the rows that lies nearest to the other set, at least n, in their order.

    A half and not a distance: rows that a first bridge carried over lie further off than the
    native rows are from one another.
    """
    distance = nearest_distance(a.matrix(), b.vectors, metric=a.space.metric)
    kept = max(n, round(NEAR * len(a)))
    return np.sort(np.argsort(distance, kind="stable")[:kept])


def _check_scores(
    scores: npt.ArrayLike | None, *, strategy: str, rows: int
) -> npt.NDArray[np.float64] | None:
    """Return one number per row; refuse none where they are needed, or some where they are not."""
    if (scores is None) == (strategy == "uncertainty"):
        raise ParameterError(
            expected="scores with the strategy uncertainty, and with no other",
            got=f"{strategy} {'without' if scores is None else 'with'} scores",
            do="give one number per row, higher where less is known"
            if scores is None
            else "leave the scores out, or ask for uncertainty",
        )
    if scores is None:
        return None
    try:
        worth = np.asarray(scores)
    except ValueError:  # lists of other lengths within
        worth = np.asarray(scores, dtype=object)
    if worth.shape != (rows,):
        raise CountMismatchError(
            expected=f"one score per row, of shape ({rows},)",
            got=f"shape {worth.shape}",
            do="score every row of the set, in its order",
        )
    if worth.dtype.kind not in "fiu" or not np.isfinite(worth).all():
        raise InvalidVectorsError(
            expected="scores that are finite numbers",
            got=f"an array of type {worth.dtype}"
            if worth.dtype.kind not in "fiu"
            else f"{np.count_nonzero(~np.isfinite(worth)):,} that are NaN or infinite",
            do="give rows that nothing is known of the highest score",
        )
    return worth.astype(np.float64)
