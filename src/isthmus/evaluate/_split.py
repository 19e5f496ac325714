"""The split of rows into two parts that respect each other's empty directions least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus._progress import Track, silent
from isthmus._types import FloatArray, IntArray
from isthmus.evaluate._empty_directions import EmptyDirections, emptiest, logarithm
from isthmus.evaluate._levels import high_level
from isthmus.evaluate._two_gaussians import moments, two_gaussians

__all__ = ["FEWEST_FOREIGN", "Split", "find_split"]

FOLDS = 4
PLAIN = 0.5
"""In-sample contrast from which a split is plain."""
SETTLED = 0.6
"""Contrast between rows that had no part in it at which no further start is tried."""
SEEN = 0.01
"""Share of the rows that the second part must have for that."""
EVEN = 0.15
"""Share from which either part may be the main one."""
FEWEST = 5
"""Rows of a part."""
FEWEST_FOREIGN = 8
"""Rows from which the second part is more than a few odd rows."""
HIGH = 0.4
"""Energy from which a row is first guessed to be foreign."""


@dataclass(frozen=True, eq=False)
class Split:
    """Two parts of the rows, the second foreign to the first.

    Parameters
    ----------
    posterior : FloatArray of shape (n,)
        Of the second part; no row had a part in the directions that it is judged by.
    scores : FloatArray of shape (n,)
        Logarithm of the energy in the main part's empty directions.
    tested : FloatArray of shape (n,)
        Energy in the emptiest of them.
    main : EmptyDirections
        From all rows.
    crossed : float
        Contrast in one half of the directions between parts that the other half gave: rows that
        only differ by chance in the one do not differ in the other.
    """

    posterior: FloatArray
    scores: FloatArray
    tested: FloatArray
    main: EmptyDirections
    crossed: float

    @property
    def foreign_energy(self) -> float:
        """Mean energy of the second part; NaN where there is none."""
        return _mean(self.tested, self.posterior)

    @property
    def own_energy(self) -> float:
        """Mean energy of the first part."""
        return _mean(self.tested, 1 - self.posterior)

    @property
    def contrast(self) -> float:
        """How far the second part is from the first (0) to no regard for it (1)."""
        own = self.own_energy
        if not np.isfinite(self.foreign_energy) or own >= 1:
            return 0.0
        return float((self.foreign_energy - own) / (1 - own))


def find_split(rows: FloatArray, *, seed: int, track: Track[Any] = silent) -> Split:
    """Find the split with the highest contrast.

    Parameters
    ----------
    rows : FloatArray of shape (n, dim), float32
        Of unit length.
    seed : int
        Of the folds.
    track : Track, default silent
    """
    best: FloatArray = np.zeros(len(rows))
    highest = (0.0, False, 0.0)
    judged: list[Split] = []
    starts = _starts(rows)
    for start in track(starts, "looking for a second space", len(starts)):
        guess = two_gaussians(rows, start)
        if guess.mean() > 0.5:
            guess = 1 - guess
        for side in (guess,) if guess.mean() < EVEN else (guess, 1 - guess):
            posterior, contrast = _refine(rows, side)
            # of two plain splits that with the larger main part, whose directions are known
            # better; then the more even one, for single odd rows stand out the most
            share = float(posterior.mean())
            found = (min(contrast, PLAIN), share <= 0.5, min(share, 1 - share))
            if found > highest:
                best, highest = posterior, found
        if highest[0] == PLAIN and highest[1] and highest[2] > SEEN:
            judged.append(_judge(rows, best, seed=seed))
            if judged[-1].contrast > SETTLED:
                return judged[-1]
            # plainer to the rows that made it than to others: look on from the other starts
            best, highest = np.zeros(len(rows)), (0.0, False, 0.0)
    if best.any() or not judged:
        judged.append(_judge(rows, best, seed=seed))
    return max(judged, key=lambda split: split.contrast)


def _starts(rows: FloatArray) -> list[FloatArray]:
    """Return first guesses: what sticks out, and the ends of the first principal direction."""
    mean, covariance = moments(rows, np.ones(len(rows), np.float32))
    values, directions = np.linalg.eigh(covariance)
    values = np.maximum(values, 1e-3 * values.mean() + 1e-30)
    places = (rows - mean) @ directions.astype(np.float32)
    outlying, first = (places.astype(np.float64) ** 2 / values).sum(axis=1), places[:, -1]
    return [_top(outlying, 0.1), _top(first, 0.5), _top(first, 0.1), _top(-first, 0.1)]


def _top(scores: FloatArray, share: float) -> FloatArray:
    count = min(max(round(share * len(scores)), FEWEST), len(scores) - 1)
    guess = np.full(len(scores), 0.05)
    guess[np.argsort(-scores, kind="stable")[:count]] = 0.95
    return guess


def _refine(rows: FloatArray, posterior: FloatArray) -> tuple[FloatArray, float]:
    """Split anew by the empty directions of the first part, twice; return the better split."""
    best: FloatArray = np.zeros(len(rows))
    highest = 0.0
    for _ in range(2):
        if min(posterior.sum(), (1 - posterior).sum()) < FEWEST:
            break
        scored, tested = emptiest(rows, 1 - posterior).energies(rows)
        posterior = _foreign(scored)
        if posterior.sum() < FEWEST_FOREIGN:
            continue
        own, foreign = _mean(tested, 1 - posterior), _mean(tested, posterior)
        contrast = float((foreign - own) / (1 - own)) if own < 1 else 0.0
        contrast = min(contrast, 1 / contrast) if contrast > 0 else 0.0  # no part outdoes a ball
        if contrast > highest:
            best, highest = posterior, contrast
    return best, highest


def _foreign(scored: FloatArray) -> FloatArray:
    return high_level(logarithm(scored), np.where(scored > HIGH, 0.95, 0.01))


def _judge(rows: FloatArray, posterior: FloatArray, *, seed: int) -> Split:
    """Score every row by directions that other rows gave."""
    scored, tested = np.empty(len(rows)), np.empty(len(rows))
    halves = np.empty((2, len(rows)))
    fold: IntArray = np.random.default_rng(seed).permutation(len(rows)) % FOLDS
    for number in range(FOLDS):
        out = fold == number
        main = emptiest(rows[~out], 1 - posterior[~out])
        scored[out], tested[out] = main.energies(rows[out])
        for half in (0, 1) if main.directions.shape[1] > 1 else ():
            halves[half, out] = main.half(half).energies(rows[out])[0]
    final = _foreign(scored) if posterior.any() else posterior
    whole = emptiest(rows, 1 - final)
    crossed = _crossed(halves) if final.any() and whole.directions.shape[1] > 1 else 0.0
    return Split(final, logarithm(scored), tested, whole, crossed)


def _crossed(halves: FloatArray) -> float:
    """Return the contrast of each half between the parts by the other, the smaller of both."""
    found = []
    for own, other in ((0, 1), (1, 0)):
        part = _foreign(halves[own])
        low, high = _mean(halves[other], 1 - part), _mean(halves[other], part)
        found.append((high - low) / (1 - low) if high > low and low < 1 else 0.0)
    return float(min(found))


def _mean(values: FloatArray, weights: FloatArray) -> float:
    total = weights.sum()
    return float(values @ weights / total) if total > 1e-9 else float("nan")
