"""Doubles: a store that searches by the formula, a bridge that is one matrix, faults on demand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from isthmus.errors import UnknownIdError
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore
from isthmus.stores.base import Found, Store

HUB = Space(model="hub-model", dim=4, normalized=True)
SPOKE = Space(model="spoke-model", dim=6, normalized=True)
THIRD = Space(model="third-model", dim=5, normalized=True)


def similarity(queries, vectors, metric):
    """Return the canonical similarities (m, n), in float64, by the formula."""
    queries, vectors = queries.astype(np.float64), vectors.astype(np.float64)
    if metric == "cosine":
        queries = queries / np.linalg.norm(queries, axis=1, keepdims=True)
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    if metric == "l2":
        return -np.linalg.norm(queries[:, None] - vectors[None], axis=2)
    return queries @ vectors.T


class DoubleStore(Store):
    """A store in memory that counts what is asked of it."""

    scheme = "double"
    capabilities = MemoryStore.capabilities

    def __init__(self, name, space, vectors=None, ids=None, fault=None):
        self._name, self._space, self._fault = name, space, fault
        self.vectors = np.asarray(
            np.empty((0, space.dim)) if vectors is None else vectors, dtype=np.float32
        )
        self.ids = list(ids or (f"{name}{row}" for row in range(len(self.vectors))))
        self.fetched = []
        self.searched = []
        self.closed = 0

    @classmethod
    def open(cls, url, *, space=None):
        raise NotImplementedError

    @property
    def space(self):
        return self._space

    @property
    def url(self):
        return f"double://{self._name}"

    def count(self):
        return len(self.ids)

    def upsert(self, vectors, *, metadata=None, notes=None):
        raise NotImplementedError

    def fetch_metadata(self, ids):
        raise NotImplementedError

    def delete(self, ids):
        raise NotImplementedError

    def scan(self, *, batch_size=10_000, cursor=""):
        raise NotImplementedError

    def fetch(self, ids):
        self.fetched.append(list(ids))
        unknown = [name for name in ids if name not in self.ids]
        if unknown:
            raise UnknownIdError(expected="ids of the store", got=unknown[0], do="search again")
        rows = [self.ids.index(name) for name in ids]
        return VectorSet(list(ids), self.vectors[rows], self._space)

    def search(self, queries, *, k, where=None):
        assert where is None
        self.searched.append(np.array(queries))
        ids = np.full((len(queries), k), "", dtype="<U40")
        scores = np.full((len(queries), k), np.nan, dtype=np.float32)
        for row, query in enumerate(queries):  # one at a time: no number depends on the batch
            if len(self.ids):
                found = similarity(query[None], self.vectors, self._space.metric)[0]
                best = np.argsort(-found, kind="stable")[:k]
                ids[row, : len(best)] = np.array(self.ids)[best]
                scores[row, : len(best)] = found[best]
        answer = Found(ids=ids, native_scores=scores.copy(), scores=scores)
        return self._fault(answer) if self._fault else answer

    def close(self):
        self.closed += 1


@dataclass(frozen=True)
class DoubleBridge:
    """One matrix between two spaces; counts the rows that it maps."""

    source: Space
    target: Space
    weight: np.ndarray
    hash: str = "h"
    lands_in: str = "target"
    method: str = "double"
    calls: tuple = ()

    def transform(self, rows):
        self.rows.append(len(rows))
        landed = np.stack([row @ self.weight for row in np.asarray(rows, dtype=np.float32)])
        if self.target.normalized:  # as Bridge.transform does
            landed /= np.linalg.norm(landed, axis=1, keepdims=True)
        return landed

    @property
    def rows(self):
        return self.__dict__.setdefault("_rows", [])


def unit(rng, n, dim):
    rows = rng.standard_normal((n, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def make_bridges(hub, space, seed=0):
    """Return a random bridge each way, not inverse to each other."""
    rng = np.random.default_rng(seed)
    there = rng.standard_normal((hub.dim, space.dim)).astype(np.float32)
    back = rng.standard_normal((space.dim, hub.dim)).astype(np.float32)
    return (
        DoubleBridge(hub, space, there, hash=f"to-{space.model}-{seed}"),
        DoubleBridge(space, hub, back, hash=f"from-{space.model}-{seed}"),
    )


@pytest.fixture
def doubles():
    """Everything above, for tests that build their own federation."""
    import types

    return types.SimpleNamespace(
        Store=DoubleStore,
        Bridge=DoubleBridge,
        bridges=make_bridges,
        similarity=similarity,
        unit=unit,
        HUB=HUB,
        SPOKE=SPOKE,
        THIRD=THIRD,
    )


@pytest.fixture
def queries():
    rng = np.random.default_rng(7)
    return VectorSet([f"q{row}" for row in range(9)], unit(rng, 9, HUB.dim), HUB.with_kind("query"))


@pytest.fixture
def stores():
    rng = np.random.default_rng(3)
    return (
        DoubleStore("a", HUB, unit(rng, 30, HUB.dim)),
        DoubleStore("b", SPOKE, unit(rng, 25, SPOKE.dim)),
        DoubleStore("c", THIRD, unit(rng, 20, THIRD.dim)),
    )
