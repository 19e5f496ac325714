"""Checks of what a store finds."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from isthmus._types import Metric
from isthmus.errors import (
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    ParameterError,
    SpaceMismatchError,
    UnsupportedOperationError,
    ZeroVectorError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.testing.store_suite._compare import (
    Check,
    MakeStore,
    expect,
    expect_error,
    filled,
    random_set,
    same_answers,
    some_space,
)

__all__ = ["CHECKS"]


def _searches_by(metric: Metric) -> Check:
    def check(make: MakeStore) -> None:
        space = some_space(metric)
        with make(some_space()) as probe:
            supported = metric in probe.capabilities.metrics
        if not supported:
            expect_error(UnsupportedOperationError, lambda: make(space), what=f"metric {metric}")
            return
        given = filled(make, random_set(400, space))
        with given.store:
            queries = random_set(50, space, seed=1).matrix()
            for n_queries, k in ((1, 1), (3, 10), (50, 10), (50, 400)):
                same_answers(given, queries[:n_queries], k=k)

    check.__name__ = f"searches_by_{metric}_with_lengths_that_differ"
    check.__doc__ = f"Scores and ranks by {metric} are those of the reference."
    return check


def pads_when_there_are_fewer_rows(make: MakeStore) -> None:
    """Rows with fewer than k answers end in the empty id and NaN."""
    given = filled(make, random_set(3, some_space()))
    with given.store:
        for n_queries in (1, 40):
            same_answers(given, random_set(n_queries, some_space(), seed=1).matrix(), k=7)


def ranks_duplicates_by_insertion(make: MakeStore) -> None:
    """Equal rows come in the order in which they were written, also where k cuts them off."""
    space = some_space()
    vectors = random_set(200, space).matrix().copy()
    vectors[20:120] = vectors[5]
    given = filled(make, VectorSet([f"{row * 7 % 200}" for row in range(200)], vectors, space))
    with given.store:
        for k in (1, 10, 101, 150):
            for n_queries in (1, 40):
                same_answers(given, vectors[: n_queries + 5][-n_queries:], k=k)
        given.delete([str(5 * 7), str(30 * 7 % 200)])
        same_answers(given, vectors[:40], k=10)


def gives_each_query_the_same_answer_alone(make: MakeStore) -> None:
    """A query's answer does not depend on the other queries."""
    given = filled(make, random_set(500, some_space()))
    with given.store as store:
        queries = random_set(60, some_space(), seed=1).matrix()
        together = store.search(queries, k=5)
        for row in (0, 17, 59):
            alone = store.search(queries[row : row + 1], k=5)
            expect((alone.ids[0] == together.ids[row]).all(), "the same ids alone and in a batch")
            close = np.allclose(alone.scores[0], together.scores[row], rtol=1e-6, atol=1e-6)
            expect(close, "the same scores alone and in a batch")


def sees_what_was_written_since(make: MakeStore) -> None:
    """A search after a write finds what was written, however much was searched before."""
    given = filled(make, random_set(300, some_space()))
    with given.store:
        queries = random_set(40, some_space(), seed=1).matrix()
        same_answers(given, queries, k=3)
        given.upsert(VectorSet(["found"], queries[:1], some_space()))
        same_answers(given, queries, k=3)
        given.delete(["found"])
        same_answers(given, queries, k=3)
        same_answers(given, queries[:1], k=3)


def filters_by_metadata(make: MakeStore) -> None:
    """``where`` keeps the rows whose metadata have the values, or is refused."""
    space = some_space()
    with make(space) as store:
        if not store.capabilities.filters:
            expect_error(
                UnsupportedOperationError,
                lambda: store.search(np.ones((1, 12), np.float32), k=1, where={"a": 1}),
                what="where",
            )
            expect_error(
                UnsupportedOperationError, lambda: store.fetch_metadata([]), what="metadata"
            )
            return
    years = (1, 2.5, True, None, "1", [1], {"a": 1})
    metadata = [
        {"number": row % 3, "half": row / 2, "mixed": years[row % 7], "odd": bool(row % 2)}
        for row in range(140)
    ]
    given = filled(make, random_set(140, space), metadata)
    with given.store:
        for where in (
            {"number": 2},
            {"number": 2.0},
            {"half": 3.5},
            {"odd": True},
            {"odd": 1},
            {"mixed": 1},
            {"mixed": True},
            {"mixed": None},
            {"mixed": "1"},
            {"mixed": "x"},
            {"absent": None},
            {"number": 1, "odd": False},
            {},
        ):
            for n_queries in (1, 30):
                queries = random_set(n_queries, space, seed=1).matrix()
                same_answers(given, queries, k=5, where=where)


def refuses_bad_filters(make: MakeStore) -> None:
    """A filter is one JSON value per key of text."""
    with make(some_space()) as store:
        store.upsert(random_set(2, some_space()))
        query = np.ones((1, 12), np.float32)
        kind = ParameterError if store.capabilities.filters else UnsupportedOperationError
        filters: tuple[Any, ...] = ({1: 1}, {"a": [1]}, {"a": {"b": 1}}, {"a": 1j})
        for where in filters:
            expect_error(
                kind,
                partial(store.search, query, k=1, where=where),
                what=f"the filter {where}",
            )


def refuses_bad_queries(make: MakeStore) -> None:
    """Queries that cannot be scored are refused: expected, got, do."""
    good = random_set(3, some_space()).matrix()
    spoiled = {kind: good.copy() for kind in ("nan", "inf", "zero")}
    spoiled["nan"][1, 2] = np.nan
    spoiled["inf"][2, 0] = np.inf
    spoiled["zero"][1] = 0.0
    with make(some_space()) as store:
        store.upsert(random_set(5, some_space(), seed=1))
        for what, kind, queries in (
            ("another dimension", DimensionError, good[:, :5]),
            ("one axis", DimensionError, good[0]),
            ("no queries", EmptyInputError, good[:0]),
            ("NaN", InvalidVectorsError, spoiled["nan"]),
            ("infinity", InvalidVectorsError, spoiled["inf"]),
            ("more than float32 holds", InvalidVectorsError, good.astype(np.float64) * 1e300),
            ("a zero vector under the cosine", ZeroVectorError, spoiled["zero"]),
        ):
            expect_error(
                kind,
                partial(store.search, queries, k=1),
                what=what,
            )
        for k in (0, -1, 1.5, True):
            expect_error(
                ParameterError,
                partial(store.search, good, k=k),  # type: ignore[arg-type]
                what=f"k = {k}",
            )


def takes_a_set_of_queries(make: MakeStore) -> None:
    """Queries may be a set of vectors, whose space is checked."""
    given = filled(make, random_set(20, some_space()))
    with given.store as store:
        queries = random_set(3, some_space(), seed=1)
        one, other = store.search(queries, k=4), store.search(queries.matrix(), k=4)
        expect((one.ids == other.ids).all(), "the same answers to a set and to its matrix")
        as_queries = VectorSet(queries.ids, queries.vectors, some_space().with_kind("query"))
        expect((store.search(as_queries, k=4).ids == one.ids).all(), "queries of the same space")
        others = VectorSet(queries.ids, queries.vectors, Space(model="other", dim=some_space().dim))
        with_others = partial(store.search, others, k=4)
        expect_error(SpaceMismatchError, with_others, what="queries of another space")
        no_filter: Any = "year=2001"
        kind = ParameterError if store.capabilities.filters else UnsupportedOperationError
        as_text = partial(store.search, queries, k=1, where=no_filter)
        expect_error(kind, as_text, what="a filter that is no mapping")


def takes_float64_queries(make: MakeStore) -> None:
    """Queries may be float64; they are scored as float32."""
    given = filled(make, random_set(50, some_space()))
    with given.store as store:
        queries = random_set(4, some_space(), seed=1).matrix()
        wide, narrow = store.search(queries.astype(np.float64), k=5), store.search(queries, k=5)
        expect((wide.ids == narrow.ids).all(), "the ids of the same queries as float32")
        expect((wide.scores == narrow.scores).all(), "the scores of the same queries as float32")


def finds_zero_rows(make: MakeStore) -> None:
    """Rows of zeros have an inner product and a distance."""
    metrics: tuple[Metric, ...] = ("dot", "l2")
    for metric in metrics:
        space = some_space(metric)
        with make(some_space()) as probe:
            supported = metric in probe.capabilities.metrics and probe.capabilities.stores_raw
        if not supported:
            continue
        vectors = random_set(30, space).matrix().copy()
        vectors[3] = 0.0
        given = filled(make, VectorSet(random_set(30, space).ids, vectors, space))
        with given.store:
            queries = random_set(20, space, seed=1).matrix().copy()
            queries[0] = 0.0
            for n_queries in (1, 20):
                same_answers(given, queries[:n_queries], k=30)


CHECKS = (
    _searches_by("cosine"),
    _searches_by("dot"),
    _searches_by("l2"),
    pads_when_there_are_fewer_rows,
    ranks_duplicates_by_insertion,
    gives_each_query_the_same_answer_alone,
    sees_what_was_written_since,
    filters_by_metadata,
    refuses_bad_filters,
    refuses_bad_queries,
    takes_a_set_of_queries,
    takes_float64_queries,
    finds_zero_rows,
)
