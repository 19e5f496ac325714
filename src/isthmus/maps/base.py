"""The contract of every map: two encoders into one comparison space."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus._validate import as_matrix
from isthmus.errors import MalformedArtifactError, ParameterError, UnknownNameError
from isthmus.maps._state import Stateful

__all__ = ["LandsIn", "Map"]

LandsIn = Literal["target", "comparison"]


class Map(Stateful):
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
    centred : bool
        Whether both sides are centred before it in a bridge; a map that sees lengths and angles as
        they are says no.
    paired : bool
        False: the order of rows says nothing; X and Y may have other numbers of rows.
    sees_collection : bool
        Whether ``fit`` looks at ``unpaired_target``, so that it is worth handing over.
    sees_unpaired : bool
        Whether ``fit`` looks at ``unpaired_source`` and ``unpaired_target``: rows without a pair.
    state_shapes : mapping of str to tuple of str
        Learned arrays that make up the state and their axes, among them ``source`` (dim_source)
        and ``target`` (dim_target). Scalars are arrays of shape ().
    """

    lands_in: ClassVar[LandsIn] = "target"
    freedom: ClassVar[int]
    centred: ClassVar[bool] = True
    paired: ClassVar[bool] = True
    sees_collection: ClassVar[bool] = False
    sees_unpaired: ClassVar[bool] = False

    n_features_target_: int

    @property
    def costly(self) -> bool:
        """Whether a fit takes so long that a bridge holds out one part of its pairs, not ten."""
        return False

    @property
    def fewest_pairs(self) -> int:
        """With fewer ``fit`` refuses; a bridge measures only where its splits have so many."""
        return 2

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
            An array or a parameter is missing or unknown, or an array has another shape than the
            map declares; a parameter that the map does not take.
        """
        fitted = cls._restore(params, state, {"source": dim_source, "target": dim_target})
        try:
            fitted._check_params()  # noqa: SLF001 - its own class
        except (ParameterError, UnknownNameError) as error:
            raise MalformedArtifactError(
                expected=f"parameters that {cls.name} takes",
                got=f"{error}"[:200],
                do="use the version of Isthmus that wrote it",
            ) from error
        fitted.n_features_in_, fitted.n_features_target_ = dim_source, dim_target
        return fitted

    def _check_params(self) -> None:
        """Check the constructor's parameters: before a fit, and when a map is loaded.

        Raises
        ------
        ParameterError, UnknownNameError
        """

    def _check_source(self, X: npt.ArrayLike) -> FloatArray:
        self._check_fitted()
        return as_matrix(X, name="X", dim=self.n_features_in_)

    def _check_target(self, Y: npt.ArrayLike) -> FloatArray:
        self._check_fitted()
        return as_matrix(Y, name="Y", dim=self.n_features_target_)
