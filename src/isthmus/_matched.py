"""Rows of two sides that stand for the same objects: what links and couplings give."""

from __future__ import annotations

from dataclasses import dataclass

from isthmus._types import FloatArray, IntArray

__all__ = ["MatchedRows"]


@dataclass(frozen=True, eq=False)
class MatchedRows:
    """Rows of both sides that stand for the same objects.

    Parameters
    ----------
    source_rows, target_rows : IntArray of shape (n,)
    confidence : FloatArray of shape (n,)
        From 0 to 1: the posterior of a link, the share of a coupling.
    """

    source_rows: IntArray
    target_rows: IntArray
    confidence: FloatArray

    def __len__(self) -> int:
        """Count the matches."""
        return len(self.source_rows)
