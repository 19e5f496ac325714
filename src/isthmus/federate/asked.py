"""The queries of a federated search, in every space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from isthmus._types import FloatArray, IntArray
from isthmus.errors import CountMismatchError, InputError, ParameterError, UnknownNameError
from isthmus.federate.source import Source
from isthmus.federate.spokes import Spoke
from isthmus.spaces import VectorSet

__all__ = ["in_every_space"]

ROUNDING = 1e-4
"""Difference of two numbers, of their size or absolute, that is taken for rounding."""


def in_every_space(
    queries: VectorSet,
    native: Mapping[str, VectorSet],
    *,
    sources: Sequence[Source],
    space_of: IntArray,
    spokes: Sequence[Spoke],
) -> list[FloatArray]:
    """Return the queries in every space, the hub's first: native where given, mapped elsewhere.

    Parameters
    ----------
    queries : VectorSet
        In the hub's space.
    native : mapping of source name to VectorSet
        The same queries, encoded by the model of that source.
    sources : sequence of Source
    space_of : IntArray of shape (n_sources,)
        The space that each holds.
    spokes : sequence of Spoke
        All spaces, the hub's first.

    Raises
    ------
    InputError
        Queries that name no space.
    ParameterError
        Native queries of one space that differ.
    SpaceMismatchError, UnknownNameError, CountMismatchError
    """
    hub = spokes[0].space
    if not isinstance(queries, VectorSet):
        raise InputError(
            expected=f"queries as a VectorSet in {hub}",
            got=f"a {type(queries).__name__}, which names no space",
            do="pass VectorSet(ids, vectors, space), with the space of the model that made them",
        )
    hub.check(queries.space, what="queries")
    by_space: dict[int, FloatArray] = {0: queries.matrix()}
    given_by = {0: "the queries"}
    names = [source.name for source in sources]
    for name, vectors in native.items():
        if name not in names:
            raise UnknownNameError.of("source", name, names)
        source = sources[names.index(name)]
        source.store.space.check(vectors.space, what=f"native queries of source {name!r}")
        if not np.array_equal(vectors.ids, queries.ids):
            raise CountMismatchError(
                expected=f"native queries of source {name!r} with the ids of the queries, in "
                "their order",
                got=f"{len(vectors)} ids that differ",
                do="select the rows in the queries' order first",
            )
        space = int(space_of[names.index(name)])
        what = f"native queries of source {name!r}"
        rows = by_space.setdefault(space, vectors.matrix())
        _check_equal(rows, vectors.matrix(), given_by.setdefault(space, what), what)
    return [
        by_space[space] if space in by_space else spoke.from_hub(by_space[0])
        for space, spoke in enumerate(spokes)
    ]


def _check_equal(one: FloatArray, other: FloatArray, first: str, second: str) -> None:
    """Refuse two sets of queries in one space: only one of them can be asked there."""
    if one is not other and not np.allclose(one, other, rtol=ROUNDING, atol=ROUNDING):
        raise ParameterError(
            expected=f"one vector per query and space: {first} and {second} are of one space",
            got="vectors that differ",
            do="give one of them, or the same ones",
        )
