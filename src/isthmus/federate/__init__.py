"""One query over many stores of different models, ranked as one."""

from __future__ import annotations

from isthmus.federate.candidates import Candidates
from isthmus.federate.fusion import Fusion, make, names
from isthmus.federate.hub import Federation
from isthmus.federate.source import Source

__all__ = ["Candidates", "Federation", "Fusion", "Source", "make", "names"]
