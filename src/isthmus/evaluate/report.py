"""Named values with intervals, always beside the null map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isthmus._types import FloatArray
from isthmus.errors import CountMismatchError
from isthmus.evaluate import bootstrap

__all__ = ["Report", "Value", "ratio_to_oracle", "summarise"]


@dataclass(frozen=True, eq=False)
class Value:
    """One named value with its 95 % interval and the per-query values that it is the mean of.

    Parameters
    ----------
    name : str
        For example ``nDCG@10`` or ``nbr_overlap@10``.
    mean, low, high : float
    per_query : FloatArray of shape (n_queries,), possibly empty
        Empty for values that exist only for the whole set (``r2``, ``cluster_agreement``). NaN
        where the value is undefined for that query, which is then left out of the mean.
    """

    name: str
    mean: float
    low: float
    high: float
    per_query: FloatArray = field(default_factory=lambda: np.empty(0, np.float32), repr=False)

    @property
    def left_out(self) -> int:
        """Count the queries for which the value is undefined."""
        return int(np.isnan(self.per_query).sum())

    def __eq__(self, other: object) -> bool:
        """Compare every number; undefined equals undefined."""
        if not isinstance(other, Value):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        """Hash the name; equal values have one name."""
        return hash(self.name)

    def __str__(self) -> str:
        """Say the value with its interval."""
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def to_dict(self, *, per_query: bool = True) -> dict[str, Any]:
        """Return plain JSON values; an undefined number is null.

        Parameters
        ----------
        per_query : bool, default True
            Whether to give the numbers of every query, which `from_dict` needs.
        """
        rows = {"per_query": [_number(value) for value in self.per_query.tolist()]}
        return {
            "name": self.name,
            **{key: _number(getattr(self, key)) for key in ("mean", "low", "high")},
            **(rows if per_query else {}),
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

    def to_dict(self, *, per_query: bool = True) -> dict[str, Any]:
        """Return plain JSON values.

        Parameters
        ----------
        per_query : bool, default True
            Whether to give the numbers of every query, which `from_dict` needs.
        """
        sides = {
            side: {
                name: value.to_dict(per_query=per_query)
                for name, value in getattr(self, side).items()
            }
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


def summarise(per_query: Mapping[str, FloatArray], *, seed: int = 0) -> dict[str, Value]:
    """Turn per-query numbers into values with intervals, all from the same draws of the queries.

    Parameters
    ----------
    per_query : mapping of name to FloatArray of shape (n_queries,)
        NaN where undefined.
    seed : int, default 0

    Returns
    -------
    dict of name to Value
        The mean of no query at all is NaN, and so is the interval of fewer than two.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError

    Examples
    --------
    >>> summarise({"nDCG@10": np.array([0.5, 0.5])})["nDCG@10"]
    Value(name='nDCG@10', mean=0.5, low=0.5, high=0.5)
    """
    checked = {name: bootstrap.as_per_query(one, name=name) for name, one in per_query.items()}
    if len({len(one) for one in checked.values()}) > 1:
        raise CountMismatchError(
            expected="every measure for the same queries",
            got=", ".join(f"{len(one)} of {name}" for name, one in checked.items()),
            do="give one number per query, NaN where undefined",
        )
    if not checked:
        return {}
    columns = np.stack(list(checked.values()), axis=1)
    defined = ~np.isnan(columns)
    sums, counts = np.where(defined, columns, 0.0).sum(axis=0), defined.sum(axis=0)
    means = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    bounds = bootstrap.intervals(columns, seed=seed)
    return {
        name: Value(
            name=name,
            mean=float(means[place]),
            low=float(bounds[place, 0]),
            high=float(bounds[place, 1]),
            per_query=columns[:, place].astype(np.float32),
        )
        for place, name in enumerate(checked)
    }


def ratio_to_oracle(value: Value, oracle: Value, *, seed: int = 0) -> Value:
    """Divide a value by the oracle's, with an interval of its own from paired draws.

    Parameters
    ----------
    value, oracle : Value
        The same measure of the same queries, with their per-query numbers.
    seed : int, default 0

    Returns
    -------
    Value
        Named ``<name>/oracle``, without per-query numbers; NaN where the oracle's mean is 0.

    Raises
    ------
    CountMismatchError, EmptyInputError
        The per-query numbers are missing or not of the same queries.

    Examples
    --------
    >>> kept = summarise({"nDCG@10": np.array([0.25, 0.5])})["nDCG@10"]
    >>> native = summarise({"nDCG@10": np.array([0.5, 1.0])})["nDCG@10"]
    >>> ratio_to_oracle(kept, native)
    Value(name='nDCG@10/oracle', mean=0.5, low=0.5, high=0.5)
    """
    mean, low, high = bootstrap.ratio(value.per_query, oracle.per_query, seed=seed)
    return Value(name=f"{value.name}/oracle", mean=mean, low=low, high=high)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _float(value: float | None) -> float:
    return float("nan") if value is None else float(value)
