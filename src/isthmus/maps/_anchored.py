"""What all maps share that learn from anchor pairs and move both sides."""

from __future__ import annotations

from typing import ClassVar

from isthmus.maps._sides import FEWEST_ANCHORS
from isthmus.maps.base import LandsIn, Map

__all__ = ["Anchored"]


class Anchored(Map):
    """A map into a comparison space, from at least 20 anchor pairs.

    It centres the rows itself, on all that the fit sees: so they are not centred before it.
    """

    lands_in: ClassVar[LandsIn] = "comparison"
    centred: ClassVar[bool] = False
    sees_unpaired: ClassVar[bool] = True

    @property
    def costly(self) -> bool:
        """Training takes long, and so does the search for a plan."""
        return True

    @property
    def fewest_pairs(self) -> int:
        """Anchor pairs that a profile or a loss of all against all needs."""
        return FEWEST_ANCHORS
