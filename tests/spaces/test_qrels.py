"""Judgements."""

import numpy as np
import pytest

from isthmus.errors import (
    CorruptFileError,
    CountMismatchError,
    DuplicateIdError,
    EmptyInputError,
    InvalidIdError,
    MissingFileError,
)
from isthmus.spaces import Qrels

TSV = "query-id\tcorpus-id\tscore\nq\ta\t1\nq\tb\t3\nr\ta\t-1\nr\tc\t0\n"


@pytest.fixture
def qrels(tmp_path):
    path = tmp_path / "qrels.tsv"
    path.write_text(TSV)
    return Qrels.load(path)


def test_gains(qrels):
    gains = qrels.gains(["q", "r", "s"], [["b", "x", "a"], ["a", "c", ""], ["a", "", ""]])
    assert gains.dtype == np.float32
    assert gains.tolist() == [[3, 0, 1], [0, 0, 0], [0, 0, 0]]
    with pytest.raises(CountMismatchError, match=r"\(1, k\).*got shape \(2, 1\)"):
        qrels.gains(["q"], [["a"], ["b"]])


def test_ideal_and_counts(qrels):
    queries = np.array(["q", "r", "s"])
    assert qrels.ideal(queries, 3).tolist() == [[3, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert qrels.ideal(queries, 1).tolist() == [[3], [0], [0]]
    assert qrels.n_relevant(queries).tolist() == [2, 0, 0]
    assert qrels.judged(queries).tolist() == [True, False, False]
    assert qrels.relevant_ids.tolist() == ["a", "b"]
    assert (len(qrels), repr(qrels)) == (4, "Qrels(4 judgements of 2 queries)")


def test_only_what_can_be_retrieved(qrels):
    assert qrels.restrict(["b", "z"]).ideal(["q"], 2).tolist() == [[3, 0]]
    with pytest.raises(EmptyInputError, match="at least one judgement"):
        qrels.restrict(["z"])


def test_a_file_without_header(tmp_path):
    path = tmp_path / "q.tsv"
    path.write_bytes(b"\xef\xbb\xbfq\ta\t0.5\r\n\r\n")
    assert Qrels.load(path).ideal(["q"], 1).tolist() == [[0.5]]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"q\ta\n", CorruptFileError, r"'q\\ta' in line 1"),
        (b"query-id\tcorpus-id\tscore\nq\ta\tmany\n", CorruptFileError, "in line 2"),
        (b"q\ta\tnan\n", CorruptFileError, "in line 1"),
        (b"q\ta\t1\nq\tb\t1e39\n", CorruptFileError, r"'q.tsv'; got 'q\\tb\\t1e39' in line 2"),
        (b"q\ta\t-1e39\n", CorruptFileError, "in line 1"),
        (b"q\ta\t1_0\n", CorruptFileError, "in line 1"),
        (b"q a 1\n", CorruptFileError, "between tabs in 'q.tsv'; got 'q a 1' in line 1"),
        (b"", CorruptFileError, "no line of judgements"),
        (b"query-id\tcorpus-id\tscore\n", CorruptFileError, "no line of judgements"),
        (b"q\t\xff\t1\n", CorruptFileError, "not UTF-8"),
        (b"q\t\t1\n", InvalidIdError, "document ids that are not empty"),
        (b"q\ta\t1\nq\ta\t2\n", DuplicateIdError, "2 judgements of 1 documents"),
    ],
)
def test_a_broken_file(tmp_path, content, error, message):
    path = tmp_path / "q.tsv"
    path.write_bytes(content)
    with pytest.raises(error, match=message):
        Qrels.load(path)


@pytest.mark.parametrize("mark", ["\u2028", "\x0b", "\x0c", "\x85", "\x1c"])
def test_only_a_newline_ends_a_line(tmp_path, mark):
    path = tmp_path / "q.tsv"
    path.write_text(f"q{mark}\ta{mark}b\t1\nr\tc\t2\n", encoding="utf-8")
    qrels = Qrels.load(path)
    assert qrels.query_ids.tolist() == [f"q{mark}", "r"]
    assert qrels.document_ids.tolist() == [f"a{mark}b", "c"]


def test_no_file(tmp_path):
    with pytest.raises(MissingFileError, match=r"judgements at .*q.tsv"):
        Qrels.load(tmp_path / "q.tsv")


def test_columns_of_several_lengths():
    with pytest.raises(CountMismatchError, match="1, 2 and 1"):
        Qrels(["q"], ["a", "b"], [1])
