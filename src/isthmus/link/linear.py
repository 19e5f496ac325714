"""Linear regression on the seeds by Adam, as vector linking trains it.

Minimises ``L(W) = mean over seeds of |x W - y|^2`` over any W, without bias, by a fixed number of
full-batch steps of Adam from a small random W: stopped long before it would fit the seeds exactly.
When to use it: as the paper's baseline; a rotation (`Procrustes`) asks less of few seeds.
Shapes: W is (dim_source, dim_target).
References: Mikolov et al. (2013); Kingma and Ba (2015); vector linking, appendix C.1.3, "Linear".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isthmus._threads import one_blas_thread
from isthmus._types import FloatArray
from isthmus._validate import check_positive, check_whole
from isthmus.link.aligned import AlignedLinker, carry
from isthmus.link.problem import LinkProblem

__all__ = ["Linear"]

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Kingma and Ba (2015), algorithm 1."""


@dataclass(frozen=True, kw_only=True)
class Linear(AlignedLinker):
    """A linear map trained on the seeds, then CSLS and mutual nearest neighbours.

    Parameters
    ----------
    learning_rate : float, default 1e-3
        Of Adam (vector linking, appendix C.1.3).
    epochs : int, default 100
        Steps over all seeds (the same).
    csls_neighborhood : int, default 50
        Neighbours in the local scaling (vector linking, appendix C.2.4).

    Notes
    -----
    The paper says neither where W starts nor how large a batch is. Here W starts uniform within
    ``1 / sqrt(dim_source)``, as linear layers do in the usual libraries, and a batch is all seeds.
    One vote per link; every posterior is 2/3 and not calibrated (`isthmus.link.aligned`).

    Examples
    --------
    >>> from isthmus.link import LinkProblem
    >>> cloud = np.random.default_rng(0).standard_normal((40, 4))
    >>> problem = LinkProblem.of_rows(cloud, cloud, [(row, row) for row in range(30)])
    >>> len(Linear(learning_rate=0.1).link(problem))
    40
    """

    name: ClassVar[str] = "linear"

    learning_rate: float = 1e-3
    epochs: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.learning_rate, name="learning_rate")
        check_whole(self.epochs, name="epochs")

    def align(self, problem: LinkProblem, *, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return the mapped source rows and the target rows."""
        weight, _ = fit_by_adam(
            problem.seed_source,
            problem.seed_target,
            learning_rate=self.learning_rate,
            epochs=self.epochs,
            generator=np.random.default_rng(seed),
        )
        return carry(problem.source, weight), problem.target


def fit_by_adam(
    X: FloatArray,
    Y: FloatArray,
    *,
    learning_rate: float,
    epochs: int,
    generator: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return W and the loss ``mean of |x W - y|^2`` before every step.

    Parameters
    ----------
    X : FloatArray of shape (n, dim_source)
    Y : FloatArray of shape (n, dim_target)
    learning_rate : float
    epochs : int
    generator : numpy.random.Generator
        Draws the first W.

    Returns
    -------
    weight : FloatArray of shape (dim_source, dim_target), float64
    losses : FloatArray of shape (epochs,)
    """
    source, target = X.astype(np.float64), Y.astype(np.float64)
    bound = 1 / np.sqrt(source.shape[1])
    weight = generator.uniform(-bound, bound, (source.shape[1], target.shape[1]))
    first, second = np.zeros_like(weight), np.zeros_like(weight)
    losses = np.empty(epochs)
    with one_blas_thread():
        for step in range(1, epochs + 1):
            rest = source @ weight - target
            losses[step - 1] = np.square(rest).sum() / len(rest)
            gradient = (2 / len(rest)) * (source.T @ rest)
            first += (1 - BETA_1) * (gradient - first)
            second += (1 - BETA_2) * (np.square(gradient) - second)
            size = np.sqrt(second / (1 - BETA_2**step)) + EPSILON
            weight -= learning_rate / (1 - BETA_1**step) * first / size
    return weight, losses
