"""A common space of the hub and each spoke, in which candidates are compared.

A bridge that lands in a comparison space moves both its sides. The query goes there from the hub's
space, a spoke's candidate from its own; a candidate of the hub's space is compared with the query
in the common space of every spoke, and the mean is taken.

Reference: HVMap, section 5.1.4 (CCA), there for two spaces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from isthmus._linalg import normalise
from isthmus._types import FloatArray, IntArray
from isthmus.errors import ConfigError, ParameterError
from isthmus.federate.memory import CarriedRows, Marked
from isthmus.federate.similarity import pair_similarity
from isthmus.federate.source import Source, check_common
from isthmus.federate.spokes import same_bridge
from isthmus.spaces import Space

if TYPE_CHECKING:
    from isthmus.bridge import Bridge
    from isthmus.federate.spokes import Spoke

__all__ = ["CommonSpaces", "has_common", "join_spaces", "lacks_common"]


@dataclass(frozen=True)
class CommonSpaces:
    """One common space per spoke, and how many of its directions count.

    Parameters
    ----------
    bridges : mapping of int to Bridge
        For each space but the hub's, by its place: from the hub's space and from it to the common
        one.
    directions : int
        The first so many, of the highest correlation.
    """

    bridges: Mapping[int, Bridge]
    directions: int

    def project_queries(self, queries: FloatArray) -> dict[int, FloatArray]:
        """Return queries of the hub's space (m, dim) in the common space of every spoke."""
        return {
            space: self._cut(bridge.transform(queries)) for space, bridge in self.bridges.items()
        }

    def compare(
        self,
        asked: Mapping[int, FloatArray],
        candidates: FloatArray,
        rows: IntArray,
        *,
        space: int,
        marked: Marked,
        carried: Sequence[CarriedRows],
    ) -> FloatArray:
        """Return the cosine of each query and its candidates in the common space, (m, depth).

        Parameters
        ----------
        asked : mapping of int to FloatArray of shape (m, directions)
            What `project_queries` gave.
        candidates : FloatArray of shape (n, dim of their space)
        rows : IntArray of shape (m, depth)
            Row of each candidate; -1 for none, which gives NaN.
        space : int
            That of the candidates.
        marked : Marked
            Of the candidates.
        carried : sequence of CarriedRows, one per space
            Those of the source in the common space of each spoke, from earlier searches.
        """
        places = [space] if space else list(self.bridges)
        total = np.zeros(rows.shape, dtype=np.float32)
        for place in places:
            bridge = self.bridges[place]
            project = bridge.transform_target if space else bridge.transform
            landed = carried[place].carry(marked, candidates, partial(self._land, project))
            common = Space(model="common", dim=landed.shape[1], normalized=True)
            total += pair_similarity(asked[place], landed, rows, space=common)
        return total / np.float32(len(places))

    def _land(self, project: Callable[[FloatArray], FloatArray], rows: FloatArray) -> FloatArray:
        return self._cut(project(rows))

    def _cut(self, projected: FloatArray) -> FloatArray:
        """Return the first directions, of length one."""
        return normalise(projected[:, : self.directions])


def lacks_common(sources: Sequence[Source], spokes: Sequence[Spoke]) -> tuple[str, ...]:
    """Name the spokes, by their first source, to which no source gives a common bridge."""
    given = {one.store.space.fingerprint for one in sources if one.common is not None}
    return tuple(spoke.name for spoke in spokes[1:] if spoke.space.fingerprint not in given)


def has_common(sources: Sequence[Source], spokes: Sequence[Spoke]) -> bool:
    """Say whether cosines of all candidates can be taken in a common space as well."""
    return (
        len(spokes) > 1
        and not lacks_common(sources, spokes)
        and all(spoke.space.metric == "cosine" for spoke in spokes)
    )


def join_spaces(
    sources: Sequence[Source], spokes: Sequence[Spoke], space_of: IntArray, *, directions: int
) -> CommonSpaces:
    """Return the common spaces that the sources' bridges lead to, shared by sources of one space.

    Raises
    ------
    ConfigError
        A space without such a bridge; no space besides the hub's.
    ParameterError
        Two different bridges for one space; a bridge for the hub's own.
    WrongDirectionError, SpaceMismatchError
        A bridge that does not start in the hub's space.
    """
    bridges: dict[int, Bridge] = {}
    for source, space in zip(sources, space_of.tolist(), strict=True):
        if source.common is None:
            continue
        name = f"common of source {source.name!r}"
        if not space:
            raise ParameterError(
                expected=f"no {name}: it holds the hub's space", got="a bridge", do="leave it out"
            )
        check_common(source.common, source=spokes[0].space, name=name)
        shared = same_bridge(bridges.get(space), source.common, source)
        bridges[space] = source.common if shared is None else shared
    for space, spoke in enumerate(spokes[1:], start=1):
        if space not in bridges:
            raise ConfigError(
                expected=f"a bridge to a common space for source {spoke.name!r}, which the "
                "fusion method compares in",
                got="none",
                do="isthmus fit HUB STORE --method cca, and give it as common (bridge_common)",
            )
    if not bridges:
        raise ConfigError(
            expected="a space besides the hub's, for similarities in a common space",
            got="stores of the hub's space only",
            do="take score without common: their similarities can be compared as they are",
        )
    return CommonSpaces(dict(sorted(bridges.items())), directions)
