"""A bridge as an ONNX graph: from raw source rows to what `Bridge.transform` gives.

For a service in another language or without this package. The graph is made from the arrays of the
steps and the map, without torch; any runtime of operator set 17 (ONNX 1.12 and later) reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus._files import atomic_path
from isthmus._optional import require
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
    Vec2Vec,
    Whiten,
)
from isthmus.maps.training import Network

if TYPE_CHECKING:
    from isthmus.bridge.bridge import Bridge

__all__ = ["INPUT", "OUTPUT", "write_onnx"]

OPERATORS = 17
"""Operator set: has all that is needed, with few variants since."""
IR_VERSION = 8
"""The file format that came with these operators."""
MOST_BYTES = 2**31 - 2**20
"""A protobuf message ends at 2 GiB."""

INPUT, OUTPUT = "source", "target"


def write_onnx(bridge: Bridge, path: Path) -> None:
    """Write a graph with one input ``source`` (n, dim_source) and one output ``target`` (n, dim).

    Both are float32 and n is free. The hash of the bridge and the fingerprints of both spaces are
    in the model's metadata.

    Parameters
    ----------
    bridge : Bridge
    path : Path
        A file, which is written whole or not at all; what was there is replaced.

    Raises
    ------
    MissingExtraError
        Without the library ``onnx``.
    UnsupportedOperationError
        A map that lands in a comparison space, one without rules here, or arrays over 2 GiB.
    WriteFailedError
    """
    bridge.check_lands_in_target()
    onnx = require("onnx", extra="onnx")
    graph = _Graph(onnx)
    rows = INPUT
    for step in bridge.map.source_steps_:
        rows = _step(graph, step, rows)
    rows = _map(graph, bridge.map.inner_, rows)
    for step in bridge.map.target_steps_[::-1]:
        rows = _step_back(graph, step, rows)
    if bridge.target.normalized:
        rows = graph.normalise(rows)
    graph.add("Identity", rows, output=OUTPUT)
    model = graph.model(
        (bridge.map.n_features_in_, bridge.map.n_features_target_),
        {
            "isthmus.bridge": bridge.hash,
            "isthmus.method": bridge.method,
            "isthmus.source": bridge.source.fingerprint,
            "isthmus.target": bridge.target.fingerprint,
        },
    )
    with atomic_path(path) as temporary:
        temporary.write_bytes(model.SerializeToString(deterministic=True))


class _Graph:
    """Nodes and constants, each under a name of its own."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.bytes = 0

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node and return the name of what it gives."""
        name = output or f"{operator.lower()}_{len(self.nodes)}"
        node = self.onnx.helper.make_node(operator, inputs, [name], name=name, **attributes)
        self.nodes.append(node)
        return name

    def constant(self, array: Any, dtype: type[np.generic] = np.float32) -> str:
        """Add an array and return its name."""
        name = f"constant_{len(self.constants)}"
        values = np.ascontiguousarray(array, dtype=dtype).reshape(np.shape(array))
        self.bytes += values.nbytes
        if self.bytes > MOST_BYTES:
            raise UnsupportedOperationError(
                expected="arrays of under 2 GiB, where an ONNX file ends",
                got=f"more, at an array of shape {values.shape}",
                do="fit a narrower map, or use Bridge.transform",
            )
        self.constants.append(self.onnx.numpy_helper.from_array(values, name))
        return name

    def affine(self, rows: str, weight: FloatArray, bias: FloatArray | None = None) -> str:
        """``rows @ weight + bias``."""
        given = [rows, self.constant(weight)]
        if bias is None:
            return self.add("MatMul", *given)
        return self.add("Gemm", *given, self.constant(bias))

    def normalise(self, rows: str) -> str:
        """Rows of length one; zeros stay zeros, and no square is too large for float32."""
        largest = self.add("ReduceMax", self.add("Abs", rows), axes=[1], keepdims=1)
        scaled = self.add("Div", rows, self._or_one(largest))
        length = self.add("ReduceL2", scaled, axes=[1], keepdims=1)
        return self.add("Div", scaled, self._or_one(length))

    def _or_one(self, numbers: str) -> str:
        above = self.add("Greater", numbers, self.constant(0.0))
        return self.add("Where", above, numbers, self.constant(1.0))

    def model(self, dims: tuple[int, int], metadata: Mapping[str, str]) -> Any:
        """Return the checked model from ``INPUT`` to ``OUTPUT``."""
        helper, number = self.onnx.helper, self.onnx.TensorProto.FLOAT
        ends = [
            [helper.make_tensor_value_info(name, number, ["n", dim])]
            for name, dim in zip((INPUT, OUTPUT), dims, strict=True)
        ]
        model = helper.make_model(
            helper.make_graph(self.nodes, "bridge", *ends, initializer=self.constants),
            opset_imports=[helper.make_opsetid("", OPERATORS)],
            ir_version=IR_VERSION,
            producer_name="isthmus",
        )
        helper.set_model_props(model, dict(metadata))
        self.onnx.checker.check_model(model, full_check=True)
        return model


# --- steps -------------------------------------------------------------------------------------


def _step(graph: _Graph, step: Step, rows: str) -> str:
    match step:
        case Centre():
            return graph.add("Sub", rows, graph.constant(step.mean_))
        case Normalise():
            return graph.normalise(rows)
        case Whiten():
            return graph.affine(rows, step.matrix_, _turned(-step.mean_, step.matrix_))
        case PCA():
            return graph.affine(rows, step.directions_, _turned(-step.mean_, step.directions_))
    raise _no_rule(step.name)


def _step_back(graph: _Graph, step: Step, rows: str) -> str:
    match step:
        case Centre():
            return graph.add("Add", rows, graph.constant(step.mean_))
        case Normalise():
            return graph.add("Mul", rows, graph.constant(float(step.length_)))
        case Whiten():
            return graph.affine(rows, step.inverse_, step.mean_)
        case PCA():
            return graph.affine(rows, step.directions_.T, step.mean_)
    raise _no_rule(step.name)


def _turned(row: FloatArray, matrix: FloatArray) -> FloatArray:
    return np.asarray(row @ matrix.astype(np.float64))


# --- maps --------------------------------------------------------------------------------------


def _map(graph: _Graph, fitted: Map, rows: str) -> str:
    for kind, write in RULES.items():
        if isinstance(fitted, kind):
            return write(graph, fitted, rows)
    raise _no_rule(fitted.name)


def _no_rule(name: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        expected=f"one of {', '.join(sorted(kind.name for kind in RULES))}, for ONNX",
        got=name,
        do="use Bridge.transform, or fit one of these",
    )


def _null(graph: _Graph, fitted: Map, rows: str) -> str:
    more = fitted.n_features_target_ - fitted.n_features_in_
    if more > 0:
        return graph.add("Pad", rows, graph.constant([0, 0, 0, more], np.int64))
    ends = [graph.constant([end], np.int64) for end in (0, fitted.n_features_target_, 1)]
    return graph.add("Slice", rows, *ends)


def _dummy(graph: _Graph, fitted: Dummy, rows: str) -> str:
    return graph.affine(rows, fitted.rotation_)


def _procrustes(
    graph: _Graph, fitted: Procrustes | UnpairedIterative | MiniVec2Vec, rows: str
) -> str:
    scale = float(fitted.scale_)
    bias = fitted.mean_target_ - scale * _turned(fitted.mean_source_, fitted.rotation_)
    return graph.affine(rows, fitted.rotation_ * np.float32(scale), bias)


def _rotation(graph: _Graph, fitted: Barycentric, rows: str) -> str:
    return graph.affine(rows, fitted.rotation_, fitted.bias_)


def _linear(graph: _Graph, fitted: Ridge | ProcrustesRidge, rows: str) -> str:
    return graph.affine(rows, fitted.weight_, fitted.bias_)


def _low_rank(graph: _Graph, fitted: LowRank, rows: str) -> str:
    return graph.affine(graph.affine(rows, fitted.down_), fitted.up_, fitted.bias_)


def _small(graph: _Graph, fitted: SmallMLP, rows: str) -> str:
    weights = [fitted.weight_1_, fitted.weight_2_, fitted.weight_3_]
    biases = [fitted.bias_1_, fitted.bias_2_, fitted.bias_3_]
    return _network(graph, Network(weights, biases, activation="relu"), rows)


def _learned(graph: _Graph, fitted: MLP | DriftAdapter, rows: str) -> str:
    out = _network(graph, fitted.network, rows)
    return graph.normalise(out) if int(fitted.unit_) else out


def _translated(graph: _Graph, fitted: Vec2Vec, rows: str) -> str:
    into, shared, out = fitted.networks
    unit = graph.normalise(graph.add("Sub", rows, graph.constant(fitted.mean_source_)))
    middle = _network(graph, into, unit)
    made = _network(graph, out, graph.add("Add", middle, _network(graph, shared, middle)))
    scaled = graph.add("Mul", graph.normalise(made), graph.constant(float(fitted.scale_)))
    return graph.add("Add", scaled, graph.constant(fitted.mean_target_))


def _network(graph: _Graph, network: Network, rows: str) -> str:
    activate = ACTIVATIONS[network.activation]
    inner = rows
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        inner = activate(graph, graph.affine(inner, weight, bias))
    out = graph.affine(inner, network.weights[-1], network.biases[-1])
    return out if network.skip is None else graph.add("Add", out, graph.affine(rows, network.skip))


def _gelu(graph: _Graph, rows: str) -> str:
    """By erf: the operator Gelu is younger than the operator set."""
    curved = graph.add("Erf", graph.add("Mul", rows, graph.constant(np.sqrt(0.5))))
    half = graph.add("Mul", rows, graph.constant(0.5))
    return graph.add("Mul", half, graph.add("Add", curved, graph.constant(1.0)))


ACTIVATIONS: Mapping[str, Callable[[_Graph, str], str]] = {
    "selu": lambda graph, rows: graph.add("Selu", rows),
    "relu": lambda graph, rows: graph.add("Relu", rows),
    "gelu": _gelu,
    "identity": lambda _, rows: rows,
}

Rule = Callable[[_Graph, Any, str], str]
RULES: Mapping[type[Map], Rule] = {
    Null: _null,
    Dummy: _dummy,
    Procrustes: _procrustes,
    UnpairedIterative: _procrustes,
    MiniVec2Vec: _procrustes,
    Barycentric: _rotation,
    Ridge: _linear,
    ProcrustesRidge: _linear,
    LowRank: _low_rank,
    SmallMLP: _small,
    MLP: _learned,
    DriftAdapter: _learned,
    Vec2Vec: _translated,
}
"""How each map is written; a subclass is written as its parent."""
