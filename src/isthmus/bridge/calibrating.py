"""Learning a calibration: bridged and native scores of the same rows, on pairs left out.

Each held-out source row was mapped by a map that never saw it (the rows that the report is made
of), and its target row is the native query. The rows scored are those that the bridge ranks first,
where thresholds are set, and as many at random, which fix the lower end. They are chosen by the
bridged score or by chance, never by the native one: choosing by what is to be predicted would bend
the curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray, Metric
from isthmus.bridge.calibration import Calibration
from isthmus.bridge.held_out import HeldOut
from isthmus.neighbors import top_k
from isthmus.neighbors.similarity import Similarity
from isthmus.spaces import Pairs

__all__ = ["learn_calibration"]

MAX_QUERIES = 500
MAX_ROWS = 20_000
FIRST, RANDOM = 32, 32


@dataclass(frozen=True, kw_only=True)
class _Database:
    """Target rows that are scored, as they are and moved; and each pair's own row among them."""

    rows: FloatArray
    moved: FloatArray
    own: IntArray


def learn_calibration(
    held_out: HeldOut,
    held_out_rows: IntArray,
    pairs: Pairs,
    *,
    collection: FloatArray | None = None,
    collection_rows: IntArray | None = None,
    seed: int = 0,
) -> Calibration:
    """Learn the curve from bridged to native scores.

    Parameters
    ----------
    held_out : HeldOut
        Rows through maps that were fitted without them.
    held_out_rows : IntArray of shape (m,)
        Which of the pairs they are.
    pairs : Pairs
    collection : FloatArray of shape (n, dim_target), optional
        Rows to score; the paired target rows where it is not given. Of more than 20,000 rows a
        random 20,000 are used.
    collection_rows : IntArray of shape (n_pairs,), optional
        Row of each pair's target in ``collection``, -1 where it is not there.
    seed : int, default 0

    Raises
    ------
    TooFewPairsError, DegenerateVectorsError
    """
    rng = np.random.default_rng(seed)
    metric = pairs.target_space.metric
    moved_metric: Metric = metric if held_out.collection is None else "cosine"
    database = _choose_rows(pairs.target, held_out, collection, collection_rows, rng)
    places = np.arange(len(held_out_rows))
    if len(places) > MAX_QUERIES:
        places = np.sort(rng.choice(len(places), MAX_QUERIES, replace=False))
    asked = held_out_rows[places]
    mapped = held_out.mapped[places]
    rows = _draw_rows(mapped, database.moved, database.own[asked], moved_metric, rng)
    return Calibration.fit(
        _score(mapped, database.moved, rows, moved_metric),
        _score(pairs.target[asked], database.rows, rows, metric),
        groups=np.repeat(asked, rows.shape[1]),
    )


def _choose_rows(
    Y: FloatArray,
    held_out: HeldOut,
    collection: FloatArray | None,
    collection_rows: IntArray | None,
    rng: np.random.Generator,
) -> _Database:
    """Take the collection, or a random part of it, and find each pair's own row there."""
    if collection is None:
        collection, collection_rows = Y, np.arange(len(Y))
    moved = collection if held_out.collection is None else held_out.collection
    own = np.full(len(Y), -1) if collection_rows is None else np.asarray(collection_rows)
    taken = np.arange(len(collection))
    if len(collection) > MAX_ROWS:
        taken = np.sort(rng.choice(len(collection), MAX_ROWS, replace=False))
    place = np.searchsorted(taken, own).clip(max=len(taken) - 1)
    return _Database(
        rows=np.asarray(collection[taken], np.float32),
        moved=np.asarray(moved[taken], np.float32),
        own=np.where(taken[place] == own, place, -1),
    )


def _draw_rows(
    mapped: FloatArray, moved: FloatArray, own: IntArray, metric: Metric, rng: np.random.Generator
) -> IntArray:
    """Return the rows that the bridge ranks first and random ones; never a query's own row."""
    first = top_k(mapped, moved, k=min(FIRST, len(moved) - 1), metric=metric, exclude=own).rows
    drawn = rng.integers(0, len(moved) - 1, size=(len(mapped), RANDOM))
    drawn += (drawn >= own[:, None]) & (own[:, None] >= 0)  # steps over the query's own row
    return np.concatenate([first, drawn], axis=1)


def _score(
    queries: FloatArray, database: FloatArray, rows: IntArray, metric: Metric
) -> npt.NDArray[np.float32]:
    similarity = Similarity(database, metric)
    scores = similarity.score(queries, similarity.measure_queries(queries), rows)
    return scores.astype(np.float32).ravel()
