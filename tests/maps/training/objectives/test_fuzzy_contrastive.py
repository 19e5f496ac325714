"""Fuzzy contrastive: zero at the target, and blind to what no target sees."""

from __future__ import annotations

import torch

from isthmus.maps.training.objectives.fuzzy_contrastive import fuzzy_contrastive

generator = torch.Generator().manual_seed(100)
TARGET = torch.nn.functional.normalize(torch.randn(20, 6, generator=generator), dim=1)


def test_zero_at_the_target_with_no_slope():
    mapped = TARGET.clone().requires_grad_()

    loss = fuzzy_contrastive(mapped, TARGET)
    loss.sum().backward()

    assert not loss.any()
    assert not mapped.grad.any()


def test_above_zero_anywhere_else_where_the_targets_span_the_space():
    for scale in (1e-3, 0.1, 1.0):
        moved = TARGET + scale * torch.randn(20, 6, generator=generator)
        assert (fuzzy_contrastive(moved, TARGET) > 0).all()


def test_a_direction_that_no_target_has_costs_nothing():
    flat = TARGET.clone()
    flat[:, 5] = 0
    moved = flat.clone()
    moved[:, 5] = 3

    assert not fuzzy_contrastive(moved, flat).any()
