"""Maps from one space to another, one algorithm per file."""

from isthmus.maps.anchor_cca import AnchorCCA
from isthmus.maps.anchor_dot import AnchorDOT
from isthmus.maps.asif import ASIF
from isthmus.maps.barycentric import Barycentric
from isthmus.maps.base import Map
from isthmus.maps.cca import CCA
from isthmus.maps.compose import Compose
from isthmus.maps.contrastive import Contrastive
from isthmus.maps.csa import CSA
from isthmus.maps.drift_adapter import DriftAdapter
from isthmus.maps.dummy import Dummy
from isthmus.maps.embedding_converter import EmbeddingConverter
from isthmus.maps.low_rank import LowRank
from isthmus.maps.mini_vec2vec import MiniVec2Vec
from isthmus.maps.mlp import MLP
from isthmus.maps.mlp_small import SmallMLP
from isthmus.maps.null import Null
from isthmus.maps.procrustes import Procrustes
from isthmus.maps.procrustes_ridge import ProcrustesRidge
from isthmus.maps.pseudo_pairs import PseudoPairs, pseudo_pairs
from isthmus.maps.registry import MAPS, make, names
from isthmus.maps.relative import Relative
from isthmus.maps.ridge import Ridge
from isthmus.maps.sotalign import SOTAlign
from isthmus.maps.steps import PCA, STEPS, Centre, Normalise, Step, Whiten
from isthmus.maps.sue import SUE
from isthmus.maps.unpaired_iterative import UnpairedIterative
from isthmus.maps.vec2vec import Vec2Vec

__all__ = [
    "ASIF",
    "CCA",
    "CSA",
    "MAPS",
    "MLP",
    "PCA",
    "STEPS",
    "SUE",
    "AnchorCCA",
    "AnchorDOT",
    "Barycentric",
    "Centre",
    "Compose",
    "Contrastive",
    "DriftAdapter",
    "Dummy",
    "EmbeddingConverter",
    "LowRank",
    "Map",
    "MiniVec2Vec",
    "Normalise",
    "Null",
    "Procrustes",
    "ProcrustesRidge",
    "PseudoPairs",
    "Relative",
    "Ridge",
    "SOTAlign",
    "SmallMLP",
    "Step",
    "UnpairedIterative",
    "Vec2Vec",
    "Whiten",
    "make",
    "names",
    "pseudo_pairs",
]
