"""CCA: query and candidates compared in a common space of both models.

    score(x) = cos(A q, B x),   A and B the first directions of a canonical correlation analysis.

A candidate of the hub's space is compared there too: cos(A q, A x). The directions are those of a
bridge that was fitted with ``--method cca``, one per spoke (``common`` of a source).

When to use it: as the rival that needs no map into a store's space to rank; `Score` ranks by native
similarities as well. Stores are still searched with a query in their own space: native, or through
``to_store``.

Reference: HVMap, section 5.1.4 (a common space of 256 dimensions; Hotelling 1936).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isthmus._types import FloatArray
from isthmus._validate import check_whole
from isthmus.errors import ParameterError
from isthmus.federate.candidates import Candidates
from isthmus.federate.fusion.base import Fusion

__all__ = ["DIRECTIONS", "Cca", "common_similarities"]

DIRECTIONS = 256


@dataclass(frozen=True, kw_only=True)
class Cca(Fusion):
    """Similarity in the common space.

    Parameters
    ----------
    directions : int, default 256
        Of the common space that count, from the highest correlation down (the paper's value); all,
        where there are fewer.

    Raises
    ------
    ParameterError
        Fewer than 1.

    Examples
    --------
    >>> Cca().spaces(3), Cca().common_directions
    ((), 256)
    """

    name: ClassVar[str] = "cca"

    directions: int = DIRECTIONS

    def __post_init__(self) -> None:
        check_whole(self.directions, name="directions")

    @property
    def common_directions(self) -> int:
        """Ask for the common space."""
        return self.directions

    def spaces(self, n_spaces: int) -> tuple[int, ...]:
        """Ask for none of the stores' spaces."""
        del n_spaces
        return ()

    def shares(self, n_spaces: int) -> FloatArray:
        """Count the similarity in the common space only."""
        shares = np.zeros((n_spaces, n_spaces + 1))
        shares[:, -1] = 1.0
        return shares

    def score(self, candidates: Candidates) -> FloatArray:
        """Return the similarities in the common space.

        Raises
        ------
        ParameterError
            Candidates that were not compared there.
        """
        return common_similarities(candidates, self.directions)


def common_similarities(candidates: Candidates, directions: int) -> FloatArray:
    """Return the similarities in the common space, (m, w).

    Raises
    ------
    ParameterError
        Candidates that were not compared there, or along other directions.
    """
    along = candidates.common_directions
    if candidates.common is None or along not in (None, directions):
        raise ParameterError(
            expected="candidates that were compared in the common space, along "
            f"{directions} directions",
            got="those of another fusion method" + (f", along {along}" if along else ""),
            do="take them from a federation with this fusion method",
        )
    return candidates.common
