"""Vector linking: which vectors of two clouds are the same object, from a few seed pairs."""

from __future__ import annotations

from isthmus.link.ao import AO
from isthmus.link.auto import Auto
from isthmus.link.base import Linker, LinkState
from isthmus.link.cca import CCA
from isthmus.link.geh import Geh
from isthmus.link.linear import Linear
from isthmus.link.links import Iteration, Links, LinkVerdict, MatchedRows
from isthmus.link.mlp import MLP
from isthmus.link.problem import LinkProblem
from isthmus.link.procrustes import Procrustes
from isthmus.link.rcsls import RCSLS
from isthmus.link.registry import LINKERS, make, names
from isthmus.link.self_training import SelfTraining
from isthmus.link.ugw import UGW

__all__ = [
    "AO",
    "CCA",
    "LINKERS",
    "MLP",
    "RCSLS",
    "UGW",
    "Auto",
    "Geh",
    "Iteration",
    "Linear",
    "LinkProblem",
    "LinkState",
    "LinkVerdict",
    "Linker",
    "Links",
    "MatchedRows",
    "Procrustes",
    "SelfTraining",
    "make",
    "names",
]
