"""Otsu's threshold against the definition, and where the values do not form two heaps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import EmptyInputError
from isthmus.link.otsu import otsu_threshold


def between_class_variance(values: np.ndarray, cut: float) -> float:
    """By the definition: shares times squared distance of the means."""
    upper = values >= cut
    if upper.all():
        return 0.0
    low, high = values[~upper], values[upper]
    return len(low) * len(high) / len(values) ** 2 * (high.mean() - low.mean()) ** 2


@given(st.lists(st.integers(0, 40), min_size=2, max_size=60))
def test_no_other_cut_parts_the_classes_more(numbers):
    values = np.array(numbers) / 40
    best = between_class_variance(values, otsu_threshold(values))
    assert all(between_class_variance(values, cut) <= best + 1e-12 for cut in values)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=20))
def test_it_is_one_of_the_values(numbers):
    values = np.array(numbers, float)
    assert otsu_threshold(values) in values


def test_of_equal_values_all_are_in_the_upper_class():
    assert otsu_threshold(np.full(7, 0.8)) == 0.8
    assert otsu_threshold(np.full(7, 0.8), bins=256) == 0.8


def test_two_heaps_are_parted_whatever_their_sizes():
    rng = np.random.default_rng(3)
    few, many = rng.uniform(0.8, 0.9, 20), rng.uniform(0.1, 0.2, 300)
    assert otsu_threshold(np.concatenate([many, few])) == few.min()
    assert otsu_threshold(np.concatenate([many, few]), bins=256) == few.min()


def test_bins_group_values_and_the_threshold_is_still_a_value():
    values = np.array([0.0, 0.1, 0.49, 0.51, 1.0])
    assert otsu_threshold(values, bins=2) == 0.51


def test_grey_levels_as_in_the_paper():
    """Two classes of means 1 and 6: Otsu 1979, equation 18, gives 12 * (5 ** 2) / 49 at the cut."""
    levels = np.repeat([0.0, 1, 2, 5, 6, 7], [1, 2, 1, 1, 1, 1])
    assert otsu_threshold(levels) == 5
    assert between_class_variance(levels, 5) == pytest.approx(12 * 25 / 49)


def test_no_values():
    with pytest.raises(EmptyInputError):
        otsu_threshold(np.empty(0))
