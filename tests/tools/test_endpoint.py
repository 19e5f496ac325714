"""The endpoint: asked again while it misbehaves, not where that is of no use; the key hidden."""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time

import pytest
from cross_domain.endpoint import Endpoint, EndpointError, _retry_after, check_url, read_key

from isthmus.errors import ConfigError, ParameterError

ASK = [{"role": "user", "content": "hello"}]


@pytest.fixture
def endpoint(stub, doubles):
    return Endpoint(stub.url, key=doubles.KEY, timeout=30, tries=3, wait=0.01)


@pytest.mark.parametrize("trouble", ["busy", "broken", "garbage", "closed"])
def test_trouble_that_passes_is_asked_again(stub, doubles, endpoint, trouble):
    stub.script.extend([trouble, trouble, doubles.chat("fine")])
    assert endpoint.chat("m", ASK) == "fine"
    assert len(stub.requests) == 3


@pytest.mark.parametrize(
    ("trouble", "text"),
    [
        ("busy", "got status 429: slow down"),
        ("broken", "got status 500: <html>oops</html>"),
        ("garbage", "got an answer that is no JSON"),
        ("closed", r"got a connection that failed \(RemoteDisconnected\)"),
        ({"error": "model is loading"}, "got JSON of another form"),
        ({"choices": []}, "got JSON of another form"),
        (b"[1]", "got JSON of another form"),
        (b"[" * 100_000, "got an answer that is no JSON"),
    ],
)
def test_trouble_that_stays_is_named_after_the_last_try(stub, endpoint, trouble, text):
    stub.script.extend([trouble] * 3)
    with pytest.raises(EndpointError, match=text) as caught:
        endpoint.chat("m", ASK)
    assert "in 3 tries" in caught.value.expected
    assert len(stub.requests) == 3


@pytest.mark.parametrize("trouble", ["slow", "drip"])
def test_an_answer_that_comes_too_late_is_asked_for_again(stub, doubles, trouble):
    stub.script.extend([trouble, doubles.chat("fine"), trouble])
    endpoint = Endpoint(stub.url, timeout=0.5, tries=2, wait=0.01)
    assert endpoint.chat("m", ASK) == "fine"
    with pytest.raises(EndpointError, match=r"got no answer within 0\.25 seconds"):
        Endpoint(stub.url, timeout=0.25, tries=1).chat("m", ASK)
    assert len(stub.requests) == 3


@pytest.mark.parametrize(
    ("trouble", "text"),
    [
        ("drip_status", "no answer within 0.25 seconds"),
        ("drip_headers", "no answer within 0.25 seconds"),
        ("drip_continue", "no answer within 0.25 seconds"),
        ("flood_continue", "no answer within 0.25 seconds"),
        ("drip_chunk", "no answer within 0.25 seconds"),
        ("drip_trailers", "no answer within 0.25 seconds"),
        ("drip_failure", "status 500"),
        ("drip_refusal", "status 400"),
    ],
)
def test_a_request_ends_at_its_timeout_however_slowly_it_is_answered(stub, trouble, text):
    stub.script.append(trouble)
    begin = time.monotonic()
    with pytest.raises(EndpointError, match=text):
        Endpoint(stub.url, timeout=0.25, tries=1).chat("m", ASK)
    assert time.monotonic() - begin < 5  # without a limit it takes 10


def test_a_handshake_ends_at_the_timeout():
    """It begins with a record that never ends: each byte of it comes in good time."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"\x16\x03\x03\x40\x00")
                end = time.monotonic() + 10
                while time.monotonic() < end:
                    connection.sendall(b"\x02")
                    time.sleep(0.03)

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"https://127.0.0.1:{server.getsockname()[1]}/v1"
        begin = time.monotonic()
        with pytest.raises(EndpointError, match=r"no answer within 0\.25 seconds"):
            Endpoint(url, timeout=0.25, tries=1).chat("m", ASK)
        assert time.monotonic() - begin < 5
        thread.join()


def test_the_first_retry_is_told_once_and_without_the_key(stub, doubles):
    said: list[str] = []
    stub.script.extend(["broken", doubles.chat("one"), {"error": "loading"}, doubles.chat("two")])
    endpoint = Endpoint(stub.url, key="oops", wait=0.01, warn=said.append)
    assert [endpoint.chat("m", ASK) for _ in range(2)] == ["one", "two"]
    assert said == ["the endpoint does not answer (status 500: <html>***</html>); trying again"]


def test_nothing_is_told_once_nobody_needs_the_answer(stub):
    said: list[str] = []
    endpoint = Endpoint(stub.url, wait=60.0, warn=said.append)
    stub.do_last = lambda handler: (endpoint.stop(), stub.do_broken(handler))
    stub.script.append("last")
    with pytest.raises(EndpointError, match="got status 500"):
        endpoint.chat("m", ASK)
    assert said == []


def test_a_refusal_is_not_asked_again_and_its_echo_of_the_key_is_struck_out(
    stub, doubles, endpoint
):
    stub.script.append("denied")
    with pytest.raises(
        EndpointError, match="status 401: Incorrect key: Bearer \\*\\*\\*"
    ) as caught:
        endpoint.chat("m", ASK)
    assert doubles.KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(stub.requests) == 1


def test_a_redirect_is_not_followed(stub, endpoint):
    stub.script.append("redirect")
    with pytest.raises(EndpointError, match=r"status 302 \(a redirect, which is not followed\)"):
        endpoint.chat("m", ASK)
    assert [seen.path for seen in stub.requests] == ["/v1/chat/completions"]


def test_the_key_is_sent_in_one_header_and_only_if_there_is_one(stub, doubles, endpoint):
    endpoint.chat("m", ASK)
    Endpoint(stub.url).chat("m", ASK)
    with_key, without = stub.requests
    assert with_key.headers["Authorization"] == f"Bearer {doubles.KEY}"
    assert "Authorization" not in without.headers
    assert doubles.KEY not in str(with_key.body)
    assert doubles.KEY not in repr(endpoint) + repr(vars(endpoint)["_shown"])


def test_a_key_in_an_answer_is_struck_out_but_a_word_is_not(stub, doubles, endpoint):
    stub.script.extend([doubles.chat(f"it is {doubles.KEY}"), doubles.chat("ask ollama")])
    assert endpoint.chat("m", ASK) == "it is ***"
    assert Endpoint(stub.url, key="ollama").chat("m", ASK) == "ask ollama"


def test_answers_that_say_nothing_are_empty(stub, doubles, endpoint):
    stub.script.extend(
        [
            doubles.chat(None),
            doubles.chat("half of a", finish_reason="length"),
            doubles.chat("<think>1 or 2?\nhm</think>\n2"),
        ]
    )
    assert [endpoint.chat("m", ASK).strip() for _ in range(3)] == ["", "", "2"]


def test_vectors_come_in_the_order_of_the_texts(stub, doubles, endpoint):
    rows = endpoint.embed("small", ["one", "two"])
    assert rows == [doubles.embedding("one"), doubles.embedding("two")]
    assert stub.requests[0].body["model"] == "small"


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([[0, [1.0]]], "1 vectors for 2 texts"),
        ([[0, ["x"]], [1, [1]]], "'x' in place of a number at index 0"),
        ([[0, ["1"]], [1, [1]]], "'1' in place of a number"),
        ([[0, [True]], [1, [1]]], "True in place of a number"),
        ([[0, [None]], [1, [1]]], "None in place of a number"),
        ([[0, [1]], [1, [math.nan]]], "nan in a vector at index 1"),
        ([[0, [1]], [1, [-math.inf]]], "-inf in a vector"),
        ([[0, [1]], [1, [math.inf]]], "inf in a vector"),
        ([[0, [1]], [1, [1e39]]], r"1e\+39 in a vector"),
        ([[0, [1]], [1, [10**400]]], "1000.* in a vector"),
        ([[0, [1, 2]], [1, [1]]], "vectors of 1, 2 numbers"),
        ([[0, []], [1, []]], "an empty vector at index 0"),
        ([[0, "12"], [1, "12"]], "a text in place of a vector at index 0"),
        ([[0, {"0": 1}], [1, {"0": 1}]], "an object in place of a vector"),
        ([[0, None], [1, [1]]], "null in place of a vector"),
        ([[0, [1]], [0, [1]], [1, [1]]], "the index 0 twice"),
        ([[0, [1]], [1.5, [1]]], "the index 1.5 for 2 texts"),
        ([[0, [1]], [1.0, [1]]], "the index 1.0 for 2 texts"),
        ([[0, [1]], [True, [1]]], "the index True for 2 texts"),
        ([[0, [1]], [math.inf, [1]]], "the index inf for 2 texts"),
        ([[0, [1]], [1, [1]], [2, [1]]], "the index 2 for 2 texts"),
        ([[0, [1]], [-1, [1]]], "the index -1 for 2 texts"),
    ],
)
def test_bad_vectors_are_refused_at_once(stub, endpoint, rows, text):
    data = [{"index": index, "embedding": row} for index, row in rows]
    stub.script.append({"data": data})
    with pytest.raises(EndpointError, match=f"got {text}") as caught:
        endpoint.embed("small", ["one", "two"])
    assert caught.value.expected == "2 vectors of finite numbers, one for each text"
    assert "embedding model" in caught.value.do
    assert len(stub.requests) == 1


@pytest.mark.parametrize("answer", [{"data": [{"index": 0}]}, {"data": 3}, {"data": [7]}, b"[]"])
def test_vectors_of_another_form_are_asked_for_again(stub, doubles, endpoint, answer):
    stub.script.extend([answer] * 2)
    assert endpoint.embed("small", ["one"]) == [doubles.embedding("one")]
    assert len(stub.requests) == 3


def test_halves_of_characters_are_replaced(stub, doubles, endpoint):
    stub.script.append(doubles.chat("one \ud83d\ude00, half \ud83d, half \ude00"))
    assert endpoint.chat("m", ASK) == "one \U0001f600, half \ufffd, half \ufffd"


@pytest.mark.usefixtures("stub")
def test_nobody_listens(doubles):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(EndpointError, match="ConnectionRefusedError"):
        Endpoint(url, key=doubles.KEY, tries=2, wait=0.01).chat("m", ASK)


def test_waits_double_up_to_a_limit_and_obey_the_endpoint(stub, monkeypatch):
    endpoint, pauses = Endpoint(stub.url, tries=5, wait=40.0), []
    monkeypatch.setattr(endpoint._stop, "wait", pauses.append)
    stub.script.extend(["broken"] * 3 + ["busy"])
    endpoint.chat("m", ASK)
    assert pauses == [40.0, 80.0, 120.0, 0.0]


@pytest.mark.parametrize("value", ["Wed, 21 Oct 2015 07:28:00 GMT", "-1", "nan", "1e9", ""])
def test_other_forms_of_retry_after_leave_the_usual_wait(value):
    assert _retry_after(value) is None


def test_stopping_ends_the_wait(stub):
    endpoint = Endpoint(stub.url, tries=3, wait=60.0)
    stub.script.extend(["broken"] * 3)
    endpoint.stop()
    begin = time.monotonic()
    with pytest.raises(EndpointError):
        endpoint.chat("m", ASK)
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/v1",
        "file:///etc/hostname",
        "host/v1",
        "http://",
        "http:///v1",
        "http://host:x/v1",
        "http://host:99999/v1",
        "http://[::1/v1",
        "https://ho st/v1",
        "https://host/v1\r\nX: y",
        "javascript:alert(1)",
        "",
    ],
)
def test_other_urls_are_refused(url):
    with pytest.raises(ParameterError, match="expected an endpoint as http://host/path"):
        check_url(url)


@pytest.mark.parametrize(
    "url", ["https://user:hidden@host/v1", "https://host/v1?key=hidden", "https://host/#hidden"]
)
def test_urls_that_may_hold_a_secret_are_refused_without_repeating_it(url):
    with pytest.raises(ParameterError, match="--key-variable") as caught:
        check_url(url)
    assert "hidden" not in str(caught.value)


def test_plain_urls_are_kept():
    assert check_url("http://127.0.0.1:8000/v1/") == "http://127.0.0.1:8000/v1"
    assert check_url(" https://host ") == "https://host"


def test_the_key_comes_from_the_environment(monkeypatch, doubles):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert read_key(None) is None
    monkeypatch.setenv("OPENAI_API_KEY", f" {doubles.KEY}\n")
    assert read_key(None) == doubles.KEY
    monkeypatch.setenv("MINE", "other-key")
    assert read_key("MINE") == "other-key"


@pytest.mark.parametrize("value", ["two\nlines-of-secret", "schl\u00fcssel", "a secret"])
def test_a_key_that_no_header_can_carry_is_refused_unsaid(monkeypatch, value):
    monkeypatch.setenv("MINE", value)
    with pytest.raises(ConfigError, match="visible ASCII") as caught:
        read_key("MINE")
    assert value not in str(caught.value)


def test_a_key_given_as_the_name_is_refused_unsaid(doubles):
    with pytest.raises(ConfigError, match="never the key itself") as caught:
        read_key(doubles.KEY)
    assert doubles.KEY not in str(caught.value)
