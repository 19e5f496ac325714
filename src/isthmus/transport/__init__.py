"""Optimal transport: which rows of two clouds belong together, when all are matched at once."""

from __future__ import annotations

from isthmus._matched import MatchedRows
from isthmus.transport.bridge_cost import bridge_cost
from isthmus.transport.cost import (
    AnchorProfile,
    Cost,
    SimilarityCost,
    StoredCost,
    anchor_cost,
    cosine_cost,
)
from isthmus.transport.coupling import Coupling
from isthmus.transport.kpg_rl import kpg_rl_cost
from isthmus.transport.matching import Matching, match
from isthmus.transport.sinkhorn import sinkhorn

__all__ = [
    "AnchorProfile",
    "Cost",
    "Coupling",
    "MatchedRows",
    "Matching",
    "SimilarityCost",
    "StoredCost",
    "anchor_cost",
    "bridge_cost",
    "cosine_cost",
    "kpg_rl_cost",
    "match",
    "sinkhorn",
]
