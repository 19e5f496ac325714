"""The script that runs the conformance suite on a server leaves nothing but what was there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.fakes import FakeQdrant

from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store
from isthmus.testing import store_suite

SCRIPT = Path(__file__).parents[2] / "tools" / "store_suite.py"
SOME = ("starts_empty", "moves_a_name", "has_a_second_vector")


@pytest.fixture
def script(monkeypatch):
    specification = importlib.util.spec_from_file_location("store_suite_script", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    some = tuple(check for check in store_suite.CHECKS if store_suite.name(check) in SOME)
    monkeypatch.setattr(store_suite, "CHECKS", some)
    return module


@pytest.fixture
def fake():
    with FakeQdrant() as server:
        yield server


def test_it_removes_what_it_made_and_nothing_else(script, fake, capsys):
    space = Space(model="m", dim=2)
    with open_store(f"qdrant+http://{fake.url}?collection=theirs", space=space) as store:
        store.upsert(VectorSet(["a"], [[1, 2]], space))
    assert script.main([f"qdrant+http://{fake.url}"]) == 0
    assert list(fake.collections) == ["theirs"]
    assert fake.aliases == {}
    shown = capsys.readouterr().out
    assert "3 of 3 checks passed" in shown
    assert "still there" not in shown


def test_it_keeps_what_it_made_when_told_to(script, fake):
    assert script.main([f"qdrant+http://{fake.url}?timeout=5", "--keep"]) == 0
    assert len(fake.collections) == 4
    assert all(name.startswith("isthmus_suite_") for name in fake.collections)


def test_it_fails_when_a_check_fails(script, fake, capsys):
    fake.version = (1, 17)  # without a second vector
    assert script.main([f"qdrant+http://{fake.url}"]) == 1
    assert "has_a_second_vector" in capsys.readouterr().out
    assert fake.collections == {}


def test_what_cannot_be_removed_is_emptied_and_named(script, tmp_path, capsys):
    assert script.main([f"sqlite:///{tmp_path}/one.db"]) == 0
    shown = capsys.readouterr().out
    assert "still there: isthmus_suite_" in shown
    name = shown.split("still there: ")[1].split(",")[0]
    with open_store(f"sqlite:///{tmp_path}/one.db?collection={name}") as store:
        assert store.count() == 0
