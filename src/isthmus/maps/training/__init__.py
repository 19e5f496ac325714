"""Training of learned maps with torch, and their forward pass without it."""

from __future__ import annotations

from isthmus.maps.training.fitting import Fitting
from isthmus.maps.training.loop import Outcome, Schedule
from isthmus.maps.training.network import Network
from isthmus.maps.training.objectives import OBJECTIVES, find_objective

__all__ = ["OBJECTIVES", "Fitting", "Network", "Outcome", "Schedule", "find_objective"]
