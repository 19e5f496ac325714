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
from isthmus.stores._native import NATIVE_SCORES

__all__ = [
    "Check",
    "Given",
    "MakeStore",
    "agree",
    "as_stored",
    "by_id",
    "expect",
    "expect_error",
    "filled",
    "random_set",
    "same_answers",
    "same_rows",
    "scanned",
    "some_space",
]

TOLERANCE = 1e-5
SUMS = 1e-6  # of the product of two lengths
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


def expect_error(
    kind: type[IsthmusError] | tuple[type[IsthmusError], ...],
    call: Callable[[], object],
    *,
    what: str,
) -> None:
    """Fail unless the call raises this kind of error, with its three parts."""
    named = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
    try:
        call()
    except kind as error:
        expect(error.expected and error.got and error.do, f"{what}: an error with its three parts")
    except Exception as error:
        message = f"{what}: {named}, not {type(error).__name__}: {error}"
        raise AssertionError(message) from error
    else:
        raise AssertionError(f"{what}: {named}, not success")


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
    """Fail unless both hold the same rows, and a scan gives them in the order that is declared."""
    count = given.reference.count()
    expect(given.store.count() == count, f"count {count}, not {given.store.count()}")
    expected, found = scanned(given.reference), scanned(given.store)
    if given.store.capabilities.scan_order == "key":
        expected, found = by_id(expected), by_id(found)
    ids, got = expected.ids, found.ids
    expect(got == ids, f"a scan of the {len(ids)} rows, not {len(got)}: {got[:5]}")
    if ids:
        agree(found.vectors, as_stored(given.store, expected.vectors), given.store)
    if given.store.capabilities.filters:
        expect(found.metadata == expected.metadata, "a scan that gives the metadata of each row")


@dataclass(frozen=True)
class Scanned:
    """All rows of a store."""

    ids: list[str]
    vectors: FloatArray
    metadata: list[dict[str, Any]]


def scanned(store: Store, *, batch_size: int = 1_000) -> Scanned:
    """Read all rows of a store."""
    batches = list(store.scan(batch_size=batch_size))
    return Scanned(
        [text for batch in batches for text in batch.vectors.ids.tolist()],
        np.concatenate(
            [np.empty((0, store.space.dim)), *(b.vectors.matrix() for b in batches)]
        ).astype(np.float32),
        [fields for batch in batches for fields in batch.metadata],
    )


def by_id(rows: Scanned) -> Scanned:
    """Sort rows by id."""
    order = sorted(range(len(rows.ids)), key=rows.ids.__getitem__)
    return Scanned(
        [rows.ids[row] for row in order],
        rows.vectors[order],
        [rows.metadata[row] for row in order],
    )


def agree(found: FloatArray, expected: FloatArray, store: Store) -> None:
    """Fail unless vectors came back as the store declares."""
    error = store.capabilities.read_back_error
    if error == 0:
        same = np.array_equal(found.view(np.uint32), expected.view(np.uint32))
        expect(same, "vectors read back bit for bit, as declared")
    else:
        scale = np.abs(expected).max(axis=1, keepdims=True)
        close = np.abs(found - expected) <= error * scale
        expect(
            close.all(), f"vectors read back to {error:.0e} of a row's largest number, as declared"
        )


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
    able = given.store.capabilities
    if able.exact_search and able.ties_by_insertion:
        _same_places(expected, found)
    else:
        _recalled(expected, found, least=1.0 if able.exact_search else LEAST_RECALL)


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


def _recalled(expected: Found, found: Found, *, least: float) -> None:
    """Count what is as good as the last of the reference: equal rows stand for each other."""
    wanted = (expected.ids != "").sum(axis=1)
    last = expected.scores[
        np.arange(len(wanted)), np.maximum(wanted, 1) - 1
    ]  # NaN is never reached
    good = found.scores >= (last - TOLERANCE * (1.0 + np.abs(last)))[:, None]
    hits, total = int(good.sum()), int(wanted.sum())
    expect(hits >= least * total, f"at least {least:.0%} of the best rows, not {hits} of {total}")


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
        slack = TOLERANCE + _lost_in_sums(given, queries[row], ids)
        close = np.isclose(found.scores[row, : len(ids)], scores, rtol=TOLERANCE, atol=slack)
        expect(close.all(), "canonical scores: cosine, inner product, or minus the distance")


def _lost_in_sums(given: Given, query: FloatArray, ids: list[str]) -> FloatArray:
    """Return what an inner product in float32 may lose: a part of the lengths, not of itself."""
    if given.store.space.metric != "dot":
        return np.zeros(len(ids), np.float32)
    lengths = np.linalg.norm(given.reference.fetch(ids).matrix(), axis=1) * np.linalg.norm(query)
    return np.asarray(SUMS * lengths, np.float32)


def _ordered(given: Given, found: Found) -> None:
    """Fail unless scores fall from left to right, and native ones run the declared way."""
    native = given.store.capabilities.native_scores[given.store.space.metric]
    up = NATIVE_SCORES[native].higher_is_better
    for name, scores in (
        ("scores", found.scores),
        ("native scores", found.native_scores if up else -found.native_scores),
    ):
        steps = np.diff(scores.astype(np.float64), axis=1)
        slack = TOLERANCE * (1.0 + np.abs(scores[:, 1:]))
        fine = np.isnan(steps) | (steps <= slack)
        expect(fine.all(), f"{name} that run the declared way, best first")
