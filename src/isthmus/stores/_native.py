"""What databases give as scores, and how it becomes the one canonical similarity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray

__all__ = ["NATIVE_SCORES", "NativeScore", "Scale", "to_canonical", "to_native"]

NativeScore = Literal[
    "cosine",
    "1 - cosine",
    "(1 + cosine) / 2",
    "dot",
    "-dot",
    "1 - dot",
    "dot + 1, or 1 / (1 - dot)",
    "l2",
    "-l2",
    "squared l2",
    "1 / (1 + squared l2)",
]
"""How a database writes the similarity of two vectors. The last of ``dot`` is ``dot + 1`` from 0
on, and ``1 / (1 - dot)`` under it, so that no score is negative."""

Wide = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """One way to write a score.

    Parameters
    ----------
    canonical : callable
        From native scores to canonical similarities (the cosine, the inner product, minus the
        unsquared distance), in float64.
    native : callable
        The way back.
    higher_is_better : bool
    """

    canonical: Callable[[Wide], Wide]
    native: Callable[[Wide], Wide]
    higher_is_better: bool


def _same(scores: Wide) -> Wide:
    return scores


def _negative(scores: Wide) -> Wide:
    return -scores


def _one_minus(scores: Wide) -> Wide:
    return 1.0 - scores


def _folded(dot: Wide) -> Wide:
    return np.where(dot < 0, 1.0 / (1.0 - np.minimum(dot, 0.0)), dot + 1.0)


def _unfolded(scores: Wide) -> Wide:
    under = np.clip(scores, np.finfo(np.float64).tiny, 1.0)
    return np.where(scores < 1.0, 1.0 - 1.0 / under, scores - 1.0)


NATIVE_SCORES: MappingProxyType[NativeScore, Scale] = MappingProxyType(
    {
        "cosine": Scale(_same, _same, higher_is_better=True),
        "1 - cosine": Scale(_one_minus, _one_minus, higher_is_better=False),
        "(1 + cosine) / 2": Scale(
            lambda s: 2.0 * s - 1.0, lambda c: (1.0 + c) / 2.0, higher_is_better=True
        ),
        "dot": Scale(_same, _same, higher_is_better=True),
        "-dot": Scale(_negative, _negative, higher_is_better=False),
        "1 - dot": Scale(_one_minus, _one_minus, higher_is_better=False),
        "dot + 1, or 1 / (1 - dot)": Scale(_unfolded, _folded, higher_is_better=True),
        "l2": Scale(_negative, _negative, higher_is_better=False),
        "-l2": Scale(_same, _same, higher_is_better=True),
        "squared l2": Scale(
            lambda s: -np.sqrt(np.maximum(s, 0.0)), np.square, higher_is_better=False
        ),
        "1 / (1 + squared l2)": Scale(
            lambda s: -np.sqrt(np.maximum(1.0 / s - 1.0, 0.0)),
            lambda c: 1.0 / (1.0 + np.square(c)),
            higher_is_better=True,
        ),
    }
)


def to_canonical(scores: npt.ArrayLike, name: NativeScore) -> FloatArray:
    """Turn native scores into canonical similarities, float32; NaN stays NaN.

    Examples
    --------
    >>> to_canonical([0.25], "1 - cosine").tolist(), to_canonical([4.0], "squared l2").tolist()
    ([0.75], [-2.0])
    """
    found = NATIVE_SCORES[name].canonical(np.asarray(scores, np.float64))
    if "cosine" in name:
        found = np.clip(found, -1.0, 1.0)
    return np.asarray(found, np.float32)


def to_native(scores: npt.ArrayLike, name: NativeScore) -> FloatArray:
    """Turn canonical similarities into native scores, float32; NaN stays NaN.

    Examples
    --------
    >>> to_native([0.75], "1 - cosine").tolist()
    [0.25]
    """
    return np.asarray(NATIVE_SCORES[name].native(np.asarray(scores, np.float64)), np.float32)
