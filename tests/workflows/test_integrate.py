"""Integration: every source in one new store, and nothing else is written to."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from isthmus import Bridge, Pairs
from isthmus.errors import (
    ConfigError,
    CorruptStoreError,
    CountMismatchError,
    DuplicateIdError,
    ParameterError,
    SpaceMismatchError,
    StoreError,
    UnknownNameError,
)
from isthmus.federate import Federation, Source
from isthmus.spaces import Space, VectorSet
from isthmus.stores import open_store
from isthmus.workflows import integrate

HUB = Space(model="hub", dim=6, normalized=True)
TWO = Space(model="two", dim=8, normalized=True)
THREE = Space(model="three", dim=7, normalized=True)
COUNTS = (40, 30, 25)


def unit(matrix):
    return (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def made():
    """Documents in all three models, and bridges each way."""
    rng = np.random.default_rng(0)
    ids = [f"d{row}" for row in range(100)]
    rows = unit(rng.standard_normal((100, 6)))
    sets = [VectorSet(ids, rows, HUB)]
    for space in (TWO, THREE):
        turned = rows @ np.linalg.qr(rng.standard_normal((space.dim, 6)))[0].T
        sets.append(VectorSet(ids, unit(turned + 0.05 * rng.standard_normal(turned.shape)), space))
    bridges = []
    for other in sets[1:]:
        pairs = Pairs.from_ids(sets[0], other)
        bridges.append(
            tuple(Bridge.fit(one, method="procrustes") for one in (pairs, pairs.reverse()))
        )
    return sets, bridges


@pytest.fixture
def federation(made, tmp_path):
    sets, bridges = made
    sources = []
    for place, (vectors, count) in enumerate(zip(sets, COUNTS, strict=True)):
        url = f"sqlite:///{tmp_path}/{place}.db?collection=docs"
        store = open_store(url, space=vectors.space)
        part = vectors.select(np.arange(count))
        store.upsert(part, metadata=[{"row": row} for row in range(count)])
        sources.append(Source(f"s{place}", store, *(bridges[place - 1] if place else ())))
    with Federation(HUB, sources) as opened:
        yield opened


def new(tmp_path, name="new"):
    return f"sqlite:///{tmp_path}/{name}.db?collection=all"


def test_ec_maps_every_row_and_leaves_the_sources_alone(federation, tmp_path):
    before = [source.store.fetch(["d0"]).vectors.copy() for source in federation.sources]
    done = integrate(federation, new(tmp_path), batch_rows=7)
    assert done.rows == {"s0": 40, "s1": 30, "s2": 25}
    assert (done.mapped, done.resumed, done.metadata_dropped) == (55, False, False)
    with open_store(new(tmp_path)) as store:
        assert store.count() == 95
        assert store.space.fingerprint == HUB.fingerprint
        for source, spoke in zip(federation.sources, federation.spokes, strict=True):
            own = source.store.fetch(["d3", "d20"])
            rows = own.vectors if spoke.back is None else spoke.to_hub(own.vectors)
            there = store.fetch([f"{source.name}/d3", f"{source.name}/d20"])
            np.testing.assert_array_equal(there.vectors, rows)
        assert store.fetch_metadata(["s1/d20"]) == [{"row": 20}]
    assert [source.store.count() for source in federation.sources] == list(COUNTS)
    for source, vectors in zip(federation.sources, before, strict=True):
        np.testing.assert_array_equal(source.store.fetch(["d0"]).vectors, vectors)
        assert source.store.notes() == {}


def test_another_space_is_reached_through_the_hub(federation, tmp_path):
    done = integrate(federation, new(tmp_path), space="s2")
    assert done.space.fingerprint == THREE.fingerprint
    assert done.mapped == 70
    two, three = federation.spokes[1:]
    with open_store(new(tmp_path)) as store:
        own = federation.sources[1].store.fetch(["d5"]).vectors
        np.testing.assert_array_equal(
            store.fetch(["s1/d5"]).vectors, three.from_hub(two.to_hub(own))
        )
        np.testing.assert_array_equal(
            store.fetch(["s2/d5"]).vectors, federation.sources[2].store.fetch(["d5"]).vectors
        )


def test_mig_takes_native_vectors_from_files(federation, made, tmp_path):
    sets, _ = made
    path = tmp_path / "two-by-hub.npz"
    sets[0].save(path, dtype="float32")
    done = integrate(federation, new(tmp_path), method="mig", native={"s1": path, "s2": sets[0]})
    assert done.mapped == 0
    with open_store(new(tmp_path)) as store:
        np.testing.assert_array_equal(
            store.fetch(["s1/d7", "s2/d9"]).vectors, sets[0].vectors[[7, 9]]
        )


def test_a_stopped_run_goes_on(federation, tmp_path):
    def stop_after(steps):
        def track(items, description, total):
            assert (description, total) == ("integrating", 13)
            for done, item in enumerate(items):
                if done == steps:
                    raise KeyboardInterrupt
                yield item

        return track

    for steps in (0, 3, 5):
        with pytest.raises(KeyboardInterrupt):
            integrate(federation, new(tmp_path), batch_rows=8, track=stop_after(steps))
    done = integrate(federation, new(tmp_path), batch_rows=8)
    assert done.resumed
    whole = integrate(federation, new(tmp_path, "whole"))
    assert (whole.resumed, done.rows) == (False, whole.rows)
    with open_store(new(tmp_path)) as one, open_store(new(tmp_path, "whole")) as two:
        pairs = [
            [row for batch in store.scan() for row in batch.vectors.ids] for store in (one, two)
        ]
        assert pairs[0] == pairs[1]
        np.testing.assert_array_equal(one.fetch(pairs[0]).vectors, two.fetch(pairs[0]).vectors)


def test_a_finished_run_again_changes_nothing(federation, tmp_path):
    integrate(federation, new(tmp_path))
    again = integrate(federation, new(tmp_path))
    assert again.resumed
    assert sum(again.rows.values()) == 95


def test_ids_are_kept_when_they_do_not_collide(made, tmp_path):
    sets, bridges = made
    sources = []
    for place in (0, 1):
        store = open_store(f"memory://keep{place}?collection=d", space=sets[place].space)
        store.upsert(sets[place].select(np.arange(place * 50, place * 50 + 50)))
        sources.append(Source(f"s{place}", store, *(bridges[0] if place else ())))
    federation = Federation(HUB, sources)
    integrate(federation, new(tmp_path), ids="keep")
    with open_store(new(tmp_path)) as store:
        assert store.fetch(["d0", "d99"]).ids.tolist() == ["d0", "d99"]


def test_ids_that_collide_are_refused(federation, tmp_path):
    with pytest.raises(DuplicateIdError, match="30 in a batch of source 's1'"):
        integrate(federation, new(tmp_path), ids="keep")


def test_it_never_writes_where_it_reads_or_over_anything(federation, made, tmp_path):
    with pytest.raises(ParameterError, match="that of source 's1'"):
        integrate(federation, federation.sources[1].store.url)
    integrate(federation, new(tmp_path))
    with pytest.raises(ParameterError, match="that of another one"):
        integrate(federation, new(tmp_path), ids="keep")
    with open_store(new(tmp_path, "full"), space=HUB) as store:
        store.upsert(made[0][0])
    with pytest.raises(ParameterError, match="one with 100 rows"):
        integrate(federation, new(tmp_path, "full"))
    with open_store(new(tmp_path, "other"), space=TWO):
        pass
    with pytest.raises(SpaceMismatchError):
        integrate(federation, new(tmp_path, "other"))


def test_what_is_missing_is_named_before_anything_is_written(federation, made, tmp_path):
    sets, bridges = made
    bad = [
        (UnknownNameError, {"method": "magic"}),
        (UnknownNameError, {"ids": "new"}),
        (UnknownNameError, {"space": "s9"}),
        (UnknownNameError, {"method": "mig", "native": {"s9": sets[0]}}),
        (ParameterError, {"batch_rows": 0}),
        (ParameterError, {"native": {"s1": sets[0]}}),
        (ParameterError, {"method": "mig", "native": {"s1": sets[0]}}),
        (SpaceMismatchError, {"method": "mig", "native": {"s1": sets[1], "s2": sets[0]}}),
        (
            CountMismatchError,
            {"method": "mig", "native": {"s1": sets[0].select(np.arange(9)), "s2": sets[0]}},
        ),
    ]
    for error, given in bad:
        with pytest.raises(error):
            integrate(federation, new(tmp_path), **given)
    one_way = Federation(
        HUB,
        [federation.sources[0], Source("s1", federation.sources[1].store, bridges[0][0])],
        fusion="agg",
    )
    with pytest.raises(ConfigError, match="store to hub"):
        integrate(one_way, new(tmp_path))
    assert not (tmp_path / "new.db").exists()


def test_a_file_without_one_of_the_documents(federation, made, tmp_path):
    sets, _ = made
    without = sets[0].select(np.arange(1, 100))
    with pytest.raises(CountMismatchError, match="1 that are not there, first 'd0'"):
        integrate(federation, new(tmp_path), method="mig", native={"s1": without, "s2": sets[0]})


def test_a_store_that_loses_rows_is_found_out(federation, tmp_path, monkeypatch):
    store = federation.sources[2].store
    monkeypatch.setattr(type(store), "count", lambda self: 1000 if self is store else real(self))
    with pytest.raises(StoreError, match="as many as were read"):
        integrate(federation, new(tmp_path))


def real(store):
    return sum(len(batch.vectors) for batch in store.scan())


def test_the_result_is_plain_json(federation, tmp_path):
    told = json.loads(json.dumps(integrate(federation, new(tmp_path)).to_dict()))
    assert told["rows"] == {"s0": 40, "s1": 30, "s2": 25}
    assert told["space"]["model"] == "hub"


@pytest.mark.parametrize(
    "note",
    ["[]", "{", "{}", '{"plan": {}, "source": "0", "cursor": "", "written": 0}'],
)
def test_a_damaged_note_of_an_earlier_run_is_said(federation, tmp_path, note):
    store = open_store(new(tmp_path), space=HUB)
    store.upsert(VectorSet(["x"], [[1, 0, 0, 0, 0, 0]], HUB), notes={"integrate": note})
    store.close()
    with pytest.raises(CorruptStoreError, match="the note of an earlier integration"):
        integrate(federation, new(tmp_path))


def test_names_by_which_ids_cannot_be_told_apart_are_refused(federation, tmp_path):
    one, two, three = federation.sources
    sources = [one, replace(two, name="s0/a"), three]
    renamed = Federation(HUB, sources)
    with pytest.raises(ParameterError, match="'s0' and 's0/a'"):
        integrate(renamed, new(tmp_path))
    with pytest.raises(DuplicateIdError):
        integrate(renamed, new(tmp_path), ids="keep")
