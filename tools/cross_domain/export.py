"""Pairs for people to judge: one CSV file for each annotator, each in an order of its own."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cross_domain.corpora import Corpus
from cross_domain.expand import QRELS, open_queries
from isthmus._files import atomic_path, check_folder_writable
from isthmus.errors import ConfigError, CorruptFileError, FileError
from isthmus.spaces import Qrels

__all__ = ["COLUMNS", "export", "guard", "unguard"]

COLUMNS = ("query_id", "query", "document_id", "text", "relevant")
FORMULA = tuple("=+-@\t\r'")
"""Cells that begin so are run by spreadsheets, or could be confused with a guarded one."""


def guard(cell: str) -> str:
    """Put an apostrophe before a cell that a spreadsheet would run as a formula.

    Examples
    --------
    >>> guard("=1+1"), guard("plain")
    ("'=1+1", 'plain')
    """
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def unguard(cell: str) -> str:
    """Take off what `guard` put before a cell."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell


def export(
    folder: Path,
    corpora: Sequence[Corpus],
    *,
    sample: int,
    annotators: int,
    seed: int,
    out: Path,
) -> tuple[int, int]:
    """Write the pairs of a sample of queries, and return how many queries and pairs these are.

    Files that are there are refused: they may hold judgements.

    Raises
    ------
    MissingFileError, ConfigError, CorruptFileError, FileError
    """
    queries = open_queries(folder, corpora)
    relevant = _relevant(folder, queries, corpora)
    if sample > len(queries):
        raise ConfigError(
            expected=f"a sample of at most {len(queries):,} queries",
            got=f"{sample:,}",
            do="ask for fewer, or generate more",
        )
    picked = np.random.default_rng([seed, 0]).permutation(len(queries))[:sample]
    rows = [
        (query["id"], query["text"], document, _text(corpora, document))
        for query in (queries[row] for row in sorted(picked))
        for document in relevant[query["id"]]
    ]
    paths = [out / f"annotator_{number}.csv" for number in range(1, annotators + 1)]
    for path in paths:
        if path.exists():
            raise FileError(
                expected=f"no file {str(path)!r}", got="one", do="write to another folder"
            )
    check_folder_writable(out)
    out.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(paths, start=1):
        order = np.random.default_rng([seed, number]).permutation(len(rows))
        _write(path, [rows[row] for row in order])
    return sample, len(rows)


def _relevant(
    folder: Path, queries: Sequence[dict[str, Any]], corpora: Sequence[Corpus]
) -> dict[str, list[str]]:
    """Return the relevant documents of every query, from the judgements that expand wrote."""
    qrels = Qrels.load(folder / QRELS)
    relevant: dict[str, list[str]] = {query["id"]: [] for query in queries}
    known = {document for corpus in corpora for document in corpus.offsets}
    columns = zip(qrels.query_ids.tolist(), qrels.document_ids.tolist(), strict=True)
    for row, (query, document) in enumerate(columns):
        if query not in relevant or document not in known:
            raise CorruptFileError(
                expected=f"queries and documents of this benchmark in {QRELS!r}",
                got=f"query {query!r:.40}, document {document!r:.40} in judgement {row + 1}",
                do="run expand again",
            )
        if qrels.scores[row] > 0:
            relevant[query].append(document)
    for query, documents in relevant.items():
        if not documents:
            raise CorruptFileError(
                expected=f"relevant documents of every query in {QRELS!r}",
                got=f"none for {query!r}",
                do="run expand again: queries were added since",
            )
    return relevant


def _text(corpora: Sequence[Corpus], document: str) -> str:
    return next(corpus.text(document) for corpus in corpora if document in corpus.offsets)


def _write(path: Path, rows: Sequence[tuple[str, ...]]) -> None:
    """Write with a mark of the encoding, which spreadsheets need to read it right."""
    with (
        atomic_path(path) as temporary,
        temporary.open("w", encoding="utf-8-sig", errors="replace", newline="") as out,
    ):
        table = csv.writer(out)
        table.writerow(COLUMNS)
        table.writerows([*map(guard, row), ""] for row in rows)
