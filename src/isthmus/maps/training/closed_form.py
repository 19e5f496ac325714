"""The closed-form maps that the training of a learned map may start from."""

from __future__ import annotations

from collections.abc import Mapping

from isthmus.maps.procrustes_ridge import ProcrustesRidge
from isthmus.maps.ridge import Ridge

__all__ = ["CLOSED_FORMS"]

CLOSED_FORMS: Mapping[str, type[Ridge | ProcrustesRidge]] = {
    made.name: made for made in (ProcrustesRidge, Ridge)
}
"""Affine maps by name, the more constrained first."""
