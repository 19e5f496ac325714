"""The registry leads from a scheme to a store."""

from __future__ import annotations

import subprocess
import sys

import pytest

from isthmus.errors import MissingCollectionError, UnknownNameError
from isthmus.spaces import Space
from isthmus.stores import MemoryStore, Store, open_store, schemes, store_class


def test_every_line_leads_to_a_store():
    for scheme in schemes():
        assert issubclass(store_class(scheme), Store)


def test_an_unknown_scheme_names_the_nearest():
    with pytest.raises(UnknownNameError, match=r"got 'sqllite'\. Do: did you mean 'sqlite'"):
        open_store("sqllite:///one.db?collection=docs")
    with pytest.raises(UnknownNameError, match=r"among memory, sqlite; got 'qqq'\. Do: choose"):
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
