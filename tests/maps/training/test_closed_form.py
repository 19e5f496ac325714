"""Closed forms as x W + b: the same rows as the map itself, near the origin and far from it."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.maps import make
from isthmus.maps.training.closed_form import CLOSED_FORMS, fit_closed_form


@pytest.mark.parametrize("name", CLOSED_FORMS)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("place", [0.0, 30.0])
def test_the_affine_form_is_the_map(name, scale, place):
    rng = np.random.default_rng(100)
    rows = rng.standard_normal((80, 6)) + place
    source = (scale * rows).astype(np.float32)
    # centred, so that the bias undoes all of a far place
    target = (rows - place) @ rng.standard_normal((6, 4)) + 0.1 * rng.standard_normal((80, 4))
    target = target.astype(np.float32)
    weight = np.linspace(0.5, 2, 80)

    matrix, bias = fit_closed_form(name, source, target, weight)

    expected = make(name).fit(source, target, sample_weight=weight).transform(source)
    assert matrix.dtype == bias.dtype == np.float32
    size = np.abs(expected).max()
    np.testing.assert_allclose(source @ matrix + bias, expected, atol=1e-5 * max(1, place) * size)
