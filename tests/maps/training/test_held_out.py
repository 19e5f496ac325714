"""Held-out preservation: the share of native neighbours that mapped rows find."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isthmus.maps.training.held_out import MOST_TARGETS, NEIGHBORS, Preservation

generator = torch.Generator().manual_seed(100)


def rows(n, dim=6):
    return torch.nn.functional.normalize(torch.randn(n, dim, generator=generator), dim=1)


TARGETS, HELD = rows(80), rows(25)


def test_the_native_rows_find_all_and_their_opposites_none():
    judge = Preservation.of(HELD, HELD, TARGETS)

    assert judge.score(HELD) == 1
    assert judge.score(-HELD) == 0


def test_it_counts_as_a_slow_loop_does():
    mapped = HELD + 0.3 * rows(25)
    judge = Preservation.of(HELD, HELD, TARGETS)

    total = 0.0
    for one, other in zip(mapped, HELD, strict=True):
        found, native = (
            {*np.argsort(-(TARGETS @ side).numpy())[:NEIGHBORS].tolist()} for side in (one, other)
        )
        total += len(found & native) / NEIGHBORS
    assert judge.score(mapped) == pytest.approx(total / 25)


def test_the_length_of_a_mapped_row_does_not_matter():
    mapped = HELD + 0.3 * rows(25)
    judge = Preservation.of(HELD, HELD, TARGETS)
    assert judge.score(mapped) == judge.score(7 * mapped)


@pytest.mark.parametrize("n", [1, 3, NEIGHBORS])
def test_with_few_targets_every_row_is_found(n):
    judge = Preservation.of(HELD, HELD, TARGETS[:n])
    assert judge.native.shape == (25, n)
    assert judge.score(-HELD) == 1


def test_only_the_first_targets_are_searched():
    judge = Preservation.of(HELD[:3], HELD[:3], rows(MOST_TARGETS + 50))
    assert len(judge.targets) == MOST_TARGETS
    assert int(judge.native.max()) < MOST_TARGETS
