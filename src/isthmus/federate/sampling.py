"""Samples of the vectors of every store, in the hub's space."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from isthmus._types import FloatArray
from isthmus.federate.patience import Patience, Problem
from isthmus.federate.source import Source
from isthmus.federate.spokes import Spoke, make_spokes
from isthmus.spaces import Space

__all__ = ["Samples", "back_bridges", "draw", "reservoir"]


@dataclass(frozen=True)
class Samples:
    """One sample per store.

    Parameters
    ----------
    rows : list of FloatArray of shape (n, dim)
        In the hub's space, in random order; none of a store that is empty or could not be read.
    counts : list of int
        Rows of each store.
    """

    rows: list[FloatArray]
    counts: list[int]


def draw(
    hub: Space,
    sources: Sequence[Source],
    *,
    limit: int,
    seed: int,
    patience: Sequence[Patience] | None = None,
) -> Samples:
    """Scan every store once for a random sample of its vectors.

    Parameters
    ----------
    hub : Space
    sources : sequence of Source
    limit : int
        Rows per store at most.
    seed : int
    patience : sequence of Patience, optional
        Per source: scanned again after errors that may pass, and left out where it still fails.
        Without it an error is raised.

    Raises
    ------
    ConfigError
        A source without a bridge to the hub.
    """
    spokes = {spoke.space.fingerprint: spoke for spoke in make_spokes(hub, sources)}
    samples, counts = [], []
    for place, source in enumerate(sources):
        rows, count = _read(source, limit, [seed, place], patience[place] if patience else None)
        space = source.store.space
        if not len(rows):
            rows = np.zeros((0, hub.dim), np.float32)
        elif space.fingerprint != hub.fingerprint:
            rows = spokes[space.fingerprint].to_hub(rows)
        samples.append(rows)
        counts.append(count)
    return Samples(samples, counts)


def _read(
    source: Source, limit: int, seed: list[int], patience: Patience | None
) -> tuple[FloatArray, int]:
    """Return a sample of one store and the number of its rows; nothing and 0 where it fails."""

    def scan() -> tuple[FloatArray, int]:
        with source.noting():
            batches = (batch.vectors.matrix() for batch in source.store.scan())
            return reservoir(batches, limit, np.random.default_rng(seed))

    if patience is None:
        return scan()
    result = patience.attempt(scan, deadline=float("inf"), queries=0)
    nothing = np.zeros((0, source.store.space.dim), np.float32)
    return (nothing, 0) if isinstance(result, Problem) else result


def reservoir(
    batches: Iterable[FloatArray], limit: int, rng: np.random.Generator
) -> tuple[FloatArray, int]:
    """Return at most ``limit`` of all rows, in random order, and how many there were.

    Every row has the same chance, and memory holds the sample and one batch.

    Reference: Vitter, "Random sampling with a reservoir" (ACM TOMS 1985), algorithm R.
    """
    parts: list[FloatArray] = []
    kept: FloatArray | None = None
    seen = 0
    for rows in batches:
        free = max(0, limit - seen)
        if free:
            parts.append(rows[:free])
        late = rows[free:]
        if len(late):
            kept = np.concatenate(parts) if kept is None else kept
            first = max(seen, limit)
            place = rng.integers(0, np.arange(first + 1, first + len(late) + 1))
            taken = np.flatnonzero(place < limit)
            kept[place[taken]] = late[taken]  # of two for one place the later row stays
        seen += len(rows)
    if not seen:
        return np.zeros((0, 0), np.float32), 0
    kept = np.concatenate(parts) if kept is None else kept
    return kept[rng.permutation(len(kept))], seen


def back_bridges(spokes: Sequence[Spoke], sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the hash of the bridge to the hub of each source, "" for those of the hub's space."""
    hashes = {
        spoke.space.fingerprint: "" if spoke.back is None else spoke.back.hash for spoke in spokes
    }
    return tuple(hashes[source.store.space.fingerprint] for source in sources)
