"""Every method of linking by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from isthmus.errors import ParameterError, UnknownNameError
from isthmus.link.ao import AO
from isthmus.link.auto import Auto
from isthmus.link.base import Linker
from isthmus.link.cca import CCA
from isthmus.link.geh import Geh
from isthmus.link.linear import Linear
from isthmus.link.mlp import MLP
from isthmus.link.procrustes import Procrustes
from isthmus.link.rcsls import RCSLS
from isthmus.link.self_training import SelfTraining
from isthmus.link.ugw import UGW

__all__ = ["LINKERS", "make", "names"]

LINKERS: Mapping[str, type[Linker]] = {
    made.name: made
    for made in (
        Auto,
        Geh,
        SelfTraining,
        Procrustes,
        Linear,
        CCA,
        MLP,
        RCSLS,
        UGW,
        AO,
    )
}
"""Every method: ours first, then the baselines in the paper's order. A new one is one line here."""


def names() -> tuple[str, ...]:
    """Return the names of all methods.

    Examples
    --------
    >>> "procrustes" in names()
    True
    """
    return tuple(LINKERS)


def make(name: str, **params: Any) -> Linker:
    """Make a method by its name.

    Parameters
    ----------
    name : str
    **params
        Of its constructor.

    Raises
    ------
    UnknownNameError
        No such method.
    ParameterError
        A parameter that it does not have, that it needs and did not get, or out of its range.

    Examples
    --------
    >>> make("self_training", rounds=5)
    SelfTraining(rounds=5, csls_neighborhood=10, undetermined='drop')
    """
    if name not in LINKERS:
        raise UnknownNameError.of("method of linking", name, LINKERS)
    known = {each.name: each for each in _fields(LINKERS[name])}
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise ParameterError(
            expected=f"parameters of {name} among {', '.join(sorted(known)) or '(none)'}",
            got=", ".join(unknown),
            do="leave them out",
        )
    missing = [
        field
        for field, each in known.items()
        if field not in params and each.default is MISSING and each.default_factory is MISSING
    ]
    if missing:
        raise ParameterError(
            expected=f"{', '.join(missing)}, which {name} needs",
            got="none",
            do=f"give it, as in make({name!r}, {missing[0]}=...)",
        )
    try:
        return LINKERS[name](**params)
    except (TypeError, OverflowError) as error:  # a text where a number belongs, for example
        raise ParameterError(
            expected=f"parameters of {name} of the right kind",
            got=", ".join(f"{key}={value!r}" for key, value in params.items()),
            do="see its page in the documentation",
        ) from error


def _fields(method: type[Linker]) -> tuple[Any, ...]:
    """Return the parameters of a method, which is a dataclass."""
    return tuple(each for each in fields(method) if each.init)  # type: ignore[arg-type] # Linker itself is none
