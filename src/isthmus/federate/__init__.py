"""One query over many stores of different models, ranked as one."""

from __future__ import annotations

from isthmus.federate.adaptive import Adaptive
from isthmus.federate.budget import Budget, Uniform
from isthmus.federate.calibration import ScoreCalibration
from isthmus.federate.candidates import Candidates
from isthmus.federate.fusion import Fusion, make, names
from isthmus.federate.hub import Federation
from isthmus.federate.source import Source
from isthmus.federate.weights import FittedWeights, fit_weights

__all__ = [
    "Adaptive",
    "Budget",
    "Candidates",
    "Federation",
    "FittedWeights",
    "Fusion",
    "ScoreCalibration",
    "Source",
    "Uniform",
    "fit_weights",
    "make",
    "names",
]
