"""Around a conversion: the plan before it, verification, status, cutover and rollback after it."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus import Bridge, Pairs
from isthmus.errors import (
    CorruptStoreError,
    EmptyInputError,
    MissingCollectionError,
    ParameterError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore, open_store
from isthmus.stores.sqlite import SqliteStore
from isthmus.testing.faulty import Fault, FaultyStore
from isthmus.workflows import (
    conversion_status,
    convert,
    cut_over,
    plan_conversion,
    roll_back,
    verify_conversion,
)

ONE = Space(model="one", dim=6, normalized=True)
TWO = Space(model="two", dim=8, normalized=True)
ROWS = 200


def unit(matrix):
    return (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    ids = [f"d{row}" for row in range(ROWS)]
    rows = unit(rng.standard_normal((ROWS, 6)))
    turned = unit(rows @ np.linalg.qr(rng.standard_normal((8, 6)))[0].T)
    one, two = VectorSet(ids, rows, ONE), VectorSet(ids, turned, TWO)
    return one, Bridge.fit(Pairs.from_ids(one, two), method="procrustes")


@pytest.fixture
def base(made, tmp_path):
    """URLs of one file, with the source in it."""
    base = f"sqlite:///{tmp_path}/one.db?collection="
    with open_store(base + "docs", space=ONE) as store:
        store.upsert(made[0], metadata=[{"row": row} for row in range(ROWS)])
    return base


@pytest.fixture
def converted(base, made):
    assert convert(base + "docs", base + "new", bridge=made[1], batch_rows=50).settled
    return base


# --- the plan -------------------------------------------------------------------------------------


def test_a_plan_writes_nothing_and_says_what_will_be(base, made, tmp_path):
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    plan = plan_conversion(base + "docs", base + "new", bridge=made[1])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert (plan.rows, plan.done, plan.sampled, plan.exists) == (ROWS, 0, ROWS, False)
    assert plan.vector_bytes == ROWS * 8 * 4
    assert plan.text_bytes > ROWS * len("d0{'row': 0}")
    assert plan.seconds is None
    assert plan.read_seconds > 0
    assert plan.map_seconds > 0
    assert (plan.status, plan.reason) == (made[1].verdict.status, made[1].verdict.reason)
    assert plan.retention == made[1].report.values["retention@10"]
    assert plan.target == base + "new"
    assert plan.to_dict()["retention"][0] == plan.retention.mean


def test_a_plan_in_the_middle_counts_what_is_left(base, made):
    with open_store(base + "docs") as source:
        faulty = FaultyStore(source, [Fault(kind="error", operation="scan", calls=[3])])
        with pytest.raises(ConnectionError):
            convert(faulty, base + "new", bridge=made[1], batch_rows=50)
    plan = plan_conversion(base + "docs", base + "new", bridge=made[1])
    assert (plan.done, plan.exists) == (100, True)
    assert plan.vector_bytes == 100 * 8 * 4
    assert plan.seconds > 0  # at the rate of the earlier run


def test_a_plan_warns_of_a_bridge_that_keeps_little(base, made):
    two = made[1].apply(made[0])
    shuffled = VectorSet(two.ids, np.roll(two.matrix(), 1, axis=0), TWO)
    bad = Bridge.fit(Pairs.from_ids(made[0], shuffled), method="procrustes")
    plan = plan_conversion(base + "docs", base + "new", bridge=bad)
    assert plan.status != "bridge"
    assert any(plan.status in one for one in plan.warnings)


def test_a_plan_refuses_what_a_conversion_refuses(base, made):
    with pytest.raises(ParameterError, match="the source itself"):
        plan_conversion(base + "docs", base + "docs")
    with pytest.raises(EmptyInputError):
        plan_conversion(MemoryStore(ONE), base + "new", bridge=made[1])
    with open_store(base + "new", space=made[1].space_of_applied(ONE)) as store:
        store.upsert(made[1].apply(made[0].select([0])))
    with pytest.raises(ParameterError, match="another origin"):
        plan_conversion(base + "docs", base + "new", bridge=made[1])


# --- verify and status ----------------------------------------------------------------------------


def test_a_good_target_is_verified(converted, made):
    found = verify_conversion(
        converted + "docs", converted + "new", bridge=made[1], sample=60, queries=40
    )
    assert found.ok
    assert (found.checked, found.queries, found.examples) == (60, 40, ())
    assert found.overlap.mean > 0.95
    assert found.null.mean < 0.5 < found.overlap.low
    again = verify_conversion(
        converted + "docs", converted + "new", bridge=made[1], sample=60, queries=40
    )
    assert again.to_dict() == found.to_dict()


def test_what_is_wrong_in_a_target_is_found(converted, made):
    with open_store(converted + "new") as store:
        store.delete(["d7"])
        other = made[1].apply(made[0].select([3])).matrix()
        store.upsert(VectorSet(["d8"], other, store.space), metadata=[{"row": 8}])
        same = store.fetch(["d9"])
        store.upsert(same, metadata=[{"row": "changed"}])
    found = verify_conversion(converted + "docs", converted + "new", bridge=made[1])
    assert not found.ok
    assert (found.source_rows, found.target_rows) == (ROWS, ROWS - 1)
    assert (found.checked, found.missing, found.differing) == (ROWS, 1, 2)
    assert sorted(found.examples) == ["d7", "d8", "d9"]
    with pytest.raises(MissingCollectionError):
        verify_conversion(converted + "docs", converted + "none", bridge=made[1])


def test_a_copy_is_verified_without_a_null_map(base):
    convert(base + "docs", base + "copy")
    found = verify_conversion(base + "docs", base + "copy", sample=20)
    assert (found.ok, found.null, found.overlap.mean) == (True, None, 1.0)


def test_a_sample_is_of_all_rows_alike(converted, made):
    seen = set()
    with open_store(converted + "new") as store:
        store.delete([f"d{row}" for row in range(0, ROWS, 2)])
    for seed in range(8):
        found = verify_conversion(
            converted + "docs", converted + "new", bridge=made[1], sample=50, seed=seed
        )
        seen.add(found.missing)
        assert 10 <= found.missing <= 40
    assert len(seen) > 1


def test_the_status_says_how_far_it_is(base, made, converted):
    told = conversion_status(converted + "new")
    assert (told.rows, told.state.stage, told.state.rows, told.state.passes) == (
        ROWS,
        "done",
        ROWS,
        1,
    )
    assert told.bridged_from == made[1].hash
    assert told.switched == ""
    assert conversion_status(base + "docs").state is None
    cut_over(base + "new", "live")
    assert conversion_status(base + "live").switched == "live"


# --- cutover and rollback -------------------------------------------------------------------------


def model(url):
    with open_store(url) as store:
        return store.space.model, store.count()


def test_a_name_moves_and_comes_back(converted):
    done = cut_over(converted + "new", "docs")
    assert (done.how, done.before, done.own, done.done) == ("rename", "docs_former", "new", True)
    assert model(converted + "docs") == ("two", ROWS)
    assert model(converted + "docs_former") == ("one", ROWS)
    assert done.url == converted + "docs"
    with pytest.raises(MissingCollectionError, match=r"name that it took in .*collection=NAME"):
        roll_back(converted + "new")
    roll_back(converted + "docs")
    assert model(converted + "docs") == ("one", ROWS)
    assert model(converted + "new") == ("two", ROWS)
    with pytest.raises(ParameterError, match="without a note of a cutover"):
        roll_back(converted + "new")
    assert cut_over(converted + "new", "docs", former="old").before == "old"
    assert model(converted + "old") == ("one", ROWS)


def test_a_free_name_is_taken_and_given_back(converted):
    assert cut_over(converted + "new", "live").before == ""
    assert model(converted + "live") == ("two", ROWS)
    roll_back(converted + "live")
    assert model(converted + "new") == ("two", ROWS)
    with pytest.raises(MissingCollectionError):
        open_store(converted + "live")


def test_its_own_name_is_no_name_of_applications(converted):
    with pytest.raises(ParameterError, match="as which the target is open"):
        cut_over(converted + "new", "new")
    assert conversion_status(converted + "new").switched == ""
    assert cut_over(converted + "new", "docs").done


def test_a_target_in_use_is_not_converted_again(converted, made):
    cut_over(converted + "new", "docs")
    with pytest.raises(ParameterError, match="a name was moved to"):
        convert(converted + "docs_former", converted + "docs", bridge=made[1])
    with pytest.raises(ParameterError, match="roll back first"):
        cut_over(converted + "docs", "live")


def test_a_taken_former_name_is_refused_and_nothing_moves(converted):
    with open_store(converted + "docs_former", space=ONE):
        pass
    with pytest.raises(ParameterError, match="'docs_former', which is a collection"):
        cut_over(converted + "new", "docs")
    assert model(converted + "docs") == ("one", ROWS)
    assert conversion_status(converted + "new").switched == ""


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("back", [False, True])
def test_a_cutover_that_is_stopped_can_be_finished_or_taken_back(
    converted, monkeypatch, moved, back
):
    take = SqliteStore.take_name

    def stopped(self, name, *, former):
        if moved:
            take(self, name, former=former)
        raise KeyboardInterrupt

    monkeypatch.setattr(SqliteStore, "take_name", stopped)
    with pytest.raises(KeyboardInterrupt):
        cut_over(converted + "new", "docs")
    monkeypatch.undo()
    url = converted + ("docs" if moved else "new")
    if not back:
        assert cut_over(url, "docs").before == "docs_former"
        assert model(converted + "docs") == ("two", ROWS)
        url = converted + "docs"
    roll_back(url)
    assert model(converted + "docs") == ("one", ROWS)
    assert model(converted + "new") == ("two", ROWS)
    assert conversion_status(converted + "new").switched == ""


def test_what_cannot_be_switched_is_refused(base, made):
    with pytest.raises(ParameterError, match="one that no conversion wrote"):
        cut_over(base + "docs", "live")
    with open_store(base + "docs") as source:
        faulty = FaultyStore(source, [Fault(kind="error", operation="scan", calls=[3])])
        with pytest.raises(ConnectionError):
            convert(faulty, base + "new", bridge=made[1], batch_rows=50)
    with pytest.raises(ParameterError, match="one that is not finished"):
        cut_over(base + "new", "live")


def test_a_store_without_a_switch_says_what_to_do(converted, monkeypatch):
    able = SqliteStore.capabilities
    monkeypatch.setattr(SqliteStore, "capabilities", type(able)(**{**vars(able), "switch": None}))
    with pytest.raises(UnsupportedOperationError, match="in two steps"):
        cut_over(converted + "new", "docs")


def test_a_damaged_note_of_a_cutover_is_refused(converted):
    with open_store(converted + "new") as store:
        store.write_notes({"convert switch": "{}"})
    for call in (roll_back, conversion_status, lambda url: cut_over(url, "x")):
        with pytest.raises(CorruptStoreError, match="the note of a cutover"):
            call(converted + "new")
