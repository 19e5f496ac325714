"""AnchorDOT: two encoders distilled from an anchor-relative transport plan.

1. Rows of both sides are compared by their similarities to the anchor pairs (equations 3 to 6).
2. One entropic transport problem couples all unpaired rows of both sides at once (equation 7).
3. Two encoders, LayerNorm and a linear layer, learn the plan by a soft contrastive loss in both
   directions, with the anchor pairs as one more batch (equations 9 to 12, algorithm 1).

When to use it: 100 to 500 pairs, many unpaired rows on both sides, spaces that are too different
for a linear map of so few pairs: of two modalities above all. No unpaired row needs a partner. Both
sides move: it scores candidates, or searches an index of ``transform_target`` vectors. Needs torch
to train and not to transform. Shapes: (n_source, dim_source) and (n_target, dim_target) to
(n, width).
References: AnchorDOT, sections 3.2 to 3.4, appendices A and D. Centring, the closed form that
training starts from, and the mean of the weights over the steps instead of the last ones
(`training.two_sided`) are this project's; ``start="random"`` has the paper's schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_whole
from isthmus.errors import UnknownNameError
from isthmus.maps._anchor_plan import PLAN_STATE, Planned
from isthmus.maps._fitting import check_fit
from isthmus.maps._plan_directions import plan_directions
from isthmus.maps._sides import Centring, Sides, centre_sides, check_pools
from isthmus.maps._two_encoders import TwoEncoders
from isthmus.maps.training.devices import find_device
from isthmus.maps.training.encoder import Encoder
from isthmus.maps.training.two_sided import (
    Batch,
    Plan,
    TrainedPair,
    TwoSided,
    best_epoch,
    pair_loss,
    plan_loss,
)
from isthmus.transport import Coupling

__all__ = ["AnchorDOT"]

Start = Literal["closed_form", "random"]
SCHEDULES: Mapping[str, TwoSided] = {
    "closed_form": TwoSided(epochs=60, learning_rate=3e-4, warm_up=50),
    "random": TwoSided(),
}


class AnchorDOT(Planned, TwoEncoders):
    """Two encoders distilled from a transport plan. Needs the extra ``torch`` to train.

    Parameters
    ----------
    gamma : float in [0, 2] or "auto", default "auto"
        How far directions that many anchors share are held back (equation 5). ``auto``: chosen from
        0 to 1 with eta, by the rank that held-out anchor pairs get (appendix D).
    eta : float or "auto", default "auto"
        Epsilon as a share of the median cost; one of .01, .02, .05 and .1 where chosen.
    start : {"closed_form", "random"}, default "closed_form"
        First weights: the directions of `AnchorCCA` on the same plan, or drawn, as in the paper.
        The first ends higher and in a third of the time (molecules and texts, seeds over 99).
    epochs : int, optional
        Passes over the unpaired rows. Default: 60 after a closed form, after which the anchor
        batch is learned by heart; 200 after drawn weights (table 8).
    patience : int, optional
        Then a tenth of the anchor pairs is held out first, and training ends after so many looks,
        five epochs apart, at which their mean reciprocal rank did not rise; the best number of
        epochs is then taken on all anchors. Default: all epochs.
    chunk : int, default 2000
        Unpaired rows of each side per step (table 8).
    width : int, default 1024
        Of the space that both encoders lead to (table 8); after a closed form at most: as many as
        that has directions.
    learning_rate : float, optional
        Default: 3e-4 after a closed form; 1e-3 after drawn weights (table 8).
    weight_decay : float, default 1e-2
        Table 8.
    warm_up : int, optional
        Steps. Default: 50 after a closed form; 200 after drawn weights (table 8).
    centring : {"all", "none"}, default "all"
        Whether rows are taken less the mean of all rows of their side, paired or not; this
        project's.
    seed : int, default 0
    device : str, default "cpu"
        Where it is trained, for torch: ``cuda``, ``mps``.

    Attributes
    ----------
    source_weight_, target_weight_ : (dim, width) float32
    source_bias_, target_bias_ : (width,) float32
    mean_source_, mean_target_ : (dim,) float64
    gamma_, eta_, epsilon_ : () float64
        That were used.
    coupling_errors_ : (n_iterations,) float64
        Marginal error of the plan after each iteration.
    searched_gamma_, searched_eta_, searched_rank_, searched_skewness_, searched_recall_ :
        (n_candidates,) float64; mean held-out rank, skewness of N_10 and recall at 1 (figure 17).
    losses_ : (n_epochs,) float64
    look_epochs_, look_scores_ : (n_looks,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 8))
    >>> Y = X @ np.linalg.qr(rng.standard_normal((8, 8)))[0]
    >>> dot = AnchorDOT(epochs=20).fit(
    ...     X[:60], Y[:60], unpaired_source=X[60:130], unpaired_target=Y[130:])
    >>> dot.transform(X[:2]).shape, dot.transform_target(Y[:2]).shape
    ((2, 8), (2, 8))
    """

    name: ClassVar[str] = "anchordot"
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **TwoEncoders.state_shapes,
        **PLAN_STATE,
    }

    def __init__(
        self,
        *,
        gamma: float | Literal["auto"] = "auto",
        eta: float | Literal["auto"] = "auto",
        start: Start = "closed_form",
        epochs: int | None = None,
        patience: int | None = None,
        chunk: int = 2_000,
        width: int = 1_024,
        learning_rate: float | None = None,
        weight_decay: float = 1e-2,
        warm_up: int | None = None,
        centring: Centring = "all",
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.gamma = gamma
        self.eta = eta
        self.start = start
        self.epochs = epochs
        self.patience = patience
        self.chunk = chunk
        self.width = width
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.warm_up = warm_up
        self.centring = centring
        self.seed = seed
        self.device = device

    @property
    def about(self) -> str:
        """What was trained, in one sentence."""
        self._check_fitted()
        return (
            f"gamma {float(self.gamma_):g}, eta {float(self.eta_):g}, plan after "
            f"{len(self.coupling_errors_)} iterations, {len(self.losses_)} epochs"
        )

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from pairs X (n, dim_source) and Y (n, dim_target), and rows without a pair.

        Parameters
        ----------
        X, Y : array-like of shape (n_anchors, dim_source) and (n_anchors, dim_target)
            Anchor pairs, at least 20 different ones.
        sample_weight : array-like of shape (n_anchors,), optional
            Of each anchor pair in the loss of the anchor batch.
        unpaired_source, unpaired_target : array-like of shape (n, dim_source) and (m, dim_target)
            At least 20 rows each; their numbers may differ, and none needs a partner.

        Raises
        ------
        MissingExtraError
            Without torch.
        TooFewPairsError, EmptyInputError
            Fewer than 20 anchor pairs, or rows on a side without a pair.
        NotConvergedError
            A plan whose marginals are off by more than a hundredth of the mass: eta is too small.
        ParameterError, DivergedTrainingError
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        self._check_params()
        pairs = check_fit(X, Y, sample_weight, minimum=self.fewest_pairs)
        sides = centre_sides(pairs, unpaired_source, unpaired_target, centring=self.centring)
        check_pools(sides)
        find_device(self.device)
        schedule = self._schedule
        looks: tuple[tuple[int, float], ...] = ()
        if self.patience is not None:
            rest, held_out = sides.hold_out(seed=self.seed)
            looks = self._train(rest, schedule, held_out).looks
            schedule = replace(schedule, patience=None, epochs=best_epoch(looks, schedule.epochs))
        self._keep(replace(self._train(sides, schedule), looks=looks), sides)
        return self

    def _train(
        self,
        sides: Sides,
        schedule: TwoSided,
        held_out: tuple[FloatArray, FloatArray] | None = None,
    ) -> TrainedPair:
        cost, plan = self._couple(sides)
        on_device = Plan(
            cost.source,
            cost.target,
            plan.source_potential,
            plan.target_potential,
            plan.epsilon,
            self.device,
        )
        return schedule.train(
            self._first(sides, plan),
            sides.stacked,
            lambda epoch: self._batches(sides, on_device, epoch),
            held_out=held_out,
            device=self.device,
        )

    @property
    def _schedule(self) -> TwoSided:
        usual = SCHEDULES[self.start]
        given = {
            name: getattr(self, name)
            for name in ("epochs", "learning_rate", "warm_up", "weight_decay", "patience")
            if getattr(self, name) is not None
        }
        return replace(usual, **given)

    def _first(self, sides: Sides, plan: Coupling) -> tuple[Encoder, Encoder]:
        if self.start == "random":
            return self._draw(sides)
        source, _, target = plan_directions(sides, plan)
        return Encoder.project(source, self.width), Encoder.project(target, self.width)

    def _batches(self, sides: Sides, plan: Plan, epoch: int) -> list[Batch]:
        """Return the chunks of an epoch and the anchors, in random order (appendix A)."""
        rng = np.random.default_rng([self.seed, 1, epoch])
        n_anchors = len(sides.anchors[0])
        sizes = [len(pool) for pool in sides.pools]
        count = -(-max(sizes) // self.chunk)
        length = -(-max(sizes) // count)
        parts = [_parts(size, count, length, rng) for size in sizes]
        batches = [
            Batch(rows + n_anchors, columns + n_anchors, plan_loss(plan, rows, columns))
            for rows, columns in zip(*parts, strict=True)
        ]
        anchors = np.arange(n_anchors)
        batches.append(Batch(anchors, anchors, pair_loss(sides.weight)))
        return [batches[place] for place in rng.permutation(len(batches))]

    def _check_params(self) -> None:
        if self.start not in SCHEDULES:
            raise UnknownNameError.of("start", str(self.start), SCHEDULES)
        self._check_training(self._schedule)
        self._check_plan()
        check_whole(self.chunk, name="chunk", minimum=2)


def _parts(n: int, count: int, length: int, rng: np.random.Generator) -> list[IntArray]:
    """Deal n rows into chunks, each row once; of a side that is much shorter, drawn anew each."""
    length = min(length, n)
    if 2 * n < count * length:
        return [rng.permutation(n)[:length] for _ in range(count)]
    return np.array_split(rng.permutation(n), count)
