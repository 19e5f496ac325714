"""Say which model made a collection that another program filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus.errors import InvalidVectorsError, SpaceMismatchError
from isthmus.spaces import Space
from isthmus.stores import Store, open_store

__all__ = ["Recorded", "record_space"]

LOOKED_AT = 1_000
"""Rows whose lengths are looked at: those at the start of the scan."""
UNIT = 2e-3


@dataclass(frozen=True)
class Recorded:
    """What came of it.

    Parameters
    ----------
    url : str
    space : Space
        What is recorded now.
    before : Space or None
        What was.
    notes : tuple of str
        What should be thought about.
    """

    url: str
    space: Space
    before: Space | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        before = None if self.before is None else self.before.to_dict()
        return {**vars(self), "space": self.space.to_dict(), "before": before}


def record_space(
    url: str,
    *,
    model: str,
    revision: str = "",
    preprocessing: str = "",
    normalized: bool = False,
    dim: int | None = None,
    replace: bool = False,
) -> Recorded:
    """Record the space of a collection, with the database's own dimension and metric.

    No row is touched.

    Parameters
    ----------
    url : str
        Of the collection.
    model, revision, preprocessing : str
        See `Space`.
    normalized : bool, default False
        Whether the encoder gives vectors of length 1.
    dim : int, optional
        For a collection without rows, whose database declares none.
    replace : bool, default False
        Whether another space that is recorded is replaced.

    Raises
    ------
    SpaceMismatchError
        Another space is recorded, or the database has another dimension.
    InvalidVectorsError
        ``normalized``, and rows of other lengths.
    UnsupportedOperationError
        ``replace``, and a store whose collections only Isthmus fills.
    """
    named: dict[str, Any] = {
        "model": model,
        "revision": revision,
        "preprocessing": preprocessing,
        "normalized": normalized,
    }
    if dim is not None:
        space = Space(dim=dim, **named)
        with open_store(url, space=space) as store:
            return Recorded(store.url, store.space, None, ())
    with open_store(url) as store:
        before = store.space if store.recorded else None
        space = Space(dim=store.space.dim, metric=store.space.metric, **named)
        notes = _look_at_lengths(store, space)
        if before is not None and before.fingerprint == space.fingerprint:
            return Recorded(store.url, before, before, notes)
        if before is None or replace:
            if before is None:
                _record_first(url, space)
            else:
                store.record_space(space)
            return Recorded(store.url, space, before, notes)
    differing = [key for key, value in vars(space).items() if getattr(before, key) != value]
    raise SpaceMismatchError(
        expected=f"a collection without a recorded space, or with {space}",
        got=f"{before}, which differs in {', '.join(differing)}",
        do="if that record is wrong, give --replace (in Python: replace=True)",
    )


def _record_first(url: str, space: Space) -> None:
    open_store(url, space=space).close()


def _look_at_lengths(store: Store, space: Space) -> tuple[str, ...]:
    """Refuse what the rows contradict; note what they suggest."""
    part = next(store.scan_unchecked(batch_size=LOOKED_AT), None)
    if part is None or not len(part.vectors):
        return ()
    lengths = np.linalg.norm(part.vectors.astype(np.float64), axis=1)
    unit = np.abs(lengths - 1.0) <= UNIT
    if space.normalized and not unit.all():
        raise InvalidVectorsError(
            expected="rows of length 1, as --normalized says",
            got=f"{int((~unit).sum()):,} of the first {len(unit):,} of other lengths",
            do="leave it out, or find out who wrote these rows: isthmus doctor URL",
        )
    if not space.normalized and unit.all() and store.capabilities.stores_raw:
        note = (
            f"the first {len(unit):,} rows all have length 1: if the encoder gives such vectors, "
            "say --normalized, as the space of its other vectors does"
        )
        return (note,)
    return ()
