"""The fusion methods by name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from isthmus.errors import ParameterError, UnknownNameError
from isthmus.federate.fusion.agg import Agg
from isthmus.federate.fusion.base import Fusion
from isthmus.federate.fusion.cca import Cca
from isthmus.federate.fusion.combmnz import CombMNZ
from isthmus.federate.fusion.one_directional import OneDirectional
from isthmus.federate.fusion.rrf import Rrf
from isthmus.federate.fusion.score import Score

__all__ = ["FUSIONS", "make", "names"]

FUSIONS: dict[str, type[Fusion]] = {
    method.name: method for method in (Score, Agg, Rrf, CombMNZ, OneDirectional, Cca)
}


def names() -> tuple[str, ...]:
    """List the names of the fusion methods.

    Examples
    --------
    >>> names()
    ('score', 'agg', 'rrf', 'combmnz', 'one_directional', 'cca')
    """
    return tuple(FUSIONS)


def make(name: str, **params: Any) -> Fusion:
    """Make a fusion method from its name and parameters.

    Raises
    ------
    UnknownNameError
        No such method.
    ParameterError
        A parameter that the method does not have, or one out of its range.

    Examples
    --------
    >>> make("score", weight=0.75)
    Score(weight=0.75, weights=None, common=None)
    """
    if name not in FUSIONS:
        raise UnknownNameError.of("fusion method", name, FUSIONS)
    method = FUSIONS[name]
    known = [field.name for field in fields(method)]  # type: ignore[arg-type]  # all are dataclasses
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise ParameterError(
            expected=f"the parameters of fusion method {name!r}: {', '.join(known) or 'none'}",
            got=", ".join(unknown),
            do="leave them out",
        )
    return method(**params)
