"""A cloud and the same partly whitened, against the formula."""

from __future__ import annotations

import numpy as np

from isthmus._linalg import normalise
from isthmus.link.clouds import Side


def stretched(n=200, dim=10):
    rng = np.random.default_rng(0)
    return normalise(rng.standard_normal((n, dim)) * np.geomspace(1, 0.05, dim) + 0.3)


def test_whitening_is_the_formula():
    """(C / mean variance + .1)^(-1/4) of the centred rows, by an SVD of the rows."""
    rows = stretched()
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    _, singular, vt = np.linalg.svd(centred, full_matrices=False)
    variance = singular**2 / len(rows)
    scale = (variance / variance.mean() + 0.1) ** -0.25
    side = Side.of(rows)

    np.testing.assert_allclose(side.white, centred @ vt.T * scale @ vt, atol=1e-5)
    assert side.rows is rows
    assert side.white.dtype == np.float32
    np.testing.assert_allclose(side.white.mean(axis=0), 0, atol=1e-6)


def test_strong_directions_lead_less_than_before():
    rows = stretched()
    before, after = (
        np.linalg.svd(cloud - cloud.mean(axis=0), compute_uv=False)
        for cloud in (rows, Side.of(rows).white)
    )
    assert after[0] / after[-1] < 0.5 * before[0] / before[-1]


def test_turning_a_cloud_turns_the_whitened_one():
    rows = stretched()
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((10, 10)))[0]
    moved = (rows @ turn).astype(np.float32)
    np.testing.assert_allclose(Side.of(moved).white, Side.of(rows).white @ turn, atol=1e-5)


def test_fewer_rows_than_dimensions():
    side = Side.of(stretched(n=4, dim=10))
    assert np.isfinite(side.white).all()
    assert np.linalg.matrix_rank(side.white, tol=1e-4) == 3


def test_some_rows():
    side = Side.of(stretched())
    kept = np.array([5, 2, 9])
    some = side.select(kept)
    assert len(some) == 3
    np.testing.assert_array_equal(some.rows, side.rows[kept])
    np.testing.assert_array_equal(some.white, side.white[kept])  # whitened by the whole cloud
