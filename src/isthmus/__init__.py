"""Isthmus joins embedding spaces."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.bridge import Bridge
    from isthmus.federate import Federation
    from isthmus.spaces import Pairs, Space, VectorSet
    from isthmus.workflows import (
        apply_bridge,
        evaluate_bridge,
        find_links,
        fit_bridge,
        inspect,
        search,
    )

__all__ = [
    "Bridge",
    "Federation",
    "Pairs",
    "Space",
    "VectorSet",
    "apply_bridge",
    "evaluate_bridge",
    "find_links",
    "fit_bridge",
    "inspect",
    "search",
]
__version__ = "0.1.0"

_ROOMS = {
    "Bridge": "bridge",
    "Federation": "federate",
    "Pairs": "spaces",
    "Space": "spaces",
    "VectorSet": "spaces",
}


def __getattr__(name: str) -> object:
    """Load a room when one of its names is first used, so that importing Isthmus stays light."""
    if name not in __all__:
        raise AttributeError(f"module 'isthmus' has no attribute {name!r}")
    return getattr(importlib.import_module(f"isthmus.{_ROOMS.get(name, 'workflows')}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
