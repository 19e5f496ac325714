"""Checks of the declared limits: what is just allowed is kept whole, what is more is refused."""

from __future__ import annotations

import re
from functools import partial
from urllib.parse import parse_qs, quote, urlsplit

from isthmus.errors import (
    InputError,
    InvalidIdError,
    MissingCollectionError,
    ParameterError,
    UnsupportedOperationError,
)
from isthmus.spaces import VectorSet
from isthmus.stores import MemoryStore, NameRule
from isthmus.testing.store_suite._compare import (
    Given,
    MakeStore,
    expect,
    expect_error,
    random_set,
    same_answers,
    same_rows,
    some_space,
)

__all__ = ["CHECKS"]

WIDE = "\N{LINEAR B SYLLABLE B008 A}"
OTHER = "\N{LINEAR B SYLLABLE B038 E}"
"""Characters of four bytes."""
LONGEST_ID = 4 * 1_024
"""Bytes of the longest id that a `VectorSet` takes: 1,024 characters of four bytes."""
LARGE_TEXT = 30_000
LONGEST_NAME = 255


def takes_ids_up_to_the_longest(make: MakeStore) -> None:
    """Ids of as many bytes as declared are kept whole; longer ones are refused."""
    given = Given(make(some_space()), MemoryStore(some_space()))
    with given.store as store:
        limit = store.capabilities.max_id_bytes
        most = LONGEST_ID if limit is None else min(limit, LONGEST_ID)
        vectors = random_set(3, some_space())
        ids = [*(_long(most - len(WIDE.encode())) + last for last in (WIDE, OTHER)), "short"]
        given.upsert(VectorSet(ids, vectors.vectors, vectors.space))
        same_rows(given)
        same_answers(given, random_set(2, some_space(), seed=3).matrix(), k=3)
        found = store.fetch(ids[::-1]).ids.tolist()
        expect(found == ids[::-1], f"ids of {most:,} bytes, as they were given")
        expect(store.held(ids[:1]).ids == ids[:1], f"the row whose id has {most:,} bytes")
        if limit is not None and limit < LONGEST_ID:
            too_long = VectorSet([_long(limit + 1)], vectors.vectors[:1], vectors.space)
            expect_error(InvalidIdError, partial(store.upsert, too_long), what="an id too long")
        expect(store.delete(ids[1:2]) == 1, "one of two that differ in the last character")
        given.reference.delete(ids[1:2])
        same_rows(given)


def _long(size: int) -> str:
    """Return an id of so many bytes, of as few characters as can be."""
    wide, narrow = divmod(size, len(WIDE.encode()))
    return WIDE * wide + "x" * narrow


def refuses_large_metadata(make: MakeStore) -> None:
    """Metadata that the database would cut or refuse are refused before they are sent."""
    space = some_space()
    with make(space) as store:
        able = store.capabilities
        row = VectorSet(["a"], random_set(1, space).vectors, space)
        more = (able.max_metadata_bytes or 0) if able.filters else 0
        size = more or LARGE_TEXT
        write = partial(store.upsert, row, metadata=[{"text": "x" * size}])
        if not able.filters:
            expect_error(UnsupportedOperationError, write, what="metadata")
        elif more:
            expect_error(InputError, write, what="metadata too large")
        else:
            write()
            expect(store.fetch_metadata(["a"]) == [{"text": "x" * size}], "a text as it was given")
        expect(store.count() == (able.filters and not more), "nothing written of what was refused")


def takes_names_up_to_the_longest(make: MakeStore) -> None:
    """The longest name that is allowed makes a collection; a longer one is refused."""
    with make(some_space()) as store:
        kind, url, able = type(store), store.url, store.capabilities
        (name,) = parse_qs(urlsplit(url).query)["collection"]
        expect(_is_name(able.names, name), "the declared rule allows the name of a collection")
        if not able.persistent:
            return
    longest = name
    while _is_name(able.names, longest + "x"):
        longest += "x"
    its = url.replace(f"collection={quote(name)}", f"collection={quote(longest)}")
    refused = partial(kind.open, f"{its}x", space=some_space())
    expect_error((ParameterError, InputError), refused, what="a name too long")
    try:
        named = kind.open(its, space=some_space())
    except MissingCollectionError:  # a file of one collection, which has its name already
        with kind.open(url) as store:
            expect((store.count(), store.url) == (0, url), "the only collection of the place")
        return
    with named as store:
        given = Given(store, MemoryStore(some_space()))
        given.upsert(random_set(3, some_space()))
        same_rows(given)
    with kind.open(its) as store:
        same_rows(Given(store, given.reference))


def _is_name(rule: NameRule, name: str) -> bool:
    return len(name) <= LONGEST_NAME and re.fullmatch(rule.pattern, name) is not None


CHECKS = (
    takes_ids_up_to_the_longest,
    refuses_large_metadata,
    takes_names_up_to_the_longest,
)
