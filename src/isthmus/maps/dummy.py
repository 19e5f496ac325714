"""The dummy map: a random rotation that learned nothing.

``T(x) = x Q`` with Q drawn from the uniform distribution over orthogonal matrices (the first rows
or columns of one, where the widths differ). Distances within the mapped rows are those of the
source rows; against the target's rows they say nothing.

When to use it: as the floor of a federation, where the null map is not always one: two models that
share an ancestor may have directions in common, and the null map then keeps something. Never for
use. Shapes: (n, dim_source) to (n, dim_target).
References: HVMap, section 5.4.3 and figure 11 (an untrained dummy mapping); Mezzadri (2007) for the
draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from isthmus._rowwise import affine
from isthmus._types import FloatArray
from isthmus._validate import as_matrix, check_pairs, check_weight, check_whole
from isthmus.maps.base import Map

__all__ = ["Dummy"]


class Dummy(Map):
    """A random rotation.

    Parameters
    ----------
    seed : int, default 0
        Of the draw, at least 0.

    Attributes
    ----------
    rotation_ : (dim_source, dim_target) float32

    Examples
    --------
    >>> dummy = Dummy().fit([[1.0, 2.0]], [[1.0, 2.0, 3.0]])
    >>> float(np.linalg.norm(dummy.transform([[3.0, 4.0]])).round(4))
    5.0
    """

    name: ClassVar[str] = "dummy"
    freedom: ClassVar[int] = 0
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {"rotation": ("source", "target")}

    rotation_: FloatArray

    def __init__(self, *, seed: int = 0) -> None:
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
        """Check the pairs and draw the rotation; nothing is learned from them.

        Raises
        ------
        ParameterError
            A seed under 0.
        DimensionError, CountMismatchError, EmptyInputError, InvalidVectorsError
        """
        check_whole(self.seed, name="seed", minimum=0)
        source, target = as_matrix(X, name="X"), as_matrix(Y, name="Y")
        check_pairs(source, target, minimum=1)
        check_weight(sample_weight, rows=len(source))
        dims = source.shape[1], target.shape[1]
        drawn = np.random.default_rng(self.seed).standard_normal((max(dims), min(dims)))
        columns, triangle = np.linalg.qr(drawn)
        columns *= np.sign(np.diag(triangle))  # else the draw is not uniform
        self.rotation_ = (columns if dims[0] >= dims[1] else columns.T).astype(np.float32)
        self.n_features_in_, self.n_features_target_ = dims
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Rotate source rows: (n, dim_target), float32."""
        return affine(self._check_source(X), self.rotation_)
