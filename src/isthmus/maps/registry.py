"""Every map by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isthmus.errors import ParameterError, UnknownNameError
from isthmus.maps.anchor_cca import AnchorCCA
from isthmus.maps.anchor_dot import AnchorDOT
from isthmus.maps.asif import ASIF
from isthmus.maps.barycentric import Barycentric
from isthmus.maps.base import Map
from isthmus.maps.cca import CCA
from isthmus.maps.contrastive import Contrastive
from isthmus.maps.csa import CSA
from isthmus.maps.drift_adapter import DriftAdapter
from isthmus.maps.dummy import Dummy
from isthmus.maps.embedding_converter import EmbeddingConverter
from isthmus.maps.low_rank import LowRank
from isthmus.maps.mini_vec2vec import MiniVec2Vec
from isthmus.maps.mlp import MLP
from isthmus.maps.mlp_small import SmallMLP
from isthmus.maps.null import Null
from isthmus.maps.procrustes import Procrustes
from isthmus.maps.procrustes_ridge import ProcrustesRidge
from isthmus.maps.relative import Relative
from isthmus.maps.ridge import Ridge
from isthmus.maps.sotalign import SOTAlign
from isthmus.maps.sue import SUE
from isthmus.maps.unpaired_iterative import UnpairedIterative
from isthmus.maps.vec2vec import Vec2Vec

__all__ = ["MAPS", "make", "names"]

MAPS: Mapping[str, type[Map]] = {
    made.name: made
    for made in (
        Null,
        Dummy,
        Procrustes,
        UnpairedIterative,
        MiniVec2Vec,
        Barycentric,
        CCA,
        CSA,
        Relative,
        ASIF,
        LowRank,
        ProcrustesRidge,
        Ridge,
        DriftAdapter,
        SmallMLP,
        MLP,
        EmbeddingConverter,
        SUE,
        Vec2Vec,
        AnchorCCA,
        Contrastive,
        SOTAlign,
        AnchorDOT,
    )
}
"""Every map, from the most constrained to the most free. A new map is one line here."""


def names() -> tuple[str, ...]:
    """Return the names of all maps, from the most constrained to the most free.

    Examples
    --------
    >>> names()[0]
    'null'
    """
    return tuple(MAPS)


def make(name: str, **params: Any) -> Map:
    """Make an unfitted map by its name.

    Parameters
    ----------
    name : str
    **params
        Of its constructor.

    Raises
    ------
    UnknownNameError, ParameterError

    Examples
    --------
    >>> make("ridge", penalty=0.1)
    Ridge(penalty=0.1)
    """
    if name not in MAPS:
        raise UnknownNameError.of("map", name, MAPS)
    known = sorted(MAPS[name]().get_params())
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise ParameterError(
            expected=f"parameters of {name} among {', '.join(known) or '(none)'}",
            got=", ".join(unknown),
            do="leave them out",
        )
    return MAPS[name](**params)
