"""Nearest neighbours, exact and approximate: the one place where rows are searched."""

from __future__ import annotations

from isthmus.neighbors.exact import Exact, Neighbors, check_k, top_k
from isthmus.neighbors.hnsw import Hnsw
from isthmus.neighbors.mutual import MutualPairs, csls, mutual_nearest_neighbors
from isthmus.neighbors.scaled import (
    LocalScaling,
    local_scaling,
    mutual_by_csls,
    nearest_similarities,
)

__all__ = [
    "Exact",
    "Hnsw",
    "LocalScaling",
    "MutualPairs",
    "Neighbors",
    "check_k",
    "csls",
    "local_scaling",
    "mutual_by_csls",
    "mutual_nearest_neighbors",
    "nearest_similarities",
    "top_k",
]
