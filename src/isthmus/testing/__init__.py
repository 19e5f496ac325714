"""For the tests of others: the conformance suite of stores, a faulty store, planted spaces."""

from isthmus.testing import store_suite
from isthmus.testing.faulty import Fault, FaultyStore
from isthmus.testing.planted import PlantedPair, planted_pair

__all__ = ["Fault", "FaultyStore", "PlantedPair", "planted_pair", "store_suite"]
