"""Nearest neighbours, exact and approximate: the one place where rows are searched."""

from __future__ import annotations

from isthmus.neighbors.exact import Exact, Neighbors, top_k

__all__ = ["Exact", "Neighbors", "top_k"]
