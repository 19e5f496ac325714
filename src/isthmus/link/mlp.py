"""A network of one hidden layer on the seeds, as vector linking trains it.

Minimises ``mean over seeds of 1 - cos(relu(x W_1 + b_1) W_2 + b_2, y)`` by a fixed number of
full-batch steps of Adam. When to use it: as the paper's baseline; so many weights and so few seeds
ask for `Procrustes` or `SelfTraining` instead.
Shapes: W_1 is (dim_source, hidden), W_2 is (hidden, dim_target).
References: Kingma and Ba (2015); vector linking, appendix C.1.3, "MLP".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import numpy as np

from isthmus._linalg import affine
from isthmus._optional import require
from isthmus._types import FloatArray
from isthmus._validate import check_positive, check_whole
from isthmus.errors import ParameterError
from isthmus.link.aligned import AlignedLinker, carry
from isthmus.link.problem import LinkProblem
from isthmus.maps.training.devices import find_device

__all__ = ["MLP", "one_torch_thread"]


@dataclass(frozen=True, kw_only=True)
class MLP(AlignedLinker):
    """A small network trained on the seeds, then CSLS and mutual nearest neighbours.

    Needs the extra ``torch``.

    Parameters
    ----------
    hidden : int, default 512
        Width of the hidden layer (vector linking, appendix C.1.3).
    learning_rate : float, default 1e-2
        Of Adam (the same).
    weight_decay : float, default 1e-5
        Added to the gradient, times the weight (the same).
    epochs : int, default 100
        Steps over all seeds (the same).
    device : str, default "cpu"
        Where it is trained, for torch: for example ``"cuda"``. Another device rounds otherwise, and
        may give other links.
    csls_neighborhood : int, default 50
        Neighbours in the local scaling (vector linking, appendix C.2.4).

    Notes
    -----
    Weights and biases start uniform within ``1 / sqrt(inputs)``, as linear layers do in torch. One
    vote per link; every posterior is 2/3 and not calibrated (`isthmus.link.aligned`).

    Examples
    --------
    >>> from isthmus.link import LinkProblem
    >>> cloud = np.random.default_rng(0).standard_normal((40, 4))
    >>> problem = LinkProblem.of_rows(cloud, cloud[:, ::-1], [(row, row) for row in range(30)])
    >>> links = MLP(hidden=64).link(problem)
    >>> bool((links.source_rows == links.target_rows).mean() > 0.8)
    True
    """

    name: ClassVar[str] = "mlp"

    hidden: int = 512
    learning_rate: float = 1e-2
    weight_decay: float = 1e-5
    epochs: int = 100
    device: str = "cpu"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self.hidden, name="hidden")
        check_positive(self.learning_rate, name="learning_rate")
        if not 0 <= self.weight_decay < np.inf:
            raise ParameterError(
                expected="weight_decay of at least 0", got=f"{self.weight_decay}", do="change it"
            )
        check_whole(self.epochs, name="epochs")

    def align(self, problem: LinkProblem, *, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return the source rows as the network maps them, and the target rows."""
        layers, _ = self.train(problem.seed_source, problem.seed_target, seed=seed)
        weight_1, bias_1, weight_2, bias_2 = layers
        inner = np.maximum(affine(problem.source, weight_1, bias_1), 0)
        return carry(inner, weight_2, bias_2), problem.target

    def train(
        self, X: FloatArray, Y: FloatArray, *, seed: int
    ) -> tuple[tuple[FloatArray, ...], FloatArray]:
        """Return W_1, b_1, W_2, b_2 as float32 and the loss before every step.

        Parameters
        ----------
        X : FloatArray of shape (n, dim_source)
        Y : FloatArray of shape (n, dim_target)
        seed : int

        Raises
        ------
        MissingExtraError
            Without torch.
        ParameterError
            A device that torch does not have.
        """
        torch = require("torch", extra="torch")
        device = find_device(self.device)
        start = _first_layers(X.shape[1], self.hidden, Y.shape[1], np.random.default_rng(seed))
        losses = np.empty(self.epochs)
        with one_torch_thread(torch):
            layers = [torch.tensor(part, device=device, requires_grad=True) for part in start]
            source, target = (torch.tensor(side, device=device) for side in (X, Y))
            adam = torch.optim.Adam(layers, lr=self.learning_rate, weight_decay=self.weight_decay)
            for step in range(self.epochs):
                adam.zero_grad()
                inner = torch.relu(source @ layers[0] + layers[1])
                mapped = inner @ layers[2] + layers[3]
                loss = (1 - torch.nn.functional.cosine_similarity(mapped, target)).mean()
                loss.backward()
                adam.step()
                losses[step] = loss.item()
            return tuple(part.detach().cpu().numpy() for part in layers), losses


def _first_layers(
    dim_source: int, hidden: int, dim_target: int, generator: np.random.Generator
) -> tuple[FloatArray, ...]:
    """Draw W_1, b_1, W_2, b_2, here and not in torch, so that no device matters."""

    def draw(inputs: int, *shape: int) -> FloatArray:
        bound = 1 / np.sqrt(inputs)
        return generator.uniform(-bound, bound, shape).astype(np.float32)

    return (
        draw(dim_source, dim_source, hidden),
        draw(dim_source, hidden),
        draw(hidden, hidden, dim_target),
        draw(hidden, dim_target),
    )


@contextmanager
def one_torch_thread(torch: ModuleType) -> Iterator[None]:
    """Keep torch on one thread inside the block: more of them sum in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
