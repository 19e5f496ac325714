"""Named values with intervals, always beside the null map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isthmus._types import FloatArray

__all__ = ["Report", "Value"]


@dataclass(frozen=True)
class Value:
    """One named value with its 95 % interval and the per-query values that it is the mean of.

    Parameters
    ----------
    name : str
        For example ``nDCG@10`` or ``nbr_overlap@10``.
    mean, low, high : float
    per_query : FloatArray of shape (n_queries,), possibly empty
        Empty for values that exist only for the whole set (``r2``, ``cluster_agreement``).
    """

    name: str
    mean: float
    low: float
    high: float
    per_query: FloatArray = field(default_factory=lambda: np.empty(0, np.float32), repr=False)

    def __str__(self) -> str:
        """Say the value with its interval."""
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; an undefined number is null."""
        return {
            "name": self.name,
            **{key: _number(getattr(self, key)) for key in ("mean", "low", "high")},
            "per_query": [_number(value) for value in self.per_query.tolist()],
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Value:
        """Read what `to_dict` gave."""
        numbers = {key: _float(fields[key]) for key in ("mean", "low", "high")}
        per_query = np.array([_float(value) for value in fields["per_query"]], dtype=np.float32)
        return cls(name=str(fields["name"]), per_query=per_query, **numbers)


@dataclass(frozen=True)
class Report:
    """Values of a bridge, the same values of the null map, and of the oracle where it is known.

    Parameters
    ----------
    values, null, oracle : mapping of name to Value
        ``oracle``: the native query on the natively embedded collection; empty where unknown.
    n_queries : int
        Held-out rows (or queries) that the values come from.
    """

    values: Mapping[str, Value]
    null: Mapping[str, Value]
    oracle: Mapping[str, Value] = field(default_factory=dict)
    n_queries: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        sides = {
            side: {name: value.to_dict() for name, value in getattr(self, side).items()}
            for side in ("values", "null", "oracle")
        }
        return {**sides, "n_queries": self.n_queries}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Report:
        """Read what `to_dict` gave."""
        sides = {
            side: {name: Value.from_dict(value) for name, value in fields[side].items()}
            for side in ("values", "null", "oracle")
        }
        return cls(**sides, n_queries=int(fields["n_queries"]))


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _float(value: float | None) -> float:
    return float("nan") if value is None else float(value)
