"""The manifest's ``preprocessing``: what the steps of a map do, in the map family's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isthmus.bridge.format import tensor_hash
from isthmus.maps import PCA, Centre, Compose, Normalise, Procrustes, Step, Whiten

__all__ = ["describe_preprocessing"]

NONE = "none"


def describe_preprocessing(fitted: Compose) -> dict[str, Any]:
    """Return whether rows are centred, how they are normalised, and the hash of each PCA.

    A PCA is part of the space that the map was fitted in, so the map family asks for its hash.
    """
    source, target = fitted.source_steps_, fitted.target_steps_
    pca = {"source": _pca(source), "target": _pca(target)}
    inner = fitted.inner_
    if isinstance(inner, Procrustes) and inner.pca_.size:
        wider = "source" if inner.n_features_in_ > inner.n_features_target_ else "target"
        pca[wider] = tensor_hash(inner.pca_)
    return {
        "center": any(isinstance(step, Centre | Whiten | PCA) for step in [*source, *target]),
        "normalize": _normalize([*source, *target]),
        "source_pca": pca["source"],
        "target_pca": pca["target"],
        "source_steps": [step.name for step in source],
        "target_steps": [step.name for step in target],
    }


def _normalize(steps: Sequence[Step]) -> str:
    """Name what is done to lengths: ``unit``, ``whiten``, both joined by a plus sign, or none."""
    named = {"unit": Normalise, "whiten": Whiten}
    found = [name for name, kind in named.items() if any(isinstance(step, kind) for step in steps)]
    return "+".join(found) or NONE


def _pca(steps: Sequence[Step]) -> str:
    directions = [step.directions_ for step in steps if isinstance(step, PCA)]
    return tensor_hash(np.asarray(directions[0])) if directions else NONE
