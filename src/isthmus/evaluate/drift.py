"""Drift: whether two samples of vectors are drawn from the same distribution.

A kernel two-sample test (Gretton et al. 2012) with permutations says whether there is drift; its
effect size says how much, on a scale of rows moved between two halves of the topics; and where
nothing was found, the smallest drift that these samples would have shown says what that is worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isthmus._progress import Track, silent
from isthmus._types import FloatArray, IntArray
from isthmus._validate import as_matrix, check_positive
from isthmus.errors import ParameterError

__all__ = ["Drift", "DriftVerdict", "measure_drift"]

DriftVerdict = Literal["no drift", "drift", "not enough data"]

SAMPLE_ROWS = 2_000
"""Rows of each side at most: the kernel matrix of both holds 64 MB."""
FEWEST = 20
WIDTHS = (0.5, 1.0, 2.0)
"""Kernel widths, as multiples of the median distance."""
LEVEL = 0.02
"""Of the test: so many samples of one distribution are called drift."""
POWER = 0.80
VISIBLE = 0.20
"""Share of moved rows that must have been visible before it is said that there is no drift."""
BATCH = 64


@dataclass(frozen=True, kw_only=True)
class Drift:
    """How far two samples differ.

    Parameters
    ----------
    verdict : {"no drift", "drift", "not enough data"}
    reason : str
    rows, other_rows : int
        Of both sides, that were compared.
    discrepancy : float
        Squared maximum mean discrepancy, without bias: about 0 where nothing differs, and below it
        by chance.
    p_value : float
        Share of permutations with at least this discrepancy.
    moved, moved_low, moved_high : float
        Effect size with a 95 % interval: the share of rows that, moved from one half of the topics
        to the other, makes as large a discrepancy. Over 1 where the samples are further apart than
        these halves, as two encoders are.
    smallest : float
        The smallest such share that these samples show in four of five cases.
    """

    verdict: DriftVerdict
    reason: str
    rows: int
    other_rows: int
    discrepancy: float = float("nan")
    p_value: float = float("nan")
    moved: float = float("nan")
    moved_low: float = float("nan")
    moved_high: float = float("nan")
    smallest: float = float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dict(vars(self))


def measure_drift(
    vectors: npt.ArrayLike,
    other: npt.ArrayLike,
    *,
    permutations: int = 999,
    seed: int = 0,
    track: Track[Any] = silent,
) -> Drift:
    """Say whether two samples differ, by how much, or that they are too small to say.

    Parameters
    ----------
    vectors : array-like of shape (n, dim)
        Rows drawn independently of those of the other side: rows that stand in both sides make the
        test say "no drift" more often.
    other : array-like of shape (m, dim)
    permutations : int, default 999
        At least 99. The level of the test is .02 whatever the number.
    seed : int, default 0
        Of the rows that are compared (2,000 of each side at most) and of the permutations.
    track : Track, default silent

    Returns
    -------
    Drift

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError, ParameterError

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> one, other, shifted = (draw.standard_normal((300, 8)) + by for by in (0, 0, 0.5))
    >>> measure_drift(one, shifted).verdict, measure_drift(one, other).verdict
    ('drift', 'no drift')
    """
    check_positive(permutations, name="permutations")
    if permutations < 99:
        raise ParameterError(
            expected="at least 99 permutations", got=str(permutations), do="give more"
        )
    first = as_matrix(vectors, name="vectors")
    second = as_matrix(other, name="other", dim=first.shape[1])
    rng = np.random.default_rng(seed)
    sides = [rng.permutation(side)[:SAMPLE_ROWS].astype(np.float64) for side in (first, second)]
    rows, count = np.concatenate(sides), len(sides[0])
    sizes = {"rows": count, "other_rows": len(sides[1])}
    if min(sizes.values()) < FEWEST:
        reason = f"each side needs {FEWEST} rows"
        return Drift(verdict="not enough data", reason=reason, **sizes)
    kernel = _kernel(rows)
    if kernel is None:
        return Drift(
            verdict="no drift", reason="all rows are equal", p_value=1.0, discrepancy=0.0, **sizes
        )
    found = _discrepancies(kernel, np.arange(len(rows))[None, :], count)[0]
    chance = _by_chance(kernel, count, permutations=permutations, rng=rng, track=track)
    p_value = (1 + int((chance >= found).sum())) / (1 + permutations)
    scale = _topic_scale(kernel, rows)
    error = _standard_error(kernel, count)
    needed = float(np.quantile(chance, 1 - LEVEL) + 0.84 * chance.std())
    smallest = _share(needed, scale)
    verdict, reason = _verdict(p_value, smallest)
    return Drift(
        verdict=verdict,
        reason=reason,
        discrepancy=float(found),
        p_value=p_value,
        moved=_share(found, scale),
        moved_low=_share(found - 1.96 * error, scale),
        moved_high=_share(found + 1.96 * error, scale),
        smallest=smallest,
        **sizes,
    )


def _verdict(p_value: float, smallest: float) -> tuple[DriftVerdict, str]:
    if p_value <= LEVEL:
        return "drift", f"chance gives so large a difference in {p_value:.1%} of the cases"
    if smallest <= VISIBLE:
        return "no drift", f"{smallest:.0%} of the rows moved would have been seen"
    if not smallest < 1:
        return "not enough data", "not even if all rows had moved would it have been seen"
    return (
        "not enough data",
        f"fewer than {smallest:.0%} of the rows moved would not have been seen",
    )


def _kernel(rows: FloatArray) -> FloatArray | None:
    """Return the mean of Gaussian kernels of several widths; None where all rows are equal."""
    centred = rows - rows.mean(axis=0)
    lengths = np.einsum("ij,ij->i", centred, centred)
    largest = float(np.sqrt(lengths.max()))
    if largest <= 1e-12 * float(np.abs(rows).max()):
        return None
    centred, lengths = centred / largest, lengths / largest**2
    squares = lengths[:, None] + lengths[None, :] - 2 * (centred @ centred.T)
    np.maximum(squares, 0, out=squares)
    some = squares[:: max(1, len(rows) // 500)]
    median = float(np.median(some[some > 1e-12])) if (some > 1e-12).any() else 1.0
    kernel: FloatArray = sum(
        (np.exp(squares * (-0.5 / (width**2 * median))) for width in WIDTHS),
        start=np.zeros_like(squares),
    )
    return kernel / len(WIDTHS)


def _discrepancies(kernel: FloatArray, orders: IntArray, count: int) -> FloatArray:
    """Return the discrepancy for several orders of the rows, the first ``count`` against the rest.

    Parameters
    ----------
    orders : IntArray of shape (b, n)
    """
    rows = kernel.shape[0]
    member = np.zeros((rows, len(orders)))
    member[orders[:, :count].T, np.arange(len(orders))] = 1.0
    sums = kernel @ member
    own = (member * sums).sum(axis=0)
    across = sums.sum(axis=0) - own
    whole = kernel.sum() - own - 2 * across
    diagonal = np.diag(kernel)
    of_first = diagonal @ member
    of_rest = diagonal.sum() - of_first
    rest = rows - count
    found: FloatArray = (
        (own - of_first) / (count * (count - 1))
        + (whole - of_rest) / (rest * (rest - 1))
        - 2 * across / (count * rest)
    )
    return found


def _by_chance(
    kernel: FloatArray,
    count: int,
    *,
    permutations: int,
    rng: np.random.Generator,
    track: Track[Any],
) -> FloatArray:
    """Return the discrepancy of rows that were dealt anew."""
    rows = np.arange(kernel.shape[0])
    starts = range(0, permutations, BATCH)
    found = []
    for start in track(starts, "comparing by chance", len(starts)):
        batch = min(BATCH, permutations - start)
        orders = rng.permuted(np.tile(rows, (batch, 1)), axis=1)
        found.append(_discrepancies(kernel, orders, count))
    return np.concatenate(found)


def _topic_scale(kernel: FloatArray, rows: FloatArray) -> float:
    """Return the discrepancy of the two halves of the rows along their first principal direction.

    Halves of both samples together, so that it is the same whichever way the rows are dealt.
    """
    from scipy.sparse.linalg import svds

    centred = rows - rows.mean(axis=0)
    if min(centred.shape) > 2:
        start = np.ones(min(centred.shape))
        tall = centred if len(centred) > centred.shape[1] else centred.T
        if np.linalg.norm(tall @ start) <= 1e-9 * np.linalg.norm(tall):  # as rows of one sum
            start = np.random.default_rng(0).standard_normal(len(start))
        place = svds(centred, k=1, v0=start, return_singular_vectors="u")[0][:, 0]
    else:
        place = centred[:, 0]
    order = np.argsort(place, kind="stable")[None, :]
    return float(_discrepancies(kernel, order, len(rows) // 2)[0])


def _standard_error(kernel: FloatArray, count: int) -> float:
    """Return the standard error of the discrepancy, by what each row adds to it."""
    first, second = kernel[:count], kernel[count:]
    parts = []
    for own, across in (
        (first[:, :count], first[:, count:]),
        (second[:, count:], second[:, :count]),
    ):
        rows = len(own)
        inside = (own.sum(axis=1) - np.diag(own)) / (rows - 1)
        parts.append(4 * np.var(inside - across.mean(axis=1), ddof=1) / rows)
    return float(np.sqrt(sum(parts)))


def _share(discrepancy: float, scale: float) -> float:
    """Return the share of moved rows that makes this discrepancy: it grows with its square."""
    return float(np.sqrt(max(0.0, discrepancy) / scale)) if scale > 0 else float("nan")
