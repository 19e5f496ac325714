"""Optimal transport: which rows of two clouds belong together, when all are matched at once."""

from __future__ import annotations

from isthmus._matched import MatchedRows
from isthmus.transport.alignment import Alignment, Frame
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
from isthmus.transport.gromov import GromovCoupling, gromov, gromov_seconds
from isthmus.transport.icp import icp
from isthmus.transport.kpg_rl import kpg_rl_cost
from isthmus.transport.matching import Matching, match
from isthmus.transport.sinkhorn import sinkhorn
from isthmus.transport.wasserstein_procrustes import wasserstein_procrustes

__all__ = [
    "Alignment",
    "AnchorProfile",
    "Cost",
    "Coupling",
    "Frame",
    "GromovCoupling",
    "MatchedRows",
    "Matching",
    "SimilarityCost",
    "StoredCost",
    "anchor_cost",
    "bridge_cost",
    "cosine_cost",
    "gromov",
    "gromov_seconds",
    "icp",
    "kpg_rl_cost",
    "match",
    "sinkhorn",
    "wasserstein_procrustes",
]
