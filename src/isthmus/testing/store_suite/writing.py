"""Checks of what goes into a store and comes out again."""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np

from isthmus.errors import (
    CountMismatchError,
    EmptyInputError,
    InputError,
    InvalidVectorsError,
    MissingCollectionError,
    SpaceMismatchError,
    UnknownIdError,
    UnknownNameError,
    UnsupportedOperationError,
)
from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore, Store
from isthmus.testing.store_suite._compare import (
    Given,
    MakeStore,
    agree,
    as_stored,
    expect,
    expect_error,
    filled,
    random_set,
    same_answers,
    same_rows,
    some_space,
)

__all__ = ["CHECKS"]

TEXTS = ["é", "日本語", "🚢 ship", "a b", "'; DROP TABLE x; --", '"', "%_\\", "A", "a", " x ", "0"]


def starts_empty(make: MakeStore) -> None:
    """A new collection holds nothing, and says so everywhere."""
    with make(some_space()) as store:
        expect(store.count() == 0, "count 0 at the start")
        expect(store.space == some_space(), "the space it was made with")
        expect(list(store.scan()) == [], "a scan of nothing")
        expect(store.delete(["no"]) == 0, "delete returns 0 for an id that is not there")
        expect(store.delete([]) == 0, "delete takes no ids at all")
        expect_error(UnknownIdError, lambda: store.fetch(["no"]), what="fetch of an unknown id")
        expect_error(EmptyInputError, lambda: store.fetch([]), what="fetch of no ids")
        found = store.search(np.ones((2, 12), np.float32), k=3)
        expect(found.ids.tolist() == [["", "", ""]] * 2, "empty ids from an empty store")
        expect(np.isnan(found.scores).all(), "NaN scores from an empty store")


def keeps_text_of_any_kind(make: MakeStore) -> None:
    """Ids and metadata may hold any text."""
    vectors = VectorSet(TEXTS, random_set(len(TEXTS), some_space()).vectors, some_space())
    with make(some_space()) as probe:
        metadata = [{text: text} for text in TEXTS] if probe.capabilities.filters else None
    given = filled(make, vectors, metadata)
    with given.store as store:
        same_rows(given)
        expect(store.fetch(TEXTS[::-1]).ids.tolist() == TEXTS[::-1], "the ids that were asked for")
        for text in TEXTS if metadata else ():
            expect(store.fetch_metadata([text]) == [{text: text}], f"metadata with {text!r}")
            found = store.search(vectors.vectors[:1], k=3, where={text: text})
            expect(found.ids.tolist() == [[text, "", ""]], f"a filter by {text!r}")


def keeps_numbers_to_the_last_digit(make: MakeStore) -> None:
    """Numbers in metadata come back, and are found, as they were given."""
    with make(some_space()) as store:
        if not store.capabilities.filters:
            expect_error(
                UnsupportedOperationError, partial(store.fetch_metadata, ["a"]), what="metadata"
            )
            return
        numbers = [row / 3 for row in range(200, 300)] + [0.1, 1e300, -1e-300, 2.0**53, 90.5]
        vectors = random_set(len(numbers), some_space())
        fields = [{"plain": one, "within": {"list": [one]}} for one in numbers]
        store.upsert(vectors, metadata=fields)
        ids = vectors.ids.tolist()
        got = store.fetch_metadata(ids)
        odd = [text for text, one, given in zip(ids, got, fields, strict=True) if one != given]
        expect(not odd, f"numbers as they were given; {len(odd)} rows differ")
        for row in (71, 100, 102):
            found = store.search(vectors.vectors[:1], k=2, where={"plain": numbers[row]})
            expect(found.ids.tolist() == [[ids[row], ""]], f"a filter by {numbers[row]!r}")


def holds_one_row(make: MakeStore) -> None:
    """One row is a collection."""
    given = filled(make, random_set(1, some_space()))
    with given.store:
        same_rows(given)
        same_answers(given, random_set(3, some_space(), seed=1).matrix(), k=2)


def holds_10001_rows(make: MakeStore) -> None:
    """More rows than a round number of batches."""
    given = filled(make, random_set(10_001, some_space()))
    with given.store as store:
        same_rows(given)
        same_answers(given, random_set(25, some_space(), seed=1).matrix(), k=10)
        ids = [f"row-{row}" for row in (1, 10_001, 5_000)]
        expected = as_stored(store, given.reference.fetch(ids).matrix())
        agree(store.fetch(ids).matrix(), expected, store)


def reads_back_as_declared(make: MakeStore) -> None:
    """Vectors come back raw or normalised, bit for bit or nearly, as the store declares."""
    vectors = np.full((4, 12), 0.1, np.float32)
    vectors[1, 3] = np.float32(np.finfo(np.float32).tiny) / 8  # a number that some would flush to 0
    vectors[2, 5] = -0.0
    vectors[3] *= 1e10
    given = filled(make, VectorSet(["a", "b", "c", "d"], vectors, some_space()))
    with given.store:
        same_rows(given)


def replaces_rows_by_id(make: MakeStore) -> None:
    """An upsert with an id that is there takes its place, vector and metadata alike."""
    space = some_space()
    with make(space) as probe:
        metadata = [{"old": True}] * 5 if probe.capabilities.filters else None
    given = filled(make, random_set(5, space), metadata)
    with given.store as store:
        given.upsert(VectorSet(["row-3", "new"], random_set(2, space, seed=2).vectors, space))
        same_rows(given)
        same_answers(given, random_set(4, space, seed=3).matrix(), k=6)
        if metadata:
            expect(store.fetch_metadata(["row-3"]) == [{}], "metadata replaced with the row")
            expect(store.fetch_metadata(["row-4"]) == [{"old": True}], "other metadata kept")


def deletes_rows(make: MakeStore) -> None:
    """A row that is removed is gone; written again, it comes last."""
    given = filled(make, random_set(6, some_space()))
    with given.store as store:
        given.delete(["row-2", "row-5", "never"])
        same_rows(given)
        same_answers(given, random_set(4, some_space(), seed=3).matrix(), k=6)
        expect_error(UnknownIdError, lambda: store.fetch(["row-1", "row-2"]), what="a deleted id")
        again = VectorSet(["row-2"], random_set(1, some_space(), seed=4).vectors, some_space())
        given.upsert(again)
        same_rows(given)


def resumes_a_scan(make: MakeStore) -> None:
    """A scan goes on after a cursor, and sees what was written meanwhile."""
    given = filled(make, random_set(25, some_space()))
    with given.store as store:
        if not store.capabilities.scan:
            expect_error(UnsupportedOperationError, lambda: next(store.scan()), what="scan")
            later = store.scan(cursor="1")
            expect_error(UnsupportedOperationError, lambda: next(later), what="scan")
            return
        batches = list(store.scan(batch_size=10))
        expect([len(batch.vectors) for batch in batches] == [10, 10, 5], "batches of 10, 10 and 5")
        rest = [
            text for b in store.scan(cursor=batches[0].cursor) for text in b.vectors.ids.tolist()
        ]
        expected = [text for b in batches[1:] for text in b.vectors.ids.tolist()]
        expect(rest == expected, "the rest of the rows after the first batch's cursor")
        expect(list(store.scan(cursor=batches[-1].cursor)) == [], "nothing after the last cursor")
        given.upsert(random_set(1, some_space(), seed=5, prefix="late"))
        late = [b.vectors.ids.tolist() for b in store.scan(cursor=batches[-1].cursor)]
        if store.capabilities.scan_order == "insertion":
            expect(late == [["late-1"]], "rows that were written after the last cursor")
        same_rows(given)
        expect_error(InputError, lambda: list(store.scan(cursor="?")), what="a cursor of nowhere")
        expect_error(InputError, lambda: list(store.scan(batch_size=0)), what="batches of no rows")


def fetches_in_the_order_asked_for(make: MakeStore) -> None:
    """Rows come in the order of the ids, and `gather` takes ids that repeat."""
    given = filled(make, random_set(30, some_space()))
    with given.store as store:
        ids = ["row-7", "row-30", "row-1"]
        got = store.fetch(ids)
        expect(got.ids.tolist() == ids, "rows in the order asked for")
        expect(got.space == store.space, "the space of the store")
        agree(got.matrix(), as_stored(store, given.reference.fetch(ids).matrix()), store)
        asked = np.array([["row-7", ""], ["row-1", "row-7"]])
        for _ in range(2):  # the second time after a batch was searched, from memory perhaps
            gathered = store.gather(asked)
            expect(gathered.rows.shape == (2, 2) and gathered.rows[0, 1] == -1, "row -1 for no id")
            expect(gathered.vectors is not None and len(gathered.vectors) == 2, "each row once")
            if gathered.vectors is not None:
                names = gathered.vectors.ids[gathered.rows]
                expect(
                    (names[asked != ""] == asked[asked != ""]).all(), "rows of the ids asked for"
                )
            nothing = store.gather(np.array([[""]]))
            expect(nothing.vectors is None and nothing.rows.tolist() == [[-1]], "nothing for no id")
            expect_error(
                UnknownIdError, lambda: store.gather(np.array(["row-1", "no"])), what="unknown id"
            )
            store.search(random_set(64, some_space(), seed=1).matrix(), k=2)


def gives_what_it_has(make: MakeStore) -> None:
    """`held` gives the rows of those ids that are there, with their metadata, and no error."""
    given = filled(make, random_set(30, some_space()))
    with given.store as store:
        asked = ["row-7", "no", "row-30", *(f"none-{row}" for row in range(5)), "row-1"]
        expected, got = given.reference.held(asked), store.held(asked)
        expect(sorted(got.ids) == sorted(expected.ids), "the ids that are there, each once")
        places = [got.ids.index(text) for text in expected.ids]
        agree(got.vectors[places], as_stored(store, expected.vectors), store)
        if store.capabilities.filters:
            metadata = [got.metadata[place] for place in places]
            expect(metadata == expected.metadata, "the metadata of each row")
        for nothing in ([], ["no"]):
            found = store.held(nothing)
            empty = (found.ids, found.metadata, found.vectors.shape) == ([], [], (0, 12))
            expect(empty, "nothing of what is not there")


def keeps_notes_with_a_batch(make: MakeStore) -> None:
    """Notes commit with the rows, or the store refuses them."""
    vectors = random_set(3, some_space())
    with make(some_space()) as store:
        if not store.capabilities.notes:
            expect_error(UnsupportedOperationError, store.notes, what="notes")
            with_note = partial(store.upsert, vectors, notes={"cursor": "1"})
            expect_error(UnsupportedOperationError, with_note, what="notes")
            alone = partial(store.write_notes, {"cursor": "1"})
            expect_error(UnsupportedOperationError, alone, what="notes without rows")
            expect(store.count() == 0, "nothing written when notes are refused")
            return
        expect(store.notes() == {}, "no notes at the start")
        store.upsert(vectors, notes={"cursor": "é1", "other": "x"})
        store.upsert(vectors, notes={"cursor": "2", "other": ""})
        expect(store.notes() == {"cursor": "2"}, "the last note of each key, the empty one removed")
        no_text: Any = {"cursor": 3}
        with_number = partial(store.upsert, vectors, notes=no_text)
        expect_error(InputError, with_number, what="a note that is no text")
        other = VectorSet(vectors.ids, vectors.vectors, Space(model="other", dim=12))
        expect_error(
            SpaceMismatchError, lambda: store.upsert(other, notes={"cursor": "3"}), what="a space"
        )
        expect(store.notes() == {"cursor": "2"}, "no note of an upsert that failed")
        store.write_notes({"cursor": "", "alone": "é3"})
        expect(store.notes() == {"alone": "é3"}, "notes without rows")
        expect(store.count() == len(vectors), "no row lost by a note")


def refuses_bad_rows(make: MakeStore) -> None:
    """What is refused leaves nothing behind."""
    space = some_space()
    vectors = random_set(3, space)
    given = filled(make, random_set(2, space, seed=1))
    with given.store as store:
        for name, other in (
            ("another model", Space(model="other", dim=12)),
            ("another metric", some_space("l2")),
            ("another dimension", some_space(dim=13)),
        ):
            rows = random_set(3, other)
            expect_error(SpaceMismatchError, partial(store.upsert, rows), what=name)
        kinds: Any = (CountMismatchError, InputError, InputError, InputError)
        bad: Any = ([{}], [{}, {}, {"a": {1, 2}}], [{}, {}, {1: 2}], [{}, {}, {"a": np.nan}])
        for kind, metadata in zip(kinds, bad, strict=True):
            expect_error(
                kind if store.capabilities.filters else UnsupportedOperationError,
                partial(store.upsert, vectors, metadata=metadata),
                what=f"metadata {metadata}",
            )
        same_rows(given)


def writes_all_or_nothing(make: MakeStore) -> None:
    """A bad row that is found late, in a mapped file, takes the rows before it back.

    As many rows are written as the store declares to commit together.
    """
    space = some_space(dim=2)
    with tempfile.TemporaryDirectory() as folder, make(space) as store:
        rows = store.capabilities.max_batch or 70_000
        path = Path(folder) / "rows.npy"
        mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, 2))
        mapped[:] = 1.0
        mapped[-1] = np.nan
        mapped.flush()
        ids = np.arange(rows).astype(np.str_)
        vectors = VectorSet(ids, np.load(path, mmap_mode="r"), space)
        expect_error(InvalidVectorsError, lambda: store.upsert(vectors), what="a late NaN")
        expect(store.count() == 0, "nothing of an upsert that failed")


def leaves_the_callers_arrays_alone(make: MakeStore) -> None:
    """Neither side sees what the other does to an array afterwards."""
    values = random_set(3, some_space()).matrix().copy()
    before = values.copy()
    with make(some_space()) as store:
        store.upsert(VectorSet(["a", "b", "c"], values, some_space()))
        store.search(values, k=2)
        expect((values == before).all(), "the caller's vectors unchanged")
        values *= 2
        expected = as_stored(store, before)
        agree(store.fetch(["a", "b", "c"]).matrix(), expected, store)


def looks_at_rows_unchecked(make: MakeStore) -> None:
    """A scan for a diagnosis gives the same rows as the checked one, and resumes like it."""
    given = filled(make, random_set(25, some_space()))
    with given.store as store:
        checked = list(store.scan(batch_size=10))
        raw = list(store.scan_unchecked(batch_size=10))
        expect([batch.cursor for batch in raw] == [b.cursor for b in checked], "the same cursors")
        expect([b.ids for b in raw] == [b.vectors.ids.tolist() for b in checked], "the same ids")
        for one, other in zip(raw, checked, strict=True):
            expect(np.array_equal(one.vectors, other.vectors.matrix()), "the same vectors")
        rest = list(store.scan_unchecked(cursor=raw[0].cursor))
        expect(sum(len(batch.ids) for batch in rest) == 15, "the rows after a cursor")


def takes_two_writers(make: MakeStore) -> None:
    """Two handles write at once, and both see all rows; or the store is one process's own."""
    if not (store := make(some_space())).capabilities.persistent:
        store.close()
        return
    kind, url = type(store), store.url
    with store:
        if store.capabilities.concurrency != "many writers":
            return
        halves = [random_set(300, some_space(), seed=n, prefix=f"w{n}") for n in (1, 2)]

        def write(half: VectorSet) -> None:
            with kind.open(url) as other:
                for batch in half.iter_batches(50):
                    other.upsert(batch)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(write, halves))
        expect(store.count() == 600, f"600 rows of two writers, not {store.count()}")
        got = store.fetch(["w1-1", "w2-300"])
        agree(got.matrix()[:1], as_stored(store, halves[0].select([299]).matrix()), store)


def has_a_second_vector(make: MakeStore) -> None:
    """``&vector=NAME`` gives rows a further vector in another space, or is refused."""
    given = filled(make, random_set(30, some_space()))
    with given.store as store:
        kind, url = type(store), f"{store.url}&vector=second"
        other = Space(model="second", dim=5)
        if not store.capabilities.several_vectors:
            if store.capabilities.persistent:
                expect_error(
                    (UnsupportedOperationError, UnknownNameError),
                    partial(kind.open, url, space=other),
                    what="a second vector",
                )
            return
        expect_error(MissingCollectionError, partial(kind.open, url), what="no second vector yet")
        with kind.open(url, space=other) as second:
            expect(second.space == other and second.count() == 0, "a second vector in its space")
            expect(list(second.scan()) == [], "no row that has it")
            beside = Given(second, MemoryStore(other))
            ids = [f"row-{row}" for row in range(1, 21)]
            vectors = random_set(20, other, seed=2).vectors
            beside.upsert(VectorSet(ids, vectors, other))
            same_rows(beside)
            same_answers(beside, random_set(4, other, seed=3).matrix(), k=5)
            expect(second.notes() == {} or store.capabilities.notes is None, "notes of its own")
        with kind.open(url) as second:
            expect(second.space == other and second.count() == 20, "the second vector, again")
        same_rows(given)
        same_answers(given, random_set(4, some_space(), seed=3).matrix(), k=5)
        given.upsert(random_set(5, some_space(), seed=4))
        same_rows(given)
        with kind.open(url) as second:
            same_rows(Given(second, beside.reference))
            expect(second.delete(["row-1", "row-30"]) == 1, "only rows that have it lose it")
            beside.reference.delete(["row-1"])
            same_rows(Given(second, beside.reference))
        same_rows(given)


def moves_a_name(make: MakeStore) -> None:
    """`take_name` makes a name lead here, and back again; or it is refused."""
    old, new = filled(make, random_set(3, some_space())), filled(make, random_set(4, some_space()))
    with old.store, new.store:
        if old.store.capabilities.switch is None:
            refused = partial(new.store.take_name, "isthmus-name", former="isthmus-former")
            expect_error(UnsupportedOperationError, refused, what="a switch of names")
            return
        kind, names = type(old.store), [_collection(given.store.url) for given in (old, new)]
        first = "I" if names[0][0].isupper() else "i"  # some databases want a capital
        live = f"{first}sthmus_live_" + names[0][-8:].strip("_-.")
        url = old.store.url.replace(f"collection={quote(names[0])}", f"collection={live}")
        expect_error(MissingCollectionError, partial(kind.open, url), what="a name not yet taken")
        for given, rows in ((old, 3), (new, 4)):
            given.store.take_name(live, former=f"{names[0]}_former")
            with kind.open(url) as found:
                expect(found.count() == rows, f"the name leads to the {rows} rows")
                same_rows(Given(found, given.reference))


def _collection(url: str) -> str:
    return parse_qs(urlsplit(url).query)["collection"][0]


def opens_again(make: MakeStore) -> None:
    """The URL opens the same collection, or the store declares that it does not last."""
    given = filled(make, random_set(20, some_space()))
    store = given.store
    kind, url = type(store), store.url
    info = json.loads(json.dumps(store.info()))
    expect(info["count"] == 20 and info["url"] == url, "info as JSON values, with count and url")
    store.close()
    store.close()
    if not store.capabilities.persistent:
        expect_error(MissingCollectionError, lambda: kind.open(url), what="a store that is gone")
        return
    with kind.open(url) as again:
        expect(again.space == some_space() and again.url == url, "the recorded space, the same url")
        same_rows(type(given)(again, given.reference))
    with kind.open(url, space=some_space().with_kind("query")) as again:
        expect(again.count() == 20, "the rows, when it is opened with its own space")
    _refuses_another_space(kind, url)


def _refuses_another_space(kind: type[Store], url: str) -> None:
    for other in (Space(model="other", dim=12), some_space("dot"), some_space(dim=13)):
        expect_error(
            SpaceMismatchError,
            partial(kind.open, url, space=other),
            what=f"a collection opened with the space {other}",
        )


CHECKS = (
    starts_empty,
    keeps_text_of_any_kind,
    keeps_numbers_to_the_last_digit,
    holds_one_row,
    holds_10001_rows,
    reads_back_as_declared,
    replaces_rows_by_id,
    deletes_rows,
    resumes_a_scan,
    fetches_in_the_order_asked_for,
    gives_what_it_has,
    keeps_notes_with_a_batch,
    refuses_bad_rows,
    writes_all_or_nothing,
    leaves_the_callers_arrays_alone,
    looks_at_rows_unchecked,
    takes_two_writers,
    has_a_second_vector,
    moves_a_name,
    opens_again,
)
