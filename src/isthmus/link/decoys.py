"""Decoys: candidate links that are known to be wrong, made from the clouds themselves.

Of some links one object is taken out, of half of them on either side. What remains of such a link
has no partner any more; a candidate that it now gets is wrong, and looks as such candidates look.
So wrong links get a sample of their own without any label, as decoys do in the search of mass
spectra (Elias and Gygi 2007). What they cannot show is a link between two objects that both have a
partner, elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isthmus._types import FloatArray, IntArray
from isthmus.link.clouds import Clouds, Seed
from isthmus.link.evidence import collect
from isthmus.link.growth import Anchors

__all__ = ["Decoys", "make_decoys"]

SHARE = 0.15
"""Of the anchors, those taken apart at once. With more of them the clouds hold more lone objects
than they do, and those find each other more often."""

WANTED = 1_200
"""Objects left alone in all, of which about half become candidates."""

MOST_PARTS = 4


@dataclass(frozen=True, eq=False)
class Decoys:
    """Features of wrong links.

    Parameters
    ----------
    features : FloatArray of shape (n, n_features)
    alone : int
        Objects that were left without their partner.
    """

    features: FloatArray
    alone: int


def make_decoys(
    clouds: Clouds, anchors: Anchors, *, neighborhood: int, rounds: int, seed: Seed
) -> Decoys:
    """Take links apart and describe the candidates of what is left.

    Parameters
    ----------
    clouds : Clouds
    anchors : Anchors
        Those that are surest; a wrong one makes a true link a decoy.
    neighborhood, rounds : int
        As in `isthmus.link.evidence.collect`.
    seed : int or tuple of int
    """
    taken = max(2, round(SHARE * len(anchors)))
    parts = max(1, min(math.ceil(WANTED / taken), MOST_PARTS, len(anchors) // taken))
    order = np.random.default_rng(seed).permutation(len(anchors))
    stream = seed if isinstance(seed, tuple) else (seed,)
    features, alone = [], 0
    for part in range(parts):
        picked = order[part * taken : (part + 1) * taken]  # each anchor once: its decoys are alike
        features.append(
            _take_apart(
                clouds,
                anchors,
                picked[: taken // 2],
                picked[taken // 2 :],
                neighborhood=neighborhood,
                rounds=rounds,
                seed=(*stream, part),
            )
        )
        alone += taken
    return Decoys(features=np.concatenate(features), alone=alone)


def _take_apart(
    clouds: Clouds,
    anchors: Anchors,
    lose_source: IntArray,
    lose_target: IntArray,
    *,
    neighborhood: int,
    rounds: int,
    seed: Seed,
) -> FloatArray:
    """Drop the source rows of some anchors and the target rows of others."""
    keep_source = np.setdiff1d(np.arange(len(clouds.source)), anchors.source_rows[lose_source])
    keep_target = np.setdiff1d(np.arange(len(clouds.target)), anchors.target_rows[lose_target])
    whole = np.ones(len(anchors), np.bool_)
    whole[lose_source] = whole[lose_target] = False
    rest = anchors.select(whole)
    found = collect(
        Clouds(clouds.source.select(keep_source), clouds.target.select(keep_target)),
        Anchors(
            np.searchsorted(keep_source, rest.source_rows),
            np.searchsorted(keep_target, rest.target_rows),
            rest.weight,
        ),
        neighborhood=neighborhood,
        rounds=rounds,
        seed=seed,
    )
    lone_source = np.isin(keep_source[found.pairs[:, 0]], anchors.source_rows[lose_target])
    lone_target = np.isin(keep_target[found.pairs[:, 1]], anchors.target_rows[lose_source])
    return found.features[lone_source | lone_target]
