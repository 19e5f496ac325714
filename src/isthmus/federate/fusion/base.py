"""The contract of every fusion method: one score per candidate, comparable across sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from isthmus._types import FloatArray
from isthmus.federate.candidates import Candidates

__all__ = ["Fusion"]


class Fusion(ABC):
    """A way to rank candidates of several sources in one list.

    Subclasses are frozen dataclasses: their fields are the method's parameters.

    Class attributes
    ----------------
    name : str
        Name in the registry and in a federation's file.
    adds_up_lists : bool
        Whether scores depend on which candidates were merged as one document; False.
    """

    name: ClassVar[str]
    adds_up_lists: ClassVar[bool] = False

    @abstractmethod
    def spaces(self, n_spaces: int) -> tuple[int, ...]:
        """Say in which spaces candidates of other spaces are needed; the hub's is space 0.

        Empty for methods that look at native similarities or ranks only: nothing is fetched and
        nothing is mapped for them.
        """

    @property
    def common_directions(self) -> int:
        """Say how many directions of a common space are needed (`isthmus.federate.common`); 0."""
        return 0

    def settled(self, *, common: bool) -> Self:
        """Return it with what it leaves open decided for a federation.

        Parameters
        ----------
        common : bool
            Whether candidates of all its spaces can be compared in a common space.
        """
        del common
        return self

    def shares(self, n_spaces: int) -> FloatArray | None:
        """Return what each similarity counts in the score; None where it is no weighted sum.

        Parameters
        ----------
        n_spaces : int

        Returns
        -------
        FloatArray of shape (n_spaces, n_spaces + 1), or None
            A row for the candidates of each space: the share of the similarity in every space, and
            last that in the common space.
        """
        del n_spaces
        return None

    @abstractmethod
    def score(self, candidates: Candidates) -> FloatArray:
        """Return the canonical scores (m, w) float32, higher is better, NaN for no candidate.

        Equal scores are ranked by the order of the sources, then by rank.
        """
