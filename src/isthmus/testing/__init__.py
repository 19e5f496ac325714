"""For the tests of others: the conformance suite of stores, and planted pairs of spaces."""

from isthmus.testing import store_suite
from isthmus.testing.planted import PlantedPair, planted_pair

__all__ = ["PlantedPair", "planted_pair", "store_suite"]
