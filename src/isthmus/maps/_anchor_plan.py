"""What maps share that learn from an anchor-relative transport plan: its choice and its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from isthmus._types import FloatArray
from isthmus._validate import check_positive
from isthmus.errors import ParameterError
from isthmus.maps._anchored import Anchored
from isthmus.maps._profile_search import ETAS, GAMMAS, ProfileSearch, search_profile
from isthmus.maps._sides import Sides
from isthmus.transport import Coupling, SimilarityCost, anchor_cost, sinkhorn

__all__ = ["PLAN_STATE", "Planned"]

PLAN_STATE: Mapping[str, tuple[str, ...]] = {
    "gamma": (),
    "eta": (),
    "epsilon": (),
    "coupling_errors": ("iterations",),
    "searched_gamma": ("candidates",),
    "searched_eta": ("candidates",),
    "searched_rank": ("candidates",),
    "searched_skewness": ("candidates",),
    "searched_recall": ("candidates",),
}


class Planned(Anchored):
    """A map that couples unpaired rows of both sides by their similarities to anchor pairs.

    A subclass has the parameters ``gamma``, ``eta`` and ``seed``, and `PLAN_STATE` in its state.
    """

    gamma: float | Literal["auto"]
    eta: float | Literal["auto"]
    seed: int

    gamma_: FloatArray
    eta_: FloatArray
    epsilon_: FloatArray
    coupling_errors_: FloatArray
    searched_gamma_: FloatArray
    searched_eta_: FloatArray
    searched_rank_: FloatArray
    searched_skewness_: FloatArray
    searched_recall_: FloatArray

    def _check_plan(self) -> None:
        """Check the parameters of the plan.

        Raises
        ------
        ParameterError
        """
        if self.gamma != "auto" and not 0 <= self.gamma <= 2:
            raise ParameterError(
                expected="gamma from 0 to 2, or 'auto'", got=f"{self.gamma!r}"[:100], do="use auto"
            )
        if self.eta != "auto":
            check_positive(self.eta, name="eta")

    def _couple(self, sides: Sides) -> tuple[SimilarityCost, Coupling]:
        """Choose gamma and eta, couple the pools, and keep how it went.

        Raises
        ------
        NotConvergedError
        """
        gamma, eta = self._choose(sides)
        cost = anchor_cost(*sides.pools, *sides.anchors, gamma=gamma)
        plan = sinkhorn(cost, eta=eta, seed=self.seed)
        plan.require()
        self.gamma_, self.eta_ = np.asarray(gamma), np.asarray(eta)
        self.epsilon_, self.coupling_errors_ = np.asarray(plan.epsilon), plan.errors
        return cost, plan

    def _choose(self, sides: Sides) -> tuple[float, float]:
        """Return gamma and eta, and keep what was tried for them."""
        grid = [
            (gamma, eta)
            for gamma in (GAMMAS if self.gamma == "auto" else (float(self.gamma),))
            for eta in (ETAS if self.eta == "auto" else (float(self.eta),))
        ]
        nothing = np.empty(0)
        found = ProfileSearch(nothing, nothing, nothing, nothing, nothing)
        chosen = grid[0]
        if len(grid) > 1:
            found = search_profile(sides, grid=grid, seed=self.seed)
            chosen = found.best
        for name in ("gamma", "eta", "rank", "skewness", "recall"):
            setattr(self, f"searched_{name}_", getattr(found, name))
        return chosen
