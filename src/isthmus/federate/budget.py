"""Budgets: which stores are searched for which query.

`Uniform` searches every store for every query, as HVMap does (section 3.3.1); `Adaptive`, in a file
of its own, leaves out the stores that can hardly contribute, which that section leaves to future
work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray
from isthmus.spaces import Space

__all__ = ["Budget", "Uniform"]


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

    def check(self, hub: Space, names: Sequence[str]) -> None:  # noqa: B027 - most fit any stores
        """Refuse a federation that this budget was not made for.

        Parameters
        ----------
        hub : Space
        names : sequence of str
            Of the sources, in their order.
        """


class Uniform(Budget):
    """Every store for every query.

    Examples
    --------
    >>> Uniform().choose([np.zeros((2, 4))], spaces=np.array([0, 0, 0]), k=10).all()
    np.True_
    """

    def choose(
        self, queries: Sequence[FloatArray], *, spaces: IntArray, k: int
    ) -> npt.NDArray[np.bool_]:
        """Return all True."""
        del k
        return np.ones((len(queries[0]), len(spaces)), dtype=np.bool_)
