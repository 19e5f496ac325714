"""The report in the artifact: means and intervals in the manifest, per-query values as tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from isthmus.bridge.format import Tensors
from isthmus.evaluate.report import Report, Value

__all__ = ["describe_report", "flat_metrics", "null_map_baseline", "read_report", "report_tensors"]

SIDES = ("values", "null", "oracle")
RECONSTRUCTION = ("cos_to_target", "mse", "r2")
TOP_1 = ("hit@1", "nbr_overlap@1")
AGREEMENT = ("retrieval_agreement@10",)


def describe_report(report: Report) -> dict[str, Any]:
    """Return the manifest's ``report``: plain JSON values, with the names of the tensors."""
    sides = {
        side: {name: _describe(side, value) for name, value in getattr(report, side).items()}
        for side in SIDES
    }
    return {**sides, "n_queries": report.n_queries}


def report_tensors(report: Report) -> dict[str, npt.NDArray[Any]]:
    """Return the per-query values by tensor name."""
    return {
        _tensor_name(side, name): value.per_query
        for side in SIDES
        for name, value in getattr(report, side).items()
        if value.per_query.size
    }


def read_report(fields: Mapping[str, Any], tensors: Tensors) -> Report:
    """Read what `describe_report` and `report_tensors` gave.

    Raises
    ------
    KeyError
        A tensor that is not there.
    """
    sides = {
        side: {name: _read(name, value, tensors) for name, value in fields[side].items()}
        for side in SIDES
    }
    return Report(**sides, n_queries=fields["n_queries"])


def null_map_baseline(report: Report) -> dict[str, float | None]:
    """Return what doing nothing gives: cosine, share of first neighbours found, agreement."""
    return {
        "cos": _mean(report.null, ("cos_to_target",)),
        "top1": _mean(report.null, TOP_1),
        "retrieval_agreement": _mean(report.null, AGREEMENT),
    }


def flat_metrics(report: Report, *, reconstruction: bool) -> dict[str, float | None]:
    """Return the means of one family; every measure is of one of the two."""
    return {
        name: _number(value.mean)
        for name, value in report.values.items()
        if (name in RECONSTRUCTION) == reconstruction
    }


def _describe(side: str, value: Value) -> dict[str, Any]:
    numbers = {key: _number(getattr(value, key)) for key in ("mean", "low", "high")}
    return {
        **numbers,
        "per_query": _tensor_name(side, value.name) if value.per_query.size else None,
    }


def _read(name: str, fields: Mapping[str, Any], tensors: Tensors) -> Value:
    mean, low, high = (
        float("nan") if fields[key] is None else fields[key] for key in ("mean", "low", "high")
    )
    if fields["per_query"] is None:
        return Value(name, mean, low, high)
    return Value(name, mean, low, high, tensors[fields["per_query"]])


def _tensor_name(side: str, name: str) -> str:
    return f"report/{side}/{name}"


def _mean(values: Mapping[str, Value], names: tuple[str, ...]) -> float | None:
    return next((_number(values[name].mean) for name in names if name in values), None)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
