"""Budgets: which stores are searched for which query.

Without one every store is searched for every query, as HVMap does (section 3.3.1); `Adaptive`, in a
file of its own, leaves out the stores that can hardly contribute, which that section leaves to
future work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray
from isthmus.federate.source import Source
from isthmus.spaces import Space

__all__ = ["Budget"]


class Budget(ABC):
    """A way to choose the stores that are searched for a query."""

    @abstractmethod
    def choose(
        self, queries: Sequence[FloatArray], *, spaces: IntArray, k: int
    ) -> npt.NDArray[np.bool_]:
        """Say which stores are searched for which query.

        Parameters
        ----------
        queries : sequence of FloatArray of shape (m, dim of that space), one per space
            The hub's space first.
        spaces : IntArray of shape (n_sources,)
            The space that each source holds.
        k : int
            Answers per query, at least 1.

        Returns
        -------
        boolean array of shape (m, n_sources)
            At least one store per query.
        """

    def check(  # noqa: B027 - most fit any stores
        self, hub: Space, sources: Sequence[Source]
    ) -> None:
        """Refuse a federation that this budget was not made for.

        Parameters
        ----------
        hub : Space
        sources : sequence of Source
        """
