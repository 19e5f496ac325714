"""Nearest neighbours, exact and approximate: the one place where rows are searched."""

from __future__ import annotations

from isthmus.neighbors.exact import Exact, Neighbors, check_k, top_k
from isthmus.neighbors.hnsw import Hnsw
from isthmus.neighbors.mutual import MutualPairs, csls, mutual_nearest_neighbors

__all__ = [
    "Exact",
    "Hnsw",
    "MutualPairs",
    "Neighbors",
    "check_k",
    "csls",
    "mutual_nearest_neighbors",
    "top_k",
]
