"""What speaks for a candidate link: similarity and margins in several views of the two clouds.

In each view (`isthmus.link.map_views`) a candidate is described by its similarity, by how far that
lies over the next best rows on both sides, and by whether both rows are each other's nearest, which
is a vote. Beside the views: how densely each row's own surroundings lie, as an object lies alike in
both clouds. Shapes: candidates (n_candidates, 2), features (n_candidates, n_features).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus._types import FloatArray, IntArray
from isthmus.link.clouds import DEPTHS, Clouds, next_best
from isthmus.link.growth import Anchors, soft_weights
from isthmus.link.map_views import VIEWS, View, in_sample
from isthmus.neighbors import LocalScaling, mutual_by_csls, nearest_similarities

__all__ = ["PROPOSING", "Evidence", "collect"]

PROPOSING = 2
"""Views whose mutual nearest neighbours are candidates: the first ones."""

BLOCK_ROWS = 4_096


@dataclass(frozen=True, eq=False)
class Evidence:
    """Candidate links and what is known of each.

    Parameters
    ----------
    pairs : IntArray of shape (n, 2)
        Source row, target row; sorted, no pair twice.
    features : FloatArray of shape (n, n_features), float64
    votes : IntArray of shape (n,)
        Views in which both rows are each other's nearest.
    """

    pairs: IntArray
    features: FloatArray
    votes: IntArray


def collect(
    clouds: Clouds, anchors: Anchors, *, neighborhood: int, rounds: int, seed: int
) -> Evidence:
    """Describe the candidates that anchors lead to.

    Parameters
    ----------
    clouds : Clouds
    anchors : Anchors
    neighborhood : int
        Neighbours in CSLS.
    rounds : int
        Rounds of refitting in sample before the views. What a link gains by its part in its own
        map is then the same for candidates and for decoys (`isthmus.link.decoys`).
    seed : int
        Of the folds, and of the anchors of hashes.
    """
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        found = mutual_by_csls(*in_sample(clouds, anchors, rng), neighborhood=neighborhood)
        anchors = Anchors(found.source_rows, found.target_rows, soft_weights(found.scores))
    looks = [_Look.at(view(clouds, anchors, rng), neighborhood) for view in VIEWS[:PROPOSING]]
    codes = np.unique(np.concatenate([look.mutual for look in looks]))
    pairs = np.column_stack(np.divmod(codes, len(clouds.target)))
    columns, votes = [], np.zeros(len(codes), np.int64)
    for number, view in enumerate(VIEWS):
        look = (
            looks[number]
            if number < PROPOSING
            else _Look.at(view(clouds, anchors, rng), neighborhood)
        )
        mutual = np.isin(codes, look.mutual)
        columns += [look.describe(pairs), mutual[:, None]]
        votes += mutual
    columns.append(_surroundings(clouds, pairs))
    return Evidence(pairs=pairs, features=np.hstack(columns), votes=votes)


@dataclass(frozen=True, eq=False)
class _Look:
    """One view, searched: its mutual nearest neighbours and the best similarities of every row."""

    view: View
    mutual: IntArray
    of_source: FloatArray
    of_target: FloatArray

    @classmethod
    def at(cls, view: View, neighborhood: int) -> _Look:
        of_source, of_target = nearest_similarities(*view, depth=DEPTHS[-1] + 1)
        scaling = LocalScaling(
            source=of_source[:, :neighborhood].mean(axis=1),
            target=of_target[:, :neighborhood].mean(axis=1),
        )
        found = mutual_by_csls(*view, neighborhood=neighborhood, scaling=scaling)
        codes = found.source_rows * len(view[1]) + found.target_rows
        return cls(view=view, mutual=codes, of_source=of_source, of_target=of_target)

    def describe(self, pairs: IntArray) -> FloatArray:
        """Return the similarity of each pair and its margins over the next best, both ways."""
        source, target = self.view
        similar = np.empty(len(pairs), np.float32)
        for start in range(0, len(pairs), BLOCK_ROWS):
            left, right = pairs[start : start + BLOCK_ROWS].T
            similar[start : start + BLOCK_ROWS] = np.einsum("nd,nd->n", source[left], target[right])
        forward = next_best(self.of_source[pairs[:, 0]], similar)
        back = next_best(self.of_target[pairs[:, 1]], similar)
        own = similar.astype(np.float64)[:, None]
        return np.hstack([own, own - forward, own - back])


def _surroundings(clouds: Clouds, pairs: IntArray) -> FloatArray:
    """Return how dense both rows lie, and how far their ranks differ."""
    left, right = pairs.T
    apart = clouds.source.rank[left] - clouds.target.rank[right]
    return np.hstack(
        [clouds.source.density[left], clouds.target.density[right], apart, np.abs(apart)]
    )
