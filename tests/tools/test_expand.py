"""Expanding: candidates by retrieval, judged against the first document, written as qrels."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cross_domain.corpora import read_corpora
from cross_domain.endpoint import Endpoint, EndpointError
from cross_domain.expand import embed_queries, expand, open_queries
from cross_domain.judge import read_choice

from isthmus.errors import (
    ConfigError,
    CorruptFileError,
    CountMismatchError,
    EmptyInputError,
    InvalidVectorsError,
    MissingFileError,
    SpaceMismatchError,
    UnknownIdError,
)
from isthmus.neighbors import top_k
from isthmus.spaces import Qrels, Space, VectorSet


def judgements(folder):
    return [json.loads(line) for line in (folder / "judgements.jsonl").read_text().splitlines()]


@pytest.fixture
def asked(made, doubles):
    """Vectors of the eight queries."""
    entries = [json.loads(line) for line in (made / "queries.jsonl").read_text().splitlines()]
    rows = [doubles.embedding(entry["text"]) for entry in entries]
    space = Space(model="small", dim=doubles.DIM, normalized=True, kind="query")
    return VectorSet([entry["id"] for entry in entries], rows, space)


@pytest.fixture
def run(stub, made, corpora, vectors, asked):
    def call(**settings):
        documents = [VectorSet.load(path) for path in vectors]
        chosen = {"model": "judge", "k": 4, **settings}
        queries = chosen.pop("queries", [asked, asked])
        documents = chosen.pop("documents", documents)
        endpoint = Endpoint(stub.url, tries=2, wait=0.01)
        return expand(made, read_corpora(corpora), documents, queries, endpoint, **chosen)

    return call


def test_relevant_sets_are_the_first_documents_and_those_judged_better(
    run, made, corpora, vectors, asked
):
    found = run()
    entries = judgements(made)
    assert found.queries == 8
    assert found.judged == found.new == len(entries) == 8 * 2 * 4
    texts = {one: corpus.text(one) for corpus in read_corpora(corpora) for one in corpus.offsets}
    for entry in entries:
        better = [" strong" in texts[entry[which]] for which in ("document", "initial")]
        assert entry["more_relevant"] is (better == [True, False])
    assert {entry["place"] for entry in entries} == {1, 2}
    qrels = Qrels.load(made / "qrels.tsv")
    assert len(qrels) == found.pairs == 8 * 2 + found.added
    assert found.added > 0
    for line in (made / "queries.jsonl").read_text().splitlines():
        query = json.loads(line)
        better = {
            entry["document"]
            for entry in entries
            if entry["query"] == query["id"] and entry["more_relevant"]
        }
        of_it = set(qrels.document_ids[qrels.query_ids == query["id"]].tolist())
        assert of_it == better | set(query["documents"].values())

    documents = VectorSet.load(vectors[0])
    first = json.loads((made / "queries.jsonl").read_text().splitlines()[0])
    own = documents.rows_of([first["documents"]["money"]])
    near = top_k(asked.vectors[:1], documents.vectors, k=4, exclude=own)
    candidates = [e for e in entries if e["query"] == "q00001" and e["corpus"] == "money"]
    assert [e["document"] for e in candidates] == documents.ids[near.rows[0]].tolist()
    assert [e["rank"] for e in candidates] == [1, 2, 3, 4]
    assert np.allclose([e["score"] for e in candidates], near.scores[0], atol=1e-6)


def test_a_second_run_judges_only_what_is_new(run, stub, made):
    run()
    stub.requests.clear()
    before = (made / "qrels.tsv").read_bytes()
    assert run().new == 0
    assert stub.requests == []
    assert (made / "qrels.tsv").read_bytes() == before
    more = run(k=6, workers=3)
    assert (more.new, more.judged) == (8 * 2 * 2, 8 * 2 * 6)


def test_candidates_of_other_vectors_join_the_pool(run, vectors, asked):
    run()
    turn = np.linalg.qr(np.random.default_rng(100).standard_normal((8, 3)))[0]
    space = Space(model="other", dim=3)

    def turned(one):
        return VectorSet(one.ids, one.vectors @ turn, space)

    more = run(
        documents=[turned(VectorSet.load(path)) for path in vectors], queries=[turned(asked)] * 2
    )
    assert 0 < more.new < 8 * 2 * 4


def test_a_failure_keeps_the_judgements(run, stub, made):
    stub.script.extend(["ok"] * 5 + ["broken", "closed"])
    with pytest.raises(EndpointError, match="connection that failed"):
        run()
    assert len(judgements(made)) == 5
    assert not (made / "qrels.tsv").exists()
    path = made / "judgements.jsonl"
    path.write_bytes(path.read_bytes() + b'{"query": ')
    assert run().new == 8 * 2 * 4 - 5


def test_answers_that_cannot_be_read_are_unclear_and_left_out(run, stub, doubles, made):
    stub.script.extend([doubles.chat("both are fine")] * 3 + [doubles.chat("maybe"), "ok"])
    found = run()
    entries = judgements(made)
    assert found.unclear == 1
    assert entries[0]["more_relevant"] is None
    assert entries[0]["answer"] == "both are fine"
    assert entries[1]["more_relevant"] is not None
    pairs = Qrels.load(made / "qrels.tsv")
    assert entries[0]["document"] not in pairs.document_ids[pairs.query_ids == "q00001"]


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        ("1", 1),
        (" 2.", 2),
        ("**0**", 0),
        ("Document 1", 1),
        ("document 2!", 2),
        ("12", None),
        ("1 or 2", None),
        ("", None),
        ("3", None),
        ("\u0662", None),
    ],
)
def test_choices_are_read(answer, choice):
    assert read_choice(answer) == choice


def test_one_model_judges_a_folder(run):
    run(k=1)
    with pytest.raises(ConfigError, match=r"judgements of 'judge', .*; got 'another'"):
        run(model="another")


@pytest.mark.parametrize(
    "change",
    [
        {"query": "q99999"},
        {"corpus": "none"},
        {"document": "nothing"},
        {"initial": "x"},
        {"more_relevant": "yes"},
    ],
)
def test_a_judgement_of_something_else_is_named(run, made, change):
    run(k=1)
    entries = judgements(made)
    entries[2] |= change
    (made / "judgements.jsonl").write_text("".join(json.dumps(one) + "\n" for one in entries))
    with pytest.raises(CorruptFileError, match=r"in line 3 of 'judgements\.jsonl'"):
        run(k=1)


def test_a_judgement_twice_is_refused(run, made):
    run(k=1)
    path = made / "judgements.jsonl"
    path.write_text(path.read_text() + path.read_text().splitlines()[0] + "\n")
    with pytest.raises(CorruptFileError, match="in line 17 of"):
        run(k=1)


def test_vectors_must_be_of_the_corpora_and_of_one_space(run, vectors, asked):
    documents = [VectorSet.load(path) for path in vectors]
    with pytest.raises(CountMismatchError, match="1 documents without a vector, 0 vectors"):
        run(documents=[documents[0].select(np.arange(11)), documents[1]])
    with pytest.raises(CountMismatchError, match="12 documents without a vector, 12 vectors"):
        run(documents=documents[::-1])
    other = VectorSet(asked.ids, asked.vectors, Space(model="other", dim=8))
    with pytest.raises(SpaceMismatchError):
        run(queries=[other, other])
    with pytest.raises(UnknownIdError, match="q00008"):
        run(queries=[asked.select(np.arange(7))] * 2)


def test_the_folder_must_be_of_these_corpora(made, corpora, tmp_path):
    given = read_corpora(corpora)
    with pytest.raises(MissingFileError, match="folder that generate wrote"):
        open_queries(tmp_path, given)
    corpora[1].write_text(corpora[1].read_text() + '{"id": "new", "text": "new"}\n')
    grown = read_corpora(corpora)
    with pytest.raises(ConfigError, match=r"were made from \(money, health\)"):
        open_queries(made, grown)
    (made / "queries.jsonl").write_text("")
    with pytest.raises(EmptyInputError, match="run generate first"):
        open_queries(made, given)
    (made / "plan.json").write_text("[]")
    with pytest.raises(CorruptFileError, match=r"a JSON object in 'plan\.json'"):
        open_queries(made, given)


# --- vectors of the queries ----------------------------------------------------------------------


def test_queries_are_embedded_once(stub, made, corpora, vectors, asked):
    queries = open_queries(made, read_corpora(corpora))
    documents, endpoint = VectorSet.load(vectors[0]), Endpoint(stub.url)
    first = embed_queries(made, queries, documents, endpoint, model="small")
    assert np.allclose(first.matrix(), asked.matrix(), atol=1e-6)
    assert first.ids.tolist() == asked.ids.tolist()
    assert first.space.kind == "query"
    again = embed_queries(made, queries, documents, endpoint, model="small")
    assert len(stub.requests) == 1
    assert np.array_equal(first.matrix(), again.matrix())
    embed_queries(made, queries[:5], documents, endpoint, model="small")
    assert len(stub.requests) == 2


def test_embeddings_of_another_model_or_form_are_refused(stub, made, corpora, vectors):
    queries = open_queries(made, read_corpora(corpora))[:2]
    documents, endpoint = VectorSet.load(vectors[0]), Endpoint(stub.url, tries=1)
    with pytest.raises(SpaceMismatchError):
        embed_queries(made, queries, documents, endpoint, model="large")
    for rows, error, text in (
        ([[1.0], [1.0]], EndpointError, "vectors of 8 numbers, .*; got vectors of 1"),
        ([[1.0], [1.0, 2.0]], EndpointError, "got vectors of 1, 2"),
        ([[float("nan")] * 8] * 2, EndpointError, "got nan in a vector at index 0"),
        ([[3.0] * 8] * 2, InvalidVectorsError, "length 1"),
    ):
        data = [{"index": place, "embedding": row} for place, row in enumerate(rows)]
        stub.script.append({"data": data})
        with pytest.raises(error, match=text):
            embed_queries(made, queries, documents, endpoint, model="small")
    assert not (made / "query_vectors.npz").exists()
