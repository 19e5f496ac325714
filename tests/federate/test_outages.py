"""Every way in which a store can let a federation down: answers of the others, and a flag."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from isthmus.errors import InvalidVectorsError, ParameterError, StoreError, ZeroVectorError
from isthmus.federate import Federation, Source, gather, hub
from isthmus.federate.patience import Clock
from isthmus.rankings import Ranking
from isthmus.spaces import VectorSet
from isthmus.stores.base import Found, Gathered
from isthmus.testing import Fault, FaultyStore


class ClientError(Exception):
    """Of a database's client, which we do not know."""


@pytest.fixture
def world(stores, doubles, queries):
    """A federation of two, of which ``b`` follows a plan; time moves only in pauses."""

    class World:
        now = 0.0
        hang = threading.Event()

        def make(self, *plan, sleep=None, **options):
            a, b, _ = stores
            self.b = FaultyStore(b, plan, sleep=sleep or self.sleep)
            self.sources = [
                Source("a", a),
                Source("b", self.b, *doubles.bridges(doubles.HUB, doubles.SPOKE)),
            ]
            options = {"clock": Clock(now=lambda: self.now, sleep=self.sleep), **options}
            return Federation(doubles.HUB, self.sources, **options)

        def sleep(self, seconds):
            self.now += seconds

        def only_a(self):
            return Federation(
                doubles.HUB, [Source("a", stores[0]), replace(self.sources[1], store=empty)]
            ).search(queries)

        def wait_for_threads(self):
            self.hang.set()
            for thread in threading.enumerate():
                if thread.name.startswith("isthmus-source"):
                    thread.join(timeout=10)

    empty = doubles.Store("b", doubles.SPOKE)
    made = World()
    made.hang = threading.Event()
    yield made
    made.wait_for_threads()


def assert_only_a(world, ranking):
    whole = world.only_a()
    np.testing.assert_array_equal(ranking.ids, whole.ids)
    np.testing.assert_array_equal(ranking.scores, whole.scores)
    assert set(ranking.stores.ravel()) <= {"a", ""}


@pytest.mark.parametrize("timeout", [None, 30.0])
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(kind="error"), ("error", 3, "ConnectionError: the connection was lost")),
        (Fault(kind="error", operation="gather"), ("error", 3, "ConnectionError: the connection")),
        (Fault(kind="error", error=ClientError("502")), ("error", 3, "ClientError: 502")),
        (Fault(kind="error", error=KeyError("id")), ("error", 1, "KeyError: 'id'")),
        (Fault(kind="nan"), ("garbage", 1, "expected finite scores from the store of source 'b'")),
        (Fault(kind="shape"), ("garbage", 1, "expected ids of shape (9, 10) from the store of so")),
    ],
)
def test_a_store_that_fails_is_left_out_and_named(world, queries, fault, expected, timeout):
    kind, attempts, reason = expected
    ranking = world.make(fault, timeout=timeout).search(queries)
    assert_only_a(world, ranking)
    (outage,) = ranking.outages
    assert not ranking.complete
    assert (outage.store, outage.kind, outage.attempts, outage.queries) == ("b", kind, attempts, 9)
    assert outage.reason.startswith(reason)
    assert repr(ranking) == "Ranking(9 queries x 10, stores 'a', without 'b')"


def test_an_error_that_passes_is_not_seen(world, queries):
    whole = world.make().search(queries)
    assert whole.complete
    for calls in ([1], [1, 2]):
        ranking = world.make(Fault(kind="error", calls=calls)).search(queries)
        assert ranking.complete
        np.testing.assert_array_equal(ranking.ids, whole.ids)
    assert not world.make(Fault(kind="error", calls=[1]), retries=0).search(queries).complete


@pytest.mark.parametrize("many", [False, True])
def test_a_slow_store_is_left_behind_and_not_asked_until_it_ends(world, queries, many, monkeypatch):
    if many:
        monkeypatch.setattr(gather, "PARALLEL_QUERIES", 1)
    federation = world.make(
        Fault(kind="delay", calls=[1], seconds=3600),
        sleep=lambda _: world.hang.wait(timeout=60),
        timeout=0.05,
        clock=Clock(),
    )
    ranking = federation.search(queries)
    assert_only_a(world, ranking)
    (outage,) = ranking.outages
    assert (outage.kind, outage.attempts) == ("timeout", 1)
    assert outage.reason.startswith("no answer in 0.")
    assert all(
        thread.daemon
        for thread in threading.enumerate()
        if thread.name.startswith("isthmus-source")
    )
    again = federation.search(queries)
    assert [(one.kind, one.attempts) for one in again.outages] == [("busy", 0)]
    assert world.b.calls["search"] == 1  # not a second time beside the first
    federation.close()
    assert world.b._inner.closed == 0  # still in use
    world.wait_for_threads()
    assert world.b._inner.closed == 1
    assert federation.search(queries).complete


def test_a_source_has_a_timeout_of_its_own(world, queries):
    federation = world.make(
        Fault(kind="delay", seconds=3600),
        sleep=lambda _: world.hang.wait(timeout=60),
        timeout=None,
        clock=Clock(),
    )
    sources = [federation.sources[0], replace(federation.sources[1], timeout=0.05)]
    ranking = replace(federation, sources=sources).search(queries)
    assert [one.kind for one in ranking.outages] == ["timeout"]


def test_mapping_is_not_timed(world, queries, monkeypatch):
    """The store answers at once; a map that takes longer than the store may is not its fault."""
    federation = world.make(timeout=0.05, clock=Clock())
    compare, waited = gather.Task.compare, threading.Event()

    def slow(task, fetched):
        waited.wait(timeout=0.2)
        return compare(task, fetched)

    monkeypatch.setattr(gather.Task, "compare", slow)
    assert federation.search(queries).complete


def test_a_store_that_keeps_failing_rests_and_comes_back(world, queries):
    federation = world.make(Fault(kind="error", calls=range(1, 4)), retries=0)
    kinds = [federation.search(queries).outages[0].kind for _ in range(5)]
    assert kinds == ["error"] * 3 + ["resting"] * 2
    assert world.b.calls["search"] == 3
    world.now += 31
    assert federation.search(queries).complete


def test_blocks_of_one_search_become_one_outage(world, queries, monkeypatch):
    monkeypatch.setattr(hub, "QUERY_BLOCK", 4)  # 4, 4 and 1 of the 9
    ranking = world.make(Fault(kind="error", calls=[2, 3]), retries=0).search(queries)
    (outage,) = ranking.outages
    assert (outage.attempts, outage.queries) == (2, 5)
    assert "b" in ranking.stores[:4]
    assert "b" not in ranking.stores[4:]


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (Fault(kind="error"), ConnectionError),
        (Fault(kind="nan"), StoreError),
        (Fault(kind="error", error=ClientError("502")), ClientError),
    ],
)
def test_all_stores_can_be_required(world, queries, fault, cause):
    with pytest.raises(StoreError, match=r"an answer from every store .*store 'b' \(") as caught:
        world.make(fault, require_all=True).search(queries)
    assert isinstance(caught.value.__cause__, cause)


def test_when_every_store_fails_each_is_named(world, queries, stores):
    federation = world.make(Fault(kind="nan"))

    def fail(_):
        raise ConnectionError("no route to host")

    stores[0]._fault = fail
    with pytest.raises(StoreError) as caught:
        federation.search(queries)
    assert "an answer from at least one store" in str(caught.value)
    assert "store 'a' (error): ConnectionError: no route to host" in str(caught.value)
    assert "store 'b' (garbage): expected finite scores" in str(caught.value)


def test_an_interrupt_passes_through(world, queries, stores):
    federation = world.make(timeout=None)

    def interrupt(_):
        raise KeyboardInterrupt

    stores[0]._fault = interrupt
    with pytest.raises(KeyboardInterrupt):
        federation.search(queries)
    stores[0]._fault = None
    assert federation.search(queries).complete


def test_what_the_caller_did_wrong_is_raised_and_not_held_against_the_store(world, queries, stores):
    federation = world.make(timeout=None)

    def refuse(_):
        raise ZeroVectorError(expected="a direction", got="zero", do="leave it out")

    stores[0]._fault = refuse
    for _ in range(4):
        with pytest.raises(ZeroVectorError):
            federation.search(queries)
    stores[0]._fault = None
    assert federation.search(queries).complete


def test_a_store_says_that_a_search_was_broken_off_and_not_that_it_timed_out(
    world, queries, stores
):
    federation = world.make(Fault(kind="delay", seconds=1), sleep=lambda _: world.hang.wait(20))
    many = VectorSet(map(str, range(40)), np.tile(queries.matrix()[:1], (40, 1)), queries.space)

    def refuse(_):
        raise ZeroVectorError(expected="a direction", got="zero", do="leave it out")

    stores[0]._fault = refuse
    with pytest.raises(ZeroVectorError):
        federation.search(many)
    stores[0]._fault = None
    (outage,) = federation.search(queries).outages
    assert (outage.store, outage.kind) == ("b", "busy")
    assert outage.reason == "a call of a search that was broken off is still running"


def test_a_bridge_that_fails_is_not_the_fault_of_a_store(world, queries):
    federation = world.make()
    world.sources[1].to_hub.weight[:] = np.nan
    with pytest.raises(InvalidVectorsError, match="finite vectors from the bridge"):
        federation.search(queries)


# --- answers that are short, old, or repeat themselves -------------------------------------------


def test_a_short_answer_is_no_outage(world, queries):
    ranking = world.make(Fault(kind="short")).search(queries, k=11)
    assert ranking.complete
    assert (np.count_nonzero(ranking.stores == "b", axis=1) == 1).all()
    assert (np.count_nonzero(ranking.stores == "a", axis=1) == 10).all()


def test_an_empty_store_is_no_outage(world, queries, doubles):
    federation = world.make()
    empty = FaultyStore(doubles.Store("b", doubles.SPOKE))
    ranking = replace(
        federation, sources=[federation.sources[0], replace(federation.sources[1], store=empty)]
    ).search(queries)
    assert ranking.complete
    assert_only_a(world, ranking)


def test_a_repeated_id_is_one_candidate(world, queries):
    federation = world.make(Fault(kind="duplicate"))
    ranking = federation.search(queries, k=20, depth=25)
    assert ranking.complete
    for row in range(9):
        ids = [hit.id for hit in ranking.hits(row) if hit.store == "b"]
        assert len(ids) == len(set(ids)) > 0
    candidates = federation.candidates(queries, depth=20)
    assert (np.count_nonzero(candidates.found[:, 20:], axis=1) == 19).all()


def test_a_row_that_is_gone_is_searched_for_again(world, queries):
    whole = world.make().search(queries)
    ranking = world.make(Fault(kind="gone", calls=[1])).search(queries)
    np.testing.assert_array_equal(ranking.ids, whole.ids)
    assert ranking.complete
    assert world.b.calls["search"] == 2


def test_a_row_that_stays_gone_is_left_out(world, queries):
    whole = world.make().search(queries, k=20)
    best = world.b.search(queries.matrix() @ world.sources[1].to_store.weight, k=1).ids[0, 0]
    ranking = world.make(Fault(kind="gone")).search(queries, k=20)
    assert ranking.complete
    for row in range(9):
        there = [(hit.id, hit.score) for hit in whole.hits(row) if hit.id != best]
        here = [(hit.id, hit.score) for hit in ranking.hits(row)]
        assert here[: len(there)] == there


@pytest.mark.parametrize(
    "spoil",
    [
        lambda found: Found(found.ids.astype(object), found.native_scores, found.scores),
        lambda found: Found(np.arange(90).reshape(9, 10), found.native_scores, found.scores),
        lambda found: Found(found.ids.tolist(), found.native_scores, found.scores),
        lambda found: Found(found.ids, found.native_scores, found.scores.astype(int)),
        lambda found: Found(found.ids, found.native_scores, found.scores[0]),
        lambda _: None,
    ],
)
def test_garbage_from_a_search(world, queries, stores, spoil):
    federation = world.make()
    stores[1]._fault = spoil
    ranking = federation.search(queries)
    assert [one.kind for one in ranking.outages] == ["garbage"]
    stores[1]._fault = None
    assert_only_a(world, ranking)


def test_a_score_without_an_id_is_no_candidate(world, queries, stores):
    def spoil(found):
        ids = found.ids.copy()
        ids[:, 5:] = ""
        return Found(ids, found.native_scores, found.scores)

    federation = world.make()
    stores[1]._fault = spoil
    candidates = federation.candidates(queries, depth=10)
    assert np.isnan(candidates.native[:, 15:]).all()
    ranking = federation.search(queries, k=20)
    assert np.isnan(ranking.scores[ranking.ids == ""]).all()


class SilentError(Exception):
    """Cannot be printed."""

    def __str__(self):
        raise ValueError("no text")


def test_an_error_that_cannot_be_printed_is_an_outage(world, queries, stores):
    def fail(_):
        raise SilentError

    federation = world.make(retries=0)
    stores[1]._fault = fail
    (outage,) = federation.search(queries).outages
    assert (outage.kind, outage.reason) == ("error", "SilentError")


def test_a_timeout_of_many_years_is_one(world, queries):
    assert world.make(timeout=1e300).search(queries).complete


def wrong_rows(gathered):
    return replace(gathered, rows=gathered.rows[:, :3])


def rows_too_large(gathered):
    return replace(gathered, rows=gathered.rows + len(gathered.vectors))


def nothing_at_all(gathered):
    return Gathered(None, gathered.rows)


def rows_of_numbers(gathered):
    return replace(gathered, rows=gathered.rows.astype(np.float32))


def vectors_of_other_ids(gathered):
    return replace(gathered, rows=np.roll(gathered.rows, 1, axis=1))


@pytest.mark.parametrize(
    "spoil",
    [wrong_rows, rows_too_large, nothing_at_all, rows_of_numbers, vectors_of_other_ids],
)
def test_garbage_from_a_gather(world, queries, spoil, monkeypatch):
    federation = world.make()
    whole = world.b.gather
    monkeypatch.setattr(world.b, "gather", lambda ids: spoil(whole(ids)))
    (outage,) = federation.search(queries).outages
    assert outage.kind == "garbage"
    assert outage.reason.startswith("expected one row of its space per id")


def test_vectors_of_another_space_and_damaged_ones(world, queries, doubles, monkeypatch):
    federation = world.make()
    whole = world.b.gather

    def moved(ids):
        gathered = whole(ids)
        other = doubles.unit(np.random.default_rng(0), len(gathered.vectors), doubles.THIRD.dim)
        return replace(gathered, vectors=VectorSet(gathered.vectors.ids, other, doubles.THIRD))

    def damaged(ids):
        gathered = whole(ids)
        VectorSet(gathered.vectors.ids, gathered.vectors.matrix() * np.nan, doubles.SPOKE)

    for spoil, reason in ((moved, "one row of its space"), (damaged, "the vectors of what the")):
        monkeypatch.setattr(world.b, "gather", spoil)
        (outage,) = federation.search(queries).outages
        assert outage.kind == "garbage"
        assert reason in outage.reason


# --- counting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [ConnectionError("no route to host"), None, -1])
def test_an_answer_is_not_cut_where_a_store_cannot_be_counted(
    world, queries, monkeypatch, doubles, answer
):
    def count():
        if isinstance(answer, Exception):
            raise answer
        return answer

    federation = world.make(retries=0)
    rows = doubles.unit(np.random.default_rng(5), 1_500, doubles.SPOKE.dim)
    monkeypatch.setattr(world.b, "_inner", doubles.Store("b", doubles.SPOKE, rows))
    monkeypatch.setattr(world.b, "count", count)
    ranking = federation.search(queries, k=2_500)
    assert np.count_nonzero(ranking.ids[0] != "") == 30 + 1_500


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"retries": -1}, "retries as a whole number"),
        ({"timeout": 0}, "timeout in seconds over 0"),
        ({"timeout": "x"}, "timeout in seconds over 0"),
        ({"timeout": True}, "timeout in seconds over 0"),
        ({"seed": 0.5}, "seed as a whole number"),
        ({"dedup_similarity": 1.5}, "dedup_similarity from 0 to 1"),
    ],
)
def test_parameters(world, options, match):
    with pytest.raises(ParameterError, match=match):
        world.make(**options)


def test_rankings_of_batches_merge_their_outages(world, queries):
    federation = world.make(Fault(kind="error"), retries=0)
    both = Ranking.concatenate([federation.search(queries), federation.search(queries)])
    (outage,) = both.outages
    assert outage.queries == 18


LEAVES = """
import numpy as np
from isthmus.federate import Federation, Source
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore
from isthmus.testing import Fault, FaultyStore

space = Space(model="m", dim=2)
inner = MemoryStore(space)
inner.upsert(VectorSet(["x"], [[1, 0]], space))
hanging = FaultyStore(inner, [Fault(kind="delay", seconds=3600)])
sources = [Source("a", inner), Source("b", hanging, timeout=0.05)]
with Federation(space, sources) as federation:
    print([one.kind for one in federation.search(VectorSet(["q"], [[1, 0]], space)).outages])
"""


def test_a_call_that_hangs_does_not_keep_the_program_from_ending():
    done = subprocess.run(
        [sys.executable, "-c", LEAVES], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "['timeout']"
    assert done.stderr == ""


def test_sentences_of_outages_are_joined_without_a_full_stop_before_the_semicolon(doubles, queries):
    def fail(_):
        raise StoreError(expected="access", got="a lock", do="wait for it")

    sources = [Source(name, doubles.Store(name, doubles.HUB)) for name in ("one", "two")]
    for source in sources:
        source.store._fault = fail
    with pytest.raises(StoreError) as caught:
        Federation(doubles.HUB, sources, retries=0, clock=Clock()).search(queries)
    assert "Do: wait for it; store 'two' (error): expected access" in str(caught.value)
    assert ".;" not in str(caught.value)
    assert ".." not in str(caught.value)
