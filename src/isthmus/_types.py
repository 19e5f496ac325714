"""Array types used in signatures everywhere."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

__all__ = ["FloatArray", "IdArray", "IntArray", "Metric"]

FloatArray = npt.NDArray[np.floating[Any]]
"""Vectors or scores: float32 unless a docstring says otherwise."""

IntArray = npt.NDArray[np.int64]
"""Row numbers; -1 stands for no row."""

IdArray = npt.NDArray[np.str_]
"""Ids as a numpy array of text; the empty text stands for no id."""

Metric = Literal["cosine", "dot", "l2"]
"""How a space compares vectors. ``cosine`` and ``dot`` are never merged."""
