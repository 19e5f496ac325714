"""The conformance suite of stores: every store, on the same data, against the reference.

A connector proves itself with it, inside this project or outside. The suite needs a function that
makes a new, empty collection in a given space; it knows no test framework::

    from isthmus.testing import store_suite

    def make(space):
        return MyStore.open(f"mine://host?collection=test-{uuid4().hex}", space=space)

    store_suite.run(make)                                     # all checks, all failures

    @pytest.mark.parametrize("check", store_suite.CHECKS, ids=store_suite.name)
    def test_my_store(check):                                 # or one test per check
        check(make)

What a store declares it cannot do must raise `UnsupportedOperationError`; the suite checks that
too. An exact store must give the ids of the reference in the same order, ties by insertion; another
at least nine of ten of them.
"""

from __future__ import annotations

from isthmus.testing.store_suite import limits, searching, writing
from isthmus.testing.store_suite._compare import Check, MakeStore

__all__ = ["CHECKS", "Check", "MakeStore", "name", "run"]

CHECKS: tuple[Check, ...] = (*writing.CHECKS, *limits.CHECKS, *searching.CHECKS)


def name(check: Check) -> str:
    """Return the name of a check, for a test's id.

    Examples
    --------
    >>> name(CHECKS[0])
    'starts_empty'
    """
    return getattr(check, "__name__", repr(check))


def run(make: MakeStore) -> None:
    """Run every check, then report every one that failed.

    Parameters
    ----------
    make : callable
        Takes a space, returns a new, empty store.

    Raises
    ------
    ExceptionGroup
        With one exception per check that failed, each noted with the check's name.

    Examples
    --------
    >>> from isthmus.stores import MemoryStore
    >>> run(MemoryStore)
    """
    failures: list[Exception] = []
    for check in CHECKS:
        try:
            check(make)
        except Exception as error:  # noqa: BLE001 - a connector may raise anything
            error.add_note(f"in the check {name(check)!r}: {check.__doc__}")
            failures.append(error)
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(CHECKS)} checks failed", failures)
