"""Maps from one space to another, one algorithm per file."""

from isthmus.maps.base import Map
from isthmus.maps.compose import Compose
from isthmus.maps.null import Null
from isthmus.maps.procrustes import Procrustes
from isthmus.maps.registry import MAPS, make, names
from isthmus.maps.ridge import Ridge
from isthmus.maps.steps import PCA, STEPS, Centre, Normalise, Step, Whiten

__all__ = [
    "MAPS",
    "PCA",
    "STEPS",
    "Centre",
    "Compose",
    "Map",
    "Normalise",
    "Null",
    "Procrustes",
    "Ridge",
    "Step",
    "Whiten",
    "make",
    "names",
]
