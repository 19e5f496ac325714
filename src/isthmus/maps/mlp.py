"""A learned map: a deep network beside a closed-form linear branch, trained on pairs.

    T(x) = n(x S + b + a(a(a(x W_1 + b_1) W_2 + b_2) W_3 + b_3) W_4),   a SELU, n unit length

The branch x S + b starts as a closed-form map and the last layer at zero, so that training starts
where that map stands; it ends where held-out pairs no longer gain, after no step at all if need be.
The better of two such starts is then given the same number of steps on all pairs.

When to use it: with some thousand pairs or more, where a federation ranks by similarities (the
default objective keeps them); with tens to hundreds `Procrustes` or `ProcrustesRidge`. Needs torch
to train and not to transform. Shapes: (n, dim_source) to (n, dim_target).
References: HVMap, sections 3.5.1 and 3.5.3 (objective, depth, width, batches, epochs); Klambauer,
Unterthiner, Mayr and Hochreiter (2017), SELU. The linear branch is this project's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, Metric
from isthmus._validate import check_whole
from isthmus.errors import ParameterError, UnknownNameError
from isthmus.maps._fitting import PairedRows
from isthmus.maps._learned import MOST_STEPS, Learned
from isthmus.maps.training import Fitting, Network, Schedule, find_objective
from isthmus.maps.training.closed_form import fit_closed_form
from isthmus.maps.training.loop import Precision, Trained

__all__ = ["MLP"]

Start = Literal["auto", "procrustes", "procrustes_ridge", "ridge", "random"]

PAPER_WIDTH = 5
PAPER_PAIRS = 100_000
"""From so many pairs on, and with a GPU, the width is the paper's."""
PAIRS_PER_DIMENSION = 20_000
"""With fewer pairs or no GPU: as wide as the target at this many pairs; twice at most. A choice."""
LEAST_WIDTH = 128
"""A round number."""
LARGEST_WIDTH = 2**20
"""Far beyond any network of this kind: whoever gives more has made a slip."""

AUTO_STARTS = ("procrustes", "procrustes_ridge")
"""A choice: a third start takes half as much time again. ``ridge`` ended lower where that was
measured (scifact at 300 and 1,000 pairs, climate-fever at 1,000, seed 100: .02 to .05 lower)."""

RANDOM_RATE, BRANCH_RATE = 1e-3, 3e-5
"""HVMap's, section 3.5.3; and one that does not overturn a good start, chosen on seeds 100 and
over."""
WARM_UP = 20
"""Steps; without it the first ones cost .005 to .02 of what the start keeps (seeds over 99)."""


class MLP(Learned):
    """A network of four layers beside a linear branch. Needs the extra ``torch`` to train.

    Parameters
    ----------
    objective : str, default "fuzzy_contrastive"
        What is minimised: ``fuzzy_contrastive``, ``contrastive``, ``mse``, ``rkd_mse``.
    start : {"auto", "procrustes", "procrustes_ridge", "ridge", "random"}, default "auto"
        The linear branch: ``auto`` trains from both of the first two and takes what then keeps most
        of the held-out pairs; ``random`` has none, as in the paper.
    depth : int, default 4
        Layers (HVMap, section 3.5.3); 1 is the linear branch alone.
    width : int, optional
        Of the hidden layers. Default: five times dim_target with a GPU and 100,000 pairs or more
        (the paper's); else dim_target for every 20,000 pairs, from 128 to twice dim_target. A
        manifest records the width that was taken, and `about` says it.
    epochs, least_steps : int, default 40 and 2,000
        Optimiser steps at most: those of ``epochs``, and ``least_steps`` where these are more.
    batch : int, default 1,792
        Rows per step (HVMap, section 3.5.3).
    learning_rate : float, optional
        Of Adam. Default 1e-3 for a random start (the paper's), 3e-5 after a warm-up of 20 steps
        for a closed-form one.
    weight_decay : float, default 0
    held_out : float, default 0.2
        Share of the pairs that says when to stop, at most half and 500 of them; round numbers.
        With under 50 pairs none are held out, and a closed-form start stays as it is.
    patience : int, default 5
        Looks at held-out pairs without gain before training ends; looks lie a fifth further apart
        each time. Five took about half the time of eight (seeds 100 and over).
    metric : {"cosine", "dot", "l2"}, default "cosine"
        By which held-out pairs look for their neighbours: that of the target space.
    seed : int, default 0
        Of the first weights, the order of the rows and the pairs held out.
    device : str, default "cpu"
        Where it is trained, for torch: ``cuda``, ``mps``.
    precision : {"float32", "bfloat16"}, default "float32"
        Of the layers' products while training.
    checkpoint : str, optional
        Folder in which training keeps its state, to be taken up by the same call; the files go
        when the fit has succeeded.

    Attributes
    ----------
    weight_first_, weight_hidden_, weight_last_, bias_first_, bias_hidden_, bias_last_ : float32
        Centring and scales are already in them.
    skip_ : (dim_source, dim_target) float32
    unit_ : () int64
        1 where the targets had length one: then what comes out has.
    steps_ : () int64
        Steps whose weights were kept; 0 is the start.
    look_steps_, look_scores_ : (n_looks,)
        The held-out curve: neighbour overlap at 10.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> MLP(width=8, least_steps=20).fit(X, X @ np.ones((3, 2))).transform(X).shape
    (60, 2)
    """

    name: ClassVar[str] = "mlp"
    freedom: ClassVar[int] = 70
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "weight_first": ("source", "width"),
        "bias_first": ("width",),
        "weight_hidden": ("hidden", "width", "width"),
        "bias_hidden": ("hidden", "width"),
        "weight_last": ("width", "target"),
        "bias_last": ("target",),
        "skip": ("source", "target"),
        "unit": (),
        "steps": (),
        "stopped": (),
        "look_steps": ("looks",),
        "look_scores": ("looks",),
    }

    weight_first_: FloatArray
    bias_first_: FloatArray
    weight_hidden_: FloatArray
    bias_hidden_: FloatArray
    weight_last_: FloatArray
    bias_last_: FloatArray
    skip_: FloatArray
    look_steps_: npt.NDArray[np.int64]
    look_scores_: FloatArray

    def __init__(
        self,
        *,
        objective: str = "fuzzy_contrastive",
        start: Start = "auto",
        depth: int = 4,
        width: int | None = None,
        epochs: int = 40,
        least_steps: int = 2_000,
        batch: int = 1_792,
        learning_rate: float | None = None,
        weight_decay: float = 0.0,
        held_out: float = 0.2,
        patience: int = 5,
        metric: Metric = "cosine",
        seed: int = 0,
        device: str = "cpu",
        precision: Precision = "float32",
        checkpoint: str | None = None,
    ) -> None:
        self.objective = objective
        self.start = start
        self.depth = depth
        self.width = width
        self.epochs = epochs
        self.least_steps = least_steps
        self.batch = batch
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.held_out = held_out
        self.patience = patience
        self.metric = metric
        self.seed = seed
        self.device = device
        self.precision = precision
        self.checkpoint = checkpoint

    @property
    def about(self) -> str:
        """What was trained, in one sentence."""
        self._check_fitted()
        width, steps = self.weight_first_.shape[1], int(self.steps_)
        return f"{self.depth} layers of width {width}, {steps} steps ({self.outcome})"

    def recorded_params(self) -> dict[str, Any]:
        """Return the constructor parameters as JSON values, with the width that was taken."""
        params = super().recorded_params()
        fresh = self._restored_from is None and hasattr(self, "weight_first_")
        if fresh and self.width is None and self.depth > 1:
            params["width"] = self.weight_first_.shape[1]
        return params

    def _fitting(self, pairs: PairedRows, collection: FloatArray | None) -> Fitting:
        rate = self.learning_rate
        if rate is None:
            rate = RANDOM_RATE if self.start == "random" else BRANCH_RATE
        names = AUTO_STARTS if self.start == "auto" else (self.start,)
        return Fitting(
            pairs,
            {name: partial(self._draw, name, n_pairs=len(pairs)) for name in names},
            objective=find_objective(self.objective),
            schedule=Schedule(
                self.least_steps,
                self.batch,
                rate,
                self.patience,
                self.weight_decay,
                warm_up=0 if self.start == "random" else WARM_UP,
            ),
            epochs=self.epochs,
            held_out=self.held_out,
            seed=self.seed,
            device=self.device,
            precision=self.precision,
            checkpoint=self.checkpoint,
            params=self._training_params(),
            collection=collection,
            metric=self.metric,
            train_few=self.start == "random",
        )

    def _draw(
        self,
        start: str,
        source: FloatArray,
        target: FloatArray,
        weight: FloatArray | None,
        *,
        n_pairs: int,
    ) -> Network:
        """Return the network before training."""
        dim = target.shape[1]
        width = self.width or choose_width(dim, n_pairs, self.device)
        dims = [source.shape[1], *[width] * (self.depth - 1), dim]
        rng = np.random.default_rng([self.seed, 2])
        if start == "random":
            return Network.draw(dims, rng=rng)
        skip, bias = fit_closed_form(start, source, target, weight)
        return Network.draw(dims, rng=rng, skip=skip, bias=bias)

    def _keep(self, network: Network) -> None:
        """Take the arrays of a network; a single layer is a linear branch."""
        dims = network.weights[0].shape[0], network.weights[-1].shape[1]
        self.skip_ = np.zeros(dims, np.float32) if network.skip is None else network.skip
        self.bias_last_ = network.biases[-1]
        weights = list(network.weights)
        if self.depth == 1:
            self.skip_ = self.skip_ + weights[0]
            weights = [np.zeros((dims[0], 0)), np.zeros((0, dims[1]))]
        self.weight_first_ = weights[0].astype(np.float32)
        self.weight_last_ = weights[-1].astype(np.float32)
        width = weights[0].shape[1]
        biases = [*network.biases[:-1]] or [np.zeros(0)]
        self.bias_first_ = biases[0].astype(np.float32)
        self.weight_hidden_ = np.array(weights[1:-1], np.float32).reshape(
            -1 if width else 0, width, width
        )
        self.bias_hidden_ = np.array(biases[1:], np.float32).reshape(-1 if width else 0, width)

    def _network(self) -> Network:
        if not self.weight_first_.shape[1]:
            return Network([self.skip_], [self.bias_last_])
        return Network(
            [self.weight_first_, *self.weight_hidden_, self.weight_last_],
            [self.bias_first_, *self.bias_hidden_, self.bias_last_],
            self.skip_ if self.skip_.any() else None,
        )

    def _agrees(self) -> bool:
        width = self.weight_first_.shape[1]
        if self.depth == 1:
            return width == 0 and not len(self.weight_hidden_)
        return width == (self.width or width) > 0 and len(self.weight_hidden_) == self.depth - 2

    def _keep_looks(self, trained: Trained) -> None:
        self.look_steps_ = np.array([step for step, _ in trained.looks], dtype=np.int64)
        self.look_scores_ = np.array([score for _, score in trained.looks], dtype=np.float64)

    def _check_params(self) -> None:
        find_objective(self.objective)
        for name, value, known in (
            ("start", self.start, get_args(Start)),
            ("precision", self.precision, get_args(Precision)),
        ):
            if value not in known:
                raise UnknownNameError.of(name, str(value), known)
        check_whole(self.depth, name="depth")
        check_whole(self.least_steps, name="least_steps", maximum=MOST_STEPS)
        if self.width is not None:
            check_whole(self.width, name="width", maximum=LARGEST_WIDTH)
        super()._check_params()
        if not self.held_out and self.start != "random":
            raise ParameterError(
                expected="held_out over 0: it says when to leave a closed-form start",
                got="0",
                do="hold out a tenth of the pairs, or set start='random'",
            )


def choose_width(dim_target: int, n: int, device: str) -> int:
    """Return the width of hidden layers by the target's width, the pairs and the device.

    Examples
    --------
    >>> choose_width(768, 20_000, "cpu"), choose_width(768, 2_500_000, "cuda")
    (768, 3840)
    """
    if device.partition(":")[0] != "cpu" and n >= PAPER_PAIRS:
        return PAPER_WIDTH * dim_target
    share = min(2.0, n / PAIRS_PER_DIMENSION)
    return max(LEAST_WIDTH, round(share * dim_target))
