"""Anchor optimisation: find the anchors of one cloud that make both look alike.

Rows are described by their cosines to anchors: r(x) = x A^T with the source anchors A (the seeds
and further source rows), s(y) = y B^T with as many target anchors B, of which those of the seeds
are known and the rest start as noise. Each of 250 steps takes one iteration of Sinkhorn between the
two sets of descriptions, and one step of Adam on B to bring every s(y) to the mean r(x) of the rows
it is coupled with. Links are entries of the last coupling that are the largest of their row and
column, the heaviest ones, as many as objects are shared: a number that must be known.
When to use it: as the paper's baseline. Time and memory grow with n^2: clouds over ``max_rows`` are
refused. Shapes: A is (overlap, dim_source), B is (overlap, dim_target).
References: Cannistraci et al. (2023); vector linking, appendix C.1.3, "AO".
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from isthmus._optional import require
from isthmus._types import FloatArray
from isthmus._validate import check_positive, check_whole
from isthmus.errors import ParameterError
from isthmus.link.aligned import RowPairs, SingleShot, check_rows, mutual_argmax
from isthmus.link.mlp import one_torch_thread
from isthmus.link.problem import LinkProblem
from isthmus.maps.training.devices import find_device

__all__ = ["AO"]


@dataclass(frozen=True, kw_only=True)
class AO(SingleShot):
    """Anchors optimised under Sinkhorn, then mutual argmax.

    Needs the extra ``torch``.

    Parameters
    ----------
    overlap : int
        Shared objects, at least the seeds: the number of anchors and the most links (vector
        linking, appendix C.1.3: "the anchor budget is the true overlap size").
    steps : int, default 250
        Of Adam, with one iteration of Sinkhorn each (the same).
    learning_rate : float, default 0.02
        Of Adam.
    epsilon : float, default 0.01
        Entropic regularisation; squared distances of descriptions have mean 1.
    device : str, default "cpu"
        Where it runs, for torch: for example ``"cuda"``. Another device rounds otherwise, and may
        give other links.
    max_rows : int, default 5000
        Largest side that is taken on: about 60 bytes per entry of the coupling, so 1.5 GB at 5,000,
        and 10 minutes of one core.

    Notes
    -----
    Neither paper says how links are read off, nor the last two numbers; the further source anchors
    are drawn at random. Sinkhorn goes on from the potentials of the step before. One vote per link;
    every posterior is 2/3 and not calibrated (`isthmus.link.aligned`).

    Examples
    --------
    >>> from isthmus.link import LinkProblem
    >>> cloud = np.random.default_rng(0).standard_normal((40, 9))
    >>> problem = LinkProblem.of_rows(cloud, cloud[:, ::-1], [(row, row) for row in range(20)])
    >>> len(AO(overlap=40, steps=10).link(problem))
    40
    """

    name: ClassVar[str] = "ao"

    overlap: int
    steps: int = 250
    learning_rate: float = 0.02
    epsilon: float = 0.01
    device: str = "cpu"
    max_rows: int = 5_000

    def __post_init__(self) -> None:
        for name in ("overlap", "steps", "max_rows"):
            check_whole(getattr(self, name), name=name)
        check_positive(self.learning_rate, name="learning_rate")
        check_positive(self.epsilon, name="epsilon")

    def propose(self, problem: LinkProblem, *, seed: int) -> RowPairs:
        """Return the heaviest ``overlap`` pairs of the mutual argmax of the coupling."""
        check_rows(problem, method=self.name, max_rows=self.max_rows)
        self._check_overlap(problem)
        plan = self.plan(problem, seed=seed)
        rows, columns = mutual_argmax(plan)
        heaviest = np.argsort(-plan[rows, columns], kind="stable")[: self.overlap]
        kept = np.sort(heaviest)
        return rows[kept], columns[kept]

    def plan(self, problem: LinkProblem, *, seed: int) -> FloatArray:
        """Return the last coupling, of shape (n_source, n_target), float32.

        Raises
        ------
        MissingExtraError
            Without torch.
        ParameterError
            A device that torch does not have.
        """
        torch = require("torch", extra="torch")
        device = find_device(self.device)
        source_anchors, start = self._first_anchors(problem, np.random.default_rng(seed))
        with one_torch_thread(torch):

            def on_device(rows: FloatArray) -> Any:
                return torch.tensor(rows, device=device)

            source, target = on_device(problem.source), on_device(problem.target)
            anchors, known = on_device(source_anchors), on_device(problem.seed_target)
            free = on_device(start).requires_grad_()
            adam = torch.optim.Adam([free], lr=self.learning_rate)
            sinkhorn = _Sinkhorn(torch, source, target, epsilon=self.epsilon)
            described = source @ anchors.T
            for _ in range(self.steps):
                adam.zero_grad()
                found = torch.cat((known, torch.nn.functional.normalize(free, dim=1)))
                with torch.no_grad():
                    coupling = sinkhorn.step(described, target @ found.T, anchors, found)
                    wanted = (coupling / coupling.sum(0)).T @ source @ anchors.T
                loss = torch.square(target @ found.T - wanted).mean()
                loss.backward()
                adam.step()
            plan: FloatArray = coupling.cpu().numpy()
            return plan

    def _first_anchors(
        self, problem: LinkProblem, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return the source anchors, seeds first, and noise for the target anchors not known."""
        more = self.overlap - problem.n_seeds
        rows = np.arange(len(problem.source))
        if problem.seed_rows is not None:
            rows = np.delete(rows, problem.seed_rows[:, 0])
        drawn = generator.choice(rows, more, replace=False)
        noise = generator.standard_normal((more, problem.target.shape[1]))
        return (
            np.concatenate((problem.seed_source, problem.source[drawn])),
            noise.astype(np.float32),
        )

    def _check_overlap(self, problem: LinkProblem) -> None:
        most = min(len(problem.source), len(problem.target))
        if not problem.n_seeds <= self.overlap <= most:
            raise ParameterError(
                expected=f"overlap from {problem.n_seeds}, the seeds, to {most}, the smaller cloud",
                got=f"{self.overlap}",
                do="give the number of shared objects",
            )


class _Sinkhorn:
    """Couples descriptions, one iteration at a time, and keeps the potential in between."""

    def __init__(self, torch: ModuleType, source: Any, target: Any, *, epsilon: float) -> None:
        self.torch = torch
        self.source, self.target = source, target
        self.epsilon = epsilon
        self.potential = torch.zeros(len(target), device=target.device)

    def step(self, described: Any, found: Any, anchors: Any, target_anchors: Any) -> Any:
        """Return the coupling (n_source, n_target) after one more iteration.

        Parameters
        ----------
        described : tensor of shape (n_source, k)
        found : tensor of shape (n_target, k)
        anchors : tensor of shape (k, dim_source)
        target_anchors : tensor of shape (k, dim_target)
        """
        # described @ found.T through the smaller of k and the dimensions
        cross = (self.source @ (anchors.T @ target_anchors)) @ self.target.T
        cost = cross.mul_(-2)
        cost += described.square().sum(1)[:, None]
        cost += found.square().sum(1)
        logits = cost.mul_(-1 / (self.epsilon * cost.mean()))
        rows = self.torch.logsumexp(logits + self.potential, 1)
        logits -= rows[:, None]
        self.potential = -self.torch.logsumexp(logits, 0)
        logits += self.potential
        return logits.exp_() / len(self.target)
