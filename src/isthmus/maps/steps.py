"""Preprocessing steps: centre, normalise, whiten, PCA; one side of a bridge each.

They are named steps of ``Compose`` and of the bridge, never hidden inside a map. Every step has a
right inverse: ``transform(inverse_transform(z)) == z`` for every z that the step can give. What a
step takes away (length, directions that PCA drops) comes back as the mean of what ``fit`` saw.

When to use which: ``Centre`` nearly always helps; ``Normalise`` first where the metric is the
cosine; ``PCA`` to make widths equal or to drop noise; ``Whiten`` where scales of directions differ
much. Shapes: (n, dim) to (n, dim), and (n, k) for PCA. References: the map family paper,
"Preprocessing that changes everything"; Kessy, Lewin and Strimmer (2018) for ZCA whitening.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine, mean_rows, normalise, pca, row_lengths, whitening
from isthmus._types import FloatArray
from isthmus._validate import as_matrix, check_nonzero, check_spread, check_weight
from isthmus.errors import ParameterError
from isthmus.maps._state import Stateful

__all__ = ["PCA", "STEPS", "Centre", "Normalise", "Step", "Whiten"]


class Step(Stateful):
    """A change of one side before a map is fitted, with its right inverse."""

    def fit(
        self, X: npt.ArrayLike, y: object = None, *, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Learn from rows X (n, dim), weighted by ``sample_weight`` (n,); forget any earlier fit.

        ``y`` is not looked at: scikit-learn's pipelines pass the targets of their last step.

        Raises
        ------
        InputError
            As ``as_matrix`` and ``check_weight`` say.
        """
        del y
        rows = as_matrix(X, name="X")
        weight = check_weight(sample_weight, rows=len(rows))
        self._learn(rows, weight)
        self.n_features_in_ = rows.shape[1]
        return self

    @property
    def n_features_out_(self) -> int:
        """Width of what ``transform`` gives."""
        self._check_fitted()
        return self.n_features_in_

    @abstractmethod
    def _learn(self, X: FloatArray, weight: FloatArray | None) -> None:
        """Learn the state from checked rows."""

    @abstractmethod
    def _forward(self, X: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Change checked rows; what comes out may be written into ``out``, which may be X."""

    @abstractmethod
    def _backward(self, Z: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Change checked rows back; what comes out may be written into ``out``, which may be Z."""

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Change rows (n, dim) to (n, n_features_out_), float32."""
        self._check_fitted()
        return self._forward(as_matrix(X, name="X", dim=self.n_features_in_))

    def inverse_transform(self, Z: npt.ArrayLike) -> FloatArray:
        """Change rows (n, n_features_out_) back to (n, dim), float32."""
        return self._backward(as_matrix(Z, name="Z", dim=self.n_features_out_))

    def carry(self, X: FloatArray, *, owned: bool) -> FloatArray:
        """Do as ``transform`` on rows that were checked; ``owned`` rows may be overwritten."""
        return self._forward(X, out=X if owned else None)

    def carry_back(self, Z: FloatArray) -> FloatArray:
        """Do as ``inverse_transform`` on float32 rows that were checked and may be overwritten."""
        return self._backward(Z, out=Z)

    @classmethod
    def from_state(
        cls, params: Mapping[str, Any], state: Mapping[str, npt.NDArray[Any]], *, dim: int
    ) -> Self:
        """Make a fitted step from constructor parameters and learned arrays.

        Raises
        ------
        MalformedArtifactError
        """
        fitted = cls._restore(params, state, {"dim": dim})
        fitted.n_features_in_ = dim
        return fitted


class Centre(Step):
    """Subtract the mean row.

    Examples
    --------
    >>> Centre().fit([[1.0, 2.0], [3.0, 4.0]]).transform([[2.0, 3.0]])
    array([[0., 0.]], dtype=float32)
    """

    name: ClassVar[str] = "centre"
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {"mean": ("dim",)}

    mean_: FloatArray

    def _learn(self, X: FloatArray, weight: FloatArray | None) -> None:
        self.mean_ = mean_rows(X, weight=weight)

    def _forward(self, X: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return np.subtract(X, self.mean_.astype(np.float32), out=out, dtype=np.float32)

    def _backward(self, Z: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return np.add(Z, self.mean_.astype(np.float32), out=out, dtype=np.float32)


class Normalise(Step):
    """Give every row the length one.

    The way back gives every row the mean length of the rows that ``fit`` saw: of unit rows nothing
    is lost. A row of zeros has no direction: ``fit`` refuses it, ``transform`` leaves it zero.

    Examples
    --------
    >>> Normalise().fit([[3.0, 4.0]]).transform([[0.0, 2.0]])
    array([[0., 1.]], dtype=float32)
    """

    name: ClassVar[str] = "normalise"
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {"length": ()}

    length_: FloatArray

    def _learn(self, X: FloatArray, weight: FloatArray | None) -> None:
        check_nonzero(X, name="X")
        lengths = row_lengths(X.astype(np.float32, copy=False)).astype(np.float64)
        self.length_ = np.asarray(np.average(lengths, weights=weight))

    def _forward(self, X: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return normalise(X)

    def _backward(self, Z: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return np.multiply(Z, np.float32(self.length_), out=out, dtype=np.float32)


class Whiten(Step):
    """Centre, and give every direction the variance one (ZCA: with the least change of the rows).

    Directions without variance become zero.

    Parameters
    ----------
    shrinkage : float in [0, 1], default 0.1
        Share of the covariance that is replaced by its mean variance in every direction. The
        default is this project's choice: enough that noise directions are not blown up.

    Examples
    --------
    >>> whiten = Whiten(shrinkage=0.0).fit([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [4.0, 2.0]])
    >>> whiten.transform([[4.0, 2.0]])
    array([[1., 1.]], dtype=float32)
    """

    name: ClassVar[str] = "whiten"
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "mean": ("dim",),
        "matrix": ("dim", "dim"),
        "inverse": ("dim", "dim"),
    }

    mean_: FloatArray
    matrix_: FloatArray
    inverse_: FloatArray

    def __init__(self, *, shrinkage: float = 0.1) -> None:
        self.shrinkage = shrinkage

    def _learn(self, X: FloatArray, weight: FloatArray | None) -> None:
        if not 0 <= self.shrinkage <= 1:
            raise ParameterError(
                expected="shrinkage from 0 to 1", got=f"{self.shrinkage}", do="change it"
            )
        check_spread(X, name="X")
        self.mean_, matrix, inverse = whitening(X, shrinkage=self.shrinkage, weight=weight)
        self.matrix_, self.inverse_ = matrix.astype(np.float32), inverse.astype(np.float32)

    def _forward(self, X: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return affine(X, self.matrix_, -self.mean_ @ self.matrix_.astype(np.float64))

    def _backward(self, Z: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return affine(Z, self.inverse_, self.mean_)


class PCA(Step):
    """Centre and keep the directions of most variance.

    Parameters
    ----------
    n_components : int
        At most the width, and under the number of rows.

    Examples
    --------
    >>> rows = [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]]
    >>> PCA(n_components=1).fit(rows).transform(rows).round(4)
    array([[-2.8284],
           [ 0.    ],
           [ 2.8284]], dtype=float32)
    """

    name: ClassVar[str] = "pca"
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "mean": ("dim",),
        "directions": ("dim", "components"),
        "variances": ("components",),
    }

    mean_: FloatArray
    directions_: FloatArray
    variances_: FloatArray

    def __init__(self, *, n_components: int) -> None:
        self.n_components = n_components

    @property
    def n_features_out_(self) -> int:
        """Number of directions that were kept."""
        self._check_fitted()
        return int(self.directions_.shape[1])

    def _learn(self, X: FloatArray, weight: FloatArray | None) -> None:
        check_spread(X, name="X")
        if self.n_components < 1:
            raise ParameterError(
                expected="n_components of at least 1", got=f"{self.n_components}", do="change it"
            )
        self.mean_, directions, self.variances_ = pca(X, self.n_components, weight=weight)
        if directions.shape[1] < self.n_components:
            raise ParameterError(
                expected=f"n_components of at most {directions.shape[1]}, the directions that vary",
                got=f"{self.n_components}",
                do="keep fewer directions, or pass more rows",
            )
        self.directions_ = directions.astype(np.float32)

    def _forward(self, X: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return affine(X, self.directions_, -self.mean_ @ self.directions_.astype(np.float64))

    def _backward(self, Z: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return affine(Z, np.ascontiguousarray(self.directions_.T), self.mean_)


STEPS: Mapping[str, type[Step]] = {step.name: step for step in (Centre, Normalise, Whiten, PCA)}
"""Every step by its name in a manifest."""
