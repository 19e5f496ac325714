"""A bridge as a chain of affine maps, activations and unit lengths, where it is one.

Neighbours that are affine are multiplied out in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus._types import FloatArray
from isthmus.errors import UnsupportedOperationError
from isthmus.maps import (
    MLP,
    PCA,
    Barycentric,
    Centre,
    DriftAdapter,
    Dummy,
    LowRank,
    Map,
    MiniVec2Vec,
    Normalise,
    Null,
    Procrustes,
    ProcrustesRidge,
    Ridge,
    SmallMLP,
    Step,
    UnpairedIterative,
    Whiten,
)
from isthmus.maps.training import Network

if TYPE_CHECKING:
    from isthmus.bridge.bridge import Bridge

__all__ = ["RULES", "Affine", "Bend", "Part", "Unit", "chain_of"]


@dataclass(frozen=True)
class Affine:
    """Rows times ``weight`` (inputs, outputs) plus ``bias``, in float64."""

    weight: FloatArray
    bias: FloatArray


@dataclass(frozen=True)
class Unit:
    """Rows of length one."""


@dataclass(frozen=True)
class Bend:
    """An activation, by its name in torch."""

    name: str


Part = Affine | Unit | Bend


def chain_of(bridge: Bridge) -> list[Part]:
    """Return the way from source rows to what `Bridge.transform` gives.

    Where the source's vectors have length one, so they do at its beginning.

    Raises
    ------
    UnsupportedOperationError
        A map that is no such chain.
    """
    parts: list[Part] = [Unit()] if bridge.source.normalized else []
    parts += [_step(step) for step in bridge.map.source_steps_]
    parts += _map(bridge.map.inner_)
    parts += [_step_back(step) for step in bridge.map.target_steps_[::-1]]
    return _folded([*parts, Unit()] if bridge.target.normalized else parts)


def _folded(parts: Sequence[Part]) -> list[Part]:
    """Multiply neighbours out where both are affine, and drop a second unit length."""
    made: list[Part] = []
    for part in parts:
        last = made[-1] if made else None
        if isinstance(last, Affine) and isinstance(part, Affine):
            made[-1] = Affine(last.weight @ part.weight, last.bias @ part.weight + part.bias)
        elif not (isinstance(last, Unit) and isinstance(part, Unit)):
            made.append(part)
    return made


def _shift(row: FloatArray) -> Affine:
    return Affine(np.eye(len(row)), np.asarray(row, dtype=np.float64))


def _around(mean: FloatArray, matrix: FloatArray, after: FloatArray | float = 0.0) -> Affine:
    """``(rows - mean) @ matrix + after``."""
    weight = np.asarray(matrix, dtype=np.float64)
    return Affine(weight, -np.asarray(mean, dtype=np.float64) @ weight + after)


def _step(step: Step) -> Part:
    match step:
        case Centre():
            return _shift(-step.mean_)
        case Normalise():
            return Unit()
        case Whiten():
            return _around(step.mean_, step.matrix_)
        case PCA():
            return _around(step.mean_, step.directions_)
    raise _no_rule(step.name)


def _step_back(step: Step) -> Part:
    match step:
        case Centre():
            return _shift(step.mean_)
        case Normalise():
            length = np.float64(step.length_) * np.eye(step.n_features_in_)
            return Affine(length, np.zeros(step.n_features_in_))
        case Whiten():
            return _linear(step.inverse_, step.mean_)
        case PCA():
            return _linear(step.directions_.T, step.mean_)
    raise _no_rule(step.name)


def _linear(weight: FloatArray, bias: FloatArray | None = None) -> Affine:
    wide = np.asarray(weight, dtype=np.float64)
    return Affine(wide, np.zeros(wide.shape[1]) if bias is None else np.asarray(bias, np.float64))


def _map(fitted: Map) -> list[Part]:
    for kind, rule in RULES.items():
        if isinstance(fitted, kind):
            return rule(fitted)
    raise _no_rule(fitted.name)


def _no_rule(name: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        expected=f"one of {', '.join(sorted(kind.name for kind in RULES))}, without a branch that "
        "skips a bent layer: what Dense and Normalize of sentence-transformers can express",
        got=name,
        do="fit procrustes_ridge or ridge, or write the bridge with Bridge.to_onnx",
    )


def _procrustes(fitted: Procrustes | UnpairedIterative | MiniVec2Vec) -> list[Part]:
    turned = fitted.rotation_.astype(np.float64) * float(fitted.scale_)
    return [_around(fitted.mean_source_, turned, fitted.mean_target_)]


def _network(network: Network, name: str) -> list[Part]:
    """Return the layers; a skip branch can be kept only where nothing is bent between."""
    layers: list[Part] = [
        _linear(weight, bias) for weight, bias in zip(network.weights, network.biases, strict=True)
    ]
    bent = network.activation != "identity" and len(layers) > 1
    if network.skip is not None:
        if bent:
            raise _no_rule(f"{name} with such a branch")
        (whole,) = _folded(layers)
        assert isinstance(whole, Affine)  # noqa: S101 - affine layers fold to one
        return [Affine(whole.weight + network.skip, whole.bias)]
    if not bent:
        return layers
    bend = Bend(ACTIVATIONS[network.activation])
    return [part for layer in layers[:-1] for part in (layer, bend)] + layers[-1:]


def _learned(fitted: MLP | DriftAdapter) -> list[Part]:
    parts = _network(fitted.network, fitted.name)
    return [*parts, Unit()] if int(fitted.unit_) else parts


def _small(fitted: SmallMLP) -> list[Part]:
    weights = [fitted.weight_1_, fitted.weight_2_, fitted.weight_3_]
    biases = [fitted.bias_1_, fitted.bias_2_, fitted.bias_3_]
    return _network(Network(weights, biases, activation="relu"), fitted.name)


ACTIVATIONS = {
    "selu": "activation.SELU",
    "relu": "activation.ReLU",
    "gelu": "activation.GELU",
}

Rule = Callable[[Any], list[Part]]
RULES: Mapping[type[Map], Rule] = {
    Null: lambda fitted: [_linear(np.eye(fitted.n_features_in_, fitted.n_features_target_))],
    Dummy: lambda fitted: [_linear(fitted.rotation_)],
    Procrustes: _procrustes,
    UnpairedIterative: _procrustes,
    MiniVec2Vec: _procrustes,
    Barycentric: lambda fitted: [_linear(fitted.rotation_, fitted.bias_)],
    Ridge: lambda fitted: [_linear(fitted.weight_, fitted.bias_)],
    ProcrustesRidge: lambda fitted: [_linear(fitted.weight_, fitted.bias_)],
    LowRank: lambda fitted: [_linear(fitted.down_), _linear(fitted.up_, fitted.bias_)],
    SmallMLP: _small,
    MLP: _learned,
    DriftAdapter: _learned,
}
"""How each map is written; a subclass is written as its parent."""
