"""Squared distance: each row for itself."""

from __future__ import annotations

import torch

from isthmus.maps.training.objectives.mse import mse


def test_it_is_the_squared_distance_to_the_own_target():
    mapped = torch.tensor([[1.0, 2.0], [0.0, 0.0]])

    assert mse(mapped, torch.tensor([[1.0, 0.0], [3.0, 4.0]])).tolist() == [4.0, 25.0]


def test_other_rows_do_not_matter():
    mapped, target = torch.randn(6, 4), torch.randn(6, 4)

    assert torch.equal(mse(mapped, target)[2:3], mse(mapped[2:3], target[2:3]))
