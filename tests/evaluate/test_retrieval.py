"""nDCG and Recall: agreement with ir_measures, and what it does differently on purpose."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import Qrel, R, ScoredDoc, nDCG

from isthmus.errors import (
    CountMismatchError,
    DimensionError,
    EmptyInputError,
    InvalidVectorsError,
    ParameterError,
)
from isthmus.evaluate.retrieval import measure_run, ndcg, recall

quick = settings(derandomize=True, deadline=None, max_examples=40)
DOCS = [f"d{number:02d}" for number in range(25)]


def as_arrays(queries, judged, ranked, depth):
    """Turn judgements and ranked ids into the arrays that the measures take."""
    gains = np.zeros((len(queries), depth), np.float32)
    ideal = np.zeros((len(queries), 30), np.float32)
    relevant = np.zeros(len(queries), np.int64)
    for row, query in enumerate(queries):
        found = ranked.get(query, [])[:depth]
        gains[row, : len(found)] = [judged[query].get(doc, 0) for doc in found]
        best = sorted((max(gain, 0) for gain in judged[query].values()), reverse=True)
        ideal[row, : len(best)] = best
        relevant[row] = sum(gain > 0 for gain in best)
    return gains, ideal, relevant


@st.composite
def tasks(draw):
    queries = [f"q{number}" for number in range(draw(st.integers(1, 5)))]
    grades = st.integers(-1, 3)
    judged = {
        query: draw(st.dictionaries(st.sampled_from(DOCS), grades, min_size=1, max_size=12))
        for query in queries
    }
    # Few distinct scores: many ties. A query may be missing from the run, or have few results.
    scores = st.integers(0, 4)
    run = {
        query: draw(st.dictionaries(st.sampled_from(DOCS), scores, max_size=20))
        for query in queries
        if draw(st.integers(0, 5))
    }
    return queries, judged, {query: found for query, found in run.items() if found}


@quick
@given(tasks(), st.sampled_from([1, 3, 10]))
def test_agrees_with_ir_measures(task, k):
    queries, judged, run = task
    # trec_eval breaks ties of the score by the id, downwards; the arrays follow it here.
    ranked = {
        query: sorted(found, key=lambda doc, found=found: (found[doc], doc), reverse=True)
        for query, found in run.items()
    }
    gains, ideal, relevant = as_arrays(queries, judged, ranked, depth=20)
    qrels = [Qrel(q, doc, gain) for q in queries for doc, gain in judged[q].items()]
    theirs = {
        (one.query_id, str(one.measure)): one.value
        for one in ir_measures.iter_calc(
            [nDCG @ k, R @ k],
            qrels,
            [ScoredDoc(q, d, float(s)) for q, found in run.items() for d, s in found.items()],
        )
    }
    for name, ours in (
        (f"nDCG@{k}", ndcg(gains, ideal, k)),
        (f"R@{k}", recall(gains, relevant, k)),
    ):
        for row, query in enumerate(queries):
            if relevant[row]:
                assert ours[row] == pytest.approx(theirs[query, name], abs=1e-9)
            else:
                assert np.isnan(ours[row])


def test_means_agree_with_ir_measures_over_judged_queries():
    draw = np.random.default_rng(0)
    queries = [f"q{number}" for number in range(40)]
    judged = {
        query: {str(doc): int(draw.integers(1, 4)) for doc in draw.choice(25, 4, replace=False)}
        for query in queries
    }
    ranked = {query: [str(doc) for doc in draw.permutation(25)[:12]] for query in queries[5:]}
    values = measure_run(*as_arrays(queries, judged, ranked, depth=12), k=10)
    theirs = ir_measures.calc_aggregate(
        [nDCG @ 10, R @ 10],
        [Qrel(q, doc, gain) for q in queries for doc, gain in judged[q].items()],
        [ScoredDoc(q, doc, -float(place)) for q in ranked for place, doc in enumerate(ranked[q])],
    )
    # Five queries are missing from the run: both count them as 0.
    assert values["nDCG@10"].mean == pytest.approx(theirs[nDCG @ 10], abs=1e-9)
    assert values["Recall@10"].mean == pytest.approx(theirs[R @ 10], abs=1e-9)
    assert (values["nDCG@10"].per_query[:5] == 0).all()
    assert values["nDCG@10"].low < values["nDCG@10"].mean < values["nDCG@10"].high


def test_queries_without_relevant_documents_are_left_out_and_counted():
    # ir_measures counts such a query as 0: a rival definition that is not meant.
    values = measure_run([[1.0], [0.0]], [[1.0], [0.0]], [1, 0], k=10)
    assert values["nDCG@10"].mean == 1.0
    assert values["nDCG@10"].left_out == 1
    assert values["Recall@10"].left_out == 1


def test_gains_are_linear_not_exponential():
    linear = (1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3))
    assert ndcg([[1, 3]], [[3, 1]], 2)[0] == pytest.approx(linear)


def test_recall_divides_by_all_relevant_documents():
    assert recall([[1, 1, 1]], [20], 2).tolist() == [0.1]


@quick
@given(seed=st.integers(0, 10_000), k=st.integers(1, 12))
def test_a_better_place_never_lowers_the_value(seed, k):
    gains = np.random.default_rng(seed).integers(0, 3, (1, 10)).astype(float)
    ideal = -np.sort(-gains, axis=1)
    if not gains.any():
        return
    value = ndcg(gains, ideal, k)[0]
    assert 0.0 <= value <= 1.0
    assert ndcg(ideal, ideal, k)[0] == 1.0
    place = int(np.random.default_rng(seed).integers(0, 9))
    swapped = gains.copy()
    swapped[0, [place, place + 1]] = np.sort(gains[0, [place, place + 1]])[::-1]
    assert ndcg(swapped, ideal, k)[0] >= value - 1e-12
    relevant = [int((gains > 0).sum())]
    assert recall(swapped, relevant, k)[0] >= recall(gains, relevant, k)[0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ndcg([[1]], [[1]], 0), ParameterError, "k as a whole number over 0; got 0"),
        (lambda: ndcg([1], [[1]], 1), DimensionError, "gains with one row per query"),
        (lambda: ndcg(np.empty((0, 3)), [[1]], 1), EmptyInputError, "gains of at least one query"),
        (lambda: ndcg([[np.nan]], [[1]], 1), InvalidVectorsError, "gains as finite numbers"),
        (lambda: ndcg([["x"]], [[1]], 1), InvalidVectorsError, "gains as finite numbers"),
        (lambda: ndcg([[1]], [[1], [1]], 1), CountMismatchError, "1 ideal rankings, one per query"),
        (lambda: ndcg([[1]], [[1, 2]], 2), ParameterError, "sorted downwards; got a rise in row 0"),
        (lambda: recall([[1]], [1, 1], 1), CountMismatchError, "1 counts of relevant documents"),
        (lambda: recall([[1]], [-1], 1), ParameterError, "n_relevant as one whole number from 0"),
        (lambda: recall([[1]], [0.5], 1), ParameterError, "n_relevant as one whole number from 0"),
        (
            lambda: recall([[1, 1]], [1], 2),
            ParameterError,
            "at most 1 relevant results for query 0",
        ),
    ],
)
def test_bad_input_says_expected_got_do(call, error, text):
    with pytest.raises(error, match="Do: ") as caught:
        call()
    assert text in str(caught.value)
