"""The rivals of the demo: the same queries on the same stores, ranked in several ways."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from isthmus._progress import Track
from isthmus._types import IdArray
from isthmus.bridge import Bridge
from isthmus.evaluate import Value
from isthmus.evaluate.retrieval import measure_run
from isthmus.federate import Federation, Source
from isthmus.maps import Compose, make
from isthmus.sample import Sample
from isthmus.spaces import Qrels
from isthmus.stores.base import Store
from isthmus.stores.registry import open_store

__all__ = ["System", "measure_systems"]

K = 10
RUNS = 3
"""Timed runs, of which the median is told, after one that fills the caches."""


@dataclass(frozen=True)
class System:
    """One way to answer the queries, measured.

    Parameters
    ----------
    name : str
    encoders : str
        Models that have to encode each query.
    ndcg, recall : Value
        ``nDCG@10`` and ``Recall@10`` with 95 % intervals (bootstrap over the queries).
    seconds_per_query : float
        Search and ranking, all queries in one batch, caches warm; without encoding.
    """

    name: str
    encoders: str
    ndcg: Value
    recall: Value
    seconds_per_query: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, without those of single queries."""
        values = {
            value.name: {"mean": value.mean, "low": value.low, "high": value.high}
            for value in (self.ndcg, self.recall)
        }
        return {
            "name": self.name,
            "encoders": self.encoders,
            **values,
            "milliseconds_per_query": 1000 * self.seconds_per_query,
        }


Answer = Callable[[], IdArray]


def measure_systems(
    federation: Path,
    bundled: Sample,
    ids: IdArray,
    *,
    seed: int,
    track: Track[Any],
) -> tuple[System, ...]:
    """Answer all queries in every way and measure the answers.

    Parameters
    ----------
    federation : Path
        The federation's file, with its bridges on disk.
    bundled : Sample
    ids : IdArray of shape (n,)
        Of the documents that its stores hold together.
    seed : int
    track : Track
    """
    with ExitStack() as opened:
        joined = opened.enter_context(Federation.load(federation))
        oracles = opened.enter_context(_oracles(bundled, ids))
        ways = list(_ways(joined, bundled, oracles))
        return tuple(
            _measure(name, encoders, answer, bundled, seed=seed)
            for name, encoders, answer in track(ways, "searching", len(ways))
        )


def _ways(
    joined: Federation, bundled: Sample, oracles: dict[str, Store]
) -> Iterator[tuple[str, str, Answer]]:
    """Name every way to answer, the models it needs at query time, and how to ask it."""
    hub, spoke = bundled.queries
    queries, native = bundled.queries[hub], {"two": bundled.queries[spoke]}

    def ask(federation: Federation, **more: Any) -> Answer:
        return lambda: federation.search(queries, k=K, **more).ids

    yield "null map", hub, ask(_with_null(joined))
    for fusion, name in (("agg", "AGG"), ("rrf", "RRF"), ("combmnz", "CombMNZ")):
        way = Federation(joined.hub, joined.sources, fusion=fusion)
        yield f"{name}, 2 encoders", "both", ask(way, native_queries=native)
    one_way = Federation(joined.hub, joined.sources, fusion="one_directional")
    yield "one-directional", hub, ask(one_way)
    yield "Isthmus", hub, ask(joined)
    for model, store in oracles.items():
        matrix = bundled.queries[model].matrix()
        yield f"oracle, all {model}", model, _native(store, matrix)


def _native(store: Store, matrix: np.ndarray[Any, Any]) -> Answer:
    return lambda: store.search(matrix, k=K).ids


def _with_null(joined: Federation) -> Federation:
    """Return the federation with bridges that do nothing."""

    def null(bridge: Bridge | None) -> Bridge | None:
        if bridge is None:
            return None
        nothing = Compose(source_steps=[], inner=make("null"), target_steps=[])
        ends = (np.eye(2, space.dim, dtype=np.float32) for space in (bridge.source, bridge.target))
        return replace(bridge, map=nothing.fit(*ends))

    sources = [
        Source(source.name, source.store, null(source.to_store), null(source.to_hub))
        for source in joined.sources
    ]
    return Federation(joined.hub, sources)


@contextmanager
def _oracles(bundled: Sample, ids: IdArray) -> Iterator[dict[str, Store]]:
    """Open a store per model that holds every searched document, embedded natively."""
    with tempfile.TemporaryDirectory(prefix="isthmus-oracle-") as folder, ExitStack() as opened:
        stores: dict[str, Store] = {}
        for model, documents in bundled.documents.items():
            url = f"sqlite:///{folder}/{model}.db?collection=docs"
            store = opened.enter_context(open_store(url, space=documents.space))
            store.upsert(documents.select(documents.rows_of(ids)))
            stores[model] = store
        yield stores


def _measure(name: str, encoders: str, answer: Answer, bundled: Sample, *, seed: int) -> System:
    ids = answer()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        ids = answer()
        times.append(time.perf_counter() - start)
    values = _judge(ids, next(iter(bundled.queries.values())).ids, bundled.qrels, seed=seed)
    return System(
        name=name,
        encoders=encoders,
        ndcg=values[f"nDCG@{K}"],
        recall=values[f"Recall@{K}"],
        seconds_per_query=statistics.median(times) / len(ids),
    )


def _judge(ids: IdArray, query_ids: IdArray, qrels: Qrels, *, seed: int) -> dict[str, Value]:
    return measure_run(
        qrels.gains(query_ids, ids),
        qrels.ideal(query_ids, K),
        qrels.n_relevant(query_ids),
        k=K,
        seed=seed,
    )
