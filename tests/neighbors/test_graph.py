"""A graph taken apart and put together searches as before; one that does not fit is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isthmus.errors import InputError
from isthmus.neighbors import Hnsw
from isthmus.neighbors.graph import Graph

GENERATOR = np.random.default_rng(11)
ROWS = GENERATOR.standard_normal((600, 12)).astype(np.float32)
QUERIES = GENERATOR.standard_normal((40, 12)).astype(np.float32)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Hnsw(ROWS, connections=8).graph


@pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])
def test_put_together_it_finds_the_same(metric):
    built = Hnsw(ROWS, metric=metric, connections=8)
    again = Hnsw(ROWS, metric=metric, connections=8, graph=built.graph)
    expected, found = built.search(QUERIES, k=7), again.search(QUERIES, k=7)
    assert np.array_equal(expected.rows, found.rows)
    assert np.array_equal(expected.scores, found.scores)
    assert again.graph.entry == built.graph.entry


def with_link(graph: Graph, place: int, row: int) -> Graph:
    links = graph.links.copy()
    links[place] = row
    return replace(graph, links=links)


def upper_place(graph: Graph) -> int:
    """The place of the first link on the second layer of the entry row (8 connections)."""
    counts = np.where(graph.levels == 1, 16, 16 + 8 * (graph.levels - 1))
    return int(counts[: graph.entry].sum()) + 16


@pytest.mark.parametrize(
    "damage",
    [
        lambda graph: with_link(graph, 0, 600),
        lambda graph: with_link(graph, 0, -2),
        lambda graph: with_link(graph, upper_place(graph), int(np.argmin(graph.levels))),
        lambda graph: replace(graph, links=graph.links[:-1]),
        lambda graph: replace(graph, links=graph.links.astype(np.int64)),
        lambda graph: replace(graph, levels=graph.levels[:-1]),
        lambda graph: replace(graph, levels=graph.levels * 0),
        lambda graph: replace(graph, levels=graph.levels + 100),
        lambda graph: replace(graph, entry=600),
        lambda graph: replace(graph, entry=-1),
        lambda graph: replace(graph, entry=int(np.argmin(graph.levels))),
    ],
)
def test_links_that_lead_nowhere_are_refused(graph, damage):
    assert graph.levels.max() > 1  # there is an upper layer to damage
    with pytest.raises(InputError, match="expected an HNSW graph over 600 rows; got levels or"):
        Hnsw(ROWS, connections=8, graph=damage(graph))


def test_other_connections_are_refused(graph):
    with pytest.raises(InputError, match="build the graph anew"):
        Hnsw(ROWS, connections=9, graph=graph)
