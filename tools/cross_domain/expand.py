"""Relevant sets grown by retrieval (HVMap, section 4.2).

A document that the vectors find near to a query is added where a chat model judges it to be more
relevant than the document of its corpus that the query was made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cross_domain.corpora import Corpus
from cross_domain.endpoint import Endpoint, EndpointError
from cross_domain.generate import PLAN, read_queries
from cross_domain.judge import Candidate, Judge
from cross_domain.records import Appender, read_json, read_lines
from cross_domain.together import ask_all
from isthmus._files import atomic_path
from isthmus._progress import Track, silent
from isthmus.errors import (
    ConfigError,
    CorruptFileError,
    CountMismatchError,
    EmptyInputError,
)
from isthmus.neighbors import top_k
from isthmus.spaces import Qrels, VectorSet

__all__ = [
    "JUDGEMENTS",
    "QRELS",
    "Candidate",
    "Expanded",
    "embed_queries",
    "expand",
    "open_queries",
]

JUDGEMENTS = "judgements.jsonl"
QRELS = "qrels.tsv"
QUERY_VECTORS = "query_vectors.npz"
EMBED_AT_ONCE = 64


@dataclass(frozen=True)
class Expanded:
    """What came of expanding: counts over all judgements of the folder."""

    queries: int
    judged: int
    added: int
    unclear: int
    new: int
    pairs: int


def open_queries(folder: Path, corpora: Sequence[Corpus]) -> list[dict[str, Any]]:
    """Read the queries of a folder that was made from these corpora.

    Raises
    ------
    MissingFileError, ConfigError, CorruptFileError, EmptyInputError
    """
    recorded = read_json(folder / PLAN).get("corpora")
    given = {corpus.name: corpus.sha256 for corpus in corpora}
    if recorded != given:
        names = ", ".join(recorded) if isinstance(recorded, dict) else "unknown"
        raise ConfigError(
            expected=f"the corpora that the queries were made from ({names}), unchanged",
            got=", ".join(given),
            do="name the same files",
        )
    queries = read_queries(folder, corpora)
    if not queries:
        raise EmptyInputError(
            expected=f"queries in {str(folder)!r}", got="none", do="run generate first"
        )
    return queries


def embed_queries(
    folder: Path,
    queries: Sequence[dict[str, Any]],
    documents: VectorSet,
    endpoint: Endpoint,
    *,
    model: str,
) -> VectorSet:
    """Return the vectors of the queries by an endpoint; kept, so that a later run has the same.

    Raises
    ------
    EndpointError, SpaceMismatchError, DimensionError
    """
    space = replace(documents.space, model=model, kind="query")
    documents.space.check(space, what="vectors of the embedding model")
    kept = folder / QUERY_VECTORS
    ids = [query["id"] for query in queries]
    if kept.exists():
        before = VectorSet.load(kept)
        if before.ids.tolist() == ids and before.space.fingerprint == space.fingerprint:
            return before
    rows: list[list[float]] = []
    for start in range(0, len(queries), EMBED_AT_ONCE):
        texts = [query["text"] for query in queries[start : start + EMBED_AT_ONCE]]
        rows.extend(endpoint.embed(model, texts))
    if len(set(map(len, rows))) != 1 or len(rows[0]) != space.dim:
        raise EndpointError(
            expected=f"vectors of {space.dim} numbers, as the documents have",
            got=f"vectors of {', '.join(map(str, sorted(set(map(len, rows)))))}",
            do="name the model that made the vectors of the documents",
        )
    made = VectorSet(ids, np.array(rows, dtype=np.float64), space)
    made.save(kept, dtype="float32")
    return made


def find_candidates(
    queries: Sequence[dict[str, Any]],
    corpus: Corpus,
    documents: VectorSet,
    vectors: VectorSet,
    *,
    k: int,
) -> list[Candidate]:
    """Find the k nearest documents of a corpus to each query, without the one drawn first.

    Raises
    ------
    SpaceMismatchError, UnknownIdError, CountMismatchError
    """
    documents.space.check(vectors.space, what="vectors of the queries")
    known = set(documents.ids.tolist())
    if known != corpus.offsets.keys():
        raise CountMismatchError(
            expected=f"one vector for each of the {len(corpus.ids):,} documents of {corpus.name!r}",
            got=f"{len(corpus.offsets.keys() - known):,} documents without a vector, "
            f"{len(known - corpus.offsets.keys()):,} vectors without a document",
            do="make the vectors from the same file, with the same ids",
        )
    asked = vectors.select(vectors.rows_of([query["id"] for query in queries]))
    own = documents.rows_of([query["documents"][corpus.name] for query in queries])
    found = top_k(
        asked.matrix(), documents.vectors, k=k, metric=documents.space.metric, exclude=own
    )
    return [
        Candidate(
            query=query["id"],
            text=query["text"],
            corpus=corpus.name,
            document=str(documents.ids[row]),
            initial=query["documents"][corpus.name],
            space=documents.space.model,
            rank=rank,
            score=float(score),
        )
        for query, rows, scores in zip(queries, found.rows, found.scores, strict=True)
        for rank, (row, score) in enumerate(zip(rows, scores, strict=True), start=1)
        if row >= 0
    ]


def expand(
    folder: Path,
    corpora: Sequence[Corpus],
    documents: Sequence[VectorSet],
    query_vectors: Sequence[VectorSet],
    endpoint: Endpoint,
    *,
    model: str,
    k: int = 10,
    characters: int = 4_000,
    workers: int = 1,
    track: Track[dict[str, Any]] = silent,
) -> Expanded:
    """Judge the candidates that were not judged yet, then write the relevant sets.

    Parameters
    ----------
    folder : Path
        That ``generate`` wrote.
    corpora, documents, query_vectors : sequences, one entry for each corpus
    endpoint : Endpoint
    model : str
        Judges all candidates of a folder.
    k : int, default 10
        Candidates of each corpus for a query. The paper names no number.
    characters : int, default 4000
        Of each document that the model is shown.
    workers : int, default 1
    track : callable

    Raises
    ------
    EndpointError, ConfigError, CorruptFileError, SpaceMismatchError, CountMismatchError
    """
    queries = open_queries(folder, corpora)
    candidates = [
        candidate
        for corpus, vectors, asked in zip(corpora, documents, query_vectors, strict=True)
        for candidate in find_candidates(queries, corpus, vectors, asked, k=k)
    ]
    candidates.sort(key=lambda one: one.query)  # stable: corpora and ranks keep their order
    judge = Judge({corpus.name: corpus for corpus in corpora}, endpoint, model, characters)
    with Appender(folder / JUDGEMENTS) as file:
        judged = _read_judgements(folder, queries, judge)
        known = {(entry["query"], entry["document"]) for entry in judged}
        rest = [one for one in candidates if (one.query, one.document) not in known]
        answers = ask_all(rest, judge, endpoint=endpoint, workers=workers)
        for entry in track(answers, "judgements", len(rest)):
            file.append(entry)
            judged.append(entry)
    pairs = _write_qrels(folder / QRELS, queries, judged)
    return Expanded(
        queries=len(queries),
        judged=len(judged),
        added=sum(entry["more_relevant"] is True for entry in judged),
        unclear=sum(entry["more_relevant"] is None for entry in judged),
        new=len(rest),
        pairs=pairs,
    )


def _read_judgements(
    folder: Path, queries: Sequence[dict[str, Any]], judge: Judge
) -> list[dict[str, Any]]:
    """Read the judgements that are there, all of this model and about these queries."""
    entries = read_lines(folder / JUDGEMENTS)
    drawn = {query["id"]: query["documents"] for query in queries}
    seen: set[tuple[str, str]] = set()
    for number, entry in enumerate(entries, start=1):
        query, corpus = str(entry.get("query")), judge.corpora.get(str(entry.get("corpus")))
        pair = (query, str(entry.get("document")))
        whole = (
            corpus is not None
            and query in drawn
            and drawn[query][corpus.name] == entry.get("initial") != entry.get("document")
            and pair[1] in corpus.offsets
            and pair not in seen
            and any(entry.get("more_relevant", "") is one for one in (True, False, None))
        )
        if not whole:
            raise CorruptFileError(
                expected=f"a judgement of these queries in line {number} of {JUDGEMENTS!r}",
                got=f"query {query!r:.40}, document {pair[1]!r:.40}",
                do="restore the line, or remove the file to judge again",
            )
        if entry.get("model") != judge.model:
            raise ConfigError(
                expected=f"judgements of {entry.get('model')!r:.60}, as in {JUDGEMENTS!r}",
                got=repr(judge.model),
                do="judge with the same model, or remove the file to judge again",
            )
        seen.add(pair)
    return entries


def _write_qrels(
    path: Path, queries: Sequence[dict[str, Any]], judged: Sequence[dict[str, Any]]
) -> int:
    """Write the documents drawn first and those added, and read them back as `Qrels` does."""
    added: dict[tuple[str, str], list[str]] = {}
    for entry in judged:
        if entry["more_relevant"]:
            added.setdefault((entry["query"], entry["corpus"]), []).append(entry["document"])
    with atomic_path(path) as temporary:
        with temporary.open("w", encoding="utf-8", newline="\n") as out:
            out.write("query-id\tcorpus-id\tscore\n")
            for query in queries:
                for corpus, initial in query["documents"].items():
                    for document in (initial, *added.get((query["id"], corpus), ())):
                        out.write(f"{query['id']}\t{document}\t1\n")
        return len(Qrels.load(temporary))
