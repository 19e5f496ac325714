"""Conversion: every row once, whatever stops it, and what is written meanwhile."""

from __future__ import annotations

import json

import numpy as np
import pytest

from isthmus import Bridge, Pairs
from isthmus.errors import (
    CorruptFileError,
    CorruptStoreError,
    EmptyInputError,
    ParameterError,
    SpaceMismatchError,
    StoreBusyError,
    StoreFullError,
    StoreUnreachableError,
    UnsupportedOperationError,
    WrongDirectionError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore, open_store
from isthmus.testing.faulty import Fault, FaultyStore
from isthmus.workflows import convert, plan_conversion, verify_conversion

ONE = Space(model="one", dim=6, normalized=True)
TWO = Space(model="two", dim=8, normalized=True)
ROWS = 100


def unit(matrix):
    return (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def made():
    """Documents in the source's space, and a bridge each way."""
    rng = np.random.default_rng(0)
    ids = [f"d{row}" for row in range(ROWS)]
    rows = unit(rng.standard_normal((ROWS, 6)))
    turned = unit(rows @ np.linalg.qr(rng.standard_normal((8, 6)))[0].T)
    one, two = VectorSet(ids, rows, ONE), VectorSet(ids, turned, TWO)
    pairs = Pairs.from_ids(one, two)
    there, back = (Bridge.fit(one, method="procrustes") for one in (pairs, pairs.reverse()))
    return one, there, back


@pytest.fixture
def bridge(made):
    return made[1]


@pytest.fixture
def source(made):
    store = MemoryStore(ONE)
    store.upsert(made[0], metadata=[{"row": row} if row % 3 else {} for row in range(ROWS)])
    return store


@pytest.fixture
def target(bridge):
    return MemoryStore(bridge.space_of_applied(ONE))


def expected_rows(store, bridge):
    """What the target must hold: each id once, mapped, with its metadata."""
    return {
        text: (tuple(vector.tolist()), json.dumps(fields))
        for batch in store.scan()
        for text, vector, fields in zip(
            batch.vectors.ids.tolist(),
            (bridge.apply(batch.vectors) if bridge else batch.vectors).matrix(),
            batch.metadata,
            strict=True,
        )
    }


def check(source, target, bridge):
    assert expected_rows(target, None) == expected_rows(source, bridge)


def test_every_row_is_carried_with_its_metadata(source, target, bridge):
    done = convert(source, target, bridge=bridge, batch_rows=7)
    assert (done.copied, done.rows, done.resumed, done.settled) == (ROWS, ROWS, False, True)
    check(source, target, bridge)
    assert target.space.bridged_from == bridge.hash


def test_a_copy_needs_no_bridge(source):
    target = MemoryStore(ONE)
    assert convert(source, target, batch_rows=30).settled
    check(source, target, None)


def test_the_target_does_not_depend_on_the_batch(source, bridge):
    found = []
    for batch_rows in (1, 33, 1000):
        target = MemoryStore(bridge.space_of_applied(ONE))
        convert(source, target, bridge=bridge, batch_rows=batch_rows)
        found.append(expected_rows(target, None))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("operation", ["scan", "upsert"])
@pytest.mark.parametrize("call", [1, 2, 5])
def test_a_server_that_goes_away_costs_nothing(source, target, bridge, operation, call):
    gone = StoreUnreachableError(expected="an answer", got="none", do="start it")
    fault = Fault(kind="error", operation=operation, calls=[call], error=gone)
    sides = [source, target]
    place = 0 if operation == "scan" else 1
    sides[place] = FaultyStore(sides[place], [fault])
    with pytest.raises(StoreUnreachableError) as caught:
        convert(*sides, bridge=bridge, batch_rows=10)
    assert target.count() == 10 * (call - 1)
    assert f"{10 * (call - 1)} of 100 rows are written; the same" in caught.value.__notes__[-1]
    done = convert(*sides, bridge=bridge, batch_rows=10)
    assert (done.resumed, done.settled) == (True, True)
    assert done.copied == ROWS - 10 * (call - 1)
    check(source, target, bridge)


def test_a_full_disk_in_the_middle_costs_nothing(source, target, bridge):
    full = StoreFullError(expected="room", got="a full disk", do="free space")
    store = FaultyStore(target, [Fault(kind="error", operation="upsert", calls=[4], error=full)])
    with pytest.raises(StoreFullError):
        convert(source, store, bridge=bridge, batch_rows=10)
    assert convert(source, store, bridge=bridge, batch_rows=10).copied == 70
    check(source, target, bridge)


def test_a_second_pass_that_is_stopped_goes_on(source, target, bridge):
    convert(source, target, bridge=bridge)
    target.delete(["d5", "d95"])
    gone = StoreUnreachableError(expected="an answer", got="none", do="start it")
    faulty = FaultyStore(source, [Fault(kind="error", operation="scan", calls=[6], error=gone)])
    with pytest.raises(StoreUnreachableError):
        convert(faulty, target, bridge=bridge, batch_rows=10)
    done = convert(source, target, bridge=bridge, batch_rows=10)
    assert (done.copied, done.added) == (0, 2)  # those before and after the stop
    check(source, target, bridge)


class Busy(MemoryStore):
    """A source that is written to while it is scanned."""

    def scan(self, *, batch_size=10_000, cursor=""):
        for place, batch in enumerate(super().scan(batch_size=batch_size, cursor=cursor)):
            if place == 2:
                for write in self.__dict__.pop("waiting", ()):
                    write()
            yield batch


def test_what_is_written_meanwhile_is_caught(made, target, bridge):
    one = made[0]
    source = Busy(ONE)
    source.upsert(one.select(np.arange(90)), metadata=[{"row": row} for row in range(90)])
    changed = VectorSet(["d2"], one.select([99]).matrix(), ONE)
    source.waiting = [
        lambda: source.upsert(changed, metadata=[{"row": "new"}]),
        lambda: source.upsert(one.select([3]), metadata=[{"row": "other"}]),
        lambda: source.delete(["d1"]),
        lambda: source.upsert(one.select([98])),
    ]
    done = convert(source, target, bridge=bridge, batch_rows=10)
    assert (done.copied, done.added, done.changed, done.removed) == (91, 0, 2, 1)
    assert not done.settled
    assert target.count() == 91
    again = convert(source, target, bridge=bridge, batch_rows=10, remove=True)
    assert (again.copied, again.added, again.changed, again.removed) == (0, 0, 0, 1)
    assert convert(source, target, bridge=bridge, batch_rows=10).settled
    check(source, target, bridge)


def test_rows_added_before_the_cursor_are_found(source, target, bridge, made):
    convert(source, target, bridge=bridge)
    target.delete(["d0", "d50"])
    source.upsert(VectorSet(["new"], made[0].select([1]).matrix(), ONE))
    done = convert(source, target, bridge=bridge, batch_rows=30)
    assert (done.added, done.changed, done.removed) == (3, 0, 0)
    check(source, target, bridge)


def test_the_later_of_two_runs_goes_on(source, target, bridge):
    class Meanwhile(MemoryStore):
        started = 0

        def upsert(self, vectors, **more):
            super().upsert(vectors, **more)
            self.started += 1
            if self.started == 3:
                convert(source, self, bridge=bridge, batch_rows=10)

    target = Meanwhile(target.space)
    with pytest.raises(StoreBusyError, match="that began later, and goes on"):
        convert(source, target, bridge=bridge, batch_rows=10)
    check(source, target, bridge)
    assert convert(source, target, bridge=bridge).settled


# --- what is refused, before anything is written -------------------------------------------------


def test_rows_of_another_origin_are_refused(source, target, bridge, made):
    target.upsert(bridge.apply(made[0].select([4])))
    with pytest.raises(ParameterError, match="1 rows of another origin"):
        convert(source, target, bridge=bridge)
    assert (target.count(), target.notes()) == (1, {})


def test_another_conversion_is_refused(source, target, bridge, made):
    convert(source, target, bridge=bridge)
    other = Bridge.fit(
        Pairs.from_ids(made[0].select(np.arange(50)), bridge.apply(made[0])), method="procrustes"
    )
    shown = rf"this conversion, {bridge.hash[:16]}; got another one, {other.hash[:16]}"
    with pytest.raises(ParameterError, match=shown):
        convert(source, target, bridge=other)
    for job in (convert, plan_conversion, verify_conversion):
        with pytest.raises(ParameterError, match=rf"got none.*hash {bridge.hash[:16]}"):
            job(source, target)
    another = MemoryStore(ONE, name="another")
    another.upsert(made[0])
    with pytest.raises(ParameterError, match=r"the source was memory:.*and is memory://another"):
        convert(another, target, bridge=bridge)
    check(source, target, bridge)


def test_an_empty_source_is_refused(bridge, tmp_path):
    url = f"sqlite:///{tmp_path}/new.db?collection=new"
    with pytest.raises(EmptyInputError, match="rows in the source"):
        convert(MemoryStore(ONE), url, bridge=bridge)
    assert list(tmp_path.iterdir()) == []


def test_the_source_itself_is_refused(source, made, tmp_path):
    with pytest.raises(ParameterError, match="the source itself"):
        convert(source, source)
    url = f"sqlite:///{tmp_path}/one.db?collection=docs"
    with open_store(url, space=ONE) as store:
        store.upsert(made[0])
        for spelt in (url, url + "&timeout=3", url.replace("/one.db", "/x/../one.db")):
            with pytest.raises(ParameterError, match="the source itself"):
                convert(store, spelt)


def test_wrong_spaces_and_directions_are_refused(source, target, bridge, made, tmp_path):
    url = f"sqlite:///{tmp_path}/new.db?collection=new"
    with pytest.raises(WrongDirectionError):
        convert(source, url, bridge=made[2])
    with pytest.raises(SpaceMismatchError, match="vectors for the target"):
        convert(source, MemoryStore(Space(model="three", dim=8)), bridge=bridge)
    with pytest.raises(SpaceMismatchError, match="vectors for the target"):
        convert(source, target)
    third = Bridge.fit(Pairs.from_ids(bridge.apply(made[0]), made[0]), method="null")
    with pytest.raises(WrongDirectionError):
        convert(source, url, bridge=third)
    assert list(tmp_path.iterdir()) == []


def test_a_bridge_to_a_comparison_space_is_refused(source, target, made, bridge):
    cca = Bridge.fit(Pairs.from_ids(made[0], bridge.apply(made[0])), method="cca")
    with pytest.raises(UnsupportedOperationError, match="comparison space"):
        convert(source, target, bridge=cca)


def test_a_source_of_an_unknown_space_is_refused(source, target):
    class Unknown(FaultyStore):
        recorded = False

    with pytest.raises(SpaceMismatchError, match="nobody recorded"):
        convert(Unknown(source), target)


@pytest.mark.parametrize(
    "note", ["", "{}", "[]", "no", "[" * 10_000, '{"cursor": 3}', "null", '{"rows": "1"}']
)
def test_a_damaged_note_is_refused(source, target, bridge, note):
    convert(source, target, bridge=bridge)
    target.write_notes({"convert": note or " "})
    with pytest.raises(CorruptStoreError, match="the checkpoint of a conversion"):
        convert(source, target, bridge=bridge)
    assert target.count() == ROWS


# --- targets that can do less ---------------------------------------------------------------------


class Plain(MemoryStore):
    """Neither notes nor metadata."""

    capabilities = MemoryStore.capabilities.__class__(
        **{**vars(MemoryStore.capabilities), "notes": None, "filters": False}
    )

    def upsert(self, vectors, *, metadata=None, notes=None):
        assert metadata is None
        assert notes is None
        super().upsert(vectors)

    def notes(self):
        raise AssertionError

    write_notes = notes


def test_a_file_takes_the_place_of_notes(source, target, bridge, tmp_path):
    target = Plain(target.space)
    with pytest.raises(UnsupportedOperationError, match="keeps notes"):
        convert(source, target, bridge=bridge)
    gone = StoreUnreachableError(expected="an answer", got="none", do="start it")
    fault = Fault(kind="error", operation="upsert", calls=[4], error=gone)
    faulty, file = FaultyStore(target, [fault]), tmp_path / "cursor.json"
    with pytest.raises(StoreUnreachableError):
        convert(source, faulty, bridge=bridge, batch_rows=10, checkpoint=file)
    with pytest.raises(ParameterError, match="another origin"):
        convert(source, target, bridge=bridge, checkpoint=tmp_path / "other.json")
    done = convert(source, faulty, bridge=bridge, batch_rows=10, checkpoint=file)
    assert (done.copied, done.metadata_dropped, done.settled) == (70, True, True)
    assert target.count() == ROWS
    for damaged in ("{", "[]", '{"convert": 3}', "[" * 100_000):
        file.write_text(damaged)
        for job in (convert, plan_conversion):
            with pytest.raises(CorruptFileError, match=r"'cursor\.json'"):
                job(source, target, bridge=bridge, checkpoint=file)
        assert file.read_text() == damaged


class FromTheStart(MemoryStore):
    """A source whose scan cannot be resumed."""

    capabilities = MemoryStore.capabilities.__class__(
        **{**vars(MemoryStore.capabilities), "scan": False}
    )

    def scan(self, *, batch_size=10_000, cursor=""):
        assert cursor == ""
        return super().scan(batch_size=batch_size)


def test_a_source_without_cursors_is_read_from_the_start(target, bridge, made):
    source = FromTheStart(ONE)
    source.upsert(made[0])
    gone = StoreUnreachableError(expected="an answer", got="none", do="start it")
    faulty = FaultyStore(source, [Fault(kind="error", operation="scan", calls=[4], error=gone)])
    with pytest.raises(StoreUnreachableError):
        convert(faulty, target, bridge=bridge, batch_rows=10)
    done = convert(source, target, bridge=bridge, batch_rows=10)
    assert (done.resumed, done.copied, done.settled) == (True, ROWS, True)
    check(source, target, bridge)


class Coarse(MemoryStore):
    """Normalises, and keeps half precision."""

    capabilities = MemoryStore.capabilities.__class__(
        **{**vars(MemoryStore.capabilities), "stores_raw": False, "read_back_error": 1e-3}
    )

    def upsert(self, vectors, **more):
        rows = unit(vectors.matrix()).astype(np.float16).astype(np.float32)
        super().upsert(VectorSet(vectors.ids, rows, vectors.space), **more)


def test_what_the_target_rounds_is_no_change():
    space = Space(model="raw", dim=6)
    source, target = MemoryStore(space), Coarse(space)
    rows = 5 * np.random.default_rng(1).standard_normal((40, 6))
    source.upsert(VectorSet([f"r{row}" for row in range(40)], rows, space))
    assert convert(source, target).settled
    source.upsert(VectorSet(["r3"], rows[3:4] * [[1, 1, 1, 1, 1, 1.1]], space))
    assert convert(source, target).changed == 1
    assert convert(source, target).settled


class Shrinking(MemoryStore):
    """A source that loses a row, or gains one, while the second pass reads it, by key."""

    gain = False
    passes = 0

    def scan(self, *, batch_size=10_000, cursor=""):
        self.passes += cursor == ""
        for batch in list(super().scan(batch_size=batch_size, cursor=cursor)):
            yield batch  # of a database whose scan misses rows that come meanwhile
            if self.passes == 2:
                self.passes = 3
                if self.gain:
                    self.upsert(VectorSet(["late"], -self.fetch(["d1"]).vectors, self.space))
                else:
                    self.delete(["d0"])


@pytest.mark.parametrize("gain", [False, True])
def test_what_changes_during_the_second_pass_is_not_called_the_same(bridge, source, gain):
    live = Shrinking(ONE)
    live.gain = gain
    for batch in source.scan():
        live.upsert(batch.vectors, metadata=batch.metadata)
    target = MemoryStore(bridge.space_of_applied(ONE))
    done = convert(live, target, bridge=bridge, batch_rows=ROWS)
    assert not done.settled
    assert (done.removed, done.source_rows) == ((0, ROWS + 1) if gain else (1, ROWS - 1))
    again = convert(live, target, bridge=bridge, batch_rows=ROWS, remove=True)
    assert convert(live, target, bridge=bridge, batch_rows=ROWS).settled
    assert (again.added, again.removed) == ((1, 0) if gain else (0, 1))
