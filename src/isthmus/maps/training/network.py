"""Layers as arrays: drawn by numpy, trained as torch tensors, carried forward by numpy.

    f(x) = a(... a(a(x W_1 + b_1) W_2 + b_2) ...) W_n + b_n + x S

with an activation a and a linear skip branch S, either of which may be absent. The numpy pass gives
a row the same bits whatever rows stand beside it, and needs no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from isthmus._rowwise import affine
from isthmus._types import FloatArray

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ACTIVATIONS", "Activation", "Network"]

SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
"""Klambauer, Unterthiner, Mayr and Hochreiter (2017), equation 14."""

GELU_SCALE = float(np.sqrt(0.5))


@dataclass(frozen=True)
class Activation:
    """An activation for numpy, and the name of torch's; none for the identity."""

    forward: Callable[[FloatArray], FloatArray]
    torch_name: str = ""

    def forward_torch(self, rows: Tensor) -> Tensor:
        """Do the same with a tensor."""
        from torch.nn import functional

        bent: Tensor = getattr(functional, self.torch_name)(rows) if self.torch_name else rows
        return bent


def _selu(rows: FloatArray) -> FloatArray:
    below = np.float32(SELU_ALPHA) * np.expm1(np.minimum(rows, np.float32(0)))
    return np.float32(SELU_SCALE) * np.where(rows > 0, rows, below)


def _gelu(rows: FloatArray) -> FloatArray:
    from scipy.special import erf

    curved: FloatArray = rows * (np.float32(0.5) * (1 + erf(rows * np.float32(GELU_SCALE))))
    return curved


def _relu(rows: FloatArray) -> FloatArray:
    return np.maximum(rows, np.float32(0))


def _identity(rows: FloatArray) -> FloatArray:
    return rows


ACTIVATIONS: Mapping[str, Activation] = {
    "selu": Activation(_selu, "selu"),
    "gelu": Activation(_gelu, "gelu"),
    "relu": Activation(_relu, "relu"),
    "identity": Activation(_identity),
}


@dataclass(frozen=True)
class Network:
    """Layers with an activation between them, and a skip branch.

    Parameters
    ----------
    weights : sequence of FloatArray of shape (inputs, outputs)
        At least one layer, float32.
    biases : sequence of FloatArray of shape (outputs,)
    skip : FloatArray of shape (dim_source, dim_target), optional
    activation : str, default "selu"
        A name of `ACTIVATIONS`.

    Examples
    --------
    >>> Network([np.eye(2, dtype=np.float32)], [np.ones(2, np.float32)]).forward(np.eye(2))
    array([[2., 1.],
           [1., 2.]], dtype=float32)
    """

    weights: Sequence[FloatArray]
    biases: Sequence[FloatArray]
    skip: FloatArray | None = None
    activation: str = "selu"

    @classmethod
    def draw(
        cls,
        dims: Sequence[int],
        *,
        rng: np.random.Generator,
        skip: FloatArray | None = None,
        bias: FloatArray | None = None,
        activation: str = "selu",
    ) -> Network:
        """Return first weights: normal with variance 1 / inputs, which SELU asks for; biases zero.

        With a skip branch the last layer is zero, so that training starts at the branch.

        Parameters
        ----------
        dims : sequence of int
            Widths, from the source's to the target's.
        rng : Generator
            Of numpy, and not of torch, so that no device matters.
        skip : FloatArray of shape (dims[0], dims[-1]), optional
        bias : FloatArray of shape (dims[-1],), optional
            Of the last layer.
        activation : str
        """
        weights = [
            (rng.standard_normal((inputs, outputs)) / np.sqrt(inputs)).astype(np.float32)
            for inputs, outputs in pairwise(dims)
        ]
        biases = [np.zeros(outputs, dtype=np.float32) for outputs in dims[1:]]
        if skip is not None:
            weights[-1] = np.zeros_like(weights[-1])
        if bias is not None:
            biases[-1] = bias.astype(np.float32)
        return cls(weights, biases, None if skip is None else skip.astype(np.float32), activation)

    @property
    def arrays(self) -> list[FloatArray]:
        """All arrays: weights, biases, and the skip branch where there is one."""
        return [*self.weights, *self.biases, *([] if self.skip is None else [self.skip])]

    def with_arrays(self, arrays: Sequence[FloatArray]) -> Network:
        """Return the network with other arrays, in the order of `arrays`."""
        depth = len(self.weights)
        skip = None if self.skip is None else arrays[2 * depth]
        return Network(arrays[:depth], arrays[depth : 2 * depth], skip, self.activation)

    def forward(self, rows: FloatArray) -> FloatArray:
        """Carry rows (n, dim_source) to (n, dim_target), float32, without torch."""
        activate = ACTIVATIONS[self.activation].forward
        inner = np.asarray(rows, dtype=np.float32)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            inner = activate(affine(inner, weight, bias))
        out = affine(inner, self.weights[-1], self.biases[-1])
        return out if self.skip is None else out + affine(rows, self.skip)

    def forward_torch(self, tensors: Sequence[Tensor], rows: Tensor) -> Tensor:
        """Do the same with tensors in the order of `arrays`."""
        from torch.nn import functional

        activate = ACTIVATIONS[self.activation].forward_torch
        depth = len(self.weights)
        inner = rows
        for weight, bias in zip(tensors[: depth - 1], tensors[depth : 2 * depth - 1], strict=True):
            inner = activate(functional.linear(inner, weight.T, bias))
        out: Tensor = functional.linear(inner, tensors[depth - 1].T, tensors[2 * depth - 1])
        return out if self.skip is None else out + rows @ tensors[2 * depth]

    def fold(self, mean: FloatArray, scale: float, out_scale: float) -> Network:
        """Return the same function of raw rows.

        Where this network took ``(x - mean) / scale`` in its layers and raw rows in its skip
        branch, and gave rows in units of ``out_scale``.
        """
        weights = [np.asarray(each, dtype=np.float64) for each in self.weights]
        biases = [np.asarray(each, dtype=np.float64) for each in self.biases]
        weights[0] = weights[0] / scale
        biases[0] = biases[0] - mean @ weights[0]
        weights[-1], biases[-1] = weights[-1] * out_scale, biases[-1] * out_scale
        skip = None if self.skip is None else (self.skip * out_scale).astype(np.float32)
        return Network(
            [each.astype(np.float32) for each in weights],
            [each.astype(np.float32) for each in biases],
            skip,
            self.activation,
        )
