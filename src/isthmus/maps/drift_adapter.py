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
from dataclasses import replace
from typing import ClassVar, Literal, get_args

import numpy as np

from isthmus._linalg import normalise
from isthmus._types import FloatArray, Metric
from isthmus._validate import check_whole
from isthmus.errors import UnknownNameError
from isthmus.maps._fitting import PairedRows
from isthmus.maps._learned import Learned
from isthmus.maps.procrustes import Procrustes
from isthmus.maps.training import Fitting, Network, Schedule, find_objective
from isthmus.maps.training.fitting import is_unit
from isthmus.maps.training.loop import Trained

__all__ = ["DriftAdapter"]

Form = Literal["residual_mlp", "orthogonal", "low_rank"]

RATE, LOW_RANK_RATE = 1e-3, 3e-3


class DriftAdapter(Learned):
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
        most neighbours with 4,000 pairs of scifact (384 to 768 columns, seed 100).
    weight_decay : float, default 0
    held_out : float, default 0.2
        Share of the pairs that says when to stop, at most half and 500 of them; round numbers.
    patience : int, default 5
        Looks at held-out pairs without gain before training ends, as in `MLP`.
    metric : {"cosine", "dot", "l2"}, default "cosine"
        By which held-out pairs look for their neighbours: that of the target space.
    seed : int, default 0
        Of the first weights, the order of the rows and the pairs held out.
    device : str, default "cpu"
        Where it is trained, for torch: ``cuda``, ``mps``.
    checkpoint : str, optional
        Folder in which training keeps its state, to be taken up by the same call; the files go
        when the fit has succeeded.

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
        patience: int = 5,
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
    def costly(self) -> bool:
        """Whether training takes long: the closed form does not."""
        return self.form != "orthogonal"

    def _train(self, pairs: PairedRows, collection: FloatArray | None) -> Trained:
        closed = self.form == "orthogonal"
        trained = self._turn(pairs) if closed else super()._train(pairs, collection)
        return (
            replace(trained, network=_scaled(trained.network, pairs)) if self.scaling else trained
        )

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
        if self.form == "orthogonal":
            return Network([self.skip_], [self.bias_last_])
        return Network(
            [self.weight_first_, self.weight_last_],
            [self.bias_first_, self.bias_last_],
            self.skip_ if self.form == "residual_mlp" else None,
            self._activation,
        )

    def _agrees(self) -> bool:
        rank = min(self.rank, *self.skip_.shape)
        widths = {"residual_mlp": self.hidden, "orthogonal": 0, "low_rank": rank}
        return bool(self.weight_first_.shape[1] == widths[self.form])

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

    def _fitting(self, pairs: PairedRows, collection: FloatArray | None) -> Fitting:
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
            params=self._training_params(),
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
        for name in ("hidden", "rank"):
            check_whole(getattr(self, name), name=name, maximum=2**20)  # more is a slip
        super()._check_params()


def _scaled(network: Network, pairs: PairedRows) -> Network:
    """Multiply what comes out by the factor of least squares of each dimension.

    Of rows as they are used: brought to length one where the targets have it. All pairs take part,
    those that said when to stop too: nothing is measured on them any more.
    """
    out = network.forward(pairs.source.astype(np.float32))
    mapped = (normalise(out) if is_unit(pairs.target) else out).astype(np.float64)
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
