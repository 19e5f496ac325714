"""Votes for candidate links: kept only for pairs that some view has proposed, and what they say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus._types import FloatArray, IntArray

__all__ = ["VoteTable", "posterior_mean"]


@dataclass(frozen=True, eq=False)
class VoteTable:
    """Candidate links and how many views proposed each (section 4, "Vote counts").

    Parameters
    ----------
    pairs : IntArray of shape (n, 2)
        Source row, target row; sorted, each once.
    votes : IntArray of shape (n,)
    """

    pairs: IntArray
    votes: IntArray

    def __len__(self) -> int:
        """Count the candidate links."""
        return len(self.pairs)

    @classmethod
    def empty(cls) -> VoteTable:
        """Make a table without pairs."""
        return cls(np.empty((0, 2), np.int64), np.empty(0, np.int64))

    def plus(self, pairs: IntArray, *, each: int = 1) -> VoteTable:
        """Return the table with ``each`` more votes for every pair, as often as it is given.

        Examples
        --------
        >>> table = VoteTable.empty().plus(np.array([[1, 2], [0, 3], [1, 2]]))
        >>> table = table.plus(np.array([[0, 3]]), each=5)
        >>> table.pairs.tolist(), table.votes.tolist()
        ([[0, 3], [1, 2]], [6, 2])
        """
        if not len(pairs):
            return self
        width = int(max(pairs[:, 1].max(), self.pairs[:, 1].max(initial=0))) + 1
        new, counts = np.unique(pairs[:, 0] * width + pairs[:, 1], return_counts=True)
        old = self.pairs[:, 0] * width + self.pairs[:, 1]
        codes = np.union1d(old, new)
        votes = np.zeros(len(codes), np.int64)
        votes[np.searchsorted(codes, old)] = self.votes
        votes[np.searchsorted(codes, new)] += counts * each
        return VoteTable(np.stack(np.divmod(codes, width), axis=1), votes)

    def of(self, pairs: IntArray) -> IntArray:
        """Return the votes of some pairs: 0 for one that was never proposed."""
        if not len(self) or not len(pairs):
            return np.zeros(len(pairs), np.int64)
        width = int(max(pairs[:, 1].max(), self.pairs[:, 1].max())) + 1
        codes = self.pairs[:, 0] * width + self.pairs[:, 1]
        wanted = pairs[:, 0] * width + pairs[:, 1]
        place = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
        return np.where(codes[place] == wanted, self.votes[place], 0)


def posterior_mean(votes: IntArray, views: int) -> FloatArray:
    """Return the posterior mean (1 + votes) / (2 + views) of a Beta(1, 1)-Bernoulli model.

    Parameters
    ----------
    votes : IntArray of shape (n,)
    views : int
        All views so far: one that did not propose a pair speaks against it.

    Examples
    --------
    >>> posterior_mean(np.array([0, 8]), 8).tolist()
    [0.1, 0.9]
    """
    return (1.0 + votes) / (2.0 + views)
