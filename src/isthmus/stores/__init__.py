"""Databases that keep collections of vectors, one file per database."""

from isthmus.stores.base import (
    Batch,
    Capabilities,
    Found,
    Gathered,
    Held,
    NameRule,
    Store,
    Unchecked,
)
from isthmus.stores.memory import MemoryStore
from isthmus.stores.reading import is_store_url, read_collection
from isthmus.stores.registry import open_store, resolve_url, schemes, store_class

__all__ = [
    "Batch",
    "Capabilities",
    "Found",
    "Gathered",
    "Held",
    "MemoryStore",
    "NameRule",
    "Store",
    "Unchecked",
    "is_store_url",
    "open_store",
    "read_collection",
    "resolve_url",
    "schemes",
    "store_class",
]
