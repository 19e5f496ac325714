"""Which vectors: spaces, sets of vectors, pairs of them, judgements."""

from isthmus.spaces.coverage import PairCoverage, SideCoverage
from isthmus.spaces.pairs import Pairs
from isthmus.spaces.qrels import Qrels
from isthmus.spaces.space import Space
from isthmus.spaces.vector_set import VectorSet

__all__ = ["PairCoverage", "Pairs", "Qrels", "SideCoverage", "Space", "VectorSet"]
