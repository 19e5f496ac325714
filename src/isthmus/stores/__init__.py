"""Databases that keep collections of vectors, one file per database."""

from isthmus.stores.base import Batch, Capabilities, Found, Gathered, Store
from isthmus.stores.memory import MemoryStore
from isthmus.stores.reading import read_collection
from isthmus.stores.registry import open_store, resolve_url, schemes, store_class

__all__ = [
    "Batch",
    "Capabilities",
    "Found",
    "Gathered",
    "MemoryStore",
    "Store",
    "open_store",
    "read_collection",
    "resolve_url",
    "schemes",
    "store_class",
]
