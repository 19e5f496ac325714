"""A small neural network: two hidden layers, by scikit-learn.

``T(x) = relu(relu(x W_1 + b_1) W_2 + b_2) W_3 + b_3``, trained by Adam on the squared distance to
the target, stopped when held-out pairs no longer gain.

When to use it: to show that it is not needed. It is the most expressive map of Lab 19, needs the
most pairs, and its result moves with the seed; use it only if ``Ridge`` measurably stops short of
the target. Shapes: (n, dim_source) to (n, dim_target).
References: the map family paper, "nonlinear MLP (2x512)"; Kingma and Ba (2015).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine, in_row_blocks, mean_rows
from isthmus._types import FloatArray
from isthmus._validate import check_positive
from isthmus.errors import ParameterError
from isthmus.maps._fitting import PairedRows, check_fit
from isthmus.maps.base import Map

__all__ = ["SmallMLP"]

LEAST_PAIRS = 10
LEAST_SPREAD = 1e-4
"""Share of the mean variance under which a target column counts as constant."""

LEAST_PAIRS_TO_HOLD_OUT = 50
"""With fewer pairs a tenth of them says nothing; then the training loss stops the training."""

Outcome = Literal["no_more_gain", "out_of_epochs"]
OUTCOMES: Mapping[Outcome, str] = {
    "no_more_gain": "The pairs held out (or the training loss, with few pairs) no longer gained.",
    "out_of_epochs": "Training ended at max_epochs while it still gained; raise max_epochs.",
}


class SmallMLP(Map):
    """A network of two hidden layers with rectified linear units.

    Parameters
    ----------
    hidden : tuple of two int, default (512, 512)
        Widths of the hidden layers; the default is the paper's.
    penalty : float, default 1e-4
        On the squared weights (scikit-learn's default).
    learning_rate : float, default 1e-3
        Of Adam (Kingma and Ba, 2015, algorithm 1).
    max_epochs : int, default 200
    seed : int, default 0
        Of the first weights, the order of the rows and the tenth of the pairs that is held out.

    Attributes
    ----------
    weight_1_, weight_2_, weight_3_, bias_1_, bias_2_, bias_3_ : float32
        Centring and one scale per side are already in the first and the last layer.
    epochs_ : () int64
    converged_ : () int64
        1, or 0 where training ran out of epochs.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> network = SmallMLP(hidden=(8, 8), max_epochs=2).fit(X, X)
    >>> network.outcome
    'out_of_epochs'
    """

    name: ClassVar[str] = "mlp_small"
    freedom: ClassVar[int] = 70
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "weight_1": ("source", "first"),
        "bias_1": ("first",),
        "weight_2": ("first", "second"),
        "bias_2": ("second",),
        "weight_3": ("second", "target"),
        "bias_3": ("target",),
        "epochs": (),
        "converged": (),
    }

    weight_1_: FloatArray
    bias_1_: FloatArray
    weight_2_: FloatArray
    bias_2_: FloatArray
    weight_3_: FloatArray
    bias_3_: FloatArray
    epochs_: npt.NDArray[np.int64]
    converged_: npt.NDArray[np.int64]

    def __init__(
        self,
        *,
        hidden: tuple[int, int] = (512, 512),
        penalty: float = 1e-4,
        learning_rate: float = 1e-3,
        max_epochs: int = 200,
        seed: int = 0,
    ) -> None:
        self.hidden = hidden
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.seed = seed

    @property
    def outcome(self) -> Outcome:
        """Why training ended: a key of ``OUTCOMES``, which says what to do about it."""
        self._check_fitted()
        return "no_more_gain" if int(self.converged_) else "out_of_epochs"

    @property
    def fewest_pairs(self) -> int:
        """With fewer a closed form is as good."""
        return LEAST_PAIRS

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Train on pairs X (n, dim_source) and Y (n, dim_target), at least ten.

        Raises
        ------
        ParameterError
            Not two hidden layers of at least one unit; a rate or a count that is not over zero.
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        self._check_params()
        pairs = check_fit(X, Y, sample_weight, minimum=self.fewest_pairs)
        source, target = (_Standard.of(side, pairs.weight) for side in (pairs.source, pairs.target))
        moving = _moving_columns(pairs.target, pairs.weight)
        network = self._train(pairs, source, target, moving)
        weights, biases = network.coefs_, network.intercepts_
        first = weights[0] / source.scale
        last = np.zeros((weights[2].shape[0], len(moving)))
        last[:, moving] = weights[2] * target.scale
        last_bias = np.array(target.mean, dtype=np.float64)
        last_bias[moving] += biases[2] * target.scale
        self.weight_1_, self.bias_1_ = _float32(first, biases[0] - source.mean @ first)
        self.weight_2_, self.bias_2_ = _float32(weights[1], biases[1])
        self.weight_3_, self.bias_3_ = _float32(last, last_bias)
        self.epochs_ = np.asarray(network.n_iter_)
        self.n_features_in_, self.n_features_target_ = pairs.source.shape[1], pairs.target.shape[1]
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Carry source rows into the target space: (n, dim_target), float32."""

        def forward(rows: FloatArray) -> FloatArray:
            first = np.maximum(affine(rows, self.weight_1_, self.bias_1_), 0)
            second = np.maximum(affine(first, self.weight_2_, self.bias_2_), 0)
            return affine(second, self.weight_3_, self.bias_3_)

        return in_row_blocks(forward, self._check_source(X))

    def _check_params(self) -> None:
        if len(self.hidden) != 2 or min(self.hidden) < 1:
            raise ParameterError(
                expected="hidden as two widths of at least 1",
                got=f"{self.hidden!r}",
                do="pass for example hidden=(512, 512)",
            )
        check_positive(self.penalty, name="penalty")
        check_positive(self.learning_rate, name="learning_rate")
        check_positive(self.max_epochs, name="max_epochs")

    def _train(
        self,
        pairs: PairedRows,
        source: _Standard,
        target: _Standard,
        moving: npt.NDArray[np.bool_],
    ) -> Any:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        network = MLPRegressor(
            hidden_layer_sizes=self.hidden,
            alpha=self.penalty,
            learning_rate_init=self.learning_rate,
            max_iter=self.max_epochs,
            early_stopping=len(pairs) >= LEAST_PAIRS_TO_HOLD_OUT,
            random_state=self.seed,
        )
        # One target column must come as a vector, or scikit-learn warns.
        wanted = target.apply(pairs.target)[:, moving]
        wanted = wanted[:, 0] if wanted.shape[1] == 1 else wanted
        self.converged_ = np.asarray(1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            network.fit(source.apply(pairs.source), wanted, sample_weight=pairs.weight)
        for each in caught:
            if issubclass(each.category, ConvergenceWarning):
                self.converged_ = np.asarray(0)  # told by `outcome`
            else:
                warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
        return network


def _moving_columns(rows: FloatArray, weight: FloatArray | None) -> npt.NDArray[np.bool_]:
    """Tell which target columns vary; the others are predicted by their mean.

    Early stopping of scikit-learn looks at the mean of R^2 over the columns, and a column that does
    not vary (some models have them) drowns all others there.
    """
    spread = np.mean((rows - mean_rows(rows, weight=weight)) ** 2, axis=0)
    moving: npt.NDArray[np.bool_] = spread > LEAST_SPREAD * spread.mean()
    return moving


class _Standard:
    """Mean and one scale of a side, so that Adam's step fits any unit of measure."""

    def __init__(self, mean: FloatArray, scale: float) -> None:
        self.mean, self.scale = mean, scale

    @classmethod
    def of(cls, rows: FloatArray, weight: FloatArray | None) -> _Standard:
        mean = mean_rows(rows, weight=weight)
        return cls(mean, float(np.sqrt(np.mean((rows - mean) ** 2))))

    def apply(self, rows: FloatArray) -> FloatArray:
        return ((rows - self.mean) / self.scale).astype(np.float32)


def _float32(weight: FloatArray, bias: FloatArray) -> tuple[FloatArray, FloatArray]:
    return weight.astype(np.float32), bias.astype(np.float32)
