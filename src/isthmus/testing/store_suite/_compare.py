"""How a store is compared with the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from isthmus._types import FloatArray, Metric
from isthmus.errors import IsthmusError
from isthmus.spaces import Space, VectorSet
from isthmus.stores import Found, MemoryStore, Store

__all__ = [
    "Check",
    "Given",
    "MakeStore",
    "agree",
    "as_stored",
    "expect",
    "expect_error",
    "filled",
    "random_set",
    "same_answers",
    "same_rows",
    "some_space",
]

TOLERANCE = 1e-5
LEAST_RECALL = 0.9
DIM = 12


class MakeStore(Protocol):
    """What the suite is given: a way to make a new, empty collection in a space."""

    def __call__(self, space: Space) -> Store:
        """Return the store; the suite closes it.

        A store that cannot search by the metric of the space raises `UnsupportedOperationError`.
        """
        ...


Check = Callable[[MakeStore], None]


def expect(condition: object, message: str) -> None:
    """Fail with a message that says what the contract asks for."""
    if not condition:
        raise AssertionError(message)


def expect_error(kind: type[IsthmusError], call: Callable[[], object], *, what: str) -> None:
    """Fail unless the call raises this kind of error, with its three parts."""
    try:
        call()
    except kind as error:
        expect(error.expected and error.got and error.do, f"{what}: an error with its three parts")
    except Exception as error:
        message = f"{what}: {kind.__name__}, not {type(error).__name__}: {error}"
        raise AssertionError(message) from error
    else:
        raise AssertionError(f"{what}: {kind.__name__}, not success")


def some_space(metric: Metric = "cosine", *, dim: int = DIM) -> Space:
    """Return a space of the suite."""
    return Space(model="store-suite", dim=dim, metric=metric)


def random_set(n: int, space: Space, *, seed: int = 0, prefix: str = "row") -> VectorSet:
    """Return rows of very different lengths, with ids in an order that is not alphabetical."""
    generator = np.random.default_rng(seed)
    lengths = generator.uniform(0.1, 10.0, (n, 1))
    vectors = (generator.standard_normal((n, space.dim)) * lengths).astype(np.float32)
    return VectorSet([f"{prefix}-{n - row}" for row in range(n)], vectors, space)


@dataclass(frozen=True)
class Given:
    """A store and the reference that holds the same rows."""

    store: Store
    reference: MemoryStore

    def upsert(
        self, vectors: VectorSet, metadata: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Write to both."""
        self.store.upsert(vectors, metadata=metadata)
        self.reference.upsert(vectors, metadata=metadata)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove from both, and compare how many were there."""
        expected, found = self.reference.delete(ids), self.store.delete(ids)
        expect(found == expected, f"delete returns {expected}, not {found}")


def filled(
    make: MakeStore,
    vectors: VectorSet,
    metadata: Sequence[Mapping[str, Any]] | None = None,
) -> Given:
    """Make a store and a reference with the same rows."""
    given = Given(make(vectors.space), MemoryStore(vectors.space))
    given.upsert(vectors, metadata)
    return given


def same_rows(given: Given) -> None:
    """Fail unless both hold the same rows, and a scan gives them in the same order."""
    count = given.reference.count()
    expect(given.store.count() == count, f"count {count}, not {given.store.count()}")
    expected = list(given.reference.scan(batch_size=1_000))
    found = list(given.store.scan(batch_size=1_000))
    ids = [text for batch in expected for text in batch.vectors.ids.tolist()]
    got = [text for batch in found for text in batch.vectors.ids.tolist()]
    expect(
        got == ids, f"a scan of {len(ids)} rows in order of insertion, not {len(got)}: {got[:5]}"
    )
    for one, other in zip(expected, found, strict=True):
        agree(other.vectors.matrix(), as_stored(given.store, one.vectors.matrix()), given.store)
        if given.store.capabilities.filters:
            expect(one.metadata == other.metadata, "a scan that gives the metadata of each row")


def agree(found: FloatArray, expected: FloatArray, store: Store) -> None:
    """Fail unless vectors came back as the store declares."""
    if store.capabilities.exact_read_back:
        same = np.array_equal(found.view(np.uint32), expected.view(np.uint32))
        expect(same, "vectors read back bit for bit, as declared")
    else:
        scale = np.abs(expected).max(axis=1, keepdims=True)
        expect((np.abs(found - expected) <= TOLERANCE * scale).all(), "vectors read back to 1e-5")


def as_stored(store: Store, vectors: FloatArray) -> FloatArray:
    """Return the vectors as the store declares to keep them: raw or normalised."""
    if store.capabilities.stores_raw:
        return vectors
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / lengths, np.float32)


def same_answers(
    given: Given, queries: FloatArray, *, k: int, where: Mapping[str, Any] | None = None
) -> None:
    """Fail unless both give the same answers: exact stores in order, others nearly all of them."""
    expected = given.reference.search(queries, k=k, where=where)
    found = given.store.search(queries, k=k, where=where)
    shape = (len(queries), k)
    for name in ("ids", "native_scores", "scores"):
        expect(getattr(found, name).shape == shape, f"{name} of shape {shape}")
    expect(found.scores.dtype == np.float32, "scores as float32")
    empty = found.ids == ""
    expect((np.isnan(found.scores) == empty).all(), "NaN scores exactly where there is no row")
    expect(
        (np.isnan(found.native_scores) == empty).all(), "NaN native scores where there is no row"
    )
    _scores_of(given, queries, found)
    _ordered(given, found)
    if given.store.capabilities.exact_search:
        _same_places(expected, found)
    else:
        _recalled(expected, found)


def _same_places(expected: Found, found: Found) -> None:
    for query, place in np.argwhere(found.ids != expected.ids)[:1].tolist():
        expect(
            condition=False,
            message=f"the ids of the reference, at query {query}, place {place}: "
            f"{expected.ids[query, place]!r} ({expected.scores[query, place]:.9g}), "
            f"not {found.ids[query, place]!r} ({found.scores[query, place]:.9g})",
        )
    close = np.isclose(
        found.scores, expected.scores, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True
    )
    expect(close.all(), "the canonical scores of the reference to 1e-5")


def _recalled(expected: Found, found: Found) -> None:
    """Count what is as good as the last of the reference: equal rows stand for each other."""
    wanted = (expected.ids != "").sum(axis=1)
    last = expected.scores[
        np.arange(len(wanted)), np.maximum(wanted, 1) - 1
    ]  # NaN is never reached
    good = found.scores >= (last - TOLERANCE * (1.0 + np.abs(last)))[:, None]
    hits, total = int(good.sum()), int(wanted.sum())
    expect(hits >= LEAST_RECALL * total, f"at least 90 % of the best rows, not {hits} of {total}")


def _scores_of(given: Given, queries: FloatArray, found: Found) -> None:
    """Fail unless each score is the canonical similarity of the row it stands beside."""
    for row in range(len(queries)):
        ids = [text for text in found.ids[row].tolist() if text]
        expect(len(set(ids)) == len(ids), "every row once per query")
        if not ids:
            continue
        only = MemoryStore(given.store.space)
        only.upsert(given.reference.fetch(ids))
        exact = only.search(queries[row : row + 1], k=len(ids))
        by_id = dict(zip(exact.ids[0].tolist(), exact.scores[0].tolist(), strict=True))
        scores = np.array([by_id[text] for text in ids])
        close = np.isclose(found.scores[row, : len(ids)], scores, rtol=TOLERANCE, atol=TOLERANCE)
        expect(close.all(), "canonical scores: cosine, inner product, or minus the distance")


def _ordered(given: Given, found: Found) -> None:
    """Fail unless scores fall from left to right, and native ones run the declared way."""
    up = given.store.capabilities.higher_is_better[given.store.space.metric]
    for name, scores in (
        ("scores", found.scores),
        ("native scores", found.native_scores if up else -found.native_scores),
    ):
        steps = np.diff(scores.astype(np.float64), axis=1)
        slack = TOLERANCE * (1.0 + np.abs(scores[:, 1:]))
        fine = np.isnan(steps) | (steps <= slack)
        expect(fine.all(), f"{name} that run the declared way, best first")
