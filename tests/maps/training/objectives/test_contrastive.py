"""Contrastive: pairs together, the others a margin apart and not further."""

from __future__ import annotations

import pytest
import torch

from isthmus.maps.training.objectives.contrastive import LEAST_SQUARE, MARGIN, contrastive


def test_rows_at_their_targets_and_all_others_beyond_the_margin_cost_nothing():
    target = 2 * torch.eye(5)

    assert float(contrastive(target, target).max()) <= LEAST_SQUARE


def test_a_row_at_the_target_of_another_pays_the_whole_margin():
    target = torch.eye(2)

    loss = contrastive(target.flip(0), target)

    assert loss.tolist() == pytest.approx([(2 + MARGIN**2) / 2] * 2, rel=1e-4)


def test_the_slope_at_a_distance_of_nothing_is_finite():
    rows = torch.ones(3, 2, requires_grad=True)

    contrastive(rows, torch.ones(3, 2)).sum().backward()

    assert rows.grad.isfinite().all()
