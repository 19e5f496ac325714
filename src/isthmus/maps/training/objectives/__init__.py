"""What learned maps minimise, one objective per file, each a function of mapped and target rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from isthmus.errors import UnknownNameError
from isthmus.maps.training.objectives.contrastive import contrastive
from isthmus.maps.training.objectives.embedding_converter import embedding_converter
from isthmus.maps.training.objectives.fuzzy_contrastive import fuzzy_contrastive
from isthmus.maps.training.objectives.mse import mse
from isthmus.maps.training.objectives.rkd_mse import rkd_mse

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["OBJECTIVES", "Objective", "find_objective"]

Objective: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"
"""Mapped and target rows, both (b, dim), to the loss of each row, (b,)."""

OBJECTIVES: Mapping[str, Objective] = {
    made.__name__: made
    for made in (fuzzy_contrastive, contrastive, mse, rkd_mse, embedding_converter)
}
"""Every objective by its name. A new objective is one line here."""


def find_objective(name: str) -> Objective:
    """Return the objective of that name.

    Raises
    ------
    UnknownNameError

    Examples
    --------
    >>> find_objective("mse").__name__
    'mse'
    """
    if not isinstance(name, str) or name not in OBJECTIVES:
        raise UnknownNameError.of("objective", str(name), OBJECTIVES)
    return OBJECTIVES[name]
