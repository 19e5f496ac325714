"""Tables of the doctor: mixed spaces, false alarms, what was tried, canaries, drift."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from table_format import Goal, Part, Record, markdown

DRAWS = 10
"""Draws that were asked for."""
FALSE = ("mixed",)


def doctor(records: Sequence[Record]) -> Part:
    """Put the five parts one after the other."""
    lines: list[str] = []
    goals: list[Goal] = []
    for part, make in MAKERS.items():
        some = {
            record["parameters"]["name"]: record["result"]
            for record in records
            if record["parameters"]["part"] == part
        }
        if some:
            made = make(some)
            lines += made.lines
            goals += made.goals
    return Part(lines, goals)


def mixtures(found: Mapping[str, Any]) -> Part:
    """Say a row per mixture and share."""
    rows, goals = [], []
    for name, result in sorted(found.items(), key=lambda one: (mixture(one[0]), one[1]["share"])):
        draws = result["draws"]
        values = {key: [draw[key] for draw in draws] for key in draws[0]}
        seen = sum(verdict == "mixed" for verdict in values["verdict"])
        rows.append(
            [
                mixture(name),
                f"{result['share']:.0%}",
                f"{seen} of {len(draws)}",
                f"{np.mean(values['share']):.4f}",
                f"{min(values['contrast']):.2f}",
                f"{min(values['auc']):.4f}",
                f"{np.mean(values['auc_first_component']):.3f}",
                f"{max(values['calibration']):.4f}",
            ]
        )
    every = [(result["share"], draw) for result in found.values() for draw in result["draws"]]
    missed = sum(draw["verdict"] != "mixed" for _, draw in every)
    fewest = min(len(result["draws"]) for result in found.values())
    goals.append(
        Goal(
            "mixtures of 2 % and more found in all of ten draws",
            f"{len(every) - missed} of {len(every)} draws of {len(found)} mixtures",
            missed == 0 and fewest >= DRAWS,
        )
    )
    for share, asked in ((0.2, 0.99), (0.05, 0.95)):
        auc = [draw["auc"] for at, draw in every if at == share]
        if auc:
            goals.append(
                Goal(
                    f"AUC of single vectors at {share:.0%}: at least {asked}",
                    f"lowest {min(auc):.4f}",
                    min(auc) >= asked,
                )
            )
    head = [
        "foreign rows",
        "share",
        "found",
        "share said, mean",
        "lowest contrast",
        "lowest AUC",
        "AUC of the first component",
        "highest calibration error",
    ]
    return Part([*titled("Two encoders in one collection"), *markdown(head, rows), ""], goals)


def mixture(name: str) -> str:
    return name.split(" ", maxsplit=1)[1]


def unmixed(found: Mapping[str, Any]) -> Part:
    """Say how often there was an alarm, and what the verdicts were."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for name, result in found.items():
        kinds.setdefault(kind_of(name), []).append(result)
    verdicts = ("one space", "mixed", "undecided", "not enough data")
    rows = [
        [kind, *(str(sum(one["verdict"] == verdict for one in some)) for verdict in verdicts)]
        for kind, some in sorted(kinds.items())
    ]
    alarms = [name for name, result in found.items() if result["verdict"] in FALSE]
    goals = [
        Goal(
            "no alarm on unmixed collections",
            f"{len(alarms)} of {len(found)}",
            not alarms,
        )
    ]
    head = ["collections of one encoder", *verdicts]
    return Part([*titled("One encoder"), *markdown(head, rows), ""], goals)


def kind_of(name: str) -> str:
    for mark, kind in (
        (" in ", "two topics shuffled"),
        ("clusters", "two far clusters of eight"),
        ("half", "halves"),
    ):
        if mark in name:
            return kind
    return "whole"


def ideas(found: Mapping[str, Any]) -> Part:
    """Say the range of each statistic over one and over two encoders."""
    rows = [
        [name, span(result["one encoder"]), span(result["two encoders"]), f"{result['gap']:+.3f}"]
        for name, result in sorted(found.items(), key=lambda one: -one[1]["gap"])
    ]
    head = ["of the two true parts", "one encoder, two topics", "two encoders", "gap"]
    said = "A gap below 0 is an overlap: the statistic cannot tell a topic from an encoder."
    return Part([*titled("What tells them apart"), said, "", *markdown(head, rows), ""])


def span(values: Sequence[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"


def canaries(found: Mapping[str, Any]) -> Part:
    """Say how often each change was named rightly."""
    rows = []
    right = total = 0
    for name, result in sorted(found.items()):
        kinds, expected = result["kinds"], result["expected"]
        count = sum(kinds.values())
        right, total = right + kinds.get(expected, 0), total + count
        rows.append([name, expected, f"{kinds.get(expected, 0)} of {count}"])
    goals = [Goal("changes of canaries named rightly", f"{right} of {total}", right == total)]
    head = ["what was done to the vectors", "should be called", "was"]
    return Part([*titled("Canaries"), *markdown(head, rows), ""], goals)


def drift(found: Mapping[str, Any]) -> Part:
    """Say false alarms and power, a row per change and size."""
    rows = [
        [
            name.rsplit(", ", maxsplit=1)[0],
            f"{result['size']:,}",
            *(f"{result[verdict]:.2f}" for verdict in ("drift", "no drift", "not enough data")),
            f"{result['moved']:.3f}",
            f"{result['smallest']:.3f}",
        ]
        for name, result in sorted(found.items(), key=lambda one: (one[1]["share"] > 0, one[0]))
    ]
    still = [result for result in found.values() if not result["share"]]
    goals = []
    if still:
        runs = sum(result["repeats"] for result in still)
        rate = sum(result["drift"] * result["repeats"] for result in still) / runs
        goals.append(
            Goal(
                "drift said of halves of one collection: at most 5 %",
                f"{rate:.1%} of {runs} pairs",
                rate <= 0.05,
            )
        )
    head = ["what came in", "rows a side", "drift", "no drift", "too few", "moved", "smallest seen"]
    return Part([*titled("Drift"), *markdown(head, rows), ""], goals)


def titled(text: str) -> list[str]:
    return [f"### {text}", ""]


MAKERS: Mapping[str, Callable[[Mapping[str, Any]], Part]] = {
    "mixtures": mixtures,
    "unmixed": unmixed,
    "ideas": ideas,
    "canaries": canaries,
    "drift": drift,
}
DOCTORING = {"doctor": doctor}
