"""Export for people, and what they give back: orders, formulas, bad cells, agreement."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest
from cross_domain.agree import Judged, agree, read_judged, show
from cross_domain.corpora import read_corpora
from cross_domain.export import COLUMNS, export, guard, unguard
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import (
    ConfigError,
    CorruptFileError,
    CountMismatchError,
    DuplicateIdError,
    EmptyInputError,
    FileError,
    MissingFileError,
)
from isthmus.evaluate import fleiss_kappa, pairwise_agreement

HEAD = ",".join(COLUMNS)


def rows(path):
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def judge(path, decide):
    """Fill in the last column as a person would."""
    table = rows(path)
    with path.open("w", encoding="utf-8", newline="") as stream:
        out = csv.DictWriter(stream, COLUMNS)
        out.writeheader()
        out.writerows([row | {"relevant": decide(row)} for row in table])


@pytest.fixture
def expanded(made):
    """A folder with relevant sets: the two first documents, and one more for the first query."""
    entries = [json.loads(line) for line in (made / "queries.jsonl").read_text().splitlines()]
    lines = [
        f"{entry['id']}\t{document}\t1\n"
        for entry in entries
        for document in entry["documents"].values()
    ]
    other = next(f"money{row}" for row in range(2) if f"q00001\tmoney{row}\t1\n" not in lines)
    (made / "qrels.tsv").write_text("".join([*lines, f"q00001\t{other}\t1\n"]))
    return made


@pytest.fixture
def run(expanded, corpora, tmp_path):
    def call(folder="people", **settings):
        asked = {"sample": 8, "annotators": 3, "seed": 1, **settings}
        out = tmp_path / folder
        return export(expanded, read_corpora(corpora), out=out, **asked), out

    return call


def test_each_annotator_gets_all_pairs_in_an_order_of_their_own(run, expanded):
    counts, out = run()
    assert counts == (8, 17)
    files = sorted(out.iterdir())
    assert [path.name for path in files] == [f"annotator_{n}.csv" for n in (1, 2, 3)]
    tables = [rows(path) for path in files]
    pairs = [[(row["query_id"], row["document_id"]) for row in table] for table in tables]
    expected = [
        tuple(line.split("\t")[:2]) for line in (expanded / "qrels.tsv").read_text().splitlines()
    ]
    assert all(sorted(one) == sorted(expected) for one in pairs)
    assert len({tuple(one) for one in pairs}) == 3
    assert all(row["relevant"] == "" for table in tables for row in table)
    assert all(row["text"].startswith("Note ") for row in tables[0])


def test_the_sample_and_the_orders_come_from_the_seed(run):
    (_, pairs), one = run("one", sample=3)
    run("two", sample=3)
    run("three", sample=3, seed=2)
    read = [
        (out / "annotator_2.csv").read_text()
        for out in (one, one.parent / "two", one.parent / "three")
    ]
    assert read[0] == read[1] != read[2]
    assert len({row["query_id"] for row in rows(one / "annotator_1.csv")}) == 3
    assert pairs in (6, 7)


def test_files_that_may_hold_judgements_are_not_overwritten(run):
    run()
    with pytest.raises(FileError, match=r"expected no file .*annotator_1\.csv"):
        run()


def test_what_cannot_be_exported_is_named(run, expanded):
    with pytest.raises(ConfigError, match="at most 8 queries; got 9"):
        run(sample=9)
    path = expanded / "qrels.tsv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[2:-1]))
    with pytest.raises(CorruptFileError, match="got none for 'q00001'"):
        run()
    path.write_text("".join([*lines, "q00001\tnothing\t1\n"]))
    with pytest.raises(CorruptFileError, match="document 'nothing' in judgement 18"):
        run()
    path.unlink()
    with pytest.raises(MissingFileError):
        run()


def test_a_query_that_is_a_formula_is_not_run(run, expanded):
    path = expanded / "queries.jsonl"
    first = json.loads(path.read_text().splitlines()[0])
    path.write_text(path.read_text().replace(first["text"], "=1+1 is what, and why?"))
    _, out = run()
    cells = {row["query"] for row in rows(out / "annotator_1.csv") if row["query_id"] == "q00001"}
    assert cells == {"'=1+1 is what, and why?"}


@settings(derandomize=True, deadline=None)
@given(st.text(alphabet="=+-@\t\r'ab", max_size=6))
def test_no_cell_is_a_formula_and_guards_come_off(cell):
    assert not guard(cell).startswith(("=", "+", "-", "@", "\t", "\r"))
    assert unguard(guard(cell)) == cell


# --- reading back --------------------------------------------------------------------------------


def test_judgements_are_read_back_and_measured(run):
    _, out = run()
    files = sorted(out.iterdir())
    hard = {(row["query_id"], row["document_id"]) for row in rows(files[0])[:4]}
    for place, path in enumerate(files):
        judge(
            path,
            lambda row, place=place: int(
                not ((row["query_id"], row["document_id"]) in hard and place < 2)
            ),
        )
    found = agree([read_judged(path) for path in files])
    assert [one.queries for one in found.annotators] == [8, 8, 8]
    assert [one.ratio for one in found.annotators] == [13 / 17, 13 / 17, 1.0]
    counts = np.array([[1, 2]] * 4 + [[3, 0]] * 13)
    assert found.pairwise == pairwise_agreement(counts)
    assert found.kappa == fleiss_kappa(counts)
    shown = show(found)
    assert "annotator_1.csv        8      17     76.5%" in shown
    assert f"mean pairwise agreement: {found.pairwise:.1%}" in shown
    assert f"Fleiss' kappa: {found.kappa:.3f}" in shown


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_what_spreadsheets_make_of_the_file_is_read(tmp_path, separator, mark):
    path = tmp_path / "one.csv"
    cells = [
        [*COLUMNS],
        ["q1", "why, why?", "d1", 'a "b"\nc; d', " Yes "],
        ["q1", "why, why?", "'=d2", "e", "0"],
        [""] * 5,
    ]
    with path.open("w", encoding="utf-8", newline="") as stream:
        stream.write(mark)
        csv.writer(stream, delimiter=separator).writerows(cells)
    read = read_judged(path)
    assert read.relevant == {("q1", "d1"): True, ("q1", "=d2"): False}
    assert read.lines == {("q1", "d1"): 3, ("q1", "=d2"): 4}


def test_a_text_longer_than_a_cell_usually_is(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text(f"{HEAD}\nq1,q,d1,{'long ' * 40_000},1\n")
    before = csv.field_size_limit()
    assert read_judged(path).ratio == 1.0
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("content", "error", "text"),
    [
        (
            f"{HEAD}\nq1,q,d1,t,\n",
            CorruptFileError,
            r"1 or 0 \(yes or no\) in the column relevant in line 2 of 'a\.csv'; got an empty cell",
        ),
        (f"{HEAD}\nq1,q,d1,t,1\nq1,q,d2,t,maybe\n", CorruptFileError, "line 3 .*; got 'maybe'"),
        (f"{HEAD}\nq1,q,d1,t,1\nq1,q,d1,t,0\n", DuplicateIdError, "'d1' in lines 2 and 3"),
        (f"{HEAD}\nq1,q,d1,1\n", CorruptFileError, "5 cells in line 2 .*; got 4"),
        ("query_id,text,relevant\nq1,t,1\n", CorruptFileError, "line 1 .*; got no document_id"),
        (f'{HEAD}\nq1,"q"x,d1,t,1\n', CorruptFileError, "in line 2. Do: save it as CSV again"),
        (f'{HEAD}\nq1,"q,d1,t,1\n', CorruptFileError, "save it as CSV again"),
        (f"{HEAD}\n\n", EmptyInputError, r"judgements in 'a\.csv'; got none"),
        ("", CorruptFileError, "got no query_id, document_id, relevant"),
        (b"\xff\xfeq\x00", CorruptFileError, "text in UTF-8"),
    ],
)
def test_bad_files_are_named_with_the_line(tmp_path, content, error, text):
    path = tmp_path / "a.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(error, match=text):
        read_judged(path)


def test_other_sets_of_pairs_are_refused_both_ways(tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text(f"{HEAD}\nq1,q,d1,t,1\nq1,q,d2,t,1\n")
    two.write_text(f"{HEAD}\nq1,q,d1,t,1\n")
    judged = [read_judged(one), read_judged(two)]
    text = r"one\.csv' in '.*two\.csv'; got 1 missing, first query 'q1', document 'd2' of line 3"
    for order in (judged, judged[::-1]):
        with pytest.raises(CountMismatchError, match=text):
            agree(order)
    with pytest.raises(MissingFileError, match="nothing there"):
        read_judged(tmp_path / "three.csv")


def test_kappa_is_undefined_where_all_is_relevant(tmp_path):
    judged = [Judged(tmp_path / name, {("q", "d"): True}, {("q", "d"): 2}) for name in "ab"]
    found = agree(judged)
    assert found.pairwise == 1.0
    assert math.isnan(found.kappa)
    assert "undefined (all judgements are the same)" in show(found)
    assert found.to_dict()["fleiss_kappa"] is None


def test_files_of_one_name_are_told_apart(tmp_path):
    judged = [
        Judged(tmp_path / folder / "a.csv", {("q", "d"): True}, {("q", "d"): 2}) for folder in "xy"
    ]
    assert f"{tmp_path / 'x' / 'a.csv'}" in show(agree(judged))
