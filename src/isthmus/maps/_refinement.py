"""From a few anchors to a rotation: growing by mutual neighbours, and averaging neighbours.

`grow` compares both sides in the directions of which the anchors say most, takes mutual nearest
neighbours by CSLS as new anchors, and admits more directions round by round. `average` gives each
source row the mean of its nearest target rows for a partner (Dar 2025): it needs no object in
both clouds. `settle` repeats mutual neighbours and Procrustes until they stay the same.
Shapes: source (n, dim_source), target (m, dim_target), rows of length one; rotations
(dim_source, dim_target).
"""

from __future__ import annotations

import numpy as np

from isthmus._linalg import cross_product, normalise, semi_orthogonal
from isthmus._types import FloatArray, IntArray
from isthmus.maps._starts import Anchors
from isthmus.neighbors import MutualPairs, local_scaling, mutual_by_csls

__all__ = ["NEIGHBORHOOD", "average", "grow", "nearest_by_csls", "settle", "turn"]

FIRST_RANK, RANK_GROWTH = 12, 1.3
FIRST_POWER, POWER_DECAY = 0.5, 0.8
"""Directions compared in the first round, and their growth; the power of the singular values that
they count by, and its decay. Of the link room's growth for large clouds."""

NEIGHBORHOOD = 10
"""Lample et al. 2018, section 2.3."""

AVERAGED_ROWS = 5_000
"""Rows of a side in averages, at most."""

BLOCK_ROWS = 500

LEAST_RANK_SHARE = 1e-6


def turn(rows: FloatArray, rotation: FloatArray) -> FloatArray:
    """Return rotated rows of length one, float32."""
    return normalise(rows @ rotation.astype(np.float32))


def grow(source: FloatArray, target: FloatArray, anchors: Anchors) -> FloatArray:
    """Return the rotation that grows from anchors, from coarse to fine."""
    from scipy.linalg import svd

    dim = min(source.shape[1], target.shape[1])
    rounds = int(np.ceil(np.log(max(dim / FIRST_RANK, 1.0)) / np.log(RANK_GROWTH))) + 2
    cross = anchors.cross()
    for round_ in range(rounds):
        left, strength, right = svd(cross, full_matrices=False, check_finite=False)
        told = int(np.count_nonzero(strength > LEAST_RANK_SHARE * strength[0]))
        rank = max(1, min(int(FIRST_RANK * RANK_GROWTH**round_), told))
        weight = (strength[:rank] / strength[0]) ** (FIRST_POWER * POWER_DECAY**round_)
        found = mutual_by_csls(
            turn(source, left[:, :rank] * weight),
            turn(target, right[:rank].T * weight),
            neighborhood=NEIGHBORHOOD,
        )
        cross = _cross(source, target, found)
    return semi_orthogonal(cross)


def settle(
    source: FloatArray, target: FloatArray, rotation: FloatArray, *, rounds: int, tolerance: float
) -> tuple[FloatArray, int]:
    """Repeat mutual neighbours and Procrustes until the share of new pairs is under a tolerance.

    Returns
    -------
    rotation : FloatArray of shape (dim_source, dim_target)
    rounds : int
        That were run.
    """
    before: IntArray = np.zeros(0, np.int64)
    for number in range(1, rounds + 1):
        found = mutual_by_csls(
            turn(source, rotation), np.ascontiguousarray(target), neighborhood=NEIGHBORHOOD
        )
        codes: IntArray = found.source_rows * len(target) + found.target_rows
        rotation = semi_orthogonal(_cross(source, target, found))
        new = 1 - len(np.intersect1d(before, codes, assume_unique=True)) / len(codes)
        if new <= tolerance:
            return rotation, number
        before = codes
    return rotation, rounds


def average(
    source: FloatArray,
    target: FloatArray,
    rotation: FloatArray,
    *,
    neighbors: tuple[int, int],
    rounds: int,
    tolerance: float,
) -> tuple[FloatArray, int]:
    """Repeat: partners as means of the nearest target rows by CSLS, then Procrustes.

    The number of neighbours falls from the first of ``neighbors`` to the second in half of the
    rounds; from there on, a mean change of rows under ``tolerance`` (one minus the cosine) stops.
    Rows beyond the first 5,000 of a side are left out.
    """
    first, last = neighbors
    rows, others = source[:AVERAGED_ROWS], np.ascontiguousarray(target[:AVERAGED_ROWS])
    falling = max(1, rounds // 2)
    for number in range(1, rounds + 1):
        share = min(1.0, (number - 1) / falling)
        count = max(1, min(round(first * (last / first) ** share), len(others) // 5))
        before = turn(rows, rotation)
        crowding = local_scaling(before, others, neighborhood=NEIGHBORHOOD).target
        partners = np.empty_like(before)
        for start in range(0, len(rows), BLOCK_ROWS):
            scores = 2 * before[start : start + BLOCK_ROWS] @ others.T - crowding
            nearest = np.argpartition(-scores, count - 1, axis=1)[:, :count]
            partners[start : start + BLOCK_ROWS] = others[nearest].mean(axis=1)
        rotation = semi_orthogonal(cross_product(rows, normalise(partners)))
        change = 1 - float(np.mean(np.sum(before * turn(rows, rotation), axis=1)))
        if share == 1.0 and change <= tolerance:
            return rotation, number
    return rotation, rounds


def nearest_by_csls(mapped: FloatArray, target: FloatArray) -> IntArray:
    """Return the nearest target row of every mapped row by CSLS; both of length one."""
    crowding = local_scaling(mapped, target, neighborhood=NEIGHBORHOOD).target
    return np.concatenate(
        [
            (2 * mapped[start : start + BLOCK_ROWS] @ target.T - crowding).argmax(axis=1)
            for start in range(0, len(mapped), BLOCK_ROWS)
        ]
    )


def _cross(source: FloatArray, target: FloatArray, found: MutualPairs) -> FloatArray:
    """Return the cross-product of found pairs: better ones count more, by how they compare."""
    scores = found.scores.astype(np.float64)
    middle = np.median(scores)
    spread = max(float(np.median(np.abs(scores - middle))), 1e-6)
    weight = 1 / (1 + np.exp(-(scores - middle) / spread))
    return cross_product(source[found.source_rows], target[found.target_rows], weight=weight)
