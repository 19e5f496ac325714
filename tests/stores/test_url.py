"""URLs of stores: what they mean, and what is refused."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import InputError, ParameterError, UnknownNameError
from isthmus.spaces import Space
from isthmus.stores import open_store, resolve_url
from isthmus.stores._url import StoreUrl

NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


def test_three_slashes_are_relative_and_four_absolute():
    relative = StoreUrl.parse("sqlite:///dir/one.db?collection=docs")
    absolute = StoreUrl.parse("sqlite:////dir/one.db?collection=docs")
    assert (relative.file(), absolute.file()) == (Path("dir/one.db"), Path("/dir/one.db"))
    assert not relative.file().is_absolute()
    assert absolute.file().is_absolute()


def test_a_relative_path_is_read_from_the_folder_of_the_file_that_names_it():
    url = "sqlite:///dir/one.db?collection=docs&index=hnsw"
    assert resolve_url(url, "/conf") == "sqlite:////conf/dir/one.db?collection=docs&index=hnsw"
    absolute = "sqlite:////dir/one.db?collection=docs"
    assert resolve_url(absolute, "/conf") == absolute
    assert resolve_url("memory://name?collection=c", "/conf") == "memory://name?collection=c"


@settings(derandomize=True, deadline=None, max_examples=50)
@given(path=NAMES, collection=NAMES.filter(lambda name: len(name) <= 255))
def test_any_path_and_name_survive_the_url(path, collection):
    url = StoreUrl("sqlite", "", path, collection, {"index": "hnsw"})
    again = StoreUrl.parse(str(url), options=("index",))
    assert (again.path, again.collection, dict(again.options)) == (path, collection, url.options)


@pytest.mark.parametrize(
    ("url", "kind", "message"),
    [
        ("one.db", InputError, "got 'one.db' with no scheme. Do: write sqlite:///dir"),
        ("sqlite:one.db?collection=c", InputError, "with no scheme"),
        (7, InputError, "got '7' with no scheme"),
        ("sqlite:///one.db", InputError, "with no collection. Do: add .collection=NAME"),
        ("sqlite:///one.db?collection=", InputError, "with no collection"),
        ("sqlite:///a#b.db?collection=c", InputError, "with a '#' in it. Do: write it as %23"),
        ("sqlite:///a.db?collection=c&collection=d", InputError, "the same option twice"),
        ("sqlite:///%ff.db?collection=c", InputError, "bytes that are not text"),
        ("sqlite:///a%00.db?collection=c", InputError, "bytes that are not text"),
        ("sqlite:///a.db?collection=c&indx=hnsw", UnknownNameError, "did you mean 'index'"),
        (f"sqlite:///a.db?collection={'c' * 256}", ParameterError, r"\(256 characters\)"),
        ("sqlite:///a.db?collection=%00", ParameterError, "none of them NUL"),
    ],
)
def test_refused(url, kind, message):
    with pytest.raises(kind, match=message):
        StoreUrl.parse(url, options=("index", "timeout"))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite://one.db?collection=c", "with 'one.db' where the path should begin"),
        ("sqlite:///?collection=c", "with no path. Do: write sqlite:///relative/file"),
    ],
)
def test_a_file_needs_a_path(url, message):
    with pytest.raises(InputError, match=message):
        StoreUrl.parse(url).file()


def test_a_password_is_not_shown():
    with pytest.raises(InputError, match="a password in it") as caught:
        StoreUrl.parse("other://user:hunter2@host/db")
    assert "hunter2" not in str(caught.value)
    assert "other://***@host/db" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite://[x?collection=a", "a host that is none"),
        ("sqlite:///a.db?collection=%ff", "bytes that are not text"),
        ("sqlite:///a.db?collection=\udcff", r"\\\\udcff' with bytes that are not text"),
        ("sqlite:///\udcff.db?collection=a", "bytes that are not text"),
    ],
)
def test_what_cannot_be_split_or_is_no_text(url, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message) as caught:
        open_store(url, space=Space(model="m", dim=2))
    str(caught.value).encode()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [("&tls=true", True), ("&tls=yes", True), ("&tls=on", True), ("&tls=off", False), ("", False)],
)
def test_a_flag(said, expected):
    assert StoreUrl.parse(f"redis://host?collection=docs{said}").flag("tls") is expected


@pytest.mark.parametrize("said", ["", "1", "True", "x" * 99])
def test_a_flag_that_says_neither(said):
    with pytest.raises(ParameterError, match="tls as yes or no"):
        StoreUrl.parse(f"redis://host?collection=docs&tls={said}").flag("tls")


@pytest.mark.parametrize("secret", ["hunter2-my-password", "hunter2", "sk-Hunter2", "hunter%232"])
@pytest.mark.parametrize(
    "more", ["", "&vector=%ff", "#fragment", "&collection=again", "&unknown=1"]
)
def test_a_secret_in_place_of_its_variable_is_refused_and_not_shown(secret, more):
    url = f"sqlite:///a.db?collection=c&secret={secret}{more}"
    with pytest.raises(InputError) as caught:
        StoreUrl.parse(url, options=("secret", "vector"))
    assert "hunter" not in "".join(traceback.format_exception(caught.value)).lower()


def test_the_name_of_a_variable_in_small_letters_is_taken_where_it_is_set(monkeypatch):
    monkeypatch.setenv("hunter2", "s")
    url = StoreUrl.parse("sqlite:///a.db?collection=c&secret=hunter2")
    assert url.secret() == "s"


def test_a_column_is_called_as_the_store_calls_it():
    url = "x://host?collection=c&column=v"
    assert dict(StoreUrl.parse(url, options=("field",)).options) == {"field": "v"}
    assert dict(StoreUrl.parse(url, options=("column",)).options) == {"column": "v"}
    for options in (("index",), ("column",)):
        with pytest.raises(UnknownNameError, match="store option"):
            StoreUrl.parse(f"{url}&field=w", options=options)


def test_exact_has_three_words():
    for said in ("exact", "flat", "none"):
        url = StoreUrl.parse(f"x://host?collection=c&index={said}")
        assert url.choice("index", ("hnsw", "exact")) == "exact"
        with pytest.raises(ParameterError, match="index as hnsw or ivf; got"):
            url.choice("index", ("hnsw", "ivf"))
    assert StoreUrl.parse("x://host?collection=c").choice("index", ("hnsw", "exact")) == "hnsw"


@pytest.mark.parametrize("said", ["0", "11", "x", "", "-1", "1.0", "²", "9" * 5_000])
def test_a_whole_number_out_of_its_range(said):
    url = StoreUrl.parse(f"x://host?collection=c&n={said}")
    with pytest.raises(ParameterError, match="n as a whole number from 1 to 10"):
        url.whole("n", 1, 10, 5)
    assert url.whole("m", 1, 10, 5) == 5
