"""Bits of a row do not depend on the batch, the threads or the plan that the machine needs."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from isthmus import _rowwise
from isthmus._rowwise import PLANS, affine, in_row_blocks

SHAPES = [(384, 768), (768, 384), (64, 100), (17, 5), (1, 1), (700, 1), (33, 1), (3, 400)]
BATCHES = [(0, 1), (1, 3), (4, 21), (400, 1_400), (0, 5_000), (3, 5_000), (480, 960)]


def problem(dim_in, dim_out, n=5_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim_in)).astype(np.float32)
    weight = rng.standard_normal((dim_in, dim_out)).astype(np.float32)
    return X, weight, rng.standard_normal(dim_out).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_one_row_and_many_give_the_same_bits(shape, threads):
    X, weight, bias = problem(*shape)
    with threadpool_limits(1):
        expected = affine(X, weight, bias)

    with threadpool_limits(threads):
        for start, stop in BATCHES:
            np.testing.assert_array_equal(affine(X[start:stop], weight, bias), expected[start:stop])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_exact_sums_give_the_same_bits_whatever_the_order(shape):
    X, weight, _ = problem(*shape, n=600)
    product = _rowwise._exact_product(weight)
    expected = np.empty((600, shape[1]), dtype=np.float32)
    product(X, expected)
    order = np.random.default_rng(1).permutation(shape[0])
    shuffled = _rowwise._exact_product(weight[order])

    for start, stop in ((0, 1), (1, 3), (4, 21), (0, 600)):
        out = np.empty((stop - start, shape[1]), dtype=np.float32)
        product(X[start:stop], out)
        np.testing.assert_array_equal(out, expected[start:stop])
        shuffled(X[start:stop, order], out)
        np.testing.assert_array_equal(out, expected[start:stop])


@pytest.mark.parametrize("place", [*range(len(PLANS)), None])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_plan_gives_the_product(monkeypatch, shape, place):
    X, weight, bias = problem(*shape, n=500)
    monkeypatch.setattr(_rowwise, "_first_steady_plan", lambda *_: place)

    mapped = affine(X, weight, bias, scale=0.5)

    expected = 0.5 * (X.astype(np.float64) @ weight) + bias
    scale = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(weight, axis=0) + np.abs(bias)
    assert mapped.dtype == np.float32
    assert np.max(np.abs(mapped - expected) / scale) < 3e-7


def test_a_library_whose_sums_depend_on_the_row_gets_exact_sums(monkeypatch):
    def unsteady(matrix, _):
        def product(X, out):
            np.matmul(X, matrix, out=out)
            out[7:] += np.float32(1e-3)

        return product

    monkeypatch.setattr(_rowwise, "_panel_product", unsteady)
    _rowwise._first_steady_plan.cache_clear()
    try:
        X, weight, _ = problem(31, 29, n=50)
        mapped = affine(X, weight)
        assert _rowwise._first_steady_plan(31, 29) is None
        np.testing.assert_array_equal(affine(X[20:21], weight), mapped[20:21])
        np.testing.assert_allclose(mapped, X @ weight, atol=1e-4)
    finally:
        _rowwise._first_steady_plan.cache_clear()


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    n=st.integers(1, 40),
    dims=st.tuples(st.integers(1, 50), st.integers(1, 50)),
    power=st.integers(-30, 30),
)
def test_affine_is_the_product_at_any_size(n, dims, power):
    X, weight, bias = problem(*dims, n=n, seed=power + 30)
    factor = np.float32(2.0**power)

    mapped = affine(X * factor, weight, bias * factor)

    np.testing.assert_array_equal(mapped, affine(X, weight, bias) * factor)
    np.testing.assert_allclose(mapped, (X @ weight + bias) * factor, atol=2e-5 * factor)


def test_number_types_read_only_and_strided_inputs():
    X, weight, _ = problem(20, 30, n=100)
    half = X.astype(np.float16)
    expected = affine(half.astype(np.float32), weight)
    half.flags.writeable = weight.flags.writeable = False

    np.testing.assert_array_equal(affine(half, weight), expected)
    np.testing.assert_array_equal(affine(half.astype(np.float64), weight), expected)
    np.testing.assert_array_equal(affine(np.asfortranarray(half), weight), expected)
    np.testing.assert_array_equal(affine(half[::2], weight), expected[::2])
    assert affine(half[:0], weight).shape == (0, 30)


def test_zeros_give_the_bias():
    bias = np.float32([1, 2, 3])
    for product in (affine(np.zeros((2, 4)), np.ones((4, 3)), bias),):
        np.testing.assert_array_equal(product, [bias, bias])
    out = np.empty((2, 3), dtype=np.float32)
    _rowwise._exact_product(np.zeros((4, 3), np.float32))(np.zeros((2, 4), np.float32), out)
    np.testing.assert_array_equal(out, 0)


def library_threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def test_the_library_gets_its_threads_back_also_after_an_error():
    X, weight, _ = problem(40, 40)
    with threadpool_limits(2):
        before = library_threads()
        affine(X, weight)
        assert library_threads() == before
        with pytest.raises(ZeroDivisionError):
            in_row_blocks(lambda rows: rows / (1 // 0), np.ones((10_000, 2), np.float32))
        assert library_threads() == before


def test_callers_in_several_threads_get_the_same_bits_and_leave_the_library_as_it_was():
    X, weight, bias = problem(100, 90)
    expected = affine(X, weight, bias)
    found = []

    def call():
        found.extend(np.array_equal(affine(X, weight, bias), expected) for _ in range(5))

    with threadpool_limits(2):
        before = library_threads()
        callers = [threading.Thread(target=call) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert library_threads() == before

    assert found == [True] * 20


@pytest.mark.parametrize("n", [1, 4_800, 4_801, 10_000])
def test_blocks_of_rows_cover_every_row_once(n):
    rows = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
    with threadpool_limits(2):
        np.testing.assert_array_equal(in_row_blocks(lambda block: block * 2, rows), rows * 2)
