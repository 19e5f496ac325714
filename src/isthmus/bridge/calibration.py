"""Calibration: from the scores that a bridge gives to the scale of native scores.

Scores through a bridge are lower and narrower than native ones. An isotonic curve, learned on
held-out pairs, carries them over and keeps their order, so that a threshold that was set on native
scores keeps its meaning and scores of two spaces can be compared.

Isotonic regression as in Zadrozny and Elkan (KDD 2002) gives steps, and steps make ties; here the
centres of the steps are joined by straight lines, and beyond the ends the curve goes on with slope
one, so that two scores that differ stay in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray
from isthmus._validate import check_finite
from isthmus.errors import CountMismatchError, MalformedArtifactError, TooFewPairsError

__all__ = ["Calibration"]

MAX_KNOTS = 64
MIN_SCORES = 2
SMALLEST_STEP = 1e-9


@dataclass(frozen=True, eq=False)
class Calibration:
    """A rising curve through knots.

    Parameters
    ----------
    bridged : FloatArray of shape (k,), float64, rising
        Scores as the bridge gives them; higher is more alike.
    native : FloatArray of shape (k,), float64, rising
        The native scores that they stand for.
    error_before, error_after : float
        Mean absolute difference from the native score, without and with the curve, on queries that
        the curve was not learned on. NaN where nothing was measured.
    n_scores : int
        How many scores it was learned on.

    Examples
    --------
    >>> bridged = np.linspace(0, 1, 100)
    >>> curve = Calibration.fit(bridged, 0.5 * bridged + 0.3, groups=np.arange(100))
    >>> curve.to_native([0.2, 0.4]).tolist()
    [0.4000000059604645, 0.5]
    """

    bridged: FloatArray
    native: FloatArray
    error_before: float
    error_after: float
    n_scores: int

    @classmethod
    def identity(cls) -> Self:
        """Return the curve that changes nothing: for pairs too few to learn one.

        Examples
        --------
        >>> Calibration.identity().to_native([0.5]).tolist()
        [0.5]
        """
        return cls(np.zeros(1), np.zeros(1), np.nan, np.nan, 0)

    @classmethod
    def fit(cls, bridged: npt.ArrayLike, native: npt.ArrayLike, *, groups: npt.ArrayLike) -> Self:
        """Learn the curve from scores of the same rows, both of shape (n,).

        Parameters
        ----------
        bridged, native : array-like of shape (n,)
        groups : integers of shape (n,)
            Query of each score: the errors are measured on one half of the queries with the curve
            of the other half.

        Raises
        ------
        CountMismatchError, InvalidVectorsError, TooFewPairsError
        """
        scores, wanted = np.asarray(bridged, float), np.asarray(native, float)
        query = np.asarray(groups)
        if not scores.shape == wanted.shape == query.shape or scores.ndim != 1:
            raise CountMismatchError(
                expected="as many bridged scores as native scores and groups",
                got=f"shapes {scores.shape}, {wanted.shape} and {query.shape}",
                do="give one of each per row",
            )
        check_finite(scores, name="bridged scores")
        check_finite(wanted, name="native scores")
        if len(scores) < MIN_SCORES:
            raise TooFewPairsError(
                expected=f"at least {MIN_SCORES} scores", got=f"{len(scores)}", do="add pairs"
            )
        before, after = _errors(scores, wanted, query)
        x, y = _curve(scores, wanted)
        return cls(x, y, before, after, len(scores))

    def to_native(self, scores: npt.ArrayLike) -> FloatArray:
        """Carry bridged scores of any shape to the native scale, as float32; NaN stays NaN."""
        return _evaluate(np.asarray(scores, float), self.bridged, self.native).astype(np.float32)

    def to_bridged(self, scores: npt.ArrayLike) -> FloatArray:
        """Carry native scores back: where to put a threshold when searching through the bridge."""
        return _evaluate(np.asarray(scores, float), self.native, self.bridged).astype(np.float32)

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Return the knots by name."""
        return {"bridged": self.bridged, "native": self.native}

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the knots as plain JSON values."""
        return {
            "method": "isotonic",
            "error_before": None if np.isnan(self.error_before) else self.error_before,
            "error_after": None if np.isnan(self.error_after) else self.error_after,
            "n_scores": self.n_scores,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], tensors: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Read what `to_dict` and `tensors` gave, and check that the knots rise.

        Raises
        ------
        MalformedArtifactError
        """
        x, y = tensors["bridged"], tensors["native"]
        if (
            {x.dtype, y.dtype} != {np.dtype(np.float64)}
            or x.ndim != 1
            or x.shape != y.shape
            or not 1 <= len(x) <= MAX_KNOTS
            or not ((np.diff(x) > 0).all() and (np.diff(y) > 0).all())
        ):
            raise MalformedArtifactError(
                expected=f"from 1 to {MAX_KNOTS} knots of float64 that rise on both axes",
                got=f"{x.dtype} {x.shape} and {y.dtype} {y.shape}",
                do="ask its maker for a new copy; SPEC.md has the rules",
            )
        before, after = (
            np.nan if fields[name] is None else fields[name]
            for name in ("error_before", "error_after")
        )
        return cls(x, y, before, after, fields["n_scores"])


def _errors(
    scores: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64], query: npt.NDArray[Any]
) -> tuple[float, float]:
    """Mean absolute errors before and after; with one query alone, on what it was learned on."""
    _, place = np.unique(query, return_inverse=True)
    after = np.empty(len(scores))
    for half in (0, 1):
        asked = place % 2 == half
        learned = ~asked if 0 < asked.sum() < len(asked) else np.ones_like(asked)
        if asked.any():
            after[asked] = _evaluate(scores[asked], *_curve(scores[learned], wanted[learned]))
    return float(np.abs(scores - wanted).mean()), float(np.abs(after - wanted).mean())


def _curve(
    scores: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return knots that rise on both axes: means of the steps of an isotonic regression."""
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(scores, kind="stable")
    parts = np.array_split(order, min(MAX_KNOTS, len(order)))
    weight = np.array([len(part) for part in parts], dtype=np.float64)
    x = np.array([scores[part].mean() for part in parts])
    y = isotonic_regression(np.array([wanted[part].mean() for part in parts]), sample_weight=weight)
    # one knot per step of the curve, then one per score: both axes must rise
    x, y, weight = _merge(y, x, y, weight)
    x, y, _ = _merge(x, x, y, weight)
    return x, y


def _merge(
    keys: npt.NDArray[np.float64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Join neighbours whose key does not rise into their weighted mean."""
    least = SMALLEST_STEP * max(1.0, float(np.abs(keys).max()))  # rounding must not undo a step
    starts = np.flatnonzero(np.diff(keys, prepend=-np.inf) > least)
    total = np.add.reduceat(weight, starts)
    return (
        np.add.reduceat(x * weight, starts) / total,
        np.add.reduceat(y * weight, starts) / total,
        total,
    )


def _evaluate(
    scores: npt.NDArray[np.float64],
    x: FloatArray,
    y: FloatArray,
) -> npt.NDArray[np.float64]:
    """Interpolate between the knots and go on with slope one beyond them."""
    beyond = np.maximum(scores - x[-1], 0) + np.minimum(scores - x[0], 0)
    values: npt.NDArray[np.float64] = np.interp(scores, x, y) + beyond
    return values
