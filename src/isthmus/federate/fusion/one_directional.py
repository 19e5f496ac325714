"""One-directional ranking: every candidate is compared with the query in one space.

For the query q in the chosen space t and a candidate x of space k,

    score(x) = sim(q_t, x) if k = t, else sim(q_t, f_kt(x)).

When to use it: when one space is clearly the better one, or when bridges lead into it only. `Score`
also keeps each candidate's native similarity, where no mapping error enters.

Reference: HVMap, section 5.2.1 ("Uni HVMap ... ranks all candidates in one designated embedding
space").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isthmus._types import FloatArray
from isthmus.errors import ParameterError
from isthmus.federate.candidates import Candidates
from isthmus.federate.fusion.base import Fusion

__all__ = ["OneDirectional"]


@dataclass(frozen=True, kw_only=True)
class OneDirectional(Fusion):
    """Similarity in one space.

    Parameters
    ----------
    space : int, default 0
        Place of the space in `Federation.spaces`; 0 is the hub's.

    Raises
    ------
    ParameterError
        A negative space, or one that the federation does not have.

    Examples
    --------
    >>> OneDirectional().spaces(2)
    (0,)
    """

    name: ClassVar[str] = "one_directional"

    space: int = 0

    def __post_init__(self) -> None:
        if self.space < 0:
            raise ParameterError(
                expected="a space from 0 (the hub's) on",
                got=f"{self.space}",
                do="choose a place in Federation.spaces",
            )

    def spaces(self, n_spaces: int) -> tuple[int, ...]:
        """Ask for the one space."""
        if self.space >= n_spaces:
            raise ParameterError(
                expected=f"a space under {n_spaces}, the number of spaces in the federation",
                got=f"{self.space}",
                do="choose a place in Federation.spaces",
            )
        return (self.space,)

    def shares(self, n_spaces: int) -> FloatArray:
        """Count the similarity in the one space only."""
        shares = np.zeros((n_spaces, n_spaces + 1))
        shares[:, self.space] = 1.0
        return shares

    def score(self, candidates: Candidates) -> FloatArray:
        """Return the similarities of the one space.

        Raises
        ------
        ParameterError
            Candidates that were not compared there.
        """
        candidates.check_compared(self.spaces(candidates.n_spaces))
        scores: FloatArray = candidates.similarities[self.space]
        return scores
