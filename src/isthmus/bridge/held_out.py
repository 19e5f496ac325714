"""Mapping rows that the map did not see: the one source of every number in a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus._progress import Track, silent
from isthmus._types import FloatArray, IntArray
from isthmus.bridge.carry import carry
from isthmus.bridge.unpaired import NO_ROWS, Unpaired
from isthmus.maps import Compose
from isthmus.spaces import Pairs

__all__ = [
    "MOST_FOR_FOLDS",
    "HeldOut",
    "Plan",
    "Split",
    "fit",
    "group_copies",
    "held_out",
    "plan_one_part",
    "plan_splits",
]

FOLDS = 10
# Above this, one held-out part says enough and ten fits cost too much.
MOST_FOR_FOLDS = 2_500
HELD_OUT_ROWS = 2_000


@dataclass(frozen=True)
class Split:
    """Rows of the pairs to fit on, and rows to hold out."""

    train: IntArray
    test: IntArray


@dataclass(frozen=True)
class Plan:
    """Splits at the full size and at about half of it; both hold out the same rows.

    Parameters
    ----------
    full, half : tuple of Split
    test : IntArray of shape (m,)
        All rows held out, in ascending order.
    """

    full: tuple[Split, ...]
    half: tuple[Split, ...]
    test: IntArray

    @property
    def sizes(self) -> tuple[float, float]:
        """Mean number of training pairs of the full and of the half splits."""
        full, half = (
            float(np.mean([len(split.train) for split in splits]))
            for splits in (self.full, self.half)
        )
        return full, half

    def pairs_for(self, fewest: int, n_pairs: int) -> int:
        """Return how many pairs it takes, about, until every split has so many to fit on."""
        smallest = min(len(split.train) for split in (*self.full, *self.half))
        return -(-fewest * n_pairs // max(smallest, 1))


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows through maps that were fitted without them.

    Parameters
    ----------
    mapped : FloatArray of shape (m, dim)
        In the order of ``Plan.test``.
    fitted : Compose
        The last map that was fitted: the only one, where one part was held out.
    target, collection : FloatArray or None
        The target side in the comparison space, where the map moves it.
    """

    mapped: FloatArray
    fitted: Compose
    target: FloatArray | None = None
    collection: FloatArray | None = None


def plan_splits(pairs: Pairs, *, seed: int, single: bool) -> Plan:
    """Plan which pairs are held out: ten folds, or one part where there are many pairs.

    Pairs that share a source or a target vector are held out together: a copy of a training pair
    would be no held-out pair.

    Parameters
    ----------
    pairs : Pairs
    seed : int
    single : bool
        Hold out one part only: for maps that move the target side, where every fit makes a
        comparison space of its own.
    """
    n, share = len(pairs), _share_before(pairs, seed=seed)
    if not single and n <= MOST_FOR_FOLDS:
        return Plan(_folds(share, FOLDS), _folds(share, 2), np.arange(n))
    held = share < min(0.2, HELD_OUT_ROWS / n)
    test, train = np.flatnonzero(held), np.flatnonzero(~held)
    half = np.flatnonzero(share >= 0.5 + min(0.2, HELD_OUT_ROWS / n) / 2)
    return Plan((Split(train, test),), (Split(half, test),), test)


def plan_one_part(pairs: Pairs, *, most: int, seed: int) -> Plan:
    """Hold out all pairs, or about ``most`` of them, once: for maps that pairs do not enter.

    Copies are held out together.
    """
    held = _share_before(pairs, seed=seed) < min(most, HELD_OUT_ROWS) / len(pairs)
    split = Split(np.flatnonzero(~held), np.flatnonzero(held))
    return Plan((split,), (split,), split.test)


def held_out(
    build: Callable[[], Compose],
    pairs: Pairs,
    splits: Sequence[Split],
    *,
    collection: FloatArray,
    unpaired: Unpaired = NO_ROWS,
    track: Track[Any] = silent,
) -> HeldOut:
    """Fit on each split and map the rows that it holds out.

    Parameters
    ----------
    build : callable
        Makes an unfitted map.
    pairs : Pairs
    splits : sequence of Split
    collection : FloatArray of shape (n, dim_target)
        Carried along by maps that move the target side; they take one split.
    unpaired : Unpaired, optional
    track : Track, default silent
    """
    rows: list[IntArray] = []
    parts: list[FloatArray] = []
    for split in track(splits, "fitting on the other pairs", len(splits)):
        fitted = fit(build(), pairs, split.train, collection=collection, unpaired=unpaired)
        rows.append(split.test)
        parts.append(carry(fitted, pairs.source[split.test], pairs.target_space))
    order = np.argsort(np.concatenate(rows), kind="stable")
    mapped = np.concatenate(parts)[order]
    if fitted.lands_in == "target":
        return HeldOut(mapped, fitted)
    target = fitted.transform_target(pairs.target[split.test])
    return HeldOut(mapped, fitted, target[order], fitted.transform_target(collection))


def fit(
    unfitted: Compose,
    pairs: Pairs,
    rows: IntArray,
    *,
    collection: FloatArray | None = None,
    unpaired: Unpaired = NO_ROWS,
) -> Compose:
    """Fit a map on some of the pairs, with their weights and with what else it looks at.

    A learned map sees the collection. A map that does not learn from pairs gets their rows among
    all others, in an order that does not tell which belong together.
    """
    inner = unfitted.inner
    if inner.name == "null":  # it learns nothing, and there may be nothing but held-out pairs
        rows = np.arange(len(pairs))
    if not inner.paired:
        return unfitted.fit(*unpaired.join(pairs.source[rows], pairs.target[rows]))
    given = unpaired.given_to(inner)
    if inner.sees_collection and collection is not None:
        given.setdefault("unpaired_target", collection)
    weight = None if pairs.weight is None else pairs.weight[rows]
    return unfitted.fit(pairs.source[rows], pairs.target[rows], sample_weight=weight, **given)


def _share_before(pairs: Pairs, *, seed: int) -> FloatArray:
    """Shuffle the groups of copies; return which share of the pairs comes before each group."""
    groups = group_copies(pairs)
    ranks = np.random.default_rng(seed).permutation(groups.max() + 1)[groups]
    sizes = np.bincount(ranks)
    share: FloatArray = (np.cumsum(sizes) - sizes)[ranks] / len(pairs)
    return share


def _folds(share: FloatArray, folds: int) -> tuple[Split, ...]:
    fold = np.minimum((share * folds).astype(np.int64), folds - 1)
    every = [np.flatnonzero(fold == number) for number in range(folds)]
    rows = np.arange(len(share))
    return tuple(Split(np.setdiff1d(rows, test), test) for test in every if len(test))


def group_copies(pairs: Pairs) -> IntArray:
    """Number the pairs so that those that share a vector, on either side, share a number."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(pairs)
    ends = []
    for side in (pairs.source, pairs.target):
        first, copy = np.unique(side, axis=0, return_index=True, return_inverse=True)[1:]
        ends.append(first[copy.reshape(-1)])
    columns = np.concatenate(ends)
    rows = np.tile(np.arange(n), 2)
    graph = coo_array((np.ones(2 * n, np.int8), (rows, columns)), shape=(n, n))
    labels: IntArray = connected_components(graph, directed=False)[1].astype(np.int64)
    return labels
