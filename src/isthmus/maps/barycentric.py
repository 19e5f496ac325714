"""Procrustes that also learns from rows without a pair: each is paired with a barycentre.

Starts from the rotation of the pairs. Each round compares the unpaired rows of both sides in the
strongest singular directions of all that was paired before, first a few dozen and twice as many
each round, and pairs every row x with the barycentre of its nearest rows by CSLS on the other side,

    b(x) = sum_y p(y | x) y,   p(y | x) over the k nearest, as exp(CSLS(x, y) / t)

with the weight ``sum_y sqrt(p(y | x) p(x | y))``, which is how much of the choice is mutual. The
next round learns from pairs and barycentres. Where the other side holds the same object, the
barycentre is nearly that row; where it does not, it lies among what is alike. A part of the pairs
is held out while this grows: where they do not keep more of their neighbours than under the
rotation of the pairs alone, that rotation stands.

When to use it: with tens to hundreds of pairs and some thousand more rows on both sides that are
about the same things; the same objects need not be among them. Without unpaired rows it is
``Procrustes``. Shapes: (n, dim_source) to (n, dim_target).
References: Schönemann (1966); Lample et al. (2018) for CSLS; Artetxe, Labaka and Agirre (2018) for
learning from what was paired before. Barycentres, their weights and the slowly growing number of
directions are this project's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import (
    affine,
    cross_product,
    mean_rows,
    normalise,
    singular_directions,
)
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray, IntArray
from isthmus._validate import as_matrix, check_positive, check_whole
from isthmus.maps._fitting import check_fit, check_scale
from isthmus.maps.base import Map
from isthmus.maps.procrustes import Procrustes
from isthmus.neighbors import Neighbors, top_k

__all__ = ["Barycentric"]

LEAST_PAIRS, LEAST_ROWS = 10, 50
"""Fewer pairs cannot spare any to be held out, and fewer rows say nothing; round numbers."""
HELD_OUT, MOST_HELD_OUT = 0.2, 500
"""Of the pairs while barycentres grow; as in ``MLP``."""
FIRST_DIRECTIONS = 48
"""In the first round at most; as many as half the pairs where that is less. 12, 24 and 48 ended
within .003 of each other (nDCG@10, seeds over 99)."""
CANDIDATES = 4
"""Times as many rows, the nearest by cosine, are looked at for the nearest by CSLS."""
NEIGHBORHOOD = 10
"""In CSLS (Lample et al. 2018, section 2.3)."""


class Barycentric(Map):
    """A rotation from pairs, and from unpaired rows with the barycentres of their neighbours.

    Parameters
    ----------
    neighbors : int, default 5
        Rows in a barycentre.
    temperature : float, default 0.1
        Of CSLS in the shares of a barycentre: lower is nearer to the one nearest row. .05 lost up
        to .02 nDCG@10 where the sides share no object, .2 where they do (seeds over 99).
    pair_weight : float, default 3
        Of a pair, where a row whose barycentre is wholly mutual has one.
    max_rows : int, default 5000
        Of the unpaired rows of a side, so many are drawn; time grows with the product of both.
    seed : int, default 0
        Of that draw and of the pairs held out.

    Attributes
    ----------
    rotation_ : (dim_source, dim_target) float32
    bias_ : (dim_target,) float64
    held_out_overlap_ : (2,) or (0,) float64
        Share of the ten nearest target rows that held-out pairs kept: under the rotation of the
        pairs, and with barycentres. Empty where nothing was held out.
    unpaired_used_ : () int64
        1 where barycentres were learned from.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cloud = rng.standard_normal((300, 16))
    >>> turned = cloud @ np.linalg.qr(rng.standard_normal((16, 16)))[0]
    >>> fitted = Barycentric().fit(
    ...     cloud[:12], turned[:12], unpaired_source=cloud[12:], unpaired_target=turned[:11:-1]
    ... )
    >>> np.allclose(fitted.transform(cloud), turned, atol=1e-2)
    True
    """

    name: ClassVar[str] = "barycentric"
    freedom: ClassVar[int] = 15
    sees_unpaired: ClassVar[bool] = True
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "rotation": ("source", "target"),
        "bias": ("target",),
        "held_out_overlap": ("compared",),
        "unpaired_used": (),
    }

    rotation_: FloatArray
    bias_: FloatArray
    held_out_overlap_: FloatArray
    unpaired_used_: npt.NDArray[np.int64]

    def __init__(
        self,
        *,
        neighbors: int = 5,
        temperature: float = 0.1,
        pair_weight: float = 3.0,
        max_rows: int = 5_000,
        seed: int = 0,
    ) -> None:
        self.neighbors = neighbors
        self.temperature = temperature
        self.pair_weight = pair_weight
        self.max_rows = max_rows
        self.seed = seed

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from pairs X (n, dim_source), Y (n, dim_target) and from rows without a pair.

        The unpaired rows count where there are at least ten pairs, and fifty of them on each side.

        Raises
        ------
        ParameterError
            A parameter out of its range.
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says, of the unpaired rows too.
        """
        self._check_params()
        pairs = check_fit(X, Y, sample_weight)
        source = self._draw(unpaired_source, pairs.source.shape[1], side=0)
        target = self._draw(unpaired_target, pairs.target.shape[1], side=1)
        with one_blas_thread():
            best = Procrustes().fit(pairs.source, pairs.target, sample_weight=pairs.weight)
            self.held_out_overlap_, self.unpaired_used_ = np.zeros(0), np.asarray(0)
            if len(pairs) >= LEAST_PAIRS and min(len(source), len(target)) >= LEAST_ROWS:
                weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight
                weight = weight / weight.mean() * self.pair_weight
                given = _Anchors(pairs.source, pairs.target, weight)
                clouds = _Clouds(source, target, self.neighbors, self.temperature)
                best = self._learn(given, clouds) or best
        self.rotation_ = best.rotation_
        turned_mean = best.mean_source_ @ best.rotation_.astype(np.float64)
        self.bias_ = best.mean_target_ - turned_mean
        self.n_features_in_, self.n_features_target_ = best.rotation_.shape
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Rotate source rows into the target space: (n, dim_target), float32."""
        return affine(self._check_source(X), self.rotation_, self.bias_)

    def _check_params(self) -> None:
        for name in ("neighbors", "max_rows"):
            check_whole(getattr(self, name), name=name)
        for name in ("temperature", "pair_weight"):
            check_positive(getattr(self, name), name=name, maximum=1e6)
        check_whole(self.seed, name="seed", minimum=0)

    def _draw(self, rows: npt.ArrayLike | None, dim: int, *, side: int) -> FloatArray:
        """Return unpaired rows as float32, at most ``max_rows``, checked as pairs are."""
        if rows is None:
            return np.empty((0, dim), np.float32)
        name = ("unpaired_source", "unpaired_target")[side]
        given = as_matrix(rows, name=name, dim=dim)
        if len(given) > self.max_rows:
            rng = np.random.default_rng([self.seed, side])
            given = given[np.sort(rng.choice(len(given), self.max_rows, replace=False))]
        drawn = given.astype(np.float32, copy=False)
        if len(drawn) >= LEAST_ROWS:
            check_scale(drawn, name=name)
        return drawn

    def _learn(self, pairs: _Anchors, clouds: _Clouds) -> Procrustes | None:
        """Grow barycentres without the held-out pairs; return a rotation where these gain."""
        order = np.random.default_rng([self.seed, 2]).permutation(len(pairs.weight))
        count = int(np.clip(round(HELD_OUT * len(order)), LEAST_PAIRS // 2, MOST_HELD_OUT))
        test, train = pairs.select(order[:count]), pairs.select(order[count:])
        if any((side == side[0]).all() for side in (train.source, train.target)):
            return None
        anchors = train
        for directions in _plan_directions(len(order) - count, min(clouds.dims)):
            anchors = train.join(clouds.pair(anchors, directions))
        collection = np.concatenate([pairs.target, clouds.target])
        before, after = (_keep_neighbors(each, test, collection) for each in (train, anchors))
        self.held_out_overlap_ = np.array([before, after])
        if after <= before:
            return None
        self.unpaired_used_ = np.asarray(1)
        return pairs.join(clouds.pair(anchors.join(test), None)).rotation()


@dataclass(frozen=True, eq=False)
class _Anchors:
    """What a rotation is fitted on: pairs, or rows and their barycentres."""

    source: FloatArray
    target: FloatArray
    weight: FloatArray

    def select(self, rows: IntArray) -> _Anchors:
        return _Anchors(self.source[rows], self.target[rows], self.weight[rows])

    def join(self, other: _Anchors) -> _Anchors:
        return _Anchors(
            np.concatenate([self.source, other.source]),
            np.concatenate([self.target, other.target]),
            np.concatenate([self.weight, other.weight]),
        )

    def rotation(self) -> Procrustes:
        return Procrustes().fit(self.source, self.target, sample_weight=self.weight)


@dataclass(frozen=True, eq=False)
class _Clouds:
    """The unpaired rows of both sides, and how barycentres are made of them."""

    source: FloatArray
    target: FloatArray
    neighbors: int
    temperature: float

    @property
    def dims(self) -> tuple[int, int]:
        """Width of either side."""
        return self.source.shape[1], self.target.shape[1]

    def pair(self, anchors: _Anchors, directions: int | None) -> _Anchors:
        """Pair every row with the barycentre of its neighbours on the other side, both ways."""
        left, right = _compare(self.source, self.target, anchors, directions)
        # A row without a part in the directions has no neighbours.
        there, known = (np.flatnonzero(side.any(axis=1)) for side in (left, right))
        source, target = self.source[there], self.target[known]
        if not len(there) or not len(known):
            return _Anchors(source[:0], target[:0], np.zeros(0))
        forward, back = self._couple(left[there], right[known])
        mutual = forward.multiply(back.T.tocsr()).sqrt()
        weights = [np.asarray(mutual.sum(axis=axis), np.float64).ravel() for axis in (1, 0)]
        rows, columns = (np.flatnonzero(weight) for weight in weights)
        return _Anchors(
            np.concatenate([source[rows], back[columns] @ source]),
            np.concatenate([forward[rows] @ target, target[columns]]),
            np.concatenate([weights[0][rows], weights[1][columns]]),
        )

    def _couple(self, left: FloatArray, right: FloatArray) -> tuple[Any, Any]:
        """Return the shares of each row's neighbours on the other side, both ways, sparse."""
        seen = max(CANDIDATES * self.neighbors, NEIGHBORHOOD)
        forward, back = (
            top_k(one, other, k=min(seen, len(other)), metric="dot")
            for one, other in ((left, right), (right, left))
        )
        near, near_target = (
            found.scores[:, :NEIGHBORHOOD].mean(axis=1) for found in (forward, back)
        )
        return self._share(forward, near_target), self._share(back, near)

    def _share(self, found: Neighbors, near: FloatArray) -> Any:
        """Return the shares of the rows that are nearest by CSLS, of those found: sparse."""
        from scipy.sparse import csr_array

        # What CSLS subtracts for the asking row is the same in all of its scores.
        scores = 2 * found.scores - near[found.rows]
        best = np.argsort(-scores, axis=1, kind="stable")[:, : self.neighbors]
        rows, kept = (np.take_along_axis(each, best, axis=1) for each in (found.rows, scores))
        shares = np.exp((kept - kept[:, :1]) / self.temperature)
        shares /= shares.sum(axis=1, keepdims=True)
        starts = np.arange(0, rows.size + 1, rows.shape[1])
        return csr_array((shares.ravel(), rows.ravel(), starts), shape=(len(rows), len(near)))


def _plan_directions(n_pairs: int, dim: int) -> list[int]:
    """Return the number of directions of each round: it doubles until there are ``dim``.

    Examples
    --------
    >>> _plan_directions(80, 384)
    [40, 80, 160, 320, 384]
    """
    rounds = [min(FIRST_DIRECTIONS, max(n_pairs // 2, 1), dim)]
    while rounds[-1] < dim:
        rounds.append(min(2 * rounds[-1], dim))
    return rounds


def _compare(
    source: FloatArray, target: FloatArray, anchors: _Anchors, directions: int | None
) -> tuple[FloatArray, FloatArray]:
    """Return both sides in the strongest directions of the anchors' cross-product, unit rows."""
    mean_source = mean_rows(anchors.source, weight=anchors.weight)
    mean_target = mean_rows(anchors.target, weight=anchors.weight)
    cross = cross_product(
        anchors.source,
        anchors.target,
        mean_x=mean_source,
        mean_y=mean_target,
        weight=anchors.weight,
    )
    left, _, right = singular_directions(cross, directions)
    return (
        normalise(affine(source, left, -mean_source @ left)),
        normalise(affine(target, right, -mean_target @ right)),
    )


def _keep_neighbors(anchors: _Anchors, test: _Anchors, collection: FloatArray) -> float:
    """Return the share of its ten nearest target rows that a mapped row keeps."""
    k = min(10, len(collection))
    database = normalise(collection)
    mapped, native = (
        top_k(normalise(rows), database, k=k, metric="dot").rows
        for rows in (anchors.rotation().transform(test.source), test.target)
    )
    return float((mapped[:, :, None] == native[:, None, :]).any(axis=2).mean())
