"""Scores of databases become the one canonical similarity, and back."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isthmus.stores._native import NATIVE_SCORES, NativeScore, to_canonical, to_native

SIMILARITIES = {
    "cosine": st.floats(-1.0, 1.0, width=32),
    "dot": st.floats(-100.0, 100.0, width=32),
    "l2": st.floats(-100.0, 0.0, width=32),
}


def test_every_name_has_a_scale():
    assert set(NATIVE_SCORES) == set(get_args(NativeScore))


@pytest.mark.parametrize("name", get_args(NativeScore))
@given(data=st.data())
def test_there_and_back(name, data):
    (kind,) = [kind for kind in SIMILARITIES if kind in name]
    known = data.draw(hnp.arrays(np.float32, 5, elements=SIMILARITIES[kind]))
    scale = NATIVE_SCORES[name]
    native = scale.native(known.astype(np.float64))
    back = to_canonical(native, name)
    np.testing.assert_allclose(back, known, rtol=1e-5, atol=1e-5)
    order = np.argsort(known, kind="stable")
    steps = np.diff(native[order])
    assert (steps >= 0).all() if scale.higher_is_better else (steps <= 0).all()


# One pair of vectors, [3, 4] and [4, 3]: cosine .96, inner product 24, distance sqrt(2).
@pytest.mark.parametrize(
    ("name", "native", "canonical"),
    [
        ("1 - cosine", 0.04, 0.96),
        ("(1 + cosine) / 2", 0.98, 0.96),
        ("-dot", -24.0, 24.0),
        ("1 - dot", -23.0, 24.0),
        ("dot + 1, or 1 / (1 - dot)", 25.0, 24.0),
        ("dot + 1, or 1 / (1 - dot)", 0.04, -24.0),
        ("l2", 2**0.5, -(2**0.5)),
        ("squared l2", 2.0, -(2**0.5)),
        ("1 / (1 + squared l2)", 1 / 3, -(2**0.5)),
    ],
)
def test_one_pair_of_vectors(name, native, canonical):
    assert to_canonical([native], name)[0] == pytest.approx(canonical, rel=1e-5)
    assert to_native([canonical], name)[0] == pytest.approx(native, rel=1e-5)


def test_nan_stays_and_rounding_is_cut_off():
    assert np.isnan(to_canonical([np.nan], "squared l2")).all()
    assert to_canonical([-1e-9, 1.0000001], "1 - cosine").max() == 1.0
