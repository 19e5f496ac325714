"""Ways to rank the candidates of several sources in one list, one method per file."""

from __future__ import annotations

from isthmus.federate.fusion.agg import Agg
from isthmus.federate.fusion.base import Fusion
from isthmus.federate.fusion.cca import Cca
from isthmus.federate.fusion.combmnz import CombMNZ
from isthmus.federate.fusion.one_directional import OneDirectional
from isthmus.federate.fusion.registry import FUSIONS, make, names
from isthmus.federate.fusion.rrf import Rrf
from isthmus.federate.fusion.score import Score

__all__ = [
    "FUSIONS",
    "Agg",
    "Cca",
    "CombMNZ",
    "Fusion",
    "OneDirectional",
    "Rrf",
    "Score",
    "make",
    "names",
]
