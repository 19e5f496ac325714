"""How much a map keeps, and how sure that is.

Every measure takes arrays, gives one number per query first, and is reported beside the null map.
See docs/measures.md for formulas, ranges and the rival definitions that are not meant.
"""

from __future__ import annotations

from isthmus.evaluate import (
    agreement,
    bootstrap,
    consistency,
    hubness,
    linking,
    measures,
    preservation,
    reconstruction,
    retrieval,
)
from isthmus.evaluate.agreement import fleiss_kappa, pairwise_agreement
from isthmus.evaluate.measures import MEASURES, Measure
from isthmus.evaluate.preservation import Native, measure_pairs
from isthmus.evaluate.report import Report, Value, ratio_to_oracle, summarise

__all__ = [
    "MEASURES",
    "Measure",
    "Native",
    "Report",
    "Value",
    "agreement",
    "bootstrap",
    "consistency",
    "fleiss_kappa",
    "hubness",
    "linking",
    "measure_pairs",
    "measures",
    "pairwise_agreement",
    "preservation",
    "ratio_to_oracle",
    "reconstruction",
    "retrieval",
    "summarise",
]
