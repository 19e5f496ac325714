"""What all maps share that are a network trained with torch: fit around it, state, transform."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, get_args

import numpy as np
import numpy.typing as npt

from isthmus._linalg import in_row_blocks, normalise
from isthmus._types import FloatArray, Metric
from isthmus._validate import as_matrix, check_positive, check_share, check_whole
from isthmus.errors import MalformedArtifactError, ParameterError, UnknownNameError
from isthmus.maps._fitting import PairedRows, check_fit
from isthmus.maps._state import Stateful
from isthmus.maps.base import Map
from isthmus.maps.training import Fitting, Network, Outcome
from isthmus.maps.training.fitting import is_unit
from isthmus.maps.training.loop import Trained

__all__ = ["Learned"]

LEAST_PAIRS = 10
"""A round number: with fewer a closed form is as good."""
LARGEST_RATE = 1e6
"""So that no step is infinite in float32."""
MOST_STEPS = 10**9
"""Years of training: whoever gives more has made a slip."""
OUTCOMES: tuple[Outcome, ...] = ("out_of_steps", "no_more_gain", "too_few_pairs")
"""In the order of the numbers in ``stopped_``."""


class Learned(Map):
    """A map that is a network, with what its training left.

    A subclass has the parameters ``epochs``, ``batch``, ``patience``, ``learning_rate``,
    ``weight_decay``, ``held_out``, ``metric``, ``seed``, ``device`` and ``checkpoint``.
    """

    centred: ClassVar[bool] = False
    sees_collection: ClassVar[bool] = True
    unrecorded: ClassVar[frozenset[str]] = frozenset({"device", "checkpoint"})

    batch: int
    epochs: int
    patience: int
    learning_rate: float | None
    weight_decay: float
    held_out: float
    metric: Metric
    seed: int
    device: str
    checkpoint: str | None

    unit_: npt.NDArray[np.int64]
    steps_: npt.NDArray[np.int64]
    stopped_: npt.NDArray[np.int64]

    @property
    def costly(self) -> bool:
        """Training takes long."""
        return True

    @property
    def fewest_pairs(self) -> int:
        """With fewer a closed form is as good."""
        return LEAST_PAIRS

    @property
    def outcome(self) -> Outcome:
        """Why training ended.

        ``no_more_gain``: held-out pairs no longer gained, or a closed form has nothing to gain;
        ``out_of_steps``: the steps were done; ``too_few_pairs``: too few to hold any out, so the
        closed form stands as it is.
        """
        self._check_fitted()
        return OUTCOMES[int(self.stopped_)]

    @property
    def network(self) -> Network:
        """What was learned, as layers on raw source rows; before the unit length of ``unit_``."""
        self._check_fitted()
        return self._network()

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from pairs X (n, dim_source) and Y (n, dim_target), at least ten.

        ``unpaired_target`` (m, dim_target) is the collection in which held-out rows are to find
        their neighbours, which decides when training ends; nothing else is learned from it.

        Raises
        ------
        MissingExtraError
            Without torch, where something is trained.
        ParameterError, UnknownNameError
            A parameter out of its range; an unknown name or device.
        DivergedTrainingError
            The loss grows without bound.
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        self._check_params()
        pairs = check_fit(X, Y, sample_weight, minimum=self.fewest_pairs)
        dims = pairs.source.shape[1], pairs.target.shape[1]
        collection = None
        if unpaired_target is not None:
            collection = as_matrix(unpaired_target, name="unpaired_target", dim=dims[1])
        trained = self._train(pairs, collection)
        self._keep(trained.network)
        self.unit_ = np.asarray(int(is_unit(pairs.target)))
        self.steps_ = np.asarray(trained.steps)
        self.stopped_ = np.asarray(OUTCOMES.index(trained.outcome))
        self._keep_looks(trained)
        self.n_features_in_, self.n_features_target_ = dims
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Carry source rows into the target space: (n, dim_target), float32."""
        network = self.network

        def forward(rows: FloatArray) -> FloatArray:
            out = network.forward(rows)
            return normalise(out) if int(self.unit_) else out

        return in_row_blocks(forward, self._check_source(X))

    def _train(self, pairs: PairedRows, collection: FloatArray | None) -> Trained:
        return self._fitting(pairs, collection).run()

    @abstractmethod
    def _fitting(self, pairs: PairedRows, collection: FloatArray | None) -> Fitting:
        """Return how the network is fitted."""

    @abstractmethod
    def _keep(self, network: Network) -> None:
        """Take the arrays of a network."""

    @abstractmethod
    def _network(self) -> Network:
        """Return the network of these arrays."""

    @abstractmethod
    def _agrees(self) -> bool:
        """Say whether the arrays have the sizes that the parameters give."""

    def _keep_looks(self, trained: Trained) -> None:
        """Take the held-out curve, where the map has a place for it."""

    def _training_params(self) -> dict[str, Any]:
        """Return what tells this training from others, before a fit and after it alike."""
        return {"map": self.name, **Stateful.recorded_params(self)}

    def _check_params(self) -> None:
        check_whole(self.epochs, name="epochs", maximum=MOST_STEPS)
        for name in ("batch", "patience"):
            check_whole(getattr(self, name), name=name)
        check_whole(self.seed, name="seed", minimum=0)
        if self.metric not in get_args(Metric):
            raise UnknownNameError.of("metric", str(self.metric), get_args(Metric))
        if self.learning_rate is not None:
            check_positive(self.learning_rate, name="learning_rate", maximum=LARGEST_RATE)
        decay = self.weight_decay
        number = isinstance(decay, int | float | np.number) and not isinstance(decay, bool)
        if not (number and 0 <= decay <= LARGEST_RATE):
            raise ParameterError(
                expected=f"weight_decay of at least 0 and at most {LARGEST_RATE:g}",
                got=f"{decay!r}"[:100],
                do="give such a number; 0 is none",
            )
        check_share(self.held_out, name="held_out")

    @classmethod
    def _restore(
        cls,
        params: Mapping[str, Any],
        state: Mapping[str, npt.NDArray[Any]],
        axes: Mapping[str, int],
    ) -> Self:
        fitted = super()._restore(params, state, axes)
        last = len(OUTCOMES) - 1
        for name, number, text, good in (
            ("stopped", fitted.stopped_, f"from 0 to {last}", fitted.stopped_ in range(last + 1)),
            ("unit", fitted.unit_, "as 0 or 1", fitted.unit_ in (0, 1)),
            ("steps", fitted.steps_, "as a count", fitted.steps_ >= 0 and not fitted.steps_ % 1),
        ):
            if not good:
                raise _malformed(f"{cls.name}.{name} {text}", str(number))
        try:
            fitted._check_params()  # noqa: SLF001 - its own class
        except (ParameterError, UnknownNameError) as error:
            raise _malformed(f"parameters that {cls.name} takes", f"{error}"[:200]) from error
        if not fitted._agrees():  # noqa: SLF001 - its own class
            shape = state["weight_first"].shape
            raise _malformed(
                f"arrays of {cls.name} with the sizes that its parameters give",
                f"others, among them weight_first of shape {shape}",
            )
        return fitted


def _malformed(expected: str, got: str) -> MalformedArtifactError:
    return MalformedArtifactError(
        expected=expected, got=got, do="use the version of Isthmus that wrote it"
    )
