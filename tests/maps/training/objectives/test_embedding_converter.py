"""Embedding-Converter: a turn and a shift cost the point-wise term alone; near rows count twice."""

from __future__ import annotations

import torch

from isthmus.maps.training.objectives.embedding_converter import NEIGHBORS, embedding_converter
from isthmus.maps.training.objectives.mse import mse

generator = torch.Generator().manual_seed(100)
TARGET = torch.randn(40, 5, generator=generator, dtype=torch.float64)


def test_zero_at_the_target():
    assert float(embedding_converter(TARGET, TARGET).abs().max()) < 1e-20


def test_a_turn_and_a_shift_of_all_rows_keep_the_distances_among_them():
    turn = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64))[0]
    mapped = TARGET @ turn + 3

    assert torch.allclose(embedding_converter(mapped, TARGET), mse(mapped, TARGET))


def test_the_distance_to_a_near_row_counts_in_both_relational_terms():
    apart = torch.cdist(TARGET, TARGET)[0].argsort()
    near, far = int(apart[1]), int(apart[-1])

    def relational(moved):
        """Return what row 0 pays for its distance to another row that was moved."""
        mapped = TARGET.clone()
        mapped[moved] *= 1.1
        error = (mapped[moved] - mapped[0]).square().sum() / 2
        error = (error - (TARGET[moved] - TARGET[0]).square().sum() / 2).square()
        return embedding_converter(mapped, TARGET)[0] / error

    assert torch.allclose(relational(far), torch.tensor(1 / 40, dtype=torch.float64))
    both = torch.tensor(1 / 40 + 1 / NEIGHBORS, dtype=torch.float64)
    assert torch.allclose(relational(near), both)
