"""The spaces of a federation: the hub's, and one spoke per other space with its bridges.

Sources of one model share a spoke, and with it the bridges: queries are mapped once per space, not
once per source, and a bridge that one source lacks is taken from another of the same space.

Reference: HVMap, section 3.4 (hub and spokes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isthmus._types import FloatArray
from isthmus.errors import (
    ConfigError,
    InvalidVectorsError,
    ParameterError,
    SpaceMismatchError,
)
from isthmus.federate.source import Source, check_bridge

if TYPE_CHECKING:
    from isthmus.bridge import Bridge
    from isthmus.spaces import Space

__all__ = ["Spoke", "carry", "make_spokes", "same_bridge"]


@dataclass(frozen=True)
class Spoke:
    """One space with the bridges between the hub's and it.

    Parameters
    ----------
    space : Space
    name : str
        Of the first source that holds the space, for messages; ``hub`` for the hub's.
    into, back : Bridge, optional
        From the hub's space into this one, and back. Both None for the hub's own space.
    """

    space: Space
    name: str
    into: Bridge | None = None
    back: Bridge | None = None

    def from_hub(self, rows: FloatArray) -> FloatArray:
        """Carry rows of the hub's space (n, dim_hub) into this one (n, dim)."""
        return carry(self._present(self.into, "hub to store", "to_store (bridge_to)"), rows)

    def to_hub(self, rows: FloatArray) -> FloatArray:
        """Carry rows of this space (n, dim) into the hub's (n, dim_hub)."""
        return carry(self._present(self.back, "store to hub", "to_hub (bridge_from)"), rows)

    def check(self, *, into: bool, back: bool) -> None:
        """Refuse a spoke that lacks a bridge that will be needed."""
        if into:
            self._present(self.into, "hub to store", "to_store (bridge_to)")
        if back:
            self._present(self.back, "store to hub", "to_hub (bridge_from)")

    def _present(self, bridge: Bridge | None, direction: str, field: str) -> Bridge:
        if bridge is None:
            raise ConfigError(
                expected=f"a bridge {direction} for source {self.name!r}, which holds {self.space}",
                got="none",
                do=f"fit one in that direction and give it as {field}",
            )
        return bridge


def make_spokes(hub: Space, sources: Sequence[Source]) -> tuple[Spoke, ...]:
    """Return one spoke per space, the hub's first, the others in the order of the sources.

    Raises
    ------
    WrongDirectionError, SpaceMismatchError
        A bridge whose other end is not the hub's space.
    ParameterError
        A bridge where the store holds the hub's space already, or two different bridges for one
        space and direction.
    """
    spokes = {hub.fingerprint: Spoke(hub, "hub")}
    for source in sources:
        space, into, back = source.store.space, source.to_store, source.to_hub
        _check_not_another(source, hub, sources)
        if into is not None:
            check_bridge(into, source=hub, name=f"to_store of source {source.name!r}")
        if back is not None:
            check_bridge(back, target=hub, name=f"to_hub of source {source.name!r}")
        if space.fingerprint == hub.fingerprint:
            if into is not None or back is not None:
                raise ParameterError(
                    expected=f"no bridges for source {source.name!r}: it holds the hub's space",
                    got="a bridge",
                    do="leave its bridges out",
                )
            continue
        known = spokes.get(space.fingerprint, Spoke(space, source.name))
        spokes[space.fingerprint] = Spoke(
            known.space,
            known.name,
            into=same_bridge(known.into, into, source),
            back=same_bridge(known.back, back, source),
        )
    return tuple(spokes.values())


def _check_not_another(source: Source, hub: Space, sources: Sequence[Source]) -> None:
    """Refuse a bridge between two spokes: no route leads over another store, in a circle or not."""
    for bridge, end, direction in (
        (source.to_store, "source", "from"),
        (source.to_hub, "target", "to"),
    ):
        other_end = None if bridge is None else getattr(bridge, end).fingerprint
        if other_end in (None, hub.fingerprint, source.store.space.fingerprint):
            continue
        for other in sources:
            if other.store.space.fingerprint == other_end:
                raise SpaceMismatchError(
                    expected=f"a bridge {direction} the hub's space, {hub}, for source "
                    f"{source.name!r}",
                    got=f"one {direction} the space of source {other.name!r}: stores are joined "
                    "with the hub, not with each other",
                    do="fit a bridge between the hub's space and this store's, each way",
                )


def same_bridge(known: Bridge | None, new: Bridge | None, source: Source) -> Bridge | None:
    """Return the one of the two that is there; refuse two that differ.

    Raises
    ------
    ParameterError
    """
    if known is new or new is None:
        return known
    if known is not None and known.hash != new.hash:
        raise ParameterError(
            expected="one bridge per space and direction, shared by all sources of "
            f"{source.store.space}",
            got=f"a second, different one in source {source.name!r}",
            do="give all of them the same bridge, or leave it out of all but one",
        )
    return new if known is None else known


def carry(bridge: Bridge, rows: FloatArray) -> FloatArray:
    """Map rows (n, dim_source) to (n, dim_target), and refuse what is not finite.

    Raises
    ------
    InvalidVectorsError
        The map gives NaN or infinity.
    """
    landed: FloatArray = bridge.transform(rows)
    total = landed.sum(dtype=np.float64)  # one number, finite where all are
    if not (np.isfinite(total) or np.isfinite(landed).all()):
        raise InvalidVectorsError(
            expected=f"finite vectors from the bridge to {bridge.target}",
            got="NaN or infinity",
            do="fit the bridge again; its weights are out of range",
        )
    return landed
