"""SUE: spectral coordinates of each side, canonical directions of the pairs, a small correction.

1. On each side, over pairs and unpaired rows together: the leading eigenvectors of the random walk
   on the graph of nearest neighbours, edges ``exp(-|x - x'|^2 / (2 s^2))``.
2. On the pairs: canonical directions of these coordinates, each times its correlation.
3. A residual network on the source side that brings both clouds to the same distribution (maximum
   mean discrepancy).

The pairs settle what is left open between two clouds that are alike by themselves. When to use it:
as a rival, where unpaired rows are many and both clouds have the same shape. Trained with torch;
transforms need numpy only. Shapes: (n, dim_source) and (n, dim_target) to (n, n_components).

This is our own making from the description. The authors train a network (SpectralNet) to give the
eigenvectors; here new rows get theirs by the Nystroem formula, the mean of their neighbours'
coordinates over the eigenvalue, which keeps the rows. ChEBI-20, 500 pairs and 2,850 unpaired rows a
side, seeds 100 to 102: recall at 10 of 32 and 33 percent, there and back. AnchorDOT's authors
measured 26 with the original, on another molecule model.
References: Yacobi, Ben-Ari, Talmon and Shaham (2025), Learning shared representations from
unpaired data; Bengio et al. (2004) for the extension; Shaham et al. (2017) for the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus._validate import as_matrix, check_spread, check_whole
from isthmus.errors import ParameterError
from isthmus.maps._fitting import PairedRows, check_fit
from isthmus.maps._spectral import extend, spectral_coordinates
from isthmus.maps.base import LandsIn, Map
from isthmus.maps.csa import canonical
from isthmus.maps.training.discrepancy import match_clouds
from isthmus.maps.training.network import Network

__all__ = ["SUE"]

HIDDEN = 32
"""Width of the residual network, the authors'."""


class SUE(Map):
    """Spectral coordinates that the pairs turn into common ones. The extra ``torch`` trains it.

    Parameters
    ----------
    n_eigenvectors : int, default 30
        Coordinates of each side, or as many as the rows allow (the authors' configuration). More
        found more: with 100 of them and as many components recall at 10 went from 32 and 33 to 47
        and 45 percent (ChEBI-20, as above).
    n_components : int, default 8
        Canonical directions that are kept (the authors').
    neighbors : int, default 30
        Of each row in the graph (the authors' configuration).
    residual_epochs : int, default 100
        Of the residual network; the epoch at which held-out rows of both clouds are most alike is
        kept, or none. 0 leaves the network out, and needs no torch.
    max_rows : int, default 20,000
        Of each side at most: beyond, unpaired rows are drawn. They are kept for new rows.
    seed : int, default 0
        Of that draw and the training.

    Attributes
    ----------
    rows_source_, rows_target_ : (n_rows, dim) float32
    coordinates_source_, coordinates_target_ : (n_rows, n_components) float32
        Common coordinates that each row gives to its neighbours.
    offsets_ : (2, n_components) float32
        Taken from the coordinates of each side.
    widths_ : (2,) float64
        s of each side.
    correlations_ : (n_components,) float64
    weight_first_, bias_first_, weight_hidden_, bias_hidden_, weight_last_, bias_last_ : float32
        The residual network, 32 units wide.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> sue = SUE(n_components=2, residual_epochs=0).fit(X[:20], X[:20, ::-1], unpaired_source=X)
    >>> sue.transform(X[20:]).shape
    (20, 2)
    """

    name: ClassVar[str] = "sue"
    lands_in: ClassVar[LandsIn] = "comparison"
    freedom: ClassVar[int] = 75
    sees_unpaired: ClassVar[bool] = True
    state_shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "rows_source": ("rows_source", "source"),
        "rows_target": ("rows_target", "target"),
        "coordinates_source": ("rows_source", "components"),
        "coordinates_target": ("rows_target", "components"),
        "offsets": ("sides", "components"),
        "widths": ("sides",),
        "correlations": ("components",),
        "weight_first": ("components", "hidden"),
        "bias_first": ("hidden",),
        "weight_hidden": ("hidden", "hidden"),
        "bias_hidden": ("hidden",),
        "weight_last": ("hidden", "components"),
        "bias_last": ("components",),
    }

    rows_source_: FloatArray
    rows_target_: FloatArray
    coordinates_source_: FloatArray
    coordinates_target_: FloatArray
    offsets_: FloatArray
    widths_: FloatArray
    correlations_: FloatArray
    weight_first_: FloatArray
    bias_first_: FloatArray
    weight_hidden_: FloatArray
    bias_hidden_: FloatArray
    weight_last_: FloatArray
    bias_last_: FloatArray

    def __init__(
        self,
        *,
        n_eigenvectors: int = 30,
        n_components: int = 8,
        neighbors: int = 30,
        residual_epochs: int = 100,
        max_rows: int = 20_000,
        seed: int = 0,
    ) -> None:
        self.n_eigenvectors = n_eigenvectors
        self.n_components = n_components
        self.neighbors = neighbors
        self.residual_epochs = residual_epochs
        self.max_rows = max_rows
        self.seed = seed

    @property
    def costly(self) -> bool:
        """Training takes long."""
        return True

    @property
    def fewest_pairs(self) -> int:
        """Pairs from which as many canonical directions can be told."""
        return 2 * self.n_components

    def fit(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        unpaired_source: npt.ArrayLike | None = None,
        unpaired_target: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from pairs X (n, dim_source) and Y (n, dim_target), twice as many as components.

        ``unpaired_source`` (m, dim_source) and ``unpaired_target`` (k, dim_target) are the rest of
        each cloud.

        Raises
        ------
        MissingExtraError
            Without torch, where the residual network is trained.
        ParameterError
            A parameter out of range; more components than the pairs have directions.
        DegenerateVectorsError
            One unpaired row alone, or all of them equal.
        InputError
            As :func:`isthmus.maps._fitting.check_fit` says.
        """
        self._check_params()
        pairs = check_fit(X, Y, sample_weight, minimum=self.fewest_pairs)
        clouds = (
            self._gather(pairs.source, unpaired_source, name="unpaired_source"),
            self._gather(pairs.target, unpaired_target, name="unpaired_target"),
        )
        self._keep(*clouds, pairs)
        self.n_features_in_, self.n_features_target_ = pairs.source.shape[1], pairs.target.shape[1]
        network = Network.draw(
            [self.n_components, HIDDEN, HIDDEN, self.n_components],
            rng=np.random.default_rng([self.seed, 2]),
            skip=np.eye(self.n_components),
            activation="relu",
        )
        if self.residual_epochs:
            moved = [self._common(cloud, side) for side, cloud in enumerate(clouds)]
            network = match_clouds(network, *moved, epochs=self.residual_epochs, seed=self.seed)
        self.weight_first_, self.weight_hidden_, self.weight_last_ = network.weights
        self.bias_first_, self.bias_hidden_, self.bias_last_ = network.biases
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Carry source rows into the common coordinates: (n, n_components), float32."""
        rows = self._check_source(X)
        network = Network(
            [self.weight_first_, self.weight_hidden_, self.weight_last_],
            [self.bias_first_, self.bias_hidden_, self.bias_last_],
            activation="relu",
        )
        common = self._common(rows, 0)
        return common + network.forward(common)

    def transform_target(self, Y: npt.ArrayLike) -> FloatArray:
        """Carry target rows into the common coordinates: (n, n_components), float32."""
        return self._common(self._check_target(Y), 1)

    def _check_params(self) -> None:
        for name in ("n_eigenvectors", "n_components", "neighbors", "max_rows"):
            check_whole(getattr(self, name), name=name)
        for name in ("residual_epochs", "seed"):
            check_whole(getattr(self, name), name=name, minimum=0)

    def _gather(
        self, paired: FloatArray, unpaired: npt.ArrayLike | None, *, name: str
    ) -> FloatArray:
        """Return the rows of the pairs and, after them, as many unpaired rows as are wanted."""
        if unpaired is None:
            return paired.astype(np.float32)
        rows = as_matrix(unpaired, name=name, dim=paired.shape[1])
        check_spread(rows, name=name)
        room = max(0, self.max_rows - len(paired))
        if len(rows) > room:
            rng = np.random.default_rng([self.seed, 1])
            rows = rows[np.sort(rng.choice(len(rows), room, replace=False))]
        return np.concatenate([paired, rows]).astype(np.float32)

    def _keep(self, source: FloatArray, target: FloatArray, pairs: PairedRows) -> None:
        """Learn what rows and coordinates there are; the pairs come first among the rows."""
        n = len(pairs)
        count = max(self.n_components, min(self.n_eigenvectors, n // 2))
        values, widths, paired = [], [], []
        for rows in (source, target):
            own, width = spectral_coordinates(rows, count, neighbors=self.neighbors, seed=self.seed)
            values.append(own)
            widths.append(width)
            # As new rows get them, so that the directions fit what they are used on.
            paired.append(extend(rows[:n], rows, own, width=width, neighbors=self.neighbors))
        found = canonical(PairedRows(paired[0], paired[1], pairs.weight))
        kept = self.n_components
        if len(found.correlations) < kept:
            raise ParameterError(
                expected=f"n_components from 1 to {len(found.correlations)}, the directions that "
                "the graphs of these rows have",
                got=f"{kept}",
                do="keep fewer, raise n_eigenvectors, or add unpaired rows",
            )
        self.correlations_ = found.correlations[:kept]
        directions = [side[:, :kept] * self.correlations_ for side in (found.source, found.target)]
        means = (found.mean_source, found.mean_target)
        self.rows_source_, self.rows_target_ = source, target
        self.coordinates_source_, self.coordinates_target_ = (
            (own @ side).astype(np.float32) for own, side in zip(values, directions, strict=True)
        )
        self.offsets_ = np.array(
            [mean @ side for mean, side in zip(means, directions, strict=True)], np.float32
        )
        self.widths_ = np.array(widths)

    def _common(self, rows: FloatArray, side: int) -> FloatArray:
        """Return rows of the source (0) or the target (1) in the coordinates of both."""
        known, values = (
            (self.rows_source_, self.coordinates_source_),
            (self.rows_target_, self.coordinates_target_),
        )[side]
        width = float(self.widths_[side])
        found = extend(rows, known, values, width=width, neighbors=self.neighbors)
        common: FloatArray = found - self.offsets_[side]
        return common
