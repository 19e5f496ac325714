"""A whole collection as a set of vectors."""

from __future__ import annotations

import numpy as np

from isthmus.errors import EmptyInputError
from isthmus.spaces import VectorSet
from isthmus.stores.base import Store
from isthmus.stores.registry import open_store

__all__ = ["is_store_url", "read_collection"]


def is_store_url(text: object) -> bool:
    """Whether a text names a store, not a file.

    Examples
    --------
    >>> is_store_url("sqlite:///one.db?collection=docs"), is_store_url("one.npz")
    (True, False)
    """
    return isinstance(text, str) and "://" in text


def read_collection(source: Store | str) -> VectorSet:
    """Read all vectors of a collection into memory, in the order of its scan.

    Parameters
    ----------
    source : Store, or str
        An open store, or a URL.

    Raises
    ------
    EmptyInputError
        A collection without rows.
    StoreError, InputError
        As `open_store` and `Store.scan` have them.

    Examples
    --------
    >>> from isthmus import Space
    >>> from isthmus.stores import MemoryStore
    >>> store = MemoryStore(Space(model="m", dim=2))
    >>> store.upsert(VectorSet(["a", "b"], [[1, 0], [0, 2]], store.space))
    >>> read_collection(store).ids.tolist()
    ['a', 'b']
    """
    if isinstance(source, str):
        with open_store(source) as store:
            return read_collection(store)
    batches = [batch.vectors for batch in source.scan()]
    if not batches:
        raise EmptyInputError(
            expected=f"vectors in {source.url}", got="an empty collection", do="fill it first"
        )
    ids = np.concatenate([batch.ids for batch in batches])
    vectors = np.concatenate([batch.matrix() for batch in batches])
    return VectorSet(ids, vectors, source.space)
