"""How well pairs cover the two sets that they were taken from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus._types import FloatArray, IntArray
from isthmus.neighbors import top_k
from isthmus.spaces._mapped import gather
from isthmus.spaces.sampling import (
    as_points,
    draw_rows,
    find_centroids,
    hard_range,
    nearest_distance,
)
from isthmus.spaces.vector_set import VectorSet

if TYPE_CHECKING:
    from isthmus.spaces.pairs import Pairs

__all__ = ["PairCoverage", "SideCoverage", "measure_coverage"]

MEASURED_ROWS = 2_000
MOST_CLUSTERS = 20
ROWS_PER_CLUSTER = 50


@dataclass(frozen=True)
class SideCoverage:
    """How the pairs lie among the rows of one side.

    Parameters
    ----------
    rows : int
        Rows of the set.
    measured_rows : int
        Rows that the shares were measured on: all, or 2,000 drawn by seed (a standard error of at
        most .011).
    neighbor_distance : float
        Median distance of a row to its nearest other row; of the unit vectors for the cosine,
        Euclidean otherwise; 0 for a single row.
    covered : float
        Share of the rows that are within that distance of a pair, from 0 to 1; a paired row is.
    hard_pairs : float
        Share of the pairs that have a hard negative close by: another row nearer than the lower
        quartile of those distances, yet not equal. About .25 for pairs drawn at random; far less
        says "all-easy" pairs.
    cluster_rows, cluster_pairs : IntArray of shape (n_clusters,)
        Rows and pairs in each of at most 20 clusters (k-means); clusters without pairs are blind
        spots.
    """

    rows: int
    measured_rows: int
    neighbor_distance: float
    covered: float
    hard_pairs: float
    cluster_rows: IntArray
    cluster_pairs: IntArray

    @property
    def empty_clusters(self) -> int:
        """Clusters that hold rows and no pair."""
        return int(np.count_nonzero((self.cluster_rows > 0) & (self.cluster_pairs == 0)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            **vars(self),
            "cluster_rows": self.cluster_rows.tolist(),
            "cluster_pairs": self.cluster_pairs.tolist(),
        }


@dataclass(frozen=True)
class PairCoverage:
    """How the pairs lie in both sets; see `SideCoverage`."""

    pairs: int
    strategy: str
    source: SideCoverage
    target: SideCoverage

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, for a report or a bridge's manifest."""
        return {
            "pairs": self.pairs,
            "strategy": self.strategy,
            "source": self.source.to_dict(),
            "target": self.target.to_dict(),
        }


def measure_coverage(
    pairs: Pairs, source: VectorSet, target: VectorSet, *, seed: int = 0
) -> PairCoverage:
    """Measure both sides; see `Pairs.coverage`."""
    pairs.source_space.check(source.space, what="source vectors")
    pairs.target_space.check(target.space, what="target vectors")
    return PairCoverage(
        pairs=len(pairs),
        strategy=pairs.strategy,
        source=_measure_side(source, source.rows_of(pairs.source_ids), seed=seed),
        target=_measure_side(target, target.rows_of(pairs.target_ids), seed=seed),
    )


def _measure_side(vectors: VectorSet, pair_rows: IntArray, *, seed: int) -> SideCoverage:
    """Measure one side; a mapped file stays on disk."""
    rng = np.random.default_rng(seed)
    metric = vectors.space.metric
    rows = draw_rows(len(vectors), MEASURED_ROWS, seed=rng)
    some_pairs = pair_rows[draw_rows(len(pair_rows), MEASURED_ROWS, seed=rng)]
    points = gather(vectors.vectors, rows)
    looked_at = np.concatenate([rows, some_pairs])  # one pass over what may be a large file
    nearest = nearest_distance(
        gather(vectors.vectors, looked_at), vectors.vectors, metric=metric, exclude=looked_at
    )
    closeness, of_pairs = nearest[: len(rows)], nearest[len(rows) :]
    from_pair = nearest_distance(points, gather(vectors.vectors, pair_rows), metric=metric)
    # The matrix product rounds: a row that is a pair is at no distance, whatever came out.
    from_pair[np.isin(rows, pair_rows)] = 0
    low, high = hard_range(closeness)
    known = closeness[np.isfinite(closeness)]
    median = float(np.median(known)) if len(known) else 0.0
    clusters = _cluster_of(vectors, points, seed=seed)
    return SideCoverage(
        rows=len(vectors),
        measured_rows=len(rows),
        neighbor_distance=median,
        covered=float(np.mean(from_pair <= median)),
        hard_pairs=float(np.mean((of_pairs > low) & (of_pairs <= high))),
        cluster_rows=np.bincount(clusters),
        cluster_pairs=np.bincount(clusters[pair_rows], minlength=int(clusters.max()) + 1),
    )


def _cluster_of(vectors: VectorSet, points: FloatArray, *, seed: int) -> IntArray:
    """Return the cluster of every row: clusters of the measured rows, nearest centroid for all."""
    metric = vectors.space.metric
    count = int(np.clip(len(points) // ROWS_PER_CLUSTER, 1, MOST_CLUSTERS))
    centroids = find_centroids(as_points(points, metric), count, seed=seed)
    nearest = [
        top_k(as_points(batch.vectors, metric), centroids, k=1, metric="l2").rows[:, 0]
        for batch in vectors.iter_batches()
    ]
    return np.concatenate(nearest)
