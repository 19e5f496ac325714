"""State in, state out: the learned arrays of maps and steps, with their shapes declared once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from isthmus.errors import MalformedArtifactError, NotFittedError

__all__ = ["Stateful", "params_from_json", "params_to_json"]


class Stateful(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Something that learns arrays and can be rebuilt from them.

    Class attributes
    ----------------
    name : str
        Name in the registry, the command line and the bridge manifest.
    state_shapes : mapping of str to tuple of str
        Learned arrays that make up the state, without the closing underscore, and the names of
        their axes; an axis of one name has one length in all of them. Scalars have no axes.
    unrecorded : frozenset of str
        Constructor parameters that a manifest leaves out: they belong to the machine.
    """

    name: ClassVar[str]
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]]
    unrecorded: ClassVar[frozenset[str]] = frozenset()

    n_features_in_: int
    _restored_from: frozenset[str] | None = None

    def get_state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the learned arrays by name, without the closing underscore."""
        self._check_fitted()
        return {name: np.asarray(getattr(self, f"{name}_")) for name in self.state_shapes}

    def recorded_params(self) -> dict[str, Any]:
        """Return the constructor parameters that a manifest records, as JSON values.

        Of a restored object those that it was restored from: parameters that came later must not
        change the manifest of an older bridge, whose hash covers it.
        """
        names = set(self.get_params(deep=False)) - self.unrecorded
        if self._restored_from is not None:
            names &= self._restored_from
        return params_to_json({k: v for k, v in self.get_params(deep=False).items() if k in names})

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(
                expected=f"a fitted {self.name}", got="one that was not fitted", do="call fit"
            )

    @classmethod
    def _restore(
        cls,
        params: Mapping[str, Any],
        state: Mapping[str, npt.NDArray[Any]],
        axes: Mapping[str, int],
    ) -> Self:
        """Make a fitted object; ``axes`` are the lengths that are known from elsewhere."""
        missing = sorted(set(cls.state_shapes) - set(state))
        unknown = sorted(set(state) - set(cls.state_shapes))
        unknown_params = sorted(set(params) - set(cls._get_param_names()))
        if missing or unknown or unknown_params:
            raise _malformed(
                f"{cls.name} with the arrays {', '.join(cls.state_shapes) or '(none)'}",
                f"missing {missing}, unknown {unknown}, unknown parameters {unknown_params}",
            )
        fitted = cls(**params)
        fitted._restored_from = frozenset(params)
        lengths = dict(axes)
        for name, axis_names in cls.state_shapes.items():
            array = np.asarray(state[name])
            _check_array(f"{cls.name}.{name}", array, axis_names, lengths)
            setattr(fitted, f"{name}_", array)
        return fitted


def _check_array(
    name: str, array: npt.NDArray[Any], axis_names: tuple[str, ...], lengths: dict[str, int]
) -> None:
    if array.dtype.kind not in "fi" or not np.isfinite(array).all():
        raise _malformed(f"finite numbers in {name}", f"{array.dtype} with other values")
    if array.ndim != len(axis_names):
        raise _malformed(f"{name} with {len(axis_names)} axes", f"shape {array.shape}")
    for axis, length in zip(axis_names, array.shape, strict=True):
        if lengths.setdefault(axis, length) != length:
            raise _malformed(f"{name} with {axis} = {lengths[axis]}", f"shape {array.shape}")


def _malformed(expected: str, got: str) -> MalformedArtifactError:
    return MalformedArtifactError(
        expected=expected, got=got, do="use the version of Isthmus that wrote it"
    )


def params_to_json(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return constructor parameters as JSON values: tuples become lists."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in params.items()
    }


def params_from_json(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return constructor parameters from JSON values: lists become tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in params.items()
    }
