"""The endpoint: asked again while it misbehaves, not where that is of no use; the key hidden."""

from __future__ import annotations

import socket
import time

import pytest
from cross_domain.endpoint import Endpoint, EndpointError, _retry_after, check_url, read_key

from isthmus.errors import ConfigError, ParameterError

ASK = [{"role": "user", "content": "hello"}]


@pytest.fixture
def endpoint(stub, doubles):
    return Endpoint(stub.url, key=doubles.KEY, timeout=0.5, tries=3, wait=0.01)


@pytest.mark.parametrize("trouble", ["busy", "broken", "garbage", "closed", "slow", "drip"])
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
        ("slow", "got no answer within 0.5 seconds"),
        ("drip", "got no answer within 0.5 seconds"),
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
    "answer",
    [
        {"data": [{"index": 0, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": ["x"]}, {"index": 1, "embedding": [1]}]},
        b'{"data": [{"index": Infinity, "embedding": [1]}]}',
    ],
)
def test_vectors_of_another_form_are_refused(stub, endpoint, answer):
    stub.script.extend([answer] * 3)
    with pytest.raises(EndpointError, match="JSON of another form"):
        endpoint.embed("small", ["one", "two"])


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
