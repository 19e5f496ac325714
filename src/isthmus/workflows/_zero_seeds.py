"""Seeds where nobody has any: rows that a map between both clouds holds for the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from isthmus._linalg import normalise
from isthmus._types import IntArray
from isthmus._validate import check_nonzero
from isthmus.errors import TooFewPairsError
from isthmus.link import Links, LinkVerdict
from isthmus.spaces import VectorSet

__all__ = ["ZeroSeeds", "find_seeds"]

N_SEEDS = 100
"""The surest pseudo-pairs. On the documents of Climate-FEVER in two models 99 to 100 of 100 were
right, with all objects in both sets and with half of them (seed 100)."""
FEWEST = 3


@dataclass(frozen=True, eq=False)
class ZeroSeeds:
    """Seeds that a map without pairs gave.

    Parameters
    ----------
    rows : IntArray of shape (n_seeds, 2)
        Of source and target.
    confidence : float
        Of the map, from 0 to 1, without any label.
    reliable : bool
        Whether the map itself says that it is worth anything.
    """

    rows: IntArray
    confidence: float
    reliable: bool

    @property
    def note(self) -> str:
        """What should be known of links that start from these seeds."""
        said = (
            f"no seeds were given: linking started from {len(self.rows)} pairs of a map that was "
            f"fitted without pairs, with a confidence of {self.confidence:.2f}"
        )
        return said if self.reliable else f"{said}: it is worthless, and so may be all links"

    def judge(self, links: Links) -> Links:
        """Return the links with a verdict of at most ``doubtful`` where the map is worthless."""
        if self.reliable or links.verdict.status in {"doubtful", "no_overlap_found"}:
            return links
        reason = f"the seeds are of a map with a confidence of {self.confidence:.2f}"
        verdict = LinkVerdict("doubtful", (*links.verdict.reasons, reason))
        return replace(links, verdict=verdict)


def find_seeds(source: VectorSet, target: VectorSet, *, seed: int) -> ZeroSeeds:
    """Fit a map between both clouds and take the pairs that it is surest of.

    The same sets and seed give the same seed pairs, so that a run can be taken up again.

    Raises
    ------
    TooFewPairsError
        Too few rows on a side, or fewer than 3 pairs that are each other's nearest.
    DegenerateVectorsError, ZeroVectorError
    """
    from isthmus.maps import make
    from isthmus.maps.pseudo_pairs import pseudo_pairs

    sides = []
    for vectors, name in ((source, "source"), (target, "target")):
        matrix = vectors.matrix()
        check_nonzero(matrix, name=name)
        sides.append(normalise(matrix))  # directions are compared, whatever the metric
    fitted = make("unpaired_iterative", seed=seed).fit(*sides)
    found = pseudo_pairs(fitted, *sides, n=N_SEEDS)
    if len(found) < FEWEST:
        raise TooFewPairsError(
            expected=f"at least {FEWEST} pairs of rows that are each other's nearest",
            got=f"{len(found)}",
            do="give seed pairs that you are sure of",
        )
    return ZeroSeeds(
        np.column_stack([found.source_rows, found.target_rows]),
        found.confidence,
        bool(getattr(fitted, "reliable", True)),
    )
