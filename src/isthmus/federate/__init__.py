"""One query over many stores of different models, ranked as one."""

from __future__ import annotations

from isthmus.federate.adaptive import Adaptive
from isthmus.federate.budget import Budget
from isthmus.federate.calibration import ScoreCalibration
from isthmus.federate.candidates import Candidates
from isthmus.federate.fusion import (
    Agg,
    Cca,
    CombMNZ,
    Fusion,
    OneDirectional,
    Rrf,
    Score,
    make,
    names,
)
from isthmus.federate.hub import Federation
from isthmus.federate.source import Source
from isthmus.federate.weights import FittedWeights, fit_weights
from isthmus.rankings import Outage

__all__ = [
    "Adaptive",
    "Agg",
    "Budget",
    "Candidates",
    "Cca",
    "CombMNZ",
    "Federation",
    "FittedWeights",
    "Fusion",
    "OneDirectional",
    "Outage",
    "Rrf",
    "Score",
    "ScoreCalibration",
    "Source",
    "fit_weights",
    "make",
    "names",
]
