"""What speaks for a candidate link: similarity and margins in several views of the two clouds.

In each view (`isthmus.link.map_views`) a candidate is described by its similarity, by how far that
lies over the next best rows on both sides, and by whether both rows are each other's nearest, which
is a vote. Shapes: candidates (n_candidates, 2), features (n_candidates, 4 n_views).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus._types import FloatArray, IntArray
from isthmus.link.clouds import Clouds, Seed
from isthmus.link.growth import Anchors, soft_weights
from isthmus.link.map_views import VIEWS, View, in_sample
from isthmus.neighbors import LocalScaling, mutual_by_csls, nearest_similarities

__all__ = ["PROPOSING", "Evidence", "collect", "next_best"]

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
    clouds: Clouds, anchors: Anchors, *, neighborhood: int, rounds: int, seed: Seed
) -> Evidence:
    """Describe the candidates that anchors lead to.

    Parameters
    ----------
    clouds : Clouds
    anchors : Anchors
    neighborhood : int
        Neighbours in CSLS, and next best rows that a similarity is compared with.
    rounds : int
        Rounds of refitting in sample before the views. What a link gains by its part in its own
        map is then much the same for candidates and for decoys (`isthmus.link.decoys`).
    seed : int or tuple of int
        Of the folds.
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
        proposed = number < PROPOSING
        look = looks[number] if proposed else _Look.at(view(clouds, anchors, rng), neighborhood)
        mutual = np.isin(codes, look.mutual)
        columns += [look.describe(pairs), mutual[:, None]]
        votes += mutual
    return Evidence(pairs=pairs, features=np.hstack(columns), votes=votes)


def next_best(similar: FloatArray, own: FloatArray) -> FloatArray:
    """Return the mean of the highest similarities of each row without its own.

    Parameters
    ----------
    similar : FloatArray of shape (n, k + 1)
        The highest of each row, highest first.
    own : FloatArray of shape (n,)
        The similarity to leave out where it is among them.

    Returns
    -------
    FloatArray of shape (n,), float64
        Mean of the next k; the only one there is where k is 0.

    Examples
    --------
    >>> next_best(np.array([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]]), np.array([0.9, 0.0])).round(3)
    array([0.3, 0.7])
    """
    wide = similar.astype(np.float64)
    if wide.shape[1] == 1:
        return wide[:, 0]
    among = own >= similar[:, -1]
    total = wide.sum(axis=1)
    left_out = np.where(among, own.astype(np.float64), wide[:, -1])
    return np.asarray((total - left_out) / (wide.shape[1] - 1))


@dataclass(frozen=True, eq=False)
class _Look:
    """One view, searched: its mutual nearest neighbours and the best similarities of every row."""

    view: View
    mutual: IntArray
    of_source: FloatArray
    of_target: FloatArray

    @classmethod
    def at(cls, view: View, neighborhood: int) -> _Look:
        of_source, of_target = nearest_similarities(*view, depth=neighborhood + 1)
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
        own = similar.astype(np.float64)
        return np.column_stack([own, own - forward, own - back])
