"""From the parameters of a federation to what searches: its spokes, its method, its pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from isthmus.errors import ParameterError, UnknownNameError
from isthmus.federate.budget import Budget
from isthmus.federate.checks import check_metrics
from isthmus.federate.common import has_common, join_spaces
from isthmus.federate.fusion import Fusion, make
from isthmus.federate.memory import CarriedRows
from isthmus.federate.patience import Patience
from isthmus.federate.pool import Pool
from isthmus.federate.source import Source
from isthmus.federate.spokes import make_spokes

if TYPE_CHECKING:
    from isthmus.federate.hub import Federation

__all__ = ["assemble"]


def assemble(federation: Federation) -> tuple[Pool, Fusion]:
    """Return the pool of a federation and its fusion method with all defaults resolved.

    Raises
    ------
    ConfigError, WrongDirectionError, SpaceMismatchError, UnknownNameError, ParameterError
        See `Federation`.
    """
    sources = federation.sources
    spokes = make_spokes(federation.hub, sources)
    places = {spoke.space.fingerprint: place for place, spoke in enumerate(spokes)}
    space_of = np.array([places[source.store.space.fingerprint] for source in sources])
    method = _make_fusion(federation.fusion, federation.weight)
    method = method.settled(common=has_common(sources, spokes))
    check_metrics(spokes, method)
    wanted = set(method.spaces(len(spokes)))
    for row, spoke in enumerate(spokes[1:], start=1):
        back = bool(wanted - {row}) or federation.dedup == "vector"
        spoke.check(into=bool(wanted), back=back)
    directions = method.common_directions

    def remembered() -> tuple[tuple[CarriedRows, ...], ...]:
        return tuple(tuple(CarriedRows(federation.remember) for _ in spokes) for _ in sources)

    patience = tuple(_patience(federation, place) for place in range(len(sources)))
    pool = Pool(
        sources=sources,
        spokes=spokes,
        space_of=space_of,
        carried=remembered(),
        patience=patience,
        budget=_make_budget(federation, patience),
        dedup=federation.dedup,
        dedup_similarity=federation.dedup_similarity,
        require_all=federation.require_all,
        common=join_spaces(sources, spokes, space_of, directions=directions)
        if directions
        else None,
        common_carried=remembered() if directions else (),
    )
    return pool, method


def _make_fusion(fusion: str | Fusion, weight: float | None) -> Fusion:
    """Return the method itself, or make it from its name."""
    if isinstance(fusion, Fusion):
        if weight is not None:
            raise ParameterError(
                expected="the weight inside the fusion method",
                got=f"both {fusion} and weight {weight}",
                do="give only one of them",
            )
        return fusion
    return make(fusion) if weight is None else make(fusion, weight=weight)


def _patience(federation: Federation, place: int) -> Patience:
    source: Source = federation.sources[place]
    timeout = None if source.in_process else federation.timeout
    return Patience(
        source.name,
        timeout=timeout if source.timeout is None else source.timeout,
        retries=federation.retries,
        clock=federation.clock,
        seed=[federation.seed, place],
    )


def _make_budget(federation: Federation, patience: Sequence[Patience]) -> Budget | None:
    """Return None for the uniform one, which needs no choice."""
    budget = federation.budget
    if budget == "adaptive":
        from isthmus.federate.adaptive import Adaptive

        budget = Adaptive.fit(
            federation.hub,
            federation.sources,
            seed=federation.seed,
            patience=None if federation.require_all else patience,
        )
    if not isinstance(budget, Budget):
        if budget != "uniform":
            raise UnknownNameError.of("budget", str(budget), ("uniform", "adaptive"))
        return None
    budget.check(federation.hub, federation.sources)
    return budget
