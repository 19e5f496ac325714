"""Semantic preservation: does a mapped vector support the decisions that the native one does.

Neighbours (`overlap`), rankings (`order`), clusters (`clusters`), thresholds and close calls
(`decisions`); `measure_pairs` gives the whole family for one set of held-out rows.
"""

from __future__ import annotations

from isthmus.evaluate.preservation.clusters import cluster_agreement
from isthmus.evaluate.preservation.decisions import (
    calibration_transfer,
    hard_negative_margin,
    similarity_error,
    threshold_transfer,
)
from isthmus.evaluate.preservation.family import measure_pairs
from isthmus.evaluate.preservation.order import rank_corr, relation_order_corr
from isthmus.evaluate.preservation.overlap import hit, nbr_overlap, retrieval_agreement
from isthmus.evaluate.view import Native

__all__ = [
    "Native",
    "calibration_transfer",
    "cluster_agreement",
    "hard_negative_margin",
    "hit",
    "measure_pairs",
    "nbr_overlap",
    "rank_corr",
    "relation_order_corr",
    "retrieval_agreement",
    "similarity_error",
    "threshold_transfer",
]
