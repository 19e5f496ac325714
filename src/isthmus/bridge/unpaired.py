"""Rows without a pair: what a fit may look at beside its pairs.

A row that stands in a pair never counts as one of these, held out or not, by its id and by its
vector, nor does a near copy of one. So a map that is measured on held-out pairs has seen neither of
their rows, and the numbers say what new rows get; in the final fit all of them are there as pairs.
The rows are drawn once: every fit of one bridge looks at the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isthmus._types import FloatArray, IdArray
from isthmus.errors import EmptyInputError
from isthmus.maps import Map
from isthmus.spaces import Pairs, Space, VectorSet
from isthmus.spaces._mapped import gather
from isthmus.spaces.free_rows import MOST_ROWS, free_rows
from isthmus.spaces.sampling import draw_rows

__all__ = ["NO_ROWS", "Unpaired"]

ORDER_SEED = 0
"""Any order will do that does not follow the pairs."""


@dataclass(frozen=True, eq=False, repr=False)
class Unpaired:
    """Rows of both spaces that stand in no pair.

    Parameters
    ----------
    source : FloatArray of shape (n, dim_source), optional
    target : FloatArray of shape (m, dim_target), optional
    """

    source: FloatArray | None = None
    target: FloatArray | None = None

    @classmethod
    def draw(
        cls,
        source: VectorSet | None,
        target: VectorSet | None,
        pairs: Pairs | None,
        *,
        seed: int,
    ) -> Self:
        """Draw the rows of two sets that stand in no pair, at most 20,000 of each.

        Raises
        ------
        SpaceMismatchError
            A set of another space than its side of the pairs.
        EmptyInputError
            Every row of a set stands in a pair.
        """
        if pairs is None:
            return cls(_draw(source, "source", seed=seed), _draw(target, "target", seed=seed))
        left = pairs.source_ids, pairs.source, pairs.source_space
        right = pairs.target_ids, pairs.target, pairs.target_space
        return cls(
            _draw(source, "source", *left, seed=seed), _draw(target, "target", *right, seed=seed)
        )

    @property
    def counts(self) -> tuple[int, int]:
        """Count the rows of each side."""
        source, target = (0 if one is None else len(one) for one in (self.source, self.target))
        return source, target

    def given_to(self, inner: Map) -> dict[str, FloatArray]:
        """Return what a map is handed beside the pairs: nothing where it would not look."""
        if not inner.sees_unpaired:
            return {}
        sides = {"unpaired_source": self.source, "unpaired_target": self.target}
        return {name: rows for name, rows in sides.items() if rows is not None}

    def join(self, source: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both clouds: these rows and those given, the target's in an order of chance."""
        left = source if self.source is None else np.concatenate([source, self.source])
        right = target if self.target is None else np.concatenate([target, self.target])
        return left, right[np.random.default_rng(ORDER_SEED).permutation(len(right))]


NO_ROWS = Unpaired()


def _draw(
    vectors: VectorSet | None,
    side: str,
    ids: IdArray | None = None,
    paired: FloatArray | None = None,
    space: Space | None = None,
    *,
    seed: int,
) -> FloatArray | None:
    if vectors is None:
        return None
    if ids is None or paired is None or space is None:
        return gather(vectors.vectors, draw_rows(len(vectors), MOST_ROWS, seed=seed))
    space.check(vectors.space, what=f"unpaired rows on the {side} side")
    rows = free_rows(vectors, ids, paired, seed=seed)
    if not len(rows):
        raise EmptyInputError(
            expected=f"rows without a pair among the unpaired rows of the {side} side",
            got=f"none: all {len(vectors):,} stand in pairs",
            do="leave them out, or give rows that are in no pair",
        )
    return gather(vectors.vectors, rows)
