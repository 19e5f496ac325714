"""The tool as a user runs it: the whole way, wrong command lines, the key nowhere."""

from __future__ import annotations

import json
import socket
from types import SimpleNamespace

import pytest

from isthmus.spaces import Qrels


@pytest.fixture
def bench(stub, corpora, tool, tmp_path):
    """All that a run needs, and a check that no file below the folder holds the key."""

    def count_files():
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert not [path for path in files if stub.key.encode() in path.read_bytes()]
        return len(files)

    options = ["--endpoint", stub.url, "--model", "m", "--wait", "0.01", "--tries", "3"]
    return SimpleNamespace(
        stub=stub, corpora=corpora, tool=tool, options=options, count_files=count_files
    )


def test_the_whole_way(bench, vectors, tmp_path):
    stub, corpora, tool = bench.stub, bench.corpora, bench.tool
    folder, people, key = tmp_path / "out", tmp_path / "people", {"MY_KEY": stub.key}
    options = [*bench.options, "--key-variable", "MY_KEY"]
    stub.script.extend(["busy", "broken", "ok", "garbage", "closed", {"error": "loading"}])
    done = tool("generate", *corpora, *options, "--queries", 6, "--out", folder, **key)
    assert (done.code, done.out) == (0, f"6 new queries in {folder / 'queries.jsonl'}\n")
    stub.script.extend(["broken", "ok", "closed"])
    done = tool(
        "expand",
        folder,
        "--corpora",
        *corpora,
        "--vectors",
        *vectors,
        *options,
        "--embedding-model",
        "small",
        "--k",
        3,
        "--json",
        **key,
    )
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["queries"], told["judged"], told["unclear"]) == (6, 36, 0)
    assert len(Qrels.load(told["file"])) == told["pairs"]
    done = tool("export", folder, "--corpora", *corpora, "--sample", 5, "--out", people)
    assert done.code == 0
    assert done.out.startswith("5 queries, ")
    files = sorted(people.iterdir())
    for path in files:
        text = path.read_text(encoding="utf-8-sig")
        path.write_text(text.replace(",\n", ",1\n").replace(",1\n", ",0\n", path is files[1]))
    done = tool("agree", *files)
    assert done.code == 0, done.err
    assert "annotator_1.csv        5" in done.out
    assert json.loads(tool("agree", *files, "--json").out)["mean_pairwise_agreement"] < 1
    assert {seen.headers["Authorization"] for seen in stub.requests} == {f"Bearer {stub.key}"}
    assert bench.count_files() > 8


def test_vectors_of_queries_from_a_file_need_no_second_model(bench, made, vectors):
    stub, corpora, tool, options = bench.stub, bench.corpora, bench.tool, bench.options
    first = tool(
        "expand",
        made,
        "--corpora",
        *corpora,
        "--vectors",
        *vectors,
        *options,
        "--embedding-model",
        "small",
        "--k",
        2,
    )
    assert " added" in first.out
    stub.requests.clear()
    again = tool(
        "expand",
        made,
        "--corpora",
        *corpora,
        "--vectors",
        *vectors,
        *options,
        "--query-vectors",
        made / "query_vectors.npz",
        "--k",
        2,
    )
    assert "(0 new)" in again.out
    assert stub.requests == []


def test_the_key_is_in_no_error_and_in_no_file(bench, tmp_path):
    stub, corpora, tool, options = bench.stub, bench.corpora, bench.tool, bench.options
    stub.script.append("denied")
    command = ["generate", *corpora, *options, "--workers", 1, "--out", tmp_path / "out"]
    done = tool(*command, OPENAI_API_KEY=stub.key)
    assert done.code == 1
    assert "status 401: Incorrect key: Bearer *** second line" in done.err
    assert "do: check the URL, the model and the key" in done.err
    stub.script.extend(["closed"] * 3)
    assert tool(*command, OPENAI_API_KEY=stub.key).code == 1
    done = tool(*command, OPENAI_API_KEY=f"{stub.key}\nsecond")
    assert (done.code, "visible ASCII" in done.err) == (1, True)
    for option in ("--key-variable", "--key"):  # the key itself where its name belongs
        done = tool(*command, option, stub.key)
        assert (done.code, "give its name" in done.err) == (1, True)
    for wrong in (["--api-key", stub.key], [f"--api-key={stub.key}"]):
        done = tool(*command, *wrong)
        assert (done.code, "--api-key" in done.err) == (2, True)
    url = stub.url.replace("//", f"//me:{stub.key}@")
    assert tool(*command, "--endpoint", url).code == 2
    bench.count_files()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "the following arguments are required: VERB"),
        (["write"], "invalid choice: 'write'"),
        (["generate", "a"], "--out, --endpoint, --model"),
        (["generate", "a", "--endpoint", "ftp://host/v1"], "http://host/path"),
        (["generate", "a", "--endpoint", "file:///tmp/x"], "http://host/path"),
        (["generate", "a", "--queries", "0"], "a whole number from 1; got '0'"),
        (["generate", "a", "--queries", "1e3"], "got '1e3'"),
        (["generate", "a", "--seed", "-1"], "a whole number from 0; got '-1'"),
        (["generate", "a", "--timeout", "nan"], "seconds over 0, to 3600; got 'nan'"),
        (["agree", "a.csv"], "at least two annotators"),
        (["agree", "a.csv", "./a.csv"], "a file is named twice"),
    ],
)
def test_wrong_command_lines_exit_with_2(tool, arguments, text):
    done = tool(*arguments)
    assert (done.code, done.out) == (2, "")
    assert text in done.err
    assert "  do: run 'cross_domain" in done.err


def test_wrong_pairs_of_options_exit_with_2(bench, made, vectors):
    corpora, tool, options = bench.corpora, bench.tool, bench.options
    expand = ["expand", made, "--corpora", *corpora, "--vectors", *vectors, *options]
    both = ["--query-vectors", "a.npz", "--embedding-model", "small"]
    for more in ([], both):
        done = tool(*expand, *more)
        assert (done.code, "either --query-vectors or --embedding-model" in done.err) == (2, True)
    done = tool("generate", *corpora, *options, "--out", made, "--shortest", 9, "--longest", 8)
    assert (done.code, "--shortest is over --longest" in done.err) == (2, True)


def test_failures_exit_with_1(bench, made, vectors, tmp_path):
    corpora, tool, options = bench.corpora, bench.tool, bench.options
    generate = ["generate", *options, "--out", tmp_path / "out"]
    expand = ["expand", made, "--corpora", *corpora, *options, "--embedding-model", "small"]
    (tmp_path / "file").touch()
    for arguments, text in (
        ([*generate, corpora[0]], "at least two corpora; got 1"),
        ([*generate, *corpora, tmp_path / "none.jsonl"], "nothing there"),
        ([*generate, *corpora, tmp_path], "nothing there"),
        ([*generate[:-1], tmp_path / "file", *corpora], "File exists"),
        ([*expand, "--vectors", vectors[0]], "2 files after --vectors"),
        ([*expand, "--vectors", *vectors[::-1]], "12 documents without a vector"),
        ([*expand, "--vectors", corpora[0], vectors[1]], "money.jsonl"),
        (["export", made, "--corpora", *corpora, "--out", tmp_path / "p"], "qrels.tsv"),
        (["agree", tmp_path / "a.csv", tmp_path / "b.csv"], "nothing there"),
    ):
        done = tool(*arguments)
        assert (done.code, done.out) == (1, "")
        assert text in done.err
        assert done.err.startswith("cross_domain: expected ")


def test_an_endpoint_that_stays_broken_exits_with_1_and_says_what_to_do(bench, tmp_path):
    stub, corpora, tool, options = bench.stub, bench.corpora, bench.tool, bench.options
    stub.script.extend(["broken"] * 50)
    done = tool("generate", *corpora, *options, "--out", tmp_path / "out")
    assert done.code == 1
    assert "in 3 tries; got status 500: <html>oops</html>" in done.err
    assert "it goes on where it stopped" in done.err
    notice = "cross_domain: the endpoint does not answer (status 500: <html>oops</html>)"
    assert done.err.startswith(f"{notice}; trying again\n")
    stub.script.clear()
    stub.script.extend(["broken"] * 50)
    quiet = tool("generate", *corpora, *options, "--quiet", "--out", tmp_path / "out")
    assert quiet.err.startswith("cross_domain: expected an answer of ")


def test_nobody_listens_is_told_at_the_first_retry(tool, corpora, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    options = ["--endpoint", url, "--model", "m", "--wait", "0.01", "--tries", 2]
    done = tool("generate", *corpora, *options, "--out", tmp_path / "out")
    first = "the endpoint does not answer (a connection that failed (ConnectionRefusedError))"
    assert done.err.splitlines()[0] == f"cross_domain: {first}; trying again"


def test_help_names_every_verb(program, tool):
    done = program("--help")
    assert done.code == 0
    assert all(verb in done.out for verb in ("generate", "expand", "export", "agree"))
    for verb in ("generate", "expand", "export", "agree"):
        assert tool(verb, "--help").code == 0
