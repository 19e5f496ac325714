"""Embedding-Converter: a network trained to place each row and to keep the distances among rows.

    T(x) = n(a(... a(x W_1 + b_1) ...) W_k + b_k),   a SELU, n unit length where the targets have it

from random weights, without a linear branch; the objective is the sum of a point-wise term and of
distances kept globally and locally (`training.objectives.embedding_converter`).

When to use it: to compare with, as the rival that converts a stored collection (EC). Needs torch to
train and not to transform. Shapes: (n, dim_source) to (n, dim_target).
Reference: Yoon and Arik, "Embedding-Converter: a unified framework for cross-model embedding
transformation", ACL 2025. Its text was not at hand: that it is a network with these three terms is
theirs; depth, width, activation, optimiser and the weights of the terms are those of `MLP`, whose
training it shares, so that a comparison of the two compares objectives.
"""

from __future__ import annotations

from typing import ClassVar

from isthmus._types import Metric
from isthmus.maps.mlp import MLP
from isthmus.maps.training.loop import Precision

__all__ = ["EmbeddingConverter"]


class EmbeddingConverter(MLP):
    """A network with Embedding-Converter's objective. Needs the extra ``torch`` to train.

    Parameters
    ----------
    depth, width, epochs, least_steps, batch, learning_rate, weight_decay, held_out, patience
        As in `MLP` with a random start.
    metric, seed, device, precision, checkpoint
        As in `MLP`.

    Attributes
    ----------
    weight_first_ and so on
        As in `MLP`; ``skip_`` is zero.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> converter = EmbeddingConverter(width=8, epochs=1, least_steps=20)
    >>> converter.fit(X, X @ np.ones((3, 2))).transform(X).shape
    (60, 2)
    """

    name: ClassVar[str] = "embedding_converter"
    freedom: ClassVar[int] = 71

    def __init__(
        self,
        *,
        depth: int = 4,
        width: int | None = None,
        epochs: int = 40,
        least_steps: int = 2_000,
        batch: int = 1_792,
        learning_rate: float | None = None,
        weight_decay: float = 0.0,
        held_out: float = 0.2,
        patience: int = 5,
        metric: Metric = "cosine",
        seed: int = 0,
        device: str = "cpu",
        precision: Precision = "float32",
        checkpoint: str | None = None,
    ) -> None:
        super().__init__(
            objective="embedding_converter",
            start="random",
            depth=depth,
            width=width,
            epochs=epochs,
            least_steps=least_steps,
            batch=batch,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            held_out=held_out,
            patience=patience,
            metric=metric,
            seed=seed,
            device=device,
            precision=precision,
            checkpoint=checkpoint,
        )
