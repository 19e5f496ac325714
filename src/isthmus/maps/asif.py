"""ASIF: each vector by its few strongest similarities to the pairs, sharpened.

    c_i = cosine of x and a_i, over all anchors a of its own side
    T(x) = n(c_i ** power for the k largest c_i over zero, 0 elsewhere), n unit length

Relative representations made sparse: what counts is which pairs a vector is near to, not how far it
is from all others. Nothing is trained; all pairs are kept and each vector becomes as many numbers.

When to use it: as a rival where pairs are many and a bridge has to be there at once. It was made
for a million pairs and more; with hundreds a trained map is better. Shapes: (n, dim_source) and
(n, dim_target) to (n, n_anchors), compared by the cosine.
Reference: Norelli, Fumero, Maiorca, Moschella, Rodolà and Locatello (2023), ASIF: coupled data
turns unimodal models to multimodal without training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine, in_row_blocks, normalise
from isthmus._types import FloatArray
from isthmus._validate import check_nonzero, check_positive, check_whole
from isthmus.errors import ParameterError
from isthmus.maps._fitting import check_fit
from isthmus.maps.base import LandsIn, Map

__all__ = ["ASIF"]

MOST_ANCHORS = 20_000
"""A round number: what comes out has as many columns, and none of them is stored sparse."""
LARGEST_POWER = 1_000.0
"""Beyond, one anchor is all that is left of a row."""


class ASIF(Map):
    """Sparse, sharpened similarities of each vector to all pairs, seen from its own side.

    In a bridge both sides are centred first, which the paper does not do: on molecules and their
    descriptions (ChEBI-20, 500 pairs, seeds 100 to 102) that took recall at 1 from 7 and 15 to
    18 and 17 percent.

    Parameters
    ----------
    k : int, default 800
        Similarities that are kept of each row, those over zero at most; ties with the last are kept
        too. The default is that of the authors' published code; with fewer pairs all are kept.
    power : float, default 8
        To which each is raised (the authors' choice for images and texts).

    Attributes
    ----------
    anchors_source_, anchors_target_ : (n_anchors, dim) float32
        Unit rows.
    importance_ : (n_anchors,) float32
        Square root of the weight of each anchor, multiplied into its column.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> asif = ASIF(k=2).fit(X, X[:, ::-1])
    >>> asif.transform([[2.0, 0.0]]).round(3)
    array([[0.998, 0.   , 0.062]], dtype=float32)
    """

    name: ClassVar[str] = "asif"
    lands_in: ClassVar[LandsIn] = "comparison"
    freedom: ClassVar[int] = 31
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "anchors_source": ("anchors", "source"),
        "anchors_target": ("anchors", "target"),
        "importance": ("anchors",),
    }

    anchors_source_: FloatArray
    anchors_target_: FloatArray
    importance_: FloatArray

    def __init__(self, *, k: int = 800, power: float = 8.0) -> None:
        self.k = k
        self.power = power

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Keep the pairs X (n, dim_source) and Y (n, dim_target), at most 20,000, as anchors.

        Raises
        ------
        ParameterError
            k or power out of range; too many pairs.
        ZeroVectorError
            A row of zeros has no direction to compare.
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        self._check_params()
        pairs = check_fit(X, Y, sample_weight)
        if len(pairs) > MOST_ANCHORS:
            raise ParameterError(
                expected=f"at most {MOST_ANCHORS:,} pairs, since each becomes a column",
                got=f"{len(pairs):,}",
                do="pass a sample of the pairs, or fit a map that learns, such as 'ridge'",
            )
        check_nonzero(pairs.source, name="X")
        check_nonzero(pairs.target, name="Y")
        self.anchors_source_ = normalise(pairs.source)
        self.anchors_target_ = normalise(pairs.target)
        weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight
        self.importance_ = np.sqrt(weight).astype(np.float32)
        self.n_features_in_, self.n_features_target_ = pairs.source.shape[1], pairs.target.shape[1]
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Compare source rows with the anchors of the source: (n, n_anchors), float32."""
        return self._compare(self._check_source(X), self.anchors_source_)

    def transform_target(self, Y: npt.ArrayLike) -> FloatArray:
        """Compare target rows with the anchors of the target: (n, n_anchors), float32."""
        return self._compare(self._check_target(Y), self.anchors_target_)

    def _check_params(self) -> None:
        check_whole(self.k, name="k")
        check_positive(self.power, name="power", maximum=LARGEST_POWER)

    def _compare(self, rows: FloatArray, anchors: FloatArray) -> FloatArray:
        columns = np.ascontiguousarray(anchors.T)

        def compare(block: FloatArray) -> FloatArray:
            cosine = np.maximum(affine(normalise(block), columns), np.float32(0))
            if self.k < len(anchors):
                least = np.partition(cosine, -self.k, axis=1)[:, -self.k, None]
                cosine[cosine < least] = 0
            largest = cosine.max(axis=1, keepdims=True)
            # A share of the largest, so that no power of a small cosine leaves float32.
            share = cosine / np.where(largest > 0, largest, np.float32(1))
            return normalise(share ** np.float32(self.power) * self.importance_)

        return in_row_blocks(compare, rows)
