"""Relational distillation and squared distance: a turn costs the second term alone."""

from __future__ import annotations

import torch

from isthmus.maps.training.objectives.mse import mse
from isthmus.maps.training.objectives.rkd_mse import rkd_mse

generator = torch.Generator().manual_seed(100)
TARGET = torch.nn.functional.normalize(
    torch.randn(12, 5, generator=generator, dtype=torch.float64), dim=1
)


def test_zero_at_the_target():
    assert not rkd_mse(TARGET, TARGET).any()


def test_a_turn_of_all_rows_keeps_the_distances_among_them():
    turn = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64))[0]
    mapped = TARGET @ turn

    assert torch.allclose(rkd_mse(mapped, TARGET), mse(mapped, TARGET))
