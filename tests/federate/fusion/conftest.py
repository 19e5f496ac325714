"""One small set of candidates, with numbers that a reader can follow by hand."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.federate.candidates import Candidates, first_columns

NAN = float("nan")


def build(ids, similarities, *, source, rank, space, merge=False):
    ids = np.array(ids)
    return Candidates(
        ids=ids,
        similarities=np.array(similarities, dtype=np.float32),
        source=np.array(source),
        rank=np.array(rank),
        space=np.array(space),
        same=first_columns(ids, merge=merge),
    )


@pytest.fixture
def build_candidates():
    return build


@pytest.fixture
def two_sources():
    """Two queries; source 0 (hub's space) gives a1 a2, source 1 (space 1) gives b1 b2.

    The second query has one candidate from source 0 and none from source 1.
    """
    return build(
        [["a1", "a2", "b1", "b2"], ["a3", "", "", ""]],
        [
            [[0.8, 0.5, 0.6, 0.1], [0.9, NAN, NAN, NAN]],
            [[0.4, 0.3, 0.7, 0.2], [0.2, NAN, NAN, NAN]],
        ],
        source=[0, 0, 1, 1],
        rank=[1, 2, 1, 2],
        space=[0, 0, 1, 1],
    )


@pytest.fixture
def overlapping():
    """One query; both sources hold ``x``, second in source 0 and first in source 1."""
    return build(
        [["a", "x", "b", "x", "c", "d"]],
        [[[0.9, 0.6, 0.5, 0.8, 0.7, 0.3]]],
        source=[0, 0, 0, 1, 1, 1],
        rank=[1, 2, 3, 1, 2, 3],
        space=[0, 0, 0, 0, 0, 0],
        merge=True,
    )
