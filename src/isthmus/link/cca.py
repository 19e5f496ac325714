"""Canonical correlation analysis on the seeds: both clouds move to a space between them.

Each side is standardised by the mean and the spread of its whole cloud; CCA on the seeds gives one
projection a side, and the projected clouds are compared. When to use it: where each encoder has
much of its own that the other lacks. Fifteen seeds have at most fourteen canonical directions,
whatever the dimensions, and without a ridge all of them would correlate perfectly.
Shapes: (n, dim_source) and (n, dim_target) to (n, n_components), at most n_seeds - 1 wide.
References: Hotelling (1936); Lu et al. (2015); vector linking, appendix C.1.3, "CCA"; the analysis
itself is `isthmus.maps.CCA`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from isthmus import maps
from isthmus._linalg import mean_rows, normalise
from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray
from isthmus._validate import check_whole
from isthmus.link.aligned import AlignedLinker
from isthmus.link.problem import LinkProblem

__all__ = ["CCA"]


@dataclass(frozen=True, kw_only=True)
class CCA(AlignedLinker):
    """Canonical directions of the seeds, then CSLS and mutual nearest neighbours.

    Parameters
    ----------
    n_components : int, optional
        Directions to keep; by default, and at most, all that the seeds have.
    shrinkage : float in [1e-9, 1) or "ledoit_wolf", default "ledoit_wolf"
        Ridge of both covariances, as in `isthmus.maps.CCA`.
    power : float, default 0
        Of the correlation that scales each direction; 0 is CCA as the paper has it.
    csls_neighborhood : int, default 50
        Neighbours in the local scaling (vector linking, appendix C.2.4).

    Notes
    -----
    One vote per link; every posterior is 2/3 and not calibrated (`isthmus.link.aligned`).

    Examples
    --------
    >>> from isthmus.link import LinkProblem
    >>> cloud = np.random.default_rng(0).standard_normal((40, 4))
    >>> problem = LinkProblem.of_rows(cloud, cloud[:, ::-1], [(row, row) for row in range(20)])
    >>> len(CCA().link(problem))
    40
    """

    name: ClassVar[str] = "cca"

    n_components: int | None = None
    shrinkage: float | Literal["ledoit_wolf"] = "ledoit_wolf"
    power: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_components is not None:
            check_whole(self.n_components, name="n_components")

    def align(self, problem: LinkProblem, *, seed: int) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002 - nothing is random
        """Return the projections of both clouds."""
        source, target = _Standard(problem.source), _Standard(problem.target)
        canonical = maps.CCA(shrinkage=self.shrinkage, power=self.power)
        with one_blas_thread():
            canonical.fit(source(problem.seed_source), target(problem.seed_target))
        kept = slice(None, self.n_components)  # the map refuses more than there are
        left = canonical.transform(source(problem.source))[:, kept]
        right = canonical.transform_target(target(problem.target))[:, kept]
        return normalise(left), normalise(right)


class _Standard:
    """Centres columns and brings them to unit variance; constant columns become zeros."""

    def __init__(self, cloud: FloatArray) -> None:
        self.mean = mean_rows(cloud)
        variance = mean_rows(np.square(cloud - self.mean.astype(np.float32)))
        moving = variance > 1e-12 * variance.max()
        self.scale = np.where(moving, 1 / np.sqrt(np.where(moving, variance, 1.0)), 0.0)

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return the rows so, float32."""
        standard: FloatArray = (rows - self.mean.astype(np.float32)) * self.scale.astype(np.float32)
        return standard
