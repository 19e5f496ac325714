"""Choosing which pairs to fit on, by where their source vectors lie.

============  ==========================================================================  =========
strategy      what it chooses                                                             from
============  ==========================================================================  =========
``random``    each pair with the same chance                                              [1] C.2.3
``fps``       furthest point sampling: always the one furthest from those chosen          [1] C.2.3
``kmeans``    the ones nearest to the centroids of n clusters                             [1] C.2.3
``nearest``   one at random and its nearest neighbours: a tight spot, the worst to fit    [1] C.2.3
              on ("all-easy")
``coverage``  the same number from every cluster, half of them with a hard negative        [2]
              close by
============  ==========================================================================  =========

[1] Vector Linking via Cross-Model Local Isometric Consistency, arXiv 2605.31100.
[2] The map family's rule for anchors: span the domain and the range of difficulty, include items
next to a hard negative.

Distances are those of the unit vectors where the metric is the cosine, and Euclidean otherwise: the
inner product is no distance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from isthmus._linalg import normalise
from isthmus._types import FloatArray, IntArray, Metric
from isthmus._validate import as_matrix, check_nonzero
from isthmus.errors import ParameterError, TooFewPairsError, UnknownNameError
from isthmus.neighbors import top_k

__all__ = [
    "STRATEGIES",
    "as_points",
    "choose",
    "draw_rows",
    "find_centroids",
    "hard_range",
    "nearest_distance",
]

HARD_QUANTILE = 0.25
SAME = 1e-3
POOL_ROWS = 20_000
PAIRS_PER_CLUSTER = 10
MOST_CLUSTERS = 50
ROUNDS = 20


def choose(
    vectors: FloatArray, n: int, *, strategy: str, metric: Metric = "cosine", seed: int = 0
) -> IntArray:
    """Choose ``n`` rows, in the order in which the strategy takes them.

    Parameters
    ----------
    vectors : FloatArray of shape (n_pairs, dim)
    n : int
        From 1 to n_pairs.
    strategy : str
        See the table at the head of this module.
    metric : {"cosine", "dot", "l2"}, default "cosine"
    seed : int, default 0

    Returns
    -------
    IntArray of shape (n,)
        All different.

    Raises
    ------
    UnknownNameError, ParameterError, TooFewPairsError

    Examples
    --------
    >>> line = np.array([[0.0], [1.0], [1.1], [9.0]])
    >>> sorted(choose(line, 2, strategy="fps", metric="l2").tolist())
    [0, 3]
    """
    if strategy not in STRATEGIES:
        raise UnknownNameError.of("sampling strategy", strategy, STRATEGIES)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ParameterError(
            expected="a number of pairs of at least 1", got=repr(n), do="ask for one pair or more"
        )
    matrix = as_matrix(vectors, name="vectors")
    if metric == "cosine":
        check_nonzero(matrix, name="vectors")
    points = as_points(matrix, metric)
    if n > len(points):
        raise TooFewPairsError(
            expected=f"at least {n:,} pairs to choose from",
            got=f"{len(points):,}",
            do="ask for fewer, or add pairs",
        )
    return STRATEGIES[strategy](points, int(n), np.random.default_rng(seed))


def draw_rows(rows: int, most: int, *, seed: int | np.random.Generator) -> IntArray:
    """Return all row numbers, or ``most`` of them drawn at random, in their order.

    Examples
    --------
    >>> draw_rows(3, 5, seed=0).tolist(), len(draw_rows(100, 5, seed=0))
    ([0, 1, 2], 5)
    """
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def as_points(vectors: FloatArray, metric: Metric) -> FloatArray:
    """Return rows whose Euclidean distances order them: unit rows for the cosine, or as given."""
    return normalise(vectors) if metric == "cosine" else np.asarray(vectors, dtype=np.float32)


def nearest_distance(
    vectors: FloatArray,
    database: FloatArray,
    *,
    metric: Metric = "l2",
    exclude: IntArray | None = None,
) -> FloatArray:
    """Return how far each vector is from its nearest row, float32 of shape (m,).

    Parameters
    ----------
    vectors : FloatArray of shape (m, dim)
    database : FloatArray of shape (n, dim)
        May be memory-mapped.
    metric : {"cosine", "dot", "l2"}, default "l2"
        For ``cosine`` the distance is that of the unit vectors, from 0 to 2.
    exclude : IntArray of shape (m,), optional
        The row of the database that the vector itself is. Infinite where no other row is left.

    Examples
    --------
    >>> nearest_distance(np.array([[0.0], [2.0]]), np.array([[5.0], [3.0]])).tolist()
    [3.0, 1.0]
    """
    cosine = metric == "cosine"
    found = top_k(vectors, database, k=1, metric="cosine" if cosine else "l2", exclude=exclude)
    scores = found.scores[:, 0]
    distance = np.sqrt(np.maximum(2 - 2 * scores, 0)) if cosine else -scores
    return np.where(found.rows[:, 0] >= 0, distance, np.float32(np.inf))


def find_centroids(points: FloatArray, n: int, *, seed: int) -> FloatArray:
    """Return the centroids of ``n`` clusters by k-means, float32 of shape (n, dim).

    It starts from rows drawn far apart (k-means++, Arthur and Vassilvitskii 2007), so that a small
    group far from the others gets a centroid of its own. (`isthmus.evaluate.k_means` is not for
    this: it runs in float64, from rows that its caller gives, on a few thousand rows at most.)
    """
    import faiss

    rng = np.random.default_rng(seed)
    start = _spread(points, [int(rng.integers(len(points)))], n, rng=rng)
    clustering = faiss.Clustering(points.shape[1], n)
    clustering.niter, clustering.seed, clustering.verbose = ROUNDS, seed % 2**31, False
    clustering.min_points_per_centroid = 1  # no warning on stderr for small clusters
    faiss.copy_array_to_vector(points[start].ravel(), clustering.centroids)
    clustering.train(np.ascontiguousarray(points), faiss.IndexFlatL2(points.shape[1]))
    centroids: FloatArray = faiss.vector_to_array(clustering.centroids).reshape(n, -1)
    return centroids


def _random(points: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    return rng.choice(len(points), n, replace=False)


def _furthest(points: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    return _spread(points, [int(rng.integers(len(points)))], n)


def _spread(
    points: FloatArray, chosen: list[int], n: int, *, rng: np.random.Generator | None = None
) -> IntArray:
    """Add to the chosen rows the one furthest from all of them, until there are ``n``.

    With ``rng`` the row is drawn with a chance that grows with the square of that distance instead.
    """
    squares = np.einsum("nd,nd->n", points, points)
    nearest = np.full(len(points), np.inf, dtype=np.float32)
    rows = list(chosen)
    for place in range(n):
        if place >= len(rows):
            rows.append(int(np.argmax(nearest)) if rng is None else _draw(nearest, rng))
        row = rows[place]
        # einsum runs in one thread: on a busy machine a thousand small products by many are slow.
        distance = squares - 2 * np.einsum("nd,d->n", points, points[row]) + squares[row]
        np.minimum(nearest, np.maximum(distance, 0), out=nearest)
        nearest[row] = -1  # never again, even among equal rows
    return np.array(rows, dtype=np.int64)


def _draw(squares: FloatArray, rng: np.random.Generator) -> int:
    """Draw a row with a chance in proportion to its value; where all are zero, the first free."""
    chances = np.maximum(squares, 0).astype(np.float64)
    total = chances.sum()
    return int(rng.choice(len(chances), p=chances / total) if total else np.argmax(squares))


def _central(points: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Take the row nearest to each centroid; centroids that share a row leave room for others."""
    centroids = find_centroids(points, n, seed=int(rng.integers(2**31)))
    rows = top_k(centroids, points, k=1, metric="l2").rows[:, 0]
    return _spread(points, list(dict.fromkeys(rows.tolist())), n)


def _nearest(points: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    seed_row = int(rng.integers(len(points)))
    if n == 1:
        return np.array([seed_row], dtype=np.int64)
    own = np.array([seed_row])
    found = top_k(points[own], points, k=n - 1, metric="l2", exclude=own)
    return np.concatenate([own, found.rows[0]])


def _balanced(points: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Fill the clusters evenly; in each, alternate between hard rows and others, at random."""
    pool = rng.choice(len(points), min(len(points), max(POOL_ROWS, 2 * n)), replace=False)
    pool.sort()
    few = points[pool]
    clusters = int(np.clip(n // PAIRS_PER_CLUSTER, 1, MOST_CLUSTERS))
    centroids = find_centroids(few, clusters, seed=int(rng.integers(2**31)))
    cluster = top_k(few, centroids, k=1, metric="l2").rows[:, 0]
    closeness = nearest_distance(few, few, exclude=np.arange(len(few)))
    low, high = hard_range(closeness)
    hard = (closeness > low) & (closeness <= high)
    queues = [_alternate(np.flatnonzero(cluster == label), hard, rng) for label in range(clusters)]
    rows: list[int] = []
    depth = 0
    while len(rows) < n:
        rows.extend(int(queue[depth]) for queue in queues if depth < len(queue))
        depth += 1
    chosen: IntArray = pool[rows[:n]]
    return chosen


def hard_range(closeness: FloatArray) -> tuple[float, float]:
    """Return how close another row must be to be a hard negative: over the first, to the second.

    The upper end is the lower quartile of the distances to the nearest other row. Rows that are
    equal up to rounding (a thousandth of the median distance) are not hard but hopeless: no map
    can tell them apart.

    Parameters
    ----------
    closeness : FloatArray of shape (n,)
        Distance of each row to its nearest other row.

    Examples
    --------
    >>> hard_range(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    (0.003, 2.0)
    """
    known = closeness[np.isfinite(closeness)]
    if not len(known):  # a single row has no neighbour
        return 0.0, 0.0
    return SAME * float(np.median(known)), float(np.quantile(known, HARD_QUANTILE))


def _alternate(rows: IntArray, hard: npt.NDArray[np.bool_], rng: np.random.Generator) -> IntArray:
    """Order the rows of a cluster: a hard one, another, and so on while both last."""
    first, second = rng.permutation(rows[hard[rows]]), rng.permutation(rows[~hard[rows]])
    places = np.r_[2 * np.arange(len(first)), 2 * np.arange(len(second)) + 1]
    mixed: IntArray = np.r_[first, second][np.argsort(places, kind="stable")]
    return mixed


STRATEGIES: dict[str, Callable[[FloatArray, int, np.random.Generator], IntArray]] = {
    "random": _random,
    "fps": _furthest,
    "kmeans": _central,
    "nearest": _nearest,
    "coverage": _balanced,
}
