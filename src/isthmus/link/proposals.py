"""Candidate links that views propose: mutual nearest neighbours among their hashes (section 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from isthmus._types import FloatArray, IntArray
from isthmus.link.hashing import HashDistance, anchor_distances, kernel_hashes, median_distance
from isthmus.neighbors import mutual_by_csls

__all__ = ["AnchorPairs", "Bandwidth", "Hashing", "Kernel", "propose"]

Kernel = Literal["exponential", "none"]
Bandwidth = Literal["cloud_hashes", "anchor_hashes"]

SAMPLE_ROWS = 256
"""Rows of each cloud that the bandwidth is measured on: 131,000 distances."""

TABLE_NUMBERS = 2**26
"""Distances to anchors that are kept at once: 256 MB of float32, both clouds together."""


@dataclass(frozen=True, eq=False)
class AnchorPairs:
    """Pairs that hashes are measured from: the seeds first, then those that were found.

    Parameters
    ----------
    source : FloatArray of shape (n, dim_source), float32
        Rows of length one.
    target : FloatArray of shape (n, dim_target), float32
    n_seeds : int
    """

    source: FloatArray
    target: FloatArray
    n_seeds: int

    def __len__(self) -> int:
        """Count the anchor pairs."""
        return len(self.source)


@dataclass(frozen=True, kw_only=True)
class Hashing:
    """How distances to anchors become hashes, and hashes proposals; see `Geh`."""

    kernel: Kernel
    distance: HashDistance
    bandwidth: Bandwidth
    neighborhood: int


def propose(
    source: FloatArray,
    target: FloatArray,
    anchors: AnchorPairs,
    views: IntArray,
    *,
    hashing: Hashing,
    rng: np.random.Generator,
) -> Iterator[IntArray]:
    """Yield the candidate links of each view.

    Distances to the anchors of all views are made once, and each view takes its columns; where
    they would not fit in ``TABLE_NUMBERS``, for as many views together as do.

    Parameters
    ----------
    source : FloatArray of shape (n_source, dim_source), float32
        Rows of length one.
    target : FloatArray of shape (n_target, dim_target), float32
    anchors : AnchorPairs
    views : IntArray of shape (n_views, size)
        Places in the anchors.
    hashing : Hashing
    rng : numpy.random.Generator
        Samples the rows that bandwidths are measured on: one sample for all views.

    Yields
    ------
    IntArray of shape (n_pairs, 2)
        Source row, target row.
    """
    clouds = (source, target)
    samples = [
        np.sort(rng.choice(len(cloud), size=min(SAMPLE_ROWS, len(cloud)), replace=False))
        for cloud in clouds
    ]
    for places, columns in _groups(views, rows=len(source) + len(target)):
        used = (anchors.source[columns], anchors.target[columns])
        tables = [
            anchor_distances(cloud, side, distance=hashing.distance)
            for cloud, side in zip(clouds, used, strict=True)
        ]
        for view in np.searchsorted(columns, places):
            sigma = None
            if hashing.kernel == "exponential":
                if hashing.bandwidth == "cloud_hashes":
                    raw = [table[np.ix_(s, view)] for table, s in zip(tables, samples, strict=True)]
                else:
                    raw = [
                        anchor_distances(side[view], side[view], distance=hashing.distance)
                        for side in used
                    ]
                sigma = median_distance(np.concatenate(raw))
            left, right = (
                kernel_hashes(np.take(table, view, axis=1), bandwidth=sigma) for table in tables
            )
            pairs = mutual_by_csls(left, right, neighborhood=hashing.neighborhood)
            yield np.stack([pairs.source_rows, pairs.target_rows], axis=1)


def _groups(views: IntArray, *, rows: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield views together whose anchors' distances fit in memory, and these anchors, sorted."""
    start, columns = 0, np.unique(views[0])
    for stop in range(1, len(views)):
        more = np.union1d(columns, views[stop])
        if len(more) * rows > TABLE_NUMBERS:
            yield views[start:stop], columns
            start, more = stop, np.unique(views[stop])
        columns = more
    yield views[start:], columns
