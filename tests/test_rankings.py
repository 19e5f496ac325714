from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from isthmus.errors import (
    CountMismatchError,
    EmptyInputError,
    InvalidIdError,
    UnknownFormatError,
    WriteFailedError,
)
from isthmus.rankings import Hit, Outage, Ranking

NAN = float("nan")


@pytest.fixture
def ranking():
    """Two queries: two hits, of which the second was not mapped; and one hit."""
    return Ranking(
        query_ids=np.array(["q1", "q 2"]),
        ids=np.array([["d1", "d2"], ["dé3", ""]]),
        scores=np.array([[0.5, 0.25], [0.1, NAN]], dtype=np.float32),
        stores=np.array([["a", "b"], ["b", ""]]),
        spaces=np.array([["f1", "f2"], ["f2", ""]]),
        native_scores=np.array([[0.75, 0.5], [0.2, NAN]], dtype=np.float32),
        mapped_scores=np.array([[0.125, NAN], [0.3, NAN]], dtype=np.float32),
    )


@pytest.fixture
def plain_ids(ranking):
    return replace(ranking, query_ids=np.array(["q1", "q2"]))


def test_hits_leave_out_what_is_empty(ranking):
    assert len(ranking) == 2
    assert ranking.hits(0)[0] == Hit("d1", 1, 0.5, "a", "f1", 0.75, 0.125)
    assert [hit.id for hit in ranking.hits(1)] == ["dé3"]
    assert [(name, len(hits)) for name, hits in ranking] == [("q1", 2), ("q 2", 1)]


@pytest.mark.parametrize("name", ["scores", "stores", "spaces", "native_scores", "mapped_scores"])
def test_arrays_of_another_shape_are_refused(ranking, name):
    with pytest.raises(CountMismatchError, match=rf"{name} of shape \(2, 2\); got \(2, 1\)"):
        replace(ranking, **{name: getattr(ranking, name)[:, :1]})


def test_query_ids_are_counted(ranking):
    with pytest.raises(CountMismatchError, match=r"expected 2 query ids; got 1"):
        replace(ranking, query_ids=np.array(["q1"]))


@pytest.mark.parametrize("ending", ["trec", "run"])
def test_trec(plain_ids, tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    plain_ids.save(path)
    assert path.read_text(encoding="utf-8").splitlines() == [
        "q1 Q0 d1 1 0.5 isthmus",
        "q1 Q0 d2 2 0.25 isthmus",
        "q2 Q0 dé3 1 0.100000001 isthmus",
    ]


@pytest.mark.parametrize("bad", ["q 2", "q\t2", "q\u00a02", "q\n2"])
def test_trec_refuses_ids_with_white_space_and_writes_nothing(plain_ids, tmp_path, bad):
    path = tmp_path / "out.trec"
    path.write_text("before", encoding="utf-8")
    with pytest.raises(InvalidIdError, match=r"ids without white space .*write \.jsonl"):
        replace(plain_ids, query_ids=np.array(["q1", bad])).save(path)
    assert path.read_text(encoding="utf-8") == "before"
    assert list(tmp_path.iterdir()) == [path]
    ids = plain_ids.ids.copy()
    ids[1, 0] = "d 3"
    with pytest.raises(InvalidIdError, match="'d 3'"):
        replace(plain_ids, ids=ids).save(path)


def test_jsonl_has_null_where_there_is_no_score(ranking, tmp_path):
    path = tmp_path / "out.jsonl"
    ranking.save(path)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines[1] == {
        "query": "q1",
        "id": "d2",
        "rank": 2,
        "score": 0.25,
        "store": "b",
        "space": "f2",
        "native_score": 0.5,
        "mapped_score": None,
    }
    assert [line["query"] for line in lines] == ["q1", "q1", "q 2"]
    assert "dé3" in path.read_text(encoding="utf-8")


def test_csv(ranking, tmp_path):
    path = tmp_path / "out.csv"
    ranking.save(str(path))
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    assert rows[0] == [
        "query", "id", "rank", "score", "store", "space", "native_score", "mapped_score",
    ]  # fmt: skip
    assert rows[2] == ["q1", "d2", "2", "0.25", "b", "f2", "0.5", ""]
    assert len(rows) == 4


def test_an_unknown_ending_is_refused(ranking, tmp_path):
    with pytest.raises(UnknownFormatError, match=r"\.trec, \.run, \.jsonl, \.csv; got out\.txt"):
        ranking.save(tmp_path / "out.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(ranking, tmp_path):
    with pytest.raises(WriteFailedError, match=r"to write 'out.csv'"):
        ranking.save(tmp_path / "none" / "out.csv")


def test_empty_rankings_are_written_too(plain_ids, tmp_path):
    empty = Ranking(
        query_ids=plain_ids.query_ids,
        ids=np.full((2, 1), "", dtype="<U1"),
        scores=np.full((2, 1), NAN, dtype=np.float32),
        stores=np.full((2, 1), "", dtype="<U1"),
        spaces=np.full((2, 1), "", dtype="<U1"),
        native_scores=np.full((2, 1), NAN, dtype=np.float32),
        mapped_scores=np.full((2, 1), NAN, dtype=np.float32),
    )
    empty.save(tmp_path / "out.trec")
    assert (tmp_path / "out.trec").read_bytes() == b""


def test_batches_of_queries_become_one_ranking():
    first, second = make_one("q1"), make_one("q2")
    both = Ranking.concatenate([first, second])
    assert both.query_ids.tolist() == ["q1", "q2"]
    assert both.hits(1) == second.hits(0)
    assert Ranking.concatenate([first]) is first
    with pytest.raises(EmptyInputError, match="at least one ranking"):
        Ranking.concatenate([])
    with pytest.raises(CountMismatchError, match=r"rankings of one width; got \[1, 2\]"):
        Ranking.concatenate([first, make_one("q3", columns=2)])


def make_one(query: str, columns: int = 1) -> Ranking:
    ids = np.full((1, columns), "d")
    scores = np.full((1, columns), 0.5, np.float32)
    return Ranking(np.array([query]), ids, scores, ids, ids, scores, scores)


def test_the_repr_is_one_line(ranking):
    assert repr(ranking) == "Ranking(2 queries x 2, stores 'a', 'b')"
    many = Ranking.concatenate([ranking] * 1_000)
    assert repr(many) == "Ranking(2,000 queries x 2, stores 'a', 'b')"


# --- what is kept besides ------------------------------------------------------------------------


@pytest.fixture
def evidence(ranking):
    """The same, with a second place of a hit, similarities in two spaces and a store missing."""
    return replace(
        ranking,
        outages=(Outage("c", "no answer in 30 s", "timeout", 1, 30.0, 2),),
        also={(0, 1): (("c", "x1"), ("d", "y1"))},
        similarities=np.float32([[[0.75, 0.25], [0.2, NAN]], [[0.125, NAN], [0.3, NAN]]]),
        space_names=("one", "two"),
        skipped=np.array([[False, True], [False, False]]),
        source_names=("a", "b"),
    )


def test_hits_hold_their_evidence(evidence):
    first, second = evidence.hits(0)
    assert (first.also, first.similarities) == ((), {"one": 0.75, "two": 0.125})
    assert second.also == (("c", "x1"), ("d", "y1"))
    assert not evidence.complete
    assert repr(evidence) == "Ranking(2 queries x 2, stores 'a', 'b', without 'c')"


def test_evidence_is_written_and_copies_to_jsonl_only(evidence, ranking, tmp_path):
    evidence.save(tmp_path / "e.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text().splitlines()]
    assert lines[0]["similarities"] == {"one": 0.75, "two": 0.125}
    assert "also" not in lines[0]
    assert lines[1]["similarities"] == {"one": 0.25, "two": None}
    assert lines[1]["also"] == [{"store": "c", "id": "x1"}, {"store": "d", "id": "y1"}]
    for one, name in ((evidence, "e.csv"), (ranking, "r.csv")):
        one.save(tmp_path / name)
    whole, short = (
        (tmp_path / name).read_text("utf-8").splitlines() for name in ("e.csv", "r.csv")
    )
    assert [line.removeprefix(other) for line, other in zip(whole, short, strict=True)][:3] == [
        ",similarity one,similarity two",
        ",0.75,0.125",
        ",0.25,",
    ]


def test_evidence_of_batches_is_joined(evidence, ranking):
    both = Ranking.concatenate([evidence, evidence])
    each = [repr(evidence.hits(row)) for row in (0, 1)]  # repr: NaN differs from itself
    assert [repr(both.hits(row)) for row in range(4)] == each * 2
    assert both.outages == (Outage("c", "no answer in 30 s", "timeout", 2, 60.0, 4),)
    assert both.skipped.shape == (4, 2)
    mixed = Ranking.concatenate([ranking, evidence])
    assert (mixed.similarities, mixed.skipped) == (None, None)
    assert mixed.also == {(2, 1): evidence.also[0, 1]}
    assert mixed.outages == evidence.outages


def test_outages_of_another_kind_stay_apart(ranking):
    kinds = ("error", "timeout", "error")
    outages = [Outage("c", kind, kind, 1, 0.5, 1) for kind in kinds]
    joined = Ranking.concatenate([replace(ranking, outages=(one,)) for one in outages])
    assert [(one.kind, one.attempts) for one in joined.outages] == [("error", 2), ("timeout", 1)]


def test_probabilities_stand_beside_the_scores(ranking, tmp_path):
    sure = replace(ranking, probabilities=np.float32([[0.75, 0.25], [0.5, NAN]]))
    assert [hit.probability for hit in sure.hits(0)] == [0.75, 0.25]
    assert ranking.hits(0)[0].probability is None
    sure.save(tmp_path / "run.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [line["probability"] for line in lines] == [0.75, 0.25, 0.5]
    sure.save(tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(encoding="utf-8", newline="") as text:
        assert [row["probability"] for row in csv.DictReader(text)] == ["0.75", "0.25", "0.5"]
    ranking.save(tmp_path / "plain.csv")
    assert "probability" not in (tmp_path / "plain.csv").read_text(encoding="utf-8")
    joined = Ranking.concatenate([sure, sure])
    np.testing.assert_array_equal(joined.probabilities[2:], sure.probabilities)
    assert Ranking.concatenate([sure, ranking]).probabilities is None


@pytest.mark.parametrize("name", ["similarities", "skipped", "probabilities"])
def test_evidence_of_another_shape_is_refused(evidence, name):
    with pytest.raises(CountMismatchError, match=f"{name} of shape"):
        replace(evidence, **{name: np.zeros((1, 2, 1), dtype=np.float32)})


@pytest.fixture
def explained(ranking):
    """Similarities in two spaces and in the common one, and what they count."""
    return replace(
        ranking,
        similarities=np.array([[[0.75, 0.5], [0.2, NAN]], [[0.25, NAN], [0.5, NAN]]]),
        space_names=("m/one", "two"),
        common=np.array([[0.125, 0.0], [NAN, NAN]]),
        weights={"f1": {"m/one": 0.5, "two": 0.25, "common": 0.25}},
    )


def test_an_explained_csv_has_a_column_for_everything(explained, tmp_path):
    explained.save(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    assert [row[8:] for row in rows] == [
        [
            *("common", "similarity m/one", "similarity two"),
            *("weight m/one", "weight two", "weight common"),
        ],
        ["0.125", "0.75", "0.25", "0.5", "0.25", "0.25"],
        ["0.0", "0.5", "", "", "", ""],
        ["", "0.2", "0.5", "", "", ""],
    ]


def test_an_explained_jsonl_has_weights_and_the_common_space(explained, tmp_path):
    explained.save(tmp_path / "out.jsonl")
    text = (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    first, _, last = map(json.loads, text.splitlines())
    assert first["weights"] == {"m/one": 0.5, "two": 0.25, "common": 0.25}
    assert (first["common"], last["common"]) == (0.125, None)
    assert "weights" not in last


def test_similarities_in_the_common_space_of_another_shape_are_refused(explained):
    with pytest.raises(CountMismatchError, match=r"common of shape \(2, 2\); got \(2, 1\)"):
        replace(explained, common=explained.common[:, :1])
