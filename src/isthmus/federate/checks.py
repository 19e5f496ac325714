"""What a federation refuses before it is made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isthmus.errors import DuplicateIdError, EmptyInputError, ParameterError
from isthmus.federate.fusion import Fusion, make
from isthmus.federate.source import Source
from isthmus.federate.spokes import Spoke

__all__ = ["check_count", "check_metrics", "check_names", "make_fusion"]


def check_names(sources: Sequence[Source]) -> None:
    """Refuse no sources, and two of one name."""
    if not sources:
        raise EmptyInputError(
            expected="at least one source in a federation", got="none", do="add a store"
        )
    names = [source.name for source in sources]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DuplicateIdError(
            expected="a name of its own for each source",
            got=f"{', '.join(repeated)} more than once",
            do="rename one of them: hits are told apart by it",
        )


def check_count(value: int, *, name: str, least: int = 1) -> None:
    """Refuse what is not a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(
            expected=f"{name} as a whole number of at least {least}",
            got=f"{value!r}",
            do="change it",
        )


def make_fusion(fusion: str | Fusion, weight: float | None) -> Fusion:
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


def check_metrics(spokes: Sequence[Spoke], method: Fusion) -> None:
    """Refuse to add up a cosine and a distance."""
    metrics = sorted({spokes[space].space.metric for space in method.spaces(len(spokes))})
    if len(metrics) > 1:
        raise ParameterError(
            expected=f"spaces of one metric for fusion method {method.name!r}: it adds up their "
            "similarities",
            got=" and ".join(metrics),
            do="use one_directional, which compares in one space, or rrf",
        )
