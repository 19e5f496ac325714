"""Qdrant's filters, over plain payloads; a test compares them with its engine."""

from __future__ import annotations

import re
from typing import Any

from tests.fakes.http_server import Refusal

SEGMENT = re.compile(r'(?:"([^"\\]*)"|([\w-]+))((?:\[\d*\])*)(\.|$)')


def matches(condition: dict[str, Any], point: dict[str, Any]) -> bool:
    """Whether a point, with `id`, `payload` and `vectors`, fulfils a condition."""
    if "has_id" in condition:
        return point["id"] in condition["has_id"]
    if "has_vector" in condition:
        return condition["has_vector"] in point["vectors"]
    payload = point["payload"]
    if "is_null" in condition:
        found = values_at(payload, condition["is_null"]["key"], flat=False)
        return any(one is None or (isinstance(one, list) and None in one) for one in found)
    if "is_empty" in condition:
        found = values_at(payload, condition["is_empty"]["key"], flat=False)
        return all(one is None or one == [] for one in found)
    return _has_value(condition, payload)


def _has_value(condition: dict[str, Any], payload: dict[str, Any]) -> bool:
    key = condition["key"]
    if condition.get("values_count"):
        counts = [_size(one) for one in values_at(payload, key, flat=False)] or [0]
        return any(_between(count, condition["values_count"]) for count in counts)
    found = values_at(payload, key, flat=True)
    if condition.get("range"):
        return any(_is_number(one) and _between(float(one), condition["range"]) for one in found)
    wanted = condition["match"]["value"]
    return any(type(one) is type(wanted) and one == wanted for one in found)


def fulfils(asked: dict[str, Any] | None, point: dict[str, Any]) -> bool:
    """Whether a point fulfils a filter."""
    asked = asked or {}
    should = asked.get("should") or []
    return (
        all(matches(one, point) for one in asked.get("must") or [])
        and not any(matches(one, point) for one in asked.get("must_not") or [])
        and (not should or any(matches(one, point) for one in should))
    )


def values_at(payload: dict[str, Any], path: str, *, flat: bool) -> list[Any]:
    """Return what lies at a path; `[]` goes into a list, and `flat` does so at the end as well."""
    found: list[Any] = [payload]
    for key, brackets in _parsed(path):
        found = [one[key] for one in found if isinstance(one, dict) and key in one]
        for bracket in brackets:
            lists = [one for one in found if isinstance(one, list)]
            if bracket:
                found = [one[int(bracket)] for one in lists if int(bracket) < len(one)]
            else:
                found = [item for one in lists for item in one]
    if flat:
        found = [item for one in found for item in (one if isinstance(one, list) else [one])]
    return found


def _parsed(path: str) -> list[tuple[str, list[str]]]:
    parts, place = [], 0
    while True:
        segment = SEGMENT.match(path, place)
        if segment is None:
            raise Refusal(400, f"Wrong input: invalid JSON path {path}")
        quoted, plain, brackets, end = segment.groups()
        parts.append((plain if quoted is None else quoted, re.findall(r"\[(\d*)\]", brackets)))
        place = segment.end()
        if not end:
            return parts


def _size(value: Any) -> int:
    return 0 if value is None else len(value) if isinstance(value, list) else 1


def _between(value: float, bounds: dict[str, float | None]) -> bool:
    tests = {
        "gte": lambda bound: value >= bound,
        "lte": lambda bound: value <= bound,
        "gt": lambda bound: value > bound,
        "lt": lambda bound: value < bound,
    }
    return all(tests[name](float(bound)) for name, bound in bounds.items() if bound is not None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
