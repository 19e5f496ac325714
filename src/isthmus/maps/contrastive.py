"""Contrastive: two encoders trained on the pairs alone.

    L = -1/2 mean over i of log softmax over j of s f(x_i) . g(y_j), and the same from y to x

f and g a LayerNorm and a linear layer each, to unit length; s a learned inverse temperature. These
are the encoders and the loss of `AnchorDOT` without its transport plan: what that gains over this
map comes from the unpaired rows.

When to use it: as a rival, or with thousands of pairs and no unpaired rows. With hundreds it learns
its pairs by heart within a hundred steps or so; from there on it finds fewer partners among ten
(ChEBI-20, 500 pairs, seeds 100 and 101, without the mean of the weights that training takes: 59
percent after 100 steps, 42 after 600); ``patience`` stops it early. Both sides move. Needs torch to
train and not to transform.
Shapes: (n_source, dim_source) and (n_target, dim_target) to (n, width).
Reference: AnchorDOT, section 4 (the baseline) and table 8; Radford et al. (2021) for the loss.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus._validate import check_whole
from isthmus.maps._fitting import check_fit
from isthmus.maps._sides import Centring, Sides, centre_sides
from isthmus.maps._two_encoders import TwoEncoders
from isthmus.maps.training.devices import find_device
from isthmus.maps.training.two_sided import Batch, TrainedPair, TwoSided, best_epoch, pair_loss

__all__ = ["Contrastive"]


class Contrastive(TwoEncoders):
    """Two encoders trained on the pairs alone. Needs the extra ``torch`` to train.

    Parameters
    ----------
    epochs : int, default 600
        Passes over the pairs, at most; as many steps where one batch holds them all.
    patience : int, optional
        Then a tenth of the pairs is held out, training ends after so many looks, five epochs apart,
        at which their mean reciprocal rank did not rise, and is done again on all pairs for as many
        epochs as were best. Default: all epochs, as AnchorDOT's authors train this rival.
    batch : int, default 2000
        Pairs per step (AnchorDOT, table 8).
    width : int, default 1024
        Of the space that both encoders lead to.
    learning_rate : float, default 1e-3
    weight_decay : float, default 1e-2
    warm_up : int, default 200
        Steps (all table 8).
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
    losses_ : (n_epochs,) float64
        Of the training on all pairs.
    look_epochs_, look_scores_ : (n_looks,)
        The held-out curve.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((40, 6))
    >>> map_ = Contrastive(epochs=20, warm_up=5, width=16).fit(X, X[:, ::-1])
    >>> map_.transform(X[:2]).shape, map_.transform_target(X[:2]).shape
    ((2, 16), (2, 16))
    """

    name: ClassVar[str] = "contrastive"
    freedom: ClassVar[int] = 78
    sees_unpaired: ClassVar[bool] = False

    def __init__(
        self,
        *,
        epochs: int = 600,
        patience: int | None = None,
        batch: int = 2_000,
        width: int = 1_024,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        warm_up: int = 200,
        centring: Centring = "all",
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.epochs = epochs
        self.patience = patience
        self.batch = batch
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
        return f"{len(self.losses_)} epochs on the pairs alone"

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from pairs X (n, dim_source) and Y (n, dim_target), at least 20 different ones.

        Raises
        ------
        MissingExtraError
            Without torch.
        TooFewPairsError
            Fewer than 20 pairs that differ on both sides.
        ParameterError, DivergedTrainingError
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        self._check_training(replace(self._schedule, patience=self.patience))
        check_whole(self.batch, name="batch", minimum=2)
        sides = centre_sides(
            check_fit(X, Y, sample_weight, minimum=self.fewest_pairs),
            None,
            None,
            centring=self.centring,
        )
        find_device(self.device)
        self._keep(self._train(sides), sides)
        return self

    @property
    def _schedule(self) -> TwoSided:
        return TwoSided(
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            warm_up=self.warm_up,
        )

    def _train(self, sides: Sides) -> TrainedPair:
        schedule = self._schedule
        if self.patience is None:
            return self._run(schedule, sides)
        rest, held_out = sides.hold_out(seed=self.seed)
        looks = self._run(replace(schedule, patience=self.patience), rest, held_out).looks
        best = replace(schedule, epochs=best_epoch(looks, schedule.epochs))
        return replace(self._run(best, sides), looks=looks)

    def _run(
        self,
        schedule: TwoSided,
        sides: Sides,
        held_out: tuple[FloatArray, FloatArray] | None = None,
    ) -> TrainedPair:
        n = len(sides.anchors[0])
        weight = sides.weight

        def batches(epoch: int) -> list[Batch]:
            order = np.random.default_rng([self.seed, 1, epoch]).permutation(n)
            return [
                Batch(rows, rows, pair_loss(None if weight is None else weight[rows]))
                for rows in np.array_split(order, -(-n // self.batch))
            ]

        return schedule.train(
            self._draw(sides), sides.anchors, batches, held_out=held_out, device=self.device
        )
