"""Tables of federation like tables 2 and 3 and figures 5 to 13 of HVMap, and what was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from federate_cells import DEFAULT_MLP, LEARNED, unpack
from scipy.stats import wilcoxon
from table_format import REPORTED, Goal, Part, Record, markdown
from tables_federate_cost import cost, training
from tables_federate_studies import studies

Place = tuple[str, str, tuple[str, ...]]  # pairs, data set, models with the hub's first
Maps = Mapping[str, list[Mapping[str, Any]]]
NONE, DEFAULT, AGG = "none", ("auto", "score, common"), "agg, all encoders"
RIVALS = {
    "AGG": (NONE, AGG),
    "RRF": (NONE, "rrf, all encoders"),
    "CombMNZ": (NONE, "combmnz, all encoders"),
    "CCA": (NONE, "cca, all encoders"),
    "DA": ("drift_adapter", "agg"),
}
EC = ("embedding_converter", "ec")
LEARNED_NAMES = {spec: f"mlp {spec[14:].split(',')[0]}" for spec in LEARNED}
SHARES = tuple(f"score w={share / 10}" for share in range(1, 10))
ENOUGH_PAIRS = 2_000
LEVEL = 0.05


def quality(records: Sequence[Record]) -> Part:
    """Every way to rank, per cell and in the mean; maps; objectives; the share w1."""
    places = grouped(records)
    if not places:
        return Part(["Only tuning seeds so far."])
    lines = [
        f"nDCG@10, mean over splits (seeds {seeds_of(places)}); the hub's model first. AGG, RRF, "
        "CombMNZ and CCA have every query by every encoder. `score` is HVMap's formula by the map "
        "named, `+` with the common space (the default of a federation that has one). \\*: better "
        "than the best of AGG to DA, †: not different from the better MIG direction (paired "
        f"Wilcoxon over queries, p < {LEVEL} and not).",
        "",
    ]
    for auxiliary in dict.fromkeys(place[0] for place in places):
        mine = {place: maps for place, maps in places.items() if place[0] == auxiliary}
        lines += [f"Pairs {auxiliary}:", "", *cell_table(mine), ""]
        lines += ["Maps over these cells, of two stores:", "", *map_table(mine), ""]
    lines += [
        "Objectives, `score`, mean over both hubs; \\*: better than the next objective (table 3):",
        "",
        *objective_table(places),
    ]
    lines += ["", "Share of the native similarity, mean over cells (figure 10):", ""]
    lines += [*share_table(places), ""]
    lines += ["![nDCG@10 by the share of the native similarity](plots/federate_weights.svg)", ""]
    return Part(lines, goals(places))


def grouped(records: Sequence[Record]) -> dict[Place, Maps]:
    """Return the reported cells by place and map."""
    found: dict[Place, dict[str, list[Mapping[str, Any]]]] = {}
    for record in records:
        given = record["parameters"]
        place = (given["auxiliary"], given["dataset"], tuple(given["models"]))
        for cell in record["result"]["cells"]:
            if cell["seed"] in REPORTED:
                found.setdefault(place, {}).setdefault(cell["map"], []).append(cell)
    return dict(sorted(found.items(), key=lambda one: (one[0][0], len(one[0][2]), one[0])))


def seeds_of(places: Mapping[Place, Maps]) -> str:
    seeds = {cell["seed"] for maps in places.values() for each in maps.values() for cell in each}
    return ", ".join(map(str, sorted(seeds)))


def mean(maps: Maps, spec: str, row: str, measure: str = "nDCG@10") -> float:
    """Return the mean over splits; NaN where it was not measured."""
    values = [cell[measure][row] for cell in maps.get(spec, []) if row in cell[measure]]
    return float(np.mean(values)) if values else float("nan")


def per_query(maps: Maps, spec: str, row: str) -> np.ndarray | None:
    """Return nDCG@10 per query, the mean over splits."""
    packed = [cell.get("per_query", {}).get(row) for cell in maps.get(spec, [])]
    known = [unpack(one[0]) for one in packed if one]
    return np.mean(known, axis=0) if known else None


def p_value(one: np.ndarray | None, two: np.ndarray | None) -> float:
    """Return that of the paired Wilcoxon signed-rank test; 1 where nothing differs."""
    if one is None or two is None or not np.abs(one - two).any():
        return 1.0
    return float(wilcoxon(one, two).pvalue)


def best_mig(maps: Maps) -> tuple[str, float]:
    """Return the better direction of migration."""
    rows = [row for cell in maps[NONE] for row in cell["nDCG@10"] if row.startswith("mig ")]
    return max(((row, mean(maps, NONE, row)) for row in rows), key=lambda one: one[1])


def best_one_way(maps: Maps, spec: str) -> float:
    rows = {row for cell in maps.get(spec, []) for row in cell["nDCG@10"] if row[:4] == "one_"}
    return max((mean(maps, spec, row) for row in rows), default=float("nan"))


def cell_table(places: Mapping[Place, Maps]) -> list[str]:
    shown = [("auto", "score"), DEFAULT, (DEFAULT_MLP, "score"), (DEFAULT_MLP, "score, common")]
    head = ["stores", *RIVALS, "EC", "one way", *(name_of(one) for one in shown), "MIG, worse"]
    rows = []
    for (_, dataset, models), maps in places.items():
        if NONE not in maps:
            continue
        rivals = {name: mean(maps, *one) for name, one in RIVALS.items()}
        known = {name: value for name, value in rivals.items() if np.isfinite(value)}
        strongest = RIVALS[max(known, key=lambda name: known[name])]
        every = [mean(maps, NONE, row) for row in migrations(maps)]
        row = [
            *rivals.values(), mean(maps, *EC), best_one_way(maps, DEFAULT[0]),
        ]  # fmt: skip
        marked = [marked_value(maps, one, strongest) for one in shown]
        ends = [f"{max(every):.3f}, {min(every):.3f}"]
        rows.append([f"{dataset}, {' '.join(models)}", *map(number, row), *marked, *ends])
    return markdown(head, rows)


def migrations(maps: Maps) -> list[str]:
    return [row for row in maps[NONE][0]["nDCG@10"] if row.startswith("mig ")]


def marked_value(maps: Maps, one: tuple[str, str], strongest: tuple[str, str]) -> str:
    value = mean(maps, *one)
    mine, rival = per_query(maps, *one), per_query(maps, *strongest)
    mig = per_query(maps, NONE, best_mig(maps)[0])
    if mine is None:
        return number(value)
    star = "\\*" if value > mean(maps, *strongest) and p_value(mine, rival) < LEVEL else ""
    dagger = "†" if p_value(mine, mig) >= LEVEL else ""
    return f"{number(value)}{star}{dagger}"


def name_of(one: tuple[str, str]) -> str:
    spec, row = one
    short = LEARNED_NAMES.get(spec) or spec.replace(DEFAULT_MLP, "mlp").replace("|", " out, ")
    short += " back" if "|" in spec else ""
    return f"`{short}`{' +' if row.endswith('common') else ''}"


def map_table(places: Mapping[Place, Maps]) -> list[str]:
    """Return ratios to AGG, to the better MIG and to the best one-way, over cells of two stores."""
    specs = dict.fromkeys(spec for maps in places.values() for spec in maps if spec != NONE)
    rows = []
    for spec in specs:
        for row in ("score", "score, common"):
            found = ratios(places, (spec, row))
            if len(found):
                agg, mig, way = found.T
                recall = np.mean(
                    [mean(maps, spec, row, "Recall@10") for maps in of_two(places).values()]
                )
                rows.append(
                    [
                        name_of((spec, row)), f"{agg.mean():.3f} ({agg.min():.3f})",
                        f"{mig.mean():.3f}", f"{way.mean():+.4f} ({way.min():+.4f})",
                        f"{recall:.3f}",
                    ]
                )  # fmt: skip
    head = ["", "x AGG (least)", "x better MIG", "over best one way (least)", "Recall@10"]
    return markdown(head, rows)


def of_two(places: Mapping[Place, Maps]) -> dict[Place, Maps]:
    return {place: maps for place, maps in places.items() if len(place[2]) == 2 and NONE in maps}


def ratios(places: Mapping[Place, Maps], one: tuple[str, str]) -> np.ndarray:
    """Return per cell of two stores: share of AGG, of better MIG, lead over the best one way."""
    found = []
    for maps in of_two(places).values():
        value = mean(maps, *one)
        if np.isfinite(value):
            agg, mig = mean(maps, NONE, AGG), best_mig(maps)[1]
            found.append([value / agg, value / mig, value - best_one_way(maps, one[0])])
    return np.array(found).reshape(-1, 3)


def without_hub(places: Mapping[Place, Maps], spec: str) -> dict[tuple[str, str, str], float]:
    """Return mean nDCG@10 of score by (pairs, data set, pair of models)."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for (auxiliary, dataset, models), maps in of_two(places).items():
        value = mean(maps, spec, "score")
        if np.isfinite(value):
            found.setdefault((auxiliary, dataset, " ".join(sorted(models))), []).append(value)
    return {key: float(np.mean(values)) for key, values in found.items()}


def objective_table(places: Mapping[Place, Maps]) -> list[str]:
    specs = (*LEARNED, "ridge", "procrustes", "auto")
    by_spec = {spec: without_hub(places, spec) for spec in specs}
    rows = []
    for key in dict.fromkeys(key for each in by_spec.values() for key in each):
        values = [by_spec[spec].get(key, float("nan")) for spec in specs]
        known = [value for value in values[: len(LEARNED)] if np.isfinite(value)]
        cells = [f"**{number(v)}**" if v == max(known, default=-1) else number(v) for v in values]
        if len(known) == len(LEARNED) and values[0] == max(known):
            rival = LEARNED[int(np.argmax(values[1 : len(LEARNED)])) + 1]
            both = (queries_of(places, key, spec) for spec in (LEARNED[0], rival))
            cells[0] += "\\*" if p_value(*both) < LEVEL else ""
        rows.append([", ".join(key), *cells])
    names = [LEARNED_NAMES.get(spec, spec).removeprefix("mlp ") for spec in specs]
    return markdown(["pairs, data, models", *names], rows)


def queries_of(
    places: Mapping[Place, Maps], key: tuple[str, str, str], spec: str
) -> np.ndarray | None:
    """Return nDCG@10 per query of score, those of both hubs one after the other."""
    found = [
        per_query(maps, spec, "score")
        for (auxiliary, dataset, models), maps in of_two(places).items()
        if (auxiliary, dataset, " ".join(sorted(models))) == key
    ]
    known = [one for one in found if one is not None]
    return np.concatenate(known) if known else None


def share_table(places: Mapping[Place, Maps]) -> list[str]:
    rows = []
    for auxiliary, count in dict.fromkeys((place[0], len(place[2])) for place in places):
        mine = [m for p, m in places.items() if (p[0], len(p[2])) == (auxiliary, count)]
        for spec in ("auto", "ridge", DEFAULT_MLP):
            known = [maps for maps in mine if spec in maps]
            if not known:
                continue
            values = [float(np.mean([mean(one, spec, row) for one in known])) for row in SHARES]
            rows.append(
                [f"{auxiliary}, {count} stores, {name_of((spec, ''))}", *map(number, values)]
            )
    return markdown(["w1", *(row.removeprefix("score w=") for row in SHARES)], rows)


def number(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else ""


def goals(places: Mapping[Place, Maps]) -> list[Goal]:
    """Say what was asked, and what came out."""
    own = {place: maps for place, maps in places.items() if place[0] == "in:0.2"}
    made = []
    for hubs, mine in (
        ("the stronger model is the hub", with_stronger_hub(own)),
        ("either model is the hub", own),
    ):
        found = ratios(mine, DEFAULT)
        if len(found):
            made += ratio_goals(found, f"{hubs} ({name_of(DEFAULT)}, {len(found)} cells)")
    made = made or [Goal("two stores, a fifth as pairs", "not measured yet", None)]
    return [*made, *objective_goals(places)]


def with_stronger_hub(places: Mapping[Place, Maps]) -> dict[Place, Maps]:
    """Return the cells of two stores whose hub ranks all documents better natively."""
    return {
        place: maps
        for place, maps in of_two(places).items()
        if mean(maps, NONE, f"mig {place[2][0]}") >= mean(maps, NONE, f"mig {place[2][1]}")
    }


def ratio_goals(found: np.ndarray, cells: str) -> list[Goal]:
    agg, mig, way = found.T
    return [
        Goal(
            f"two stores, a fifth as pairs, {cells}: at least 1.00 of AGG with both encoders, mean",
            f"{agg.mean():.3f}",
            agg.mean() >= 1.0,
        ),
        Goal("in these, no cell below .95 of AGG", f"{agg.min():.3f}", agg.min() >= 0.95),
        Goal(
            "in these, at least .90 of the better MIG direction, mean",
            f"{mig.mean():.3f}",
            mig.mean() >= 0.9,
        ),
        Goal(
            "in these, within .01 of the best one-directional ranking, or above, in every cell",
            f"{way.min():+.4f}",
            way.min() >= -0.01,
        ),
    ]


def objective_goals(places: Mapping[Place, Maps]) -> list[Goal]:
    made = []
    by_spec = {spec: without_hub(places, spec) for spec in (*LEARNED, "ridge")}
    for auxiliary in dict.fromkeys(place[0] for place in places):
        keys = [key for key in by_spec[LEARNED[0]] if key[0] == auxiliary]
        full = [key for key in keys if all(key in by_spec[spec] for spec in LEARNED)]
        won = sum(
            by_spec[LEARNED[0]][key] >= max(by_spec[spec][key] for spec in LEARNED) for key in full
        )
        made.append(
            Goal(
                f"pairs {auxiliary}: fuzzy contrastive at or above the other objectives in 5 of 6",
                f"{won} of {len(full)}" if full else "not measured yet",
                won >= 5 if len(full) >= 6 else None,
            )
        )
        if auxiliary.startswith("in:") and float(auxiliary[3:]) < 0.4:
            continue  # fewer than 2,000 pairs
        leads = {
            key: by_spec[LEARNED[0]][key] - by_spec["ridge"][key]
            for key in keys
            if key in by_spec["ridge"]
        }
        least = min(leads, key=lambda key: leads[key], default=None)
        made.append(
            Goal(
                f"pairs {auxiliary}, {ENOUGH_PAIRS:,} or more: `mlp` at or above ridge everywhere",
                f"least lead {leads[least]:+.4f} ({', '.join(least[1:])})"
                if least
                else "not measured yet",
                leads[least] >= 0 if least else None,
            )
        )
    return made


FEDERATING: dict[str, Callable[[Sequence[Record]], Part]] = {
    "federate": quality,
    "federate_studies": studies,
    "federate_cost": cost,
    "federate_training": training,
}
