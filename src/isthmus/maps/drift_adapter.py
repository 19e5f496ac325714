"""Drift-Adapter: a light adapter between two models, in the three forms of its paper.

    residual_mlp:  T(x) = x S + g(x W_1 + b_1) W_2 + b_2    one hidden layer, g GELU
    orthogonal:    T(x) = x R,  R R^T = I                   in closed form
    low_rank:      T(x) = x V U + b                         of a given rank

The first and the last are trained by Adam on the squared distance to the target, stopped when
held-out pairs no longer gain. A diagonal scaling of what comes out is optional.

When to use it: to compare with, as the rival that maps queries into an untouched index (DA). Needs
torch to train (``orthogonal`` does not) and not to transform. Shapes: (n, dim_source) to
(n, dim_target).
Reference: Vejendla, "Drift-Adapter: a practical approach to near zero-downtime embedding model
upgrades in vector databases", EMNLP 2025: the three forms and the diagonal scaling. No code of its
author was found. Not certain, and this project's choice: hidden width 256, rank 64, all settings of
the optimiser, and S, which is the identity at first (random where the widths differ) and trained
with the rest, so that this form is at least as free as one whose identity stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from isthmus._linalg import in_row_blocks, normalise
from isthmus._types import FloatArray, Metric
from isthmus._validate import as_matrix, check_positive, check_share, check_whole
from isthmus.errors import ParameterError, UnknownNameError
from isthmus.maps._fitting import PairedRows, check_fit
from isthmus.maps.base import Map
from isthmus.maps.procrustes import Procrustes
from isthmus.maps.training import Fitting, Network, Outcome, Schedule, find_objective
from isthmus.maps.training.fitting import is_unit
from isthmus.maps.training.loop import Trained

__all__ = ["DriftAdapter"]

Form = Literal["residual_mlp", "orthogonal", "low_rank"]

LEAST_PAIRS = 10
RATE, LOW_RANK_RATE = 1e-3, 3e-3


class DriftAdapter(Map):
    """An adapter with few parameters. Needs the extra ``torch`` to train, ``orthogonal`` does not.

    Parameters
    ----------
    form : {"residual_mlp", "orthogonal", "low_rank"}, default "residual_mlp"
        The default is the one that the paper reports to keep most.
    hidden : int, default 256
        Units of the hidden layer of ``residual_mlp``.
    rank : int, default 64
        Of ``low_rank``; at most the smaller width.
    scaling : bool, default False
        Multiply each target dimension by the factor of least squares over all pairs.
    epochs : int, default 50
        At most; as many steps as of whole passes over the pairs.
    batch : int, default 256
    learning_rate : float, optional
        Of Adam. Default 1e-3, and 3e-3 for ``low_rank``: of 3e-4, 1e-3 and 3e-3 those that kept
        most neighbours with 4,000 pairs of a data set (scifact, 384 to 768 columns).
    weight_decay : float, default 0
    held_out : float, default 0.2
        Share of the pairs that says when to stop, at most half and 500 of them.
    patience : int, default 8
        Looks at held-out pairs without gain before training ends.
    metric : {"cosine", "dot", "l2"}, default "cosine"
        By which held-out pairs look for their neighbours: that of the target space.
    seed : int, default 0
        Of the first weights, the order of the rows and the pairs held out.
    device : str, default "cpu"
        Where it is trained, for torch: ``cuda``, ``mps``.
    checkpoint : str, optional
        Folder in which training keeps its state, to be taken up by the same call.

    Attributes
    ----------
    weight_first_, weight_last_, bias_first_, bias_last_ : float32
        Of the two layers; of width 0 for ``orthogonal``. Centring and scales are already in them.
    skip_ : (dim_source, dim_target) float32
        The branch beside them: S, R, or zeros.
    unit_ : () int64
        1 where the targets had length one: then what comes out has.
    steps_ : () int64
        Steps whose weights were kept.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> adapter = DriftAdapter(form="orthogonal").fit(X, X[:, ::-1])
    >>> adapter.transform([[1.0, 2.0, 3.0]]).round(4)
    array([[3., 2., 1.]], dtype=float32)
    """

    name: ClassVar[str] = "drift_adapter"
    freedom: ClassVar[int] = 65
    centred: ClassVar[bool] = False
    costly: ClassVar[bool] = True
    unrecorded: ClassVar[frozenset[str]] = frozenset({"device", "checkpoint"})
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "weight_first": ("source", "hidden"),
        "bias_first": ("hidden",),
        "weight_last": ("hidden", "target"),
        "bias_last": ("target",),
        "skip": ("source", "target"),
        "unit": (),
        "steps": (),
        "stopped": (),
    }

    weight_first_: FloatArray
    bias_first_: FloatArray
    weight_last_: FloatArray
    bias_last_: FloatArray
    skip_: FloatArray
    unit_: npt.NDArray[np.int64]
    steps_: npt.NDArray[np.int64]
    stopped_: npt.NDArray[np.int64]

    def __init__(
        self,
        *,
        form: Form = "residual_mlp",
        hidden: int = 256,
        rank: int = 64,
        scaling: bool = False,
        epochs: int = 50,
        batch: int = 256,
        learning_rate: float | None = None,
        weight_decay: float = 0.0,
        held_out: float = 0.2,
        patience: int = 8,
        metric: Metric = "cosine",
        seed: int = 0,
        device: str = "cpu",
        checkpoint: str | None = None,
    ) -> None:
        self.form = form
        self.hidden = hidden
        self.rank = rank
        self.scaling = scaling
        self.epochs = epochs
        self.batch = batch
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.held_out = held_out
        self.patience = patience
        self.metric = metric
        self.seed = seed
        self.device = device
        self.checkpoint = checkpoint

    @property
    def outcome(self) -> Outcome:
        """Why training ended: held-out pairs no longer gained, or the steps were done.

        A closed form has nothing more to gain.
        """
        self._check_fitted()
        return "no_more_gain" if int(self.stopped_) else "out_of_steps"

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
        their neighbours, which decides when training ends.

        Raises
        ------
        MissingExtraError
            Without torch, unless the form is ``orthogonal``.
        ParameterError, UnknownNameError
            A parameter out of its range; an unknown form or device.
        DivergedTrainingError
            The loss grows without bound.
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        self._check_params()
        pairs = check_fit(X, Y, sample_weight, minimum=LEAST_PAIRS)
        dims = pairs.source.shape[1], pairs.target.shape[1]
        closed = self.form == "orthogonal"
        trained = self._turn(pairs) if closed else self._fitting(pairs, unpaired_target).run()
        self._keep(_scaled(trained.network, pairs) if self.scaling else trained.network)
        self.unit_ = np.asarray(int(is_unit(pairs.target)))
        self.steps_ = np.asarray(trained.steps)
        self.stopped_ = np.asarray(int(trained.outcome == "no_more_gain"))
        self.n_features_in_, self.n_features_target_ = dims
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Carry source rows into the target space: (n, dim_target), float32."""
        network = self._network()

        def forward(rows: FloatArray) -> FloatArray:
            out = network.forward(rows)
            return normalise(out) if int(self.unit_) else out

        return in_row_blocks(forward, self._check_source(X))

    def _keep(self, network: Network) -> None:
        """Take the arrays of a network; a single layer is the branch alone."""
        if len(network.weights) == 1:
            (self.skip_,), (self.bias_last_,) = network.weights, network.biases
            dims = self.skip_.shape
            self.weight_first_, self.bias_first_ = np.zeros((dims[0], 0)), np.zeros(0)
            self.weight_last_ = np.zeros((0, dims[1]))
            return
        self.weight_first_, self.weight_last_ = network.weights
        self.bias_first_, self.bias_last_ = network.biases
        dims = self.weight_first_.shape[0], self.weight_last_.shape[1]
        self.skip_ = np.zeros(dims, np.float32) if network.skip is None else network.skip

    def _network(self) -> Network:
        self._check_fitted()
        if self.form == "orthogonal":
            return Network([self.skip_], [self.bias_last_])
        return Network(
            [self.weight_first_, self.weight_last_],
            [self.bias_first_, self.bias_last_],
            self.skip_ if self.form == "residual_mlp" else None,
            self._activation,
        )

    @property
    def _activation(self) -> str:
        return "gelu" if self.form == "residual_mlp" else "identity"

    def _turn(self, pairs: PairedRows) -> Trained:
        """Return the rotation as a network of one layer."""
        fitted = Procrustes(centre=False)
        fitted.fit(pairs.source, pairs.target, sample_weight=pairs.weight)
        turn = fitted.rotation_
        return Trained(
            Network([turn], [np.zeros(turn.shape[1], np.float32)]), 0, (), "no_more_gain"
        )

    def _fitting(self, pairs: PairedRows, unpaired_target: npt.ArrayLike | None) -> Fitting:
        collection = None
        if unpaired_target is not None:
            dim = pairs.target.shape[1]
            collection = as_matrix(unpaired_target, name="unpaired_target", dim=dim)
        rate = self.learning_rate
        if rate is None:
            rate = LOW_RANK_RATE if self.form == "low_rank" else RATE
        return Fitting(
            pairs,
            {self.form: self._draw},
            objective=find_objective("mse"),
            schedule=Schedule(1, self.batch, rate, self.patience, self.weight_decay),
            epochs=self.epochs,
            held_out=self.held_out,
            seed=self.seed,
            device=self.device,
            checkpoint=self.checkpoint,
            params={"map": self.name, **self.recorded_params()},
            collection=collection,
            metric=self.metric,
            train_few=True,
        )

    def _draw(self, source: FloatArray, target: FloatArray, _: FloatArray | None) -> Network:
        """Return the network before training."""
        dims, rng = (source.shape[1], target.shape[1]), self._rng()
        if self.form == "low_rank":
            inner = [dims[0], min(self.rank, *dims), dims[1]]
            return Network.draw(inner, rng=rng, activation=self._activation)
        skip = np.eye(dims[0])
        if dims[0] != dims[1]:
            skip = rng.standard_normal(dims) / np.sqrt(dims[0])
        inner = [dims[0], self.hidden, dims[1]]
        return Network.draw(inner, rng=rng, skip=skip, activation=self._activation)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, 2])

    def _check_params(self) -> None:
        if self.form not in get_args(Form):
            raise UnknownNameError.of("form", str(self.form), get_args(Form))
        if self.metric not in get_args(Metric):
            raise UnknownNameError.of("metric", str(self.metric), get_args(Metric))
        for name in ("hidden", "rank", "epochs", "batch", "patience"):
            check_whole(getattr(self, name), name=name)
        check_whole(self.seed, name="seed", minimum=0)
        if self.learning_rate is not None:
            check_positive(self.learning_rate, name="learning_rate")
        if not 0 <= self.weight_decay < np.inf:
            raise ParameterError(
                expected="weight_decay of at least 0", got=f"{self.weight_decay}", do="change it"
            )
        check_share(self.held_out, name="held_out")


def _scaled(network: Network, pairs: PairedRows) -> Network:
    """Multiply what comes out by the factor of least squares of each dimension."""
    mapped = network.forward(pairs.source.astype(np.float32)).astype(np.float64)
    weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight
    both, alone = weight @ (mapped * pairs.target), weight @ mapped**2
    factors = np.divide(both, alone, out=np.ones_like(both), where=alone > 0).astype(np.float32)
    skip = None if network.skip is None else network.skip * factors
    return Network(
        [*network.weights[:-1], network.weights[-1] * factors],
        [*network.biases[:-1], network.biases[-1] * factors],
        skip,
        network.activation,
    )
