"""Learning a calibration: bridged and native scores of the same rows, on pairs left out.

For every held-out pair its source row is mapped by a map that never saw it, and its target row is
the native query. The rows scored are those that the bridge ranks first, where thresholds are set,
and as many at random, which fix the lower end. They are chosen by the bridged score or by chance,
never by the native one: choosing by what is to be predicted would bend the curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from isthmus._progress import Track, silent
from isthmus._types import FloatArray, IntArray, Metric
from isthmus.bridge.calibration import Calibration
from isthmus.maps import Map
from isthmus.neighbors import top_k
from isthmus.neighbors.similarity import Similarity
from isthmus.spaces import Pairs

__all__ = ["learn_calibration"]

FOLDS = 5
MANY_PAIRS = 1_000
"""With more pairs than this one fold says enough, and four fits are saved."""
MAX_QUERIES = 500
MAX_ROWS = 20_000
FIRST, RANDOM = 32, 32


@dataclass(frozen=True, kw_only=True)
class _Database:
    """Native target rows that are scored, and the place of each pair's own row among them."""

    rows: FloatArray
    own: IntArray


def learn_calibration(
    fitted: Map,
    pairs: Pairs,
    *,
    collection: FloatArray | None = None,
    collection_rows: IntArray | None = None,
    seed: int = 0,
    track: Track[int] = silent,
) -> Calibration:
    """Learn the curve from bridged to native scores for a map and its pairs.

    Parameters
    ----------
    fitted : Map
        Its parameters are used; it is fitted again without each fold.
    pairs : Pairs
    collection : FloatArray of shape (m, dim_target), optional
        Rows to score; the paired target rows where it is not given. Of more than 20,000 rows a
        random 20,000 are used.
    collection_rows : IntArray of shape (n,), optional
        Row of each pair's target in ``collection``, -1 where it is not there.
    seed : int, default 0
    track : Track, default silent

    Raises
    ------
    TooFewPairsError, DegenerateVectorsError
        And whatever the map raises.
    """
    rng = np.random.default_rng(seed)
    metric = pairs.target_space.metric
    moved_metric: Metric = metric if fitted.lands_in == "target" else "cosine"
    database = _choose_rows(pairs.target, collection, collection_rows, rng)
    fold_of = rng.permutation(len(pairs)) % FOLDS
    folds = range(FOLDS if len(pairs) <= MANY_PAIRS else 1)
    bridged, native, groups = [], [], []
    for fold in track(folds, "calibrating", len(folds)):
        held_out = np.flatnonzero(fold_of == fold)[: MAX_QUERIES // len(folds)]
        refitted = _fit(fitted, pairs, np.flatnonzero(fold_of != fold))
        mapped = refitted.transform(pairs.source[held_out])
        moved = refitted.transform_target(database.rows)
        rows = _draw_rows(mapped, moved, database.own[held_out], moved_metric, rng)
        bridged.append(_score(mapped, moved, rows, moved_metric))
        native.append(_score(pairs.target[held_out], database.rows, rows, metric))
        groups.append(np.repeat(held_out, rows.shape[1]))
    return Calibration.fit(
        np.concatenate(bridged), np.concatenate(native), groups=np.concatenate(groups)
    )


def _fit(fitted: Map, pairs: Pairs, rows: IntArray) -> Map:
    """Fit the same map again on some of the pairs."""
    weight = None if pairs.weight is None else pairs.weight[rows]
    again: Map = clone(fitted)
    return again.fit(pairs.source[rows], pairs.target[rows], sample_weight=weight)


def _choose_rows(
    Y: FloatArray,
    collection: FloatArray | None,
    collection_rows: IntArray | None,
    rng: np.random.Generator,
) -> _Database:
    """Take the collection, or a random part of it, and find each pair's own row there."""
    if collection is None:
        return _Database(rows=Y, own=np.arange(len(Y)))
    own = np.full(len(Y), -1) if collection_rows is None else np.asarray(collection_rows)
    if len(collection) <= MAX_ROWS:
        return _Database(rows=np.asarray(collection, np.float32), own=own)
    taken = np.sort(rng.choice(len(collection), MAX_ROWS, replace=False))
    place = np.searchsorted(taken, own).clip(max=MAX_ROWS - 1)
    return _Database(
        rows=np.asarray(collection[taken], np.float32),
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
