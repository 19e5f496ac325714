"""Conversion into, out of and within every store: stopped, resumed, caught up, switched."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.places import PLACES

from isthmus import Bridge, Pairs
from isthmus.errors import MissingCollectionError, MissingFileError, StoreUnreachableError
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore, open_store, store_class
from isthmus.testing.faulty import Fault, FaultyStore
from isthmus.workflows import convert, cut_over, plan_conversion, roll_back, verify_conversion

OLD = Space(model="old", dim=6, normalized=True)
NEW = Space(model="new", dim=8, normalized=True)
ROWS = 120
LASTING = [name for name in PLACES if name != "memory"]


def able(scheme):
    return store_class(scheme).capabilities


def unit(matrix):
    return (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    ids = [f"d{row}" for row in range(ROWS)]
    rows = unit(rng.standard_normal((ROWS, 6)))
    turned = unit(rows @ np.linalg.qr(rng.standard_normal((8, 6)))[0].T)
    old, new = VectorSet(ids, rows, OLD), VectorSet(ids, turned, NEW)
    return old, Bridge.fit(Pairs.from_ids(old, new), method="procrustes")


def metadata(rows):
    return [{"row": row, "text": f"é {row}"} for row in range(rows)]


def filled(url, old):
    with open_store(url, space=OLD) as store:
        store.upsert(old, metadata=metadata(len(old)) if store.capabilities.filters else None)
    return url


@pytest.mark.parametrize("scheme", LASTING)
def test_there_and_back(scheme, new_url, made, tmp_path):
    """Into the store with a stop in the middle, and a copy of it back out."""
    old, bridge = made
    source = MemoryStore(OLD)
    source.upsert(old, metadata=metadata(ROWS))
    url, file = new_url(), None if able(scheme).notes else tmp_path / "cursor.json"
    gone = StoreUnreachableError(expected="an answer", got="none", do="start it")
    with open_store(url, space=bridge.space_of_applied(OLD)) as target:
        faulty = FaultyStore(
            target, [Fault(kind="error", operation="upsert", calls=[3], error=gone)]
        )
        with pytest.raises(StoreUnreachableError):
            convert(source, faulty, bridge=bridge, batch_rows=25, checkpoint=file)
        assert target.count() == 50
    done = convert(source, url, bridge=bridge, batch_rows=25, checkpoint=file)
    assert (done.copied, done.resumed, done.settled, done.rows) == (70, True, True, ROWS)
    assert verify_conversion(source, url, bridge=bridge, queries=20).ok

    other = old.select([100]).matrix()
    source.upsert(VectorSet(["d3"], other, OLD), metadata=[{"row": "changed"}])
    source.upsert(VectorSet(["new"], old.select([7]).matrix(), OLD))
    source.delete(["d5"])
    done = convert(source, url, bridge=bridge, batch_rows=25, checkpoint=file, remove=True)
    assert (done.added, done.changed, done.removed) == (1, 1, 1)
    assert convert(source, url, bridge=bridge, batch_rows=50, checkpoint=file).settled

    with open_store(url) as read:
        back = MemoryStore(read.space)
    assert convert(url, back, batch_rows=31).settled
    expected = MemoryStore(back.space)
    convert(source, expected, bridge=bridge)
    ids = sorted(text for batch in source.scan() for text in batch.vectors.ids.tolist())
    found, wanted = back.fetch(ids).matrix(), expected.fetch(ids).matrix()
    np.testing.assert_allclose(found, wanted, atol=max(1e-6, 2 * able(scheme).read_back_error))
    if able(scheme).filters:
        assert back.fetch_metadata(ids) == source.fetch_metadata(ids)


@pytest.mark.usefixtures("scheme")
@pytest.mark.parametrize("scheme", [name for name in LASTING if able(name).several_vectors])
def test_a_second_vector_of_the_same_rows(new_url, made):
    old, bridge = made
    url = filled(new_url(), old)
    with open_store(url) as store:
        before = store.fetch_metadata(["d0", "d7"])
    done = convert(url, url + "&vector=second", bridge=bridge, batch_rows=25)
    assert (done.copied, done.settled, done.rows) == (ROWS, True, ROWS)
    assert verify_conversion(url, url + "&vector=second", bridge=bridge).ok
    with open_store(url) as store:
        assert store.space.fingerprint == OLD.fingerprint
        assert store.count() == ROWS
        assert store.fetch_metadata(["d0", "d7"]) == before
        store.upsert(VectorSet(["new"], old.select([7]).matrix(), OLD))
    done = convert(url, url + "&vector=second", bridge=bridge, batch_rows=25, remove=True)
    assert (done.added, done.removed) == (1, 0)


def model(url):
    with open_store(url) as store:
        return store.space.model, store.count()


@pytest.mark.parametrize("scheme", [name for name in LASTING if able(name).switch])
def test_a_name_moves_and_comes_back(scheme, new_url, made):
    old, bridge = made
    source, target = filled(new_url(), old), new_url()
    convert(source, target, bridge=bridge)
    base = target.partition("collection=")[0] + "collection="
    live_url = new_url()  # a free name, as the database allows it
    live = live_url.partition("collection=")[2].partition("&")[0]
    if able(scheme).switch != "alias":
        name = source.removeprefix(base)
        done = cut_over(target, name, former=live)
        assert (done.before, model(source), model(live_url)) == (
            live,
            ("new", ROWS),
            ("old", ROWS),
        )
        roll_back(source)
    else:
        with open_store(source) as store:
            store.take_name(live, former="")
        cut_over(target, live)
        assert model(live_url) == ("new", ROWS)
        roll_back(target)
        assert model(live_url) == ("old", ROWS)
    assert (model(source), model(target)) == (("old", ROWS), ("new", ROWS))


@pytest.mark.parametrize("scheme", LASTING)
def test_a_plan_makes_nothing(scheme, new_url, made, tmp_path):
    old, bridge = made
    source = MemoryStore(OLD)
    source.upsert(old)
    url, file = new_url(), None if able(scheme).notes else tmp_path / "cursor.json"
    plan = plan_conversion(source, url, bridge=bridge, checkpoint=file)
    assert (plan.exists, plan.rows) == (False, ROWS)
    with pytest.raises((MissingCollectionError, MissingFileError)):
        open_store(url)


def process(source, target, bridge):
    arguments = ["convert", source, target, "--bridge", str(bridge), "--batch-size", "20", "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "isthmus", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_rows(url, least):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(LookupError), open_store(url) as store:
            if store.count() > least:
                return
        time.sleep(0.02)
    raise AssertionError("it wrote nothing")


@pytest.mark.usefixtures("scheme")
@pytest.mark.parametrize("scheme", ["postgresql"])
@pytest.mark.parametrize("ending", ["the command", "the server"])
def test_kill_9_loses_nothing(new_url, made, tmp_path, postgres_server, ending):
    """Of the command, or of the server, in the middle: the same command ends the work."""
    bridge = made[1]
    rows = unit(np.random.default_rng(5).standard_normal((1_000, 6)))
    many = VectorSet([f"r{row}" for row in range(1_000)], rows, OLD)
    source, target = f"sqlite:///{tmp_path}/old.db?collection=docs", new_url()
    with open_store(source, space=OLD) as store:
        store.upsert(many, metadata=metadata(1_000))
    bridge.save(tmp_path / "bridge")
    running = process(source, target, tmp_path / "bridge")
    wait_for_rows(target, 0)
    if ending == "the server":
        postgres_server.kill()
        time.sleep(0.1)
        postgres_server.restart()
    else:
        running.kill()
    out, errors = running.communicate(timeout=120)
    assert "Traceback" not in errors
    with open_store(target) as store:
        assert store.count() % 20 == 0
    if running.returncode == 0:
        assert json.loads(out)["result"]["copied"] == 1_000  # it waited for the server
    assert convert(source, target, bridge=bridge, batch_rows=50).settled
    found = verify_conversion(source, target, bridge=bridge)
    assert (found.ok, found.checked, found.target_rows) == (True, 1_000, 1_000)
