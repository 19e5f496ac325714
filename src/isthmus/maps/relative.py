"""Relative representations: re-express, do not map.

Every vector becomes the list of its similarities to the anchor pairs, seen from its own side:
``x -> k(x, a_1), ..., k(x, a_m)`` and ``y -> k(y, b_1), ..., k(y, b_m)``. With the cosine this
does not change when a side is rotated or rescaled.

When to use it: with pairs too few or spaces too different for a linear map, and where both sides
may move: it scores candidates, or searches an index of ``transform_target`` vectors. It has nothing
to overfit, but needs as many numbers per vector as anchors. Shapes: (n, dim_source) and
(n, dim_target) to (n, n_anchors).
Reference: Moschella et al. (2023), Relative representations enable zero-shot latent space
communication.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine, in_row_blocks, normalise
from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_nonzero
from isthmus.errors import ParameterError
from isthmus.maps._fitting import PairedRows, check_fit
from isthmus.maps.base import LandsIn, Map

__all__ = ["Relative"]

Kernel = Literal["cosine", "poly", "rbf"]
KERNELS = ("cosine", "poly", "rbf")


class Relative(Map):
    """Similarities of each vector, at unit length, to the anchor pairs of its own side.

    Parameters
    ----------
    kernel : {"cosine", "poly", "rbf"}, default "cosine"
        Of unit rows x and anchors a: ``x.a``, ``(x.a + 1)^2``, ``exp(-g |x - a|^2)`` with one g per
        side, one over the median squared distance between its anchors.
    max_anchors : int, default 1000
        With more pairs than this, so many are drawn as anchors; this project's choice: the width of
        what comes out.
    seed : int, default 0
        Of that draw. Pairs of more weight are drawn first more often.

    Attributes
    ----------
    anchors_source_, anchors_target_ : (n_anchors, dim) float32
        Unit rows.
    widths_ : (2,) float64
        g of each side; ones where the kernel has none.
    importance_ : (n_anchors,) float32
        Square root of the weight of each anchor; its column is multiplied by it, so that a weight
        of two counts as the anchor twice.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> turned = X @ np.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> relative = Relative().fit(X, turned)
    >>> np.allclose(relative.transform(X), relative.transform_target(turned))
    True
    """

    name: ClassVar[str] = "relative"
    lands_in: ClassVar[LandsIn] = "comparison"
    freedom: ClassVar[int] = 30
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "anchors_source": ("anchors", "source"),
        "anchors_target": ("anchors", "target"),
        "widths": ("sides",),
        "importance": ("anchors",),
    }

    anchors_source_: FloatArray
    anchors_target_: FloatArray
    widths_: FloatArray
    importance_: FloatArray

    def __init__(
        self, *, kernel: Kernel = "cosine", max_anchors: int = 1_000, seed: int = 0
    ) -> None:
        self.kernel = kernel
        self.max_anchors = max_anchors
        self.seed = seed

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Keep the anchors from pairs X (n, dim_source) and Y (n, dim_target).

        Raises
        ------
        ParameterError
            An unknown kernel, fewer than two anchors.
        ZeroVectorError
            A row of zeros has no direction to compare.
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        if self.kernel not in KERNELS or self.max_anchors < 2:
            raise ParameterError(
                expected=f"kernel among {', '.join(KERNELS)} and max_anchors of at least 2",
                got=f"kernel={self.kernel!r}, max_anchors={self.max_anchors}",
                do="leave them out",
            )
        pairs = check_fit(X, Y, sample_weight)
        check_nonzero(pairs.source, name="X")
        check_nonzero(pairs.target, name="Y")
        rows = self._draw(pairs)
        self.anchors_source_ = normalise(pairs.source[rows])
        self.anchors_target_ = normalise(pairs.target[rows])
        sides = (self.anchors_source_, self.anchors_target_)
        self.widths_ = np.asarray(
            [_width(anchors) if self.kernel == "rbf" else 1.0 for anchors in sides]
        )
        weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight
        self.importance_ = np.sqrt(weight[rows]).astype(np.float32)
        self.n_features_in_, self.n_features_target_ = pairs.source.shape[1], pairs.target.shape[1]
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Compare source rows with the anchors of the source: (n, n_anchors), float32."""
        return self._similarities(self._check_source(X), self.anchors_source_, self.widths_[0])

    def transform_target(self, Y: npt.ArrayLike) -> FloatArray:
        """Compare target rows with the anchors of the target: (n, n_anchors), float32."""
        return self._similarities(self._check_target(Y), self.anchors_target_, self.widths_[1])

    def _draw(self, pairs: PairedRows) -> IntArray:
        if len(pairs) <= self.max_anchors:
            return np.arange(len(pairs))
        weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight
        drawn = np.random.default_rng(self.seed).choice(
            len(pairs), size=self.max_anchors, replace=False, p=weight / weight.sum()
        )
        return np.sort(drawn)

    def _similarities(self, rows: FloatArray, anchors: FloatArray, width: float) -> FloatArray:
        columns = np.ascontiguousarray(anchors.T)

        def compare(block: FloatArray) -> FloatArray:
            cosine = affine(normalise(block), columns)
            if self.kernel == "poly":
                cosine = (cosine + np.float32(1)) ** 2
            elif self.kernel == "rbf":  # of unit rows |x - a|^2 = 2 - 2 x.a
                cosine = np.exp(np.float32(-2 * width) * (np.float32(1) - cosine))
            return cosine * self.importance_

        return in_row_blocks(compare, rows)


def _width(anchors: FloatArray) -> float:
    """Return one over the median squared distance between different anchors."""
    cosine = anchors.astype(np.float64) @ anchors.T.astype(np.float64)
    apart = 2 - 2 * cosine[np.triu_indices(len(anchors), k=1)]
    middle = float(np.median(apart))
    return 1 / middle if middle > 0 else 1.0
