"""The contract of every map: two encoders into one comparison space."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from isthmus._types import FloatArray
from isthmus._validate import as_matrix
from isthmus.errors import MalformedArtifactError, NotFittedError

__all__ = ["Map"]


class Map(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A map from a source space and a target space into one comparison space.

    Subclasses follow scikit-learn: the constructor takes keyword-only parameters and only stores
    them, ``fit`` validates, learns and returns the map, learned names end in ``_`` and are arrays,
    no caller's array is changed. A transform never depends on the batch it is given.

    Class attributes
    ----------------
    name : str
        Name in the registry, the command line and the bridge manifest.
    lands_in : {"target", "comparison"}
        ``target``: the target side is the identity, so an untouched store can be searched.
        ``comparison``: both sides move.
    freedom : int
        Place in the order of freedom, for the selection rule: null 0, procrustes 10, cca 20,
        relative 30, low_rank 40, ridge 50, clustered 60, mlp 70, anchordot 80.
    state_names : tuple of str
        Learned arrays that make up the state. Scalars are arrays of shape ().
    """

    name: ClassVar[str]
    lands_in: ClassVar[Literal["target", "comparison"]] = "target"
    freedom: ClassVar[int]
    state_names: ClassVar[tuple[str, ...]]

    n_features_in_: int
    n_features_target_: int

    @abstractmethod
    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from the pairs X (n, dim_source) and Y (n, dim_target); forget any earlier fit."""

    @abstractmethod
    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Carry source rows (n, dim_source) into the comparison space, as float32."""

    def transform_target(self, Y: npt.ArrayLike) -> FloatArray:
        """Carry target rows (n, dim_target) into the comparison space: the identity by default."""
        return self._check_target(Y).astype(np.float32, copy=False)

    def get_state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the learned arrays by name, without the closing underscore."""
        self._check_fitted()
        return {name: np.asarray(getattr(self, f"{name}_")) for name in self.state_names}

    @classmethod
    def from_state(
        cls,
        params: Mapping[str, Any],
        state: Mapping[str, npt.NDArray[Any]],
        *,
        dim_source: int,
        dim_target: int,
    ) -> Self:
        """Make a fitted map from constructor parameters and learned arrays.

        Raises
        ------
        MalformedArtifactError
            An array or a parameter is missing or unknown.
        """
        missing = sorted(set(cls.state_names) - set(state))
        unknown = sorted(set(state) - set(cls.state_names))
        unknown_params = sorted(set(params) - set(cls._get_param_names()))
        if missing or unknown or unknown_params:
            raise MalformedArtifactError(
                expected=f"a {cls.name} map with the arrays {', '.join(cls.state_names)}",
                got=f"missing {missing}, unknown {unknown}, unknown parameters {unknown_params}",
                do="use the version of Isthmus that wrote it",
            )
        fitted = cls(**params)
        for name, array in state.items():
            setattr(fitted, f"{name}_", array)
        fitted.n_features_in_, fitted.n_features_target_ = dim_source, dim_target
        return fitted

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(
                expected=f"a fitted {self.name} map", got="one that was not fitted", do="call fit"
            )

    def _check_source(self, X: npt.ArrayLike) -> FloatArray:
        self._check_fitted()
        return as_matrix(X, name="X", dim=self.n_features_in_)

    def _check_target(self, Y: npt.ArrayLike) -> FloatArray:
        self._check_fitted()
        return as_matrix(Y, name="Y", dim=self.n_features_target_)
