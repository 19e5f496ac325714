"""Generating: the plan by seed, answers that are refused, a run that is killed and goes on."""

from __future__ import annotations

import json
import signal
import time

import pytest
from cross_domain.corpora import read_corpora
from cross_domain.endpoint import Endpoint, EndpointError
from cross_domain.generate import DRAWS, Rules, draw, fault, generate
from cross_domain.records import Appender, read_lines
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import (
    ConfigError,
    CorruptFileError,
    DuplicateIdError,
    EmptyInputError,
    FileError,
    InvalidIdError,
    MissingFileError,
    UnknownIdError,
)


def entries(folder):
    return [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]


@pytest.fixture
def run(stub, corpora, tmp_path):
    """Generates in this process; returns the queries that are then in the folder."""

    def call(queries=3, *, folder="out", **settings):
        asked = {"model": "m", "seed": 5, "workers": 1, **settings}
        endpoint = Endpoint(stub.url, tries=2, wait=0.01)
        out = tmp_path / folder
        generate(read_corpora(corpora), endpoint, queries=queries, out=out, **asked)
        return entries(out)

    return call


# --- the plan ----------------------------------------------------------------------------------


def test_queries_have_one_document_of_each_corpus_drawn_by_seed(run, corpora):
    made = run(6)
    assert [entry["id"] for entry in made] == [f"q0000{number}" for number in range(1, 7)]
    for number, entry in enumerate(made, start=1):
        assert entry["documents"] == draw(read_corpora(corpora), seed=5, number=number, again=0)
        assert set(entry["documents"]) == {"money", "health"}
    assert len({json.dumps(entry["documents"]) for entry in made}) > 1
    assert run(6, folder="again") == made
    other = run(6, folder="other", seed=6)
    assert [one["documents"] for one in other] != [one["documents"] for one in made]


def test_the_model_is_shown_all_drawn_texts_and_no_more_than_it_may_see(run, stub, corpora):
    made = run(1, rules=Rules(characters=10))
    shown = stub.requests[0].body["messages"][1]["content"]
    for corpus in read_corpora(corpora):
        text = corpus.text(made[0]["documents"][corpus.name])
        assert text[:10] in shown
        assert text[:11] not in shown


def test_answers_at_once_give_the_same_file(run):
    assert run(9, folder="four", workers=4) == run(9, folder="one", workers=1)


def test_more_can_be_asked_for_later_and_fewer_change_nothing(run, stub):
    first = run(2)
    stub.requests.clear()
    assert run(5)[:2] == first
    assert len(stub.requests) == 3
    assert len(run(1)) == 5


@pytest.mark.parametrize(
    ("change", "was", "now"),
    [
        ({"seed": 1}, "seed 5", "seed 1"),
        ({"model": "n"}, "model 'm'", "model 'n'"),
        ({"rules": Rules(longest=50)}, "longest 400", "longest 50"),
    ],
)
def test_another_plan_in_the_same_folder_is_refused(run, change, was, now):
    run(1)
    with pytest.raises(ConfigError, match=f"expected {was} as in 'plan.json'; got {now}"):
        run(2, **change)


def test_changed_corpora_are_refused(run, corpora):
    run(1)
    corpora[0].write_text(corpora[0].read_text().replace("loans", "debts"))
    with pytest.raises(ConfigError, match="got corpora money, health with other content"):
        run(2)


# --- answers -----------------------------------------------------------------------------------

GOOD = "How do loans change what nurses can give?"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "it is empty"),
        ("  \n ", "it is empty"),
        ("?!", "it is empty"),
        ("First line of it is this?\nSecond line of it?", "more than one line"),
        ("A bell\x07 rings in the middle of it?", "control characters"),
        ("Too short?", "it has 10 characters, not from 20 to 400"),
        ("long " * 100, "it has 499 characters"),
        ("What is the half \ud83d of a character?", "a broken character"),
    ],
)
def test_an_answer_that_cannot_be_used_is_asked_for_again_with_the_reason(
    run, stub, doubles, answer, reason
):
    stub.script.extend([doubles.chat(answer), doubles.chat(f' "{GOOD}"\n')])
    assert run(1)[0]["text"] == GOOD
    assert reason in stub.requests[1].body["messages"][-1]["content"]


def test_a_copy_of_a_document_is_refused(run, stub, doubles, corpora):
    drawn = draw(read_corpora(corpora), seed=5, number=1, again=0)
    text = read_corpora(corpora)[1].text(drawn["health"])
    stub.script.extend([doubles.chat(f"Is it so: {text.upper()}"), doubles.chat(GOOD)])
    assert run(1)[0]["text"] == GOOD
    assert "copies a document" in stub.requests[1].body["messages"][-1]["content"]


def test_a_query_that_was_asked_before_is_refused_also_after_a_restart(run, stub, doubles):
    stub.script.append(doubles.chat(GOOD))
    run(1)
    stub.script.extend([doubles.chat(GOOD.upper() + "!"), doubles.chat("And what of the drugs?")])
    assert [entry["text"] for entry in run(2)] == [GOOD, "And what of the drugs?"]
    assert "asked before" in stub.requests[-1].body["messages"][-1]["content"]


def test_of_two_equal_queries_at_once_the_later_one_is_written_again(run, stub, doubles):
    stub.script.extend([doubles.chat(GOOD)] * 2)
    texts = [entry["text"] for entry in run(2, workers=2)]
    assert texts[0] == GOOD
    assert texts[1] != GOOD


def test_other_documents_are_drawn_before_giving_up(run, stub, doubles, corpora):
    stub.script.extend([doubles.chat("no")] * 2)
    (entry,) = run(1, rules=Rules(answers=2))
    assert entry["draw"] == 1
    assert entry["documents"] == draw(read_corpora(corpora), seed=5, number=1, again=1)


def test_tries_are_bounded(run, stub, doubles, tmp_path):
    stub.script.extend([doubles.chat("no")] * 100)
    with pytest.raises(EndpointError, match="6 answers that cannot be used; of the last one, it"):
        run(1, rules=Rules(answers=2))
    assert len(stub.requests) == 2 * DRAWS
    assert (tmp_path / "out" / "queries.jsonl").read_text() == ""


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.text(max_size=60), st.text(min_size=1, max_size=60))
def test_what_is_accepted_is_one_printable_line_of_the_right_length(query, text):
    rules = Rules(shortest=5, longest=40)
    if fault(query, [text], rules) is None:
        assert query.isprintable()
        assert 5 <= len(query) <= 40
        assert query.casefold() != text.casefold()
    assert fault(text, [text], rules) is not None


# --- failures and restarts -----------------------------------------------------------------------


def test_a_failure_keeps_what_was_written_and_the_next_run_goes_on(run, stub, tmp_path):
    whole = run(6, folder="whole")
    stub.requests.clear()
    stub.script.extend(["ok", "ok", "busy", "ok", "broken", "garbage"])
    with pytest.raises(EndpointError, match="an answer that is no JSON"):
        run(6)
    assert entries(tmp_path / "out") == whole[:3]
    assert run(6) == whole


def test_a_torn_last_line_is_dropped(run, tmp_path):
    whole = run(4)
    path = tmp_path / "out" / "queries.jsonl"
    content = path.read_bytes()
    for cut in (1, 2, 40):
        path.write_bytes(content[:-cut])
        assert run(4) == whole
        assert path.read_bytes() == content


@pytest.mark.parametrize("line", ["not json", "[]", '{"id": "q00001"}', ""])
def test_a_broken_line_is_named(run, tmp_path, line):
    run(3)
    path = tmp_path / "out" / "queries.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], line, lines[2]]) + "\n")
    with pytest.raises(CorruptFileError, match=r"in line 2 of 'queries\.jsonl'"):
        run(3)


def test_two_runs_do_not_write_one_file(tmp_path):
    path = tmp_path / "lines.jsonl"
    with Appender(path) as first:
        first.append({"text": "\ud800 half"})
        with pytest.raises(FileError, match="another process"):
            Appender(path)
    assert read_lines(path) == [{"text": "? half"}]


def test_a_killed_run_goes_on_where_it_stopped(stub, corpora, tmp_path, start, program):
    command = ["generate", *corpora, "--endpoint", stub.url, "--model", "m", "--queries", 12]
    whole = program(*command, "--out", tmp_path / "whole", OPENAI_API_KEY=stub.key)
    assert whole.code == 0
    assert whole.out == f"12 new queries in {tmp_path / 'whole' / 'queries.jsonl'}\n"

    stub.delay = 0.1
    path = tmp_path / "killed" / "queries.jsonl"
    process = start(*command, "--workers", 1, "--out", tmp_path / "killed")
    end = time.monotonic() + 60
    while time.monotonic() < end and (not path.exists() or path.read_bytes().count(b"\n") < 3):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    written = path.read_bytes().count(b"\n")
    assert 3 <= written < 12

    stub.delay = 0.0
    path.write_bytes(path.read_bytes() + b'{"id": "q000')  # what a torn write leaves
    rest = program(*command, "--out", tmp_path / "killed", "--json")
    assert json.loads(rest.out) == {"file": str(path), "new": 12 - written}
    assert path.read_bytes() == (tmp_path / "whole" / "queries.jsonl").read_bytes()


def test_an_interrupt_says_how_to_go_on(stub, corpora, tmp_path, start):
    stub.delay = 0.1
    path = tmp_path / "out" / "queries.jsonl"
    command = ["generate", *corpora, "--endpoint", stub.url, "--model", "m", "--workers", 2]
    process = start(*command, "--out", tmp_path / "out")
    end = time.monotonic() + 60
    while time.monotonic() < end and (not path.exists() or not path.read_bytes()):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err == "cross_domain: interrupted; run the same command again to go on\n"


# --- corpora -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "error", "text"),
    [
        (b"{", CorruptFileError, "line 1 of 'bad.jsonl'; got no JSON"),
        (b'{"id": "a", "text": "b"}\n[1]\n', CorruptFileError, "line 2 .*; got a list"),
        (b'{"id": "a"}\n', CorruptFileError, "line 1 .*; got no text for 'a'"),
        (b'{"id": "a", "text": "  "}\n', CorruptFileError, "got no text"),
        (b'{"id": 7, "text": "b"}\n', CorruptFileError, "got the id 7"),
        (b'{"id": "", "text": "b"}\n', CorruptFileError, "got the id ''"),
        (b'{"id": "a\\tb", "text": "b"}\n', CorruptFileError, "no tab or newline"),
        (b'{"id": "\xff", "text": "b"}\n', CorruptFileError, "got no JSON"),
        (b"[" * 100_000, CorruptFileError, "got no JSON"),
        (b'{"id": "a", "text": "b"}\n' * 2, DuplicateIdError, "'a' again in line 2"),
        (b'{"id": "\\ud800", "text": "b"}\n', InvalidIdError, "ids of bad.jsonl"),
        (b"\n \n", EmptyInputError, "at least one document"),
    ],
)
def test_bad_corpora_are_named(corpora, tmp_path, content, error, text):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    with pytest.raises(error, match=text):
        read_corpora([corpora[0], path])


def test_corpora_must_be_apart(corpora, tmp_path):
    with pytest.raises(EmptyInputError, match="at least two corpora; got 1"):
        read_corpora(corpora[:1])
    with pytest.raises(DuplicateIdError, match="'money' twice"):
        read_corpora([corpora[0], corpora[0]])
    other = tmp_path / "other.jsonl"
    other.write_bytes(corpora[0].read_bytes())
    with pytest.raises(DuplicateIdError, match="'money0' and 11 more"):
        read_corpora([corpora[0], other])
    with pytest.raises(MissingFileError, match="nothing there"):
        read_corpora([corpora[0], tmp_path / "none.jsonl"])


def test_texts_are_read_where_they_stand(tmp_path, corpora):
    path = tmp_path / "marked.jsonl"
    path.write_bytes('\ufeff{"id": "a", "text": "one"}\n\n{"id": "b", "text": "zw\u00f6"}'.encode())
    corpus = read_corpora([path, corpora[0]])[0]
    assert [corpus.text(one) for one in corpus.ids] == ["one", "zw\u00f6"]
    with pytest.raises(UnknownIdError, match="got 'c'"):
        corpus.text("c")
