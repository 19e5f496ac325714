"""Vector linking: which vectors of two clouds are the same object, from a few seed pairs."""

from __future__ import annotations

from isthmus.link.base import Linker, LinkState
from isthmus.link.links import Iteration, Links, LinkVerdict, MatchedRows
from isthmus.link.problem import LinkProblem

__all__ = [
    "Iteration",
    "LinkProblem",
    "LinkState",
    "LinkVerdict",
    "Linker",
    "Links",
    "MatchedRows",
]
