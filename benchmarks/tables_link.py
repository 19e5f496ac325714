"""Tables of linking like 1 and 3 of the paper, and what was asked of `auto`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from table_format import REPORTED, Goal, Part, Record, markdown
from tables_link_speed import speed
from tables_link_studies import studies

Cells = list[Mapping[str, Any]]
Place = tuple[str, float, int]  # pair, overlap, seeds
METHODS = (
    "auto", "self_training", "geh", "procrustes", "linear", "cca", "mlp", "rcsls", "ugw", "ao",
    "vecmap",
)  # fmt: skip
GRID_PAIRS, GRID_OVERLAPS, GRID_SEEDS = 8, 4, 3
PLACES = GRID_PAIRS * GRID_OVERLAPS * GRID_SEEDS
FAILED = 0.5  # a draw of a lower F1 found something else
ASKED = (
    ("climate-fever.minilm-l6.para-l3", 15, 0.90, 0.95),
    ("climate-fever.minilm-l6.mpnet", 15, 0.88, 0.94),
    ("climate-fever.para-l3.mpnet", 15, 0.75, 0.88),
    ("scifact.minilm-l6.para-l3", 30, 0.84, 0.90),
    ("scifact.minilm-l6.mpnet", 15, 0.89, 0.94),
    ("locomo.openai-3-small.minilm-l6", 15, 0.92, 0.96),
)
HARD = ("scifact.minilm-l6.para-l3", 0.3, 15)


def grid(records: Sequence[Record]) -> Part:
    """Precision, recall and F1 of every method, then what `auto` says of its links."""
    places = grouped(records)
    lines = [
        "Precision / recall / F1 in percent at a method's own threshold, mean over draws. Seeds "
        f"count as in the paper{without_seeds(places)}. Baselines that are trained on the seeds "
        "once are run at overlap .3 with 15 seeds, most of them on two draws.",
        "",
        "Overlap .3, 15 seeds:",
        "",
        *corner_table(places),
        "",
    ]
    for pair in dict.fromkeys(pair for pair, _, _ in places):
        lines += [f"{said(pair)}:", "", *pair_table(places, pair), ""]
    lines += ["`auto` by its posteriors:", "", *posterior_table(places), ""]
    return Part(lines, goals(places))


def without_seeds(places: Mapping[Place, Mapping[str, Cells]]) -> str:
    """Say how much lower F1 is where seeds do not count."""
    gaps = [
        cell["own"]["f1"] - (cell["unseeded"]["f1"] or 0.0)
        for each in places.values()
        for cell in each.get("auto", [])
    ]
    return f"; left out, F1 of `auto` is lower by {max(gaps):.3f} at most" if gaps else ""


def grouped(records: Sequence[Record]) -> dict[Place, dict[str, Cells]]:
    """Return the reported cells by place of the grid and method, in the order of the grid."""
    found: dict[Place, dict[str, Cells]] = {}
    for record in records:
        given = record["parameters"]
        pair = "{dataset}.{source}.{target}".format(**given)
        for cell in record["result"]["cells"]:
            if cell["draw"] in REPORTED:
                place = (pair, cell["overlap"], cell["n_seeds"])
                found.setdefault(place, {}).setdefault(given["method"], []).append(cell)
    return dict(sorted(found.items()))


def corner_table(places: Mapping[Place, Mapping[str, Cells]]) -> list[str]:
    corner = {place: each for place, each in places.items() if place[1:] == (0.3, 15)}
    rows = []
    for method in METHODS:
        if any(method in each for each in corner.values()):
            cells = [
                triple(each.get(method, []), best=method == best_of(each))
                for each in corner.values()
            ]
            rows.append([f"`{method}`", *cells])
    return markdown(["", *(said(pair) for pair, _, _ in corner)], rows)


def pair_table(places: Mapping[Place, Mapping[str, Cells]], pair: str) -> list[str]:
    mine = {place: each for place, each in places.items() if place[0] == pair}
    methods = [name for name in METHODS[:4] if any(name in each for each in mine.values())]
    rows = [
        [
            f"{overlap:.2f}, {n_seeds}",
            *(triple(each.get(name, []), best=name == best_of(each)) for name in methods),
        ]
        for (_, overlap, n_seeds), each in mine.items()
    ]
    return markdown(["overlap, seeds", *(f"`{name}`" for name in methods)], rows)


def posterior_table(places: Mapping[Place, Mapping[str, Cells]]) -> list[str]:
    rows = []
    for (pair, overlap, n_seeds), each in places.items():
        cells = each.get("auto", [])
        if cells:
            rows.append([f"{said(pair)}; {overlap:.2f}, {n_seeds}", *posterior_row(cells)])
    head = [
        "overlap, seeds", "draws", "F1", "at max_f1", "best in hindsight", "P at .95", "R at .95",
        "calibration error", "overlap / true", "verdicts", "s", "MB",
    ]  # fmt: skip
    return markdown(head, rows)


def posterior_row(cells: Cells) -> list[str]:
    values = [
        mean(cell["own"]["f1"] for cell in cells),
        mean(cell["max_f1"]["f1"] for cell in cells),
        mean(cell["hindsight"]["f1"] for cell in cells),
        mean(cell["precision_95"]["precision"] for cell in cells),
        mean(cell["precision_95"]["recall"] for cell in cells),
        mean(cell["ece"] for cell in cells),
        mean(
            cell["overlap_estimate"] / cell["shared"]
            for cell in cells
            if cell["overlap_estimate"] is not None
        ),
    ]
    return [
        str(len(cells)),
        *map(number, values),
        verdicts(cells),
        f"{mean(cell['seconds'] for cell in cells):.1f}",
        f"{max(cell['peak_mb'] for cell in cells):,.0f}",
    ]


def goals(places: Mapping[Place, Mapping[str, Cells]]) -> list[Goal]:
    """Say what was asked of `auto`, and what came out."""
    auto = {place: each["auto"] for place, each in places.items() if "auto" in each}
    return [
        *(
            f1_goal(auto.get((pair, 0.3, seeds), []), pair, seeds, *pay)
            for pair, seeds, *pay in ASKED
        ),
        failing_goal(auto),
        precision_goal(auto),
        recall_goal(auto),
        calibration_goal(auto),
        *beaten_goals(places),
    ]


def f1_goal(cells: Cells, pair: str, seeds: int, must: float, aim: float) -> Goal:
    asked = f"F1 of `auto`, {said(pair)}, overlap .3, {seeds} seeds: {must:.2f} (aim {aim:.2f})"
    if not cells:
        return Goal(asked, "not measured yet", None)
    found = mean(cell["own"]["f1"] for cell in cells)
    least = min(cell["own"]["f1"] for cell in cells)
    above = "" if found >= aim else ", below the aim"
    return Goal(
        asked, f"{found:.3f} (lowest draw {least:.3f}){above}{so_far(cells)}", found >= must
    )


def failing_goal(auto: Mapping[Place, Cells]) -> Goal:
    asked = (
        f"{said(HARD[0])}, overlap .3, 15 seeds: draws of F1 under {FAILED} have a verdict that "
        "says so"
    )
    cells = auto.get(HARD, [])
    if not cells:
        return Goal(asked, "not measured yet", None)
    failed = [cell for cell in cells if cell["own"]["f1"] < FAILED]
    warned = sum(cell["verdict"]["status"] != "linked" for cell in failed)
    measured = f"{len(failed)} of {len(cells)} draws fail, {warned} of them say so"
    everywhere = [cell for each in auto.values() for cell in each if cell["own"]["f1"] < FAILED]
    silent = sum(cell["verdict"]["status"] == "linked" for cell in everywhere)
    total = f"; in the whole grid {len(everywhere)} fail, {silent} without a word"
    return Goal(asked, measured + total, warned == len(failed))


def precision_goal(auto: Mapping[Place, Cells]) -> Goal:
    asked = "`auto` at precision=0.95: true precision of at least .93 in every cell"
    means = means_of(auto, lambda cell: cell["precision_95"]["precision"])
    draws = [cell["precision_95"]["precision"] for each in auto.values() for cell in each]
    single = [value for value in draws if value is not None]
    if not means:
        return Goal(asked, "not measured yet", None)
    worst = min(means, key=lambda place: means[place])
    measured = f"lowest {means[worst]:.3f} ({at(worst)}); lowest draw {min(single):.3f}"
    return Goal(asked, measured + cells_so_far(auto), means[worst] >= 0.93)


def recall_goal(auto: Mapping[Place, Cells]) -> Goal:
    asked = "the same: recall of at least .5 where minilm-l6 is one side"
    sided = {place: each for place, each in auto.items() if "minilm-l6" in place[0]}
    means = means_of(sided, lambda cell: cell["precision_95"]["recall"])
    if not means:
        return Goal(asked, "not measured yet", None)
    worst = min(means, key=lambda place: means[place])
    low = sum(value < 0.5 for value in means.values())
    measured = f"lowest {means[worst]:.3f} ({at(worst)}); {low} of {len(means)} cells under .5"
    return Goal(asked, measured, low == 0)


def calibration_goal(auto: Mapping[Place, Cells]) -> Goal:
    asked = "expected calibration error of `auto`'s posterior: at most .05 in the mean"
    found = mean(cell["ece"] for each in auto.values() for cell in each)
    if np.isnan(found):
        return Goal(asked, "not measured yet", None)
    return Goal(asked, f"{found:.3f}{cells_so_far(auto)}", found <= 0.05)


def beaten_goals(places: Mapping[Place, Mapping[str, Cells]]) -> list[Goal]:
    """Compare on the draws that both have, baseline by baseline."""
    found = []
    for method in METHODS[1:]:
        asked = f"`auto` has a higher F1 than `{method}` in every cell"
        pairs = {
            place: common_draws(each["auto"], each[method])
            for place, each in places.items()
            if {"auto", method} <= set(each)
        }
        gaps = {place: float(np.subtract(*both).mean()) for place, both in pairs.items() if both[0]}
        if not gaps:
            found.append(Goal(asked, "not measured yet", None))
            continue
        worst = min(gaps, key=lambda place: gaps[place])
        won = sum(gap > 0 for gap in gaps.values())
        measured = f"in {won} of {len(gaps)}; least lead {gaps[worst]:+.3f} ({at(worst)})"
        found.append(Goal(asked, measured, won == len(gaps)))
    return found


def common_draws(one: Cells, other: Cells) -> tuple[list[float], list[float]]:
    first, second = ({cell["draw"]: cell["own"]["f1"] for cell in cells} for cells in (one, other))
    both = sorted(set(first) & set(second))
    return [first[draw] for draw in both], [second[draw] for draw in both]


def means_of(
    auto: Mapping[Place, Cells], value: Callable[[Mapping[str, Any]], float | None]
) -> dict[Place, float]:
    """Return the mean over draws per place; a place without any number is left out."""
    means = {place: mean(map(value, each)) for place, each in auto.items()}
    return {place: one for place, one in means.items() if not np.isnan(one)}


def mean(values: Iterable[float | None]) -> float:
    """Return the mean of the values that are there; NaN without any."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def triple(cells: Cells, *, best: bool) -> str:
    """Write precision / recall / F1 in percent."""
    if not cells:
        return ""
    own = [mean(cell["own"][name] for cell in cells) for name in ("precision", "recall", "f1")]
    shown = ["-" if np.isnan(value) else f"{100 * value:.1f}" for value in own]
    return " / ".join([*shown[:2], f"**{shown[2]}**" if best else shown[2]])


def best_of(methods: Mapping[str, Cells]) -> str:
    return max(methods, key=lambda name: mean(cell["own"]["f1"] for cell in methods[name]))


def verdicts(cells: Cells) -> str:
    counted = Counter(cell["verdict"]["status"] for cell in cells)
    return ", ".join(f"{count} {status}" for status, count in counted.most_common())


def number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def said(pair: str) -> str:
    return "{} {} / {}".format(*pair.split("."))


def at(place: Place) -> str:
    pair, overlap, n_seeds = place
    return f"{said(pair)}, {overlap}, {n_seeds} seeds"


def so_far(cells: Cells) -> str:
    return "" if len(cells) >= len(REPORTED) else f" ({len(cells)} of {len(REPORTED)} draws so far)"


def cells_so_far(auto: Mapping[Place, Cells]) -> str:
    done = sum(map(len, auto.values()))
    total = PLACES * len(REPORTED)
    return "" if done >= total else f" ({done} of {total} runs so far)"


LINKING: dict[str, Callable[[Sequence[Record]], Part]] = {
    "link": grid,
    "link_studies": studies,
    "link_speed": speed,
}
