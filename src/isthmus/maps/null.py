"""The null map: do nothing.

``T(x) = x``. Where the two spaces differ in width, x is cut off or filled up with zeros.

When to use it: always, first. It is the floor of every table: where it already scores well, the
spaces were nearly the same and any fitted map is fitting noise. Shapes: (n, dim_source) to
(n, dim_target). Reference: the baseline of Jha et al. (2025), vec2vec; `docs/maps.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus._validate import as_matrix, check_pairs, check_weight
from isthmus.maps.base import Map

__all__ = ["Null"]


class Null(Map):
    """The identity, cut off or filled up with zeros to the width of the target.

    Examples
    --------
    >>> null = Null().fit([[1.0, 2.0]], [[1.0, 2.0, 3.0]])
    >>> null.transform([[5.0, 6.0]])
    array([[5., 6., 0.]], dtype=float32)
    """

    name: ClassVar[str] = "null"
    freedom: ClassVar[int] = 0
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Check the pairs and remember the two widths; there is nothing to learn.

        Raises
        ------
        DimensionError, CountMismatchError, EmptyInputError, InvalidVectorsError
        """
        source, target = as_matrix(X, name="X"), as_matrix(Y, name="Y")
        check_pairs(source, target, minimum=1)
        check_weight(sample_weight, rows=len(source))
        self.n_features_in_, self.n_features_target_ = source.shape[1], target.shape[1]
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Return the rows as they are, cut off or filled up: (n, dim_target), float32."""
        source = self._check_source(X)
        out = np.zeros((len(source), self.n_features_target_), dtype=np.float32)
        shared = min(source.shape[1], out.shape[1])
        out[:, :shared] = source[:, :shared]
        return out
