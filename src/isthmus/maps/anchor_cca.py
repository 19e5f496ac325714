"""AnchorCCA: canonical directions of an anchor-relative transport plan, in closed form.

The plan P of `AnchorDOT` says softly which unpaired row of one side belongs to which of the other.
Instead of two networks that learn it, both sides are projected on the directions of a canonical
correlation analysis whose cross-covariance comes from the plan and from the anchor pairs,

    S_xy = (1 - w) X^T P Y + w A^T B / N,   w = N / (N + plan_pairs)

with the ridged covariances of all rows; each direction counts by its correlation.

When to use it: where `AnchorDOT` is, without torch and in the time of the plan alone; between
molecules and texts it was measured close to it. Both sides move: it scores candidates, or searches
an index of ``transform_target`` vectors. Shapes: (n_source, dim_source) and (n_target, dim_target)
to (n, n_components).
References: AnchorDOT, sections 3.2 and 3.3, for the plan; Vinod (1976) for the ridge. That a plan
gives the cross-covariance is this project's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import affine, in_row_blocks, normalise
from isthmus._types import FloatArray
from isthmus._validate import check_positive, check_whole
from isthmus.maps._anchor_plan import PLAN_STATE, Planned
from isthmus.maps._fitting import check_fit
from isthmus.maps._plan_directions import RIDGE, plan_directions
from isthmus.maps._sides import Centring, centre, centre_sides, check_pools

__all__ = ["AnchorCCA"]

MOST = 1e9
"""Of ``ridge`` and ``plan_pairs``: whoever gives more has made a slip."""


class AnchorCCA(Planned):
    """Both sides projected on the canonical directions of a transport plan and the anchor pairs.

    Parameters
    ----------
    gamma : float in [0, 2] or "auto", default "auto"
    eta : float or "auto", default "auto"
        Of the plan: see `AnchorDOT`.
    ridge : float, default 0.3
        Added to each covariance, as a share of its mean variance. Chosen on seeds 100 and over of
        ChEBI-20, as the next one: flat from .2 to .5.
    plan_pairs : float, optional
        As how many pairs the plan counts beside the anchor pairs. Default: as many as the smaller
        pool has rows, at most 2,000. With 100, 500 and 1,500 anchor pairs and large pools 5, 20 and
        43 hundredths of the cross-covariance are then theirs, close to what was best for each; a
        plan of 100 rows that counted as 2,000 pairs lost 25 of 60 points of recall at 10.
    centring : {"all", "none"}, default "all"
        Whether rows are taken less the mean of all rows of their side, paired or not; this
        project's.
    seed : int, default 0

    Attributes
    ----------
    source_directions_, target_directions_ : (dim, n_components) float32
        Scaled by the root of the correlations.
    mean_source_, mean_target_ : (dim,) float64
    correlations_ : (n_components,) float64
        Of the ridged problem.
    gamma_, eta_, epsilon_, coupling_errors_, searched_... : see `AnchorDOT`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 8))
    >>> Y = X @ np.linalg.qr(rng.standard_normal((8, 8)))[0]
    >>> cca = AnchorCCA().fit(X[:60], Y[:60], unpaired_source=X[60:130], unpaired_target=Y[130:])
    >>> cca.transform(X[:2]).shape, cca.transform_target(Y[:2]).shape
    ((2, 8), (2, 8))
    """

    name: ClassVar[str] = "anchor_cca"
    freedom: ClassVar[int] = 75
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "source_directions": ("source", "components"),
        "target_directions": ("target", "components"),
        "mean_source": ("source",),
        "mean_target": ("target",),
        "correlations": ("components",),
        **PLAN_STATE,
    }

    source_directions_: FloatArray
    target_directions_: FloatArray
    mean_source_: FloatArray
    mean_target_: FloatArray
    correlations_: FloatArray

    def __init__(
        self,
        *,
        gamma: float | Literal["auto"] = "auto",
        eta: float | Literal["auto"] = "auto",
        ridge: float = RIDGE,
        plan_pairs: float | None = None,
        centring: Centring = "all",
        seed: int = 0,
    ) -> None:
        self.gamma = gamma
        self.eta = eta
        self.ridge = ridge
        self.plan_pairs = plan_pairs
        self.centring = centring
        self.seed = seed

    @property
    def about(self) -> str:
        """What was coupled, in one sentence."""
        self._check_fitted()
        return (
            f"gamma {float(self.gamma_):g}, eta {float(self.eta_):g}, plan after "
            f"{len(self.coupling_errors_)} iterations, {len(self.correlations_)} directions"
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

        Raises
        ------
        TooFewPairsError, EmptyInputError
            Fewer than 20 different anchor pairs, or rows on a side without a pair.
        NotConvergedError
            A plan whose marginals are off by more than a hundredth of the mass: eta is too small.
        ParameterError
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        self._check_params()
        sides = centre_sides(
            check_fit(X, Y, sample_weight, minimum=self.fewest_pairs),
            unpaired_source,
            unpaired_target,
            centring=self.centring,
        )
        check_pools(sides)
        plan = self._couple(sides)[1]
        left, self.correlations_, right = plan_directions(
            sides, plan, ridge=self.ridge, plan_pairs=self.plan_pairs
        )
        self.source_directions_ = left.astype(np.float32)
        self.target_directions_ = right.astype(np.float32)
        self.mean_source_, self.mean_target_ = sides.means
        self.n_features_in_, self.n_features_target_ = (len(mean) for mean in sides.means)
        return self

    def _check_params(self) -> None:
        self._check_plan()
        check_positive(self.ridge, name="ridge", maximum=MOST)
        if self.plan_pairs is not None:
            check_positive(self.plan_pairs, name="plan_pairs", maximum=MOST)
        check_whole(self.seed, name="seed", minimum=0)

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Project source rows: (n, n_components), float32, of length one."""
        return _project(self._check_source(X), self.mean_source_, self.source_directions_)

    def transform_target(self, Y: npt.ArrayLike) -> FloatArray:
        """Project target rows: (n, n_components), float32, of length one."""
        return _project(self._check_target(Y), self.mean_target_, self.target_directions_)


def _project(rows: FloatArray, mean: FloatArray, directions: FloatArray) -> FloatArray:
    return in_row_blocks(lambda block: normalise(affine(centre(block, mean), directions)), rows)
