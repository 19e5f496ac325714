"""Preprocessing steps around a map, as one map.

``T(x) = target_steps^-1( inner( source_steps(x) ) )`` where the inner map lands in the target
space: what comes out is in the raw target space, so that an untouched store can be searched. Where
the inner map lands in a comparison space, nothing is undone and both sides go through their steps.

When to use it: always, in a bridge; its arrays are the arrays of the bridge. Shapes:
(n, dim_source) to (n, dim_target) or (n, dim of the comparison space). Reference: the map family
paper, "Preprocessing that changes everything".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from isthmus._linalg import in_row_blocks
from isthmus._types import FloatArray
from isthmus._validate import as_matrix
from isthmus.errors import MalformedArtifactError, UnsupportedOperationError
from isthmus.maps._fitting import PairedRows, check_fit
from isthmus.maps._state import params_from_json
from isthmus.maps.base import LandsIn, Map
from isthmus.maps.steps import STEPS, Step

__all__ = ["Compose"]


class Compose(Map):
    """Steps on the source side, a map, steps on the target side.

    Parameters
    ----------
    source_steps : sequence of Step
        Fitted on X, in order, each on what the one before gives.
    inner : Map
        Fitted on what the steps give. The map that was passed stays as it is.
    target_steps : sequence of Step
        Fitted on Y, in order.

    Attributes
    ----------
    source_steps_, target_steps_ : list of Step
        Fitted copies.
    inner_ : Map
        Fitted copy.

    Examples
    --------
    >>> from isthmus.maps import Centre, Compose, Procrustes
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> bridge = Compose([Centre()], Procrustes(), [Centre()]).fit(X, X[:, ::-1] + 5)
    >>> bridge.transform([[2.0, 3.0]]).round(4)
    array([[8., 7.]], dtype=float32)
    """

    name: ClassVar[str] = "compose"
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    source_steps_: list[Step]
    target_steps_: list[Step]
    inner_: Map

    def __init__(
        self, source_steps: Sequence[Step], inner: Map, target_steps: Sequence[Step] = ()
    ) -> None:
        self.source_steps = source_steps
        self.inner = inner
        self.target_steps = target_steps

    @property
    def lands_in(self) -> LandsIn:  # type: ignore[override]  # the inner map decides
        """Where the inner map lands."""
        return self.inner.lands_in

    @property
    def freedom(self) -> int:  # type: ignore[override]  # the inner map decides
        """Freedom of the inner map."""
        return self.inner.freedom

    @property
    def paired(self) -> bool:  # type: ignore[override]  # the inner map decides
        """Whether the inner map learns from pairs."""
        return self.inner.paired

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit the steps of each side on its rows, then the inner map on what they give.

        Raises
        ------
        InputError
            As :func:`isthmus.maps._fitting.check_fit`, the steps and the inner map say.
        """
        if self.inner.paired:
            pairs = check_fit(X, Y, sample_weight)
        else:  # two clouds: rows that need not be as many, and whose order says nothing
            pairs = PairedRows(as_matrix(X, name="X"), as_matrix(Y, name="Y"), None)
        source_steps, source = _fit_steps(self.source_steps, pairs.source, pairs.weight)
        target_steps, target = _fit_steps(self.target_steps, pairs.target, pairs.weight)
        unpaired = {
            name: _forward(steps, as_matrix(rows, name=name))
            for name, steps, rows in (
                ("unpaired_source", source_steps, unpaired_source),
                ("unpaired_target", target_steps, unpaired_target),
            )
            if rows is not None
        }
        self.inner_ = clone(self.inner).fit(source, target, sample_weight=pairs.weight, **unpaired)
        self.source_steps_, self.target_steps_ = source_steps, target_steps
        self.n_features_in_, self.n_features_target_ = pairs.source.shape[1], pairs.target.shape[1]
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Carry source rows into the raw target space, or into the comparison space; float32."""
        source = self._check_source(X)
        back = self.target_steps_[::-1] if self.inner_.lands_in == "target" else []

        def carry(rows: FloatArray) -> FloatArray:
            mapped = self.inner_.transform(_forward(self.source_steps_, rows))
            if back and np.may_share_memory(mapped, rows):
                mapped = mapped.copy()  # the steps back overwrite what they are given
            for step in back:
                mapped = step.carry_back(mapped)
            return mapped

        return in_row_blocks(carry, source)

    def transform_target(self, Y: npt.ArrayLike) -> FloatArray:
        """Return target rows as they are, or carry them into the comparison space; float32."""
        target = self._check_target(Y)
        if self.inner_.lands_in == "target":
            return target.astype(np.float32, copy=False)
        return in_row_blocks(
            lambda rows: self.inner_.transform_target(_forward(self.target_steps_, rows)), target
        )

    def get_state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all learned arrays as ``source.0.NAME``, ``inner.NAME`` and ``target.0.NAME``."""
        self._check_fitted()
        parts = {f"source.{place}": step for place, step in enumerate(self.source_steps_)}
        parts |= {f"target.{place}": step for place, step in enumerate(self.target_steps_)}
        named = {**parts, "inner": self.inner_}
        return {
            f"{prefix}.{name}": array
            for prefix, part in named.items()
            for name, array in part.get_state().items()
        }

    def describe(self) -> dict[str, Any]:
        """Return names, parameters and widths as JSON values, for a manifest."""
        self._check_fitted()
        return {
            "source_steps": [_describe_step(step) for step in self.source_steps_],
            "inner": {
                "name": self.inner_.name,
                "params": self.inner_.recorded_params(),
                "dim_source": self.inner_.n_features_in_,
                "dim_target": self.inner_.n_features_target_,
            },
            "target_steps": [_describe_step(step) for step in self.target_steps_],
            "dim_source": self.n_features_in_,
            "dim_target": self.n_features_target_,
        }

    @classmethod
    def from_description(
        cls, description: Mapping[str, Any], tensors: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Make the fitted map that ``describe`` and ``get_state`` wrote down.

        Raises
        ------
        MalformedArtifactError
            Something is missing, unknown, or of another shape.
        """
        try:
            return cls._read(description, tensors)
        except MalformedArtifactError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise MalformedArtifactError(
                expected="source_steps, inner and target_steps, each with a known name and params",
                got=f"{type(error).__name__}: {error}",
                do="use the version of Isthmus that wrote it",
            ) from error

    @classmethod
    def _read(cls, description: Mapping[str, Any], tensors: Mapping[str, npt.NDArray[Any]]) -> Self:
        from isthmus.maps.registry import MAPS

        steps = [
            [
                _read_step(each, _below(f"{side}.{place}.", tensors))
                for place, each in enumerate(description[f"{side}_steps"])
            ]
            for side in ("source", "target")
        ]
        said = description["inner"]
        inner = MAPS[said["name"]].from_state(
            params_from_json(said["params"]),
            _below("inner.", tensors),
            dim_source=int(said["dim_source"]),
            dim_target=int(said["dim_target"]),
        )
        made = cls(*(_unfitted(steps[0]), clone(inner), _unfitted(steps[1])))
        made.source_steps_, made.inner_, made.target_steps_ = steps[0], inner, steps[1]
        made.n_features_in_ = int(description["dim_source"])
        made.n_features_target_ = int(description["dim_target"])
        _check_chain(made, tensors)
        return made

    @classmethod
    def from_state(
        cls,
        params: Mapping[str, Any],  # noqa: ARG003 - refused
        state: Mapping[str, npt.NDArray[Any]],  # noqa: ARG003 - refused
        *,
        dim_source: int,  # noqa: ARG003 - refused
        dim_target: int,  # noqa: ARG003 - refused
    ) -> Self:
        """Refuse: the parts have parameters and widths of their own.

        Raises
        ------
        UnsupportedOperationError
        """
        raise UnsupportedOperationError(
            expected="a map without parts",
            got="compose",
            do="use Compose.from_description with what describe() and get_state() gave",
        )


def _fit_steps(
    steps: Sequence[Step], rows: FloatArray, weight: FloatArray | None
) -> tuple[list[Step], FloatArray]:
    fitted = []
    for step in steps:
        made = clone(step).fit(rows, sample_weight=weight)
        rows = made.transform(rows)
        fitted.append(made)
    return fitted, rows


def _forward(steps: Sequence[Step], rows: FloatArray) -> FloatArray:
    """Carry checked rows through the steps; only what the first step made is overwritten."""
    carried = rows
    for step in steps:
        carried = step.carry(carried, owned=carried is not rows)
    return carried


def _describe_step(step: Step) -> dict[str, Any]:
    return {
        "name": step.name,
        "params": step.recorded_params(),
        "dim": step.n_features_in_,
    }


def _read_step(description: Mapping[str, Any], state: Mapping[str, npt.NDArray[Any]]) -> Step:
    return STEPS[description["name"]].from_state(
        params_from_json(description["params"]), state, dim=int(description["dim"])
    )


def _below(prefix: str, tensors: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    return {
        name.removeprefix(prefix): array
        for name, array in tensors.items()
        if name.startswith(prefix)
    }


def _unfitted(steps: Sequence[Step]) -> list[Step]:
    return [clone(step) for step in steps]


def _check_chain(made: Compose, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuse parts whose widths do not fit each other, and arrays that no part owns."""
    for steps, dim, last in (
        (made.source_steps_, made.n_features_in_, made.inner_.n_features_in_),
        (made.target_steps_, made.n_features_target_, made.inner_.n_features_target_),
    ):
        widths = [dim, *(step.n_features_out_ for step in steps)]
        needed = [*(step.n_features_in_ for step in steps), last]
        if widths != needed:
            raise MalformedArtifactError(
                expected=f"steps of widths {needed}", got=f"{widths}", do="do not use this bridge"
            )
    unknown = sorted(set(tensors) - set(made.get_state()))
    if unknown:
        raise MalformedArtifactError(
            expected="arrays of the parts only", got=f"{unknown}", do="do not use this bridge"
        )
