"""The registry leads from a scheme to a store."""

from __future__ import annotations

import subprocess
import sys

import pytest

from isthmus.errors import MissingCollectionError, UnknownNameError
from isthmus.spaces import Space
from isthmus.stores import MemoryStore, Store, open_store, resolve_url, schemes, store_class
from isthmus.stores.registry import place_of, rows_of


def test_every_line_leads_to_a_store():
    for scheme in schemes():
        assert issubclass(store_class(scheme), Store)


def test_an_unknown_scheme_names_the_nearest():
    with pytest.raises(UnknownNameError, match=r"got 'sqllite'\. Do: did you mean 'sqlite'"):
        open_store("sqllite:///one.db?collection=docs")
    with pytest.raises(
        UnknownNameError, match=r"among chroma, .*, sqlite.*; got 'qqq'\. Do: choose"
    ):
        open_store("qqq:///one.db?collection=docs")


def test_memory_is_always_new():
    space = Space(model="m", dim=2)
    one = open_store("memory://a?collection=c", space=space)
    other = open_store("memory://a?collection=c", space=space)
    assert isinstance(one, MemoryStore)
    assert one is not other
    assert one.url == "memory://a?collection=c"
    with pytest.raises(MissingCollectionError, match=r"store is always new\. Do: pass space"):
        open_store("memory://a?collection=c")


def test_the_room_is_light():
    code = "import sys, isthmus.stores; print([m for m in ('apsw', 'faiss') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_stands_behind_a_host_is_no_path_of_this_machine():
    url = "postgresql://me@db.example:5432/sales?collection=docs"
    assert resolve_url(url, "/data") == url
    assert place_of(url, "/data") == url


def test_a_second_vector_is_another_place_and_a_time_out_is_not():
    url = "postgresql://db.example/sales?collection=docs"
    assert place_of(url + "&timeout=3", "/") == place_of(url, "/")
    assert place_of(url + "&vector=new", "/") != place_of(url, "/")


VALUES = {"timeout": "3", "secret": "KEY", "index": "exact", "ef_search": "9", "grpc": "7"}
WHERE = [(scheme, name) for scheme in schemes() for name in store_class(scheme).place_options]


@pytest.mark.parametrize(("scheme", "name"), WHERE)
def test_an_option_that_says_where_tells_rows_apart(scheme, name):
    assert name in store_class(scheme).options
    url = f"{scheme}://db.example/a?collection=docs"
    one, other = f"{url}&{name}=one", f"{url}&{name}=other&vector=new"
    assert len({rows_of(each, "/") for each in (url, one, other)}) == 3
    assert len({place_of(each, "/") for each in (url, one, other)}) == 3


@pytest.mark.parametrize("scheme", schemes())
def test_an_option_that_says_how_tells_nothing_apart(scheme):
    kind = store_class(scheme)
    url = f"{scheme}://db.example/a?collection=docs"
    where = {*kind.place_options, "vector", "column", "field"}
    for name in {*getattr(kind, "options", ()), *VALUES} - where:
        assert place_of(f"{url}&{name}={VALUES.get(name, 'x')}", "/") == place_of(url, "/")


def test_one_column_under_two_words_is_one_place():
    url = "weaviate://db.example?collection=Docs"
    assert place_of(f"{url}&column=v", "/") == place_of(f"{url}&field=v", "/")
    assert place_of(f"{url}&column=v", "/") != place_of(url, "/")
    assert rows_of(f"{url}&column=v", "/") == rows_of(url, "/")
