"""What was asked of alignment, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from align_cells import AS_PUBLISHED, KS, PLANNED, WITHOUT_PLAN
from align_numbers import WAYS, Cells, both, by, mean, percent, recall
from table_format import Goal

LEVEL = (0.22, 0.50, 0.63)
"""The paper's own, with another encoder of molecules."""
OVER_CONTRASTIVE, UNDER_SOTALIGN, OVERLAP_MOST = 1.1, 0.005, 0.03
FEW, OVER_AUTO, FIT_SECONDS = (100, 200), 1.1, 120.0
OURS = (*PLANNED, WITHOUT_PLAN, AS_PUBLISHED)
NOTHING = "not measured yet"


def goals(by_study: Mapping[str, Cells]) -> list[Goal]:
    methods = by(by_study.get("retrieval", []), "method")
    return [
        *(first_goal(methods, name) for name in PLANNED),
        over_goal(methods, "contrastive", f"at least {OVER_CONTRASTIVE} times"),
        over_goal(methods, "sotalign", "at most half a point under"),
        level_goal(methods),
        *hubness_goals(by_study.get("hubness", [])),
        overlap_goal(by_study.get("overlap", [])),
        auto_goal(by_study.get("same_modality", [])),
        time_goal(by_study.get("time", [])),
    ]


def first_goal(methods: Mapping[str, Cells], name: str) -> Goal:
    asked = f"`{name}` first in R@5 and R@10 both ways against all rivals"
    if name not in methods:
        return Goal(asked, NOTHING, None)
    told, won = [], True
    for way in WAYS:
        for k in KS[1:]:
            rivals = {
                rival: recall(cells, way, k)
                for rival, cells in methods.items()
                if rival not in OURS
            }
            best = max(rivals, key=rivals.__getitem__, default="")
            mine = recall(methods[name], way, k)
            told.append(
                f"{way} R@{k} {percent(mine)} against {percent(rivals[best])} (`{best}`)"
                if best
                else f"{way} R@{k} {percent(mine)}"
            )
            won &= not best or mine >= rivals[best]
    return Goal(asked, "; ".join(told), won)


def over_goal(methods: Mapping[str, Cells], rival: str, how: str) -> Goal:
    asked = f"R@1 of `anchordot` {how} that of `{rival}`"
    if not {"anchordot", rival} <= set(methods):
        return Goal(asked, NOTHING, None)
    mine, theirs = (
        [recall(methods[name], way, 1) for way in WAYS] for name in ("anchordot", rival)
    )
    pairs = list(zip(mine, theirs, strict=True))
    told = ", ".join(f"{percent(one)} against {percent(other)}" for one, other in pairs)
    if rival == "contrastive":
        return Goal(asked, told, all(one >= OVER_CONTRASTIVE * other for one, other in pairs))
    return Goal(asked, told, all(one >= other - UNDER_SOTALIGN for one, other in pairs))


def level_goal(methods: Mapping[str, Cells]) -> Goal:
    asked = "`anchordot`: R@1 22, R@5 50, R@10 63 both ways"
    cells = methods.get("anchordot", [])
    if not cells:
        return Goal(asked, NOTHING, None)
    found = [[recall(cells, way, k) for k in KS] for way in WAYS]
    told = " and ".join(" / ".join(map(percent, each)) for each in found)
    reached = all(
        value >= least for each in found for value, least in zip(each, LEVEL, strict=True)
    )
    return Goal(asked, told, reached)


def hubness_goals(cells: Cells) -> list[Goal]:
    lowest = "the coupling has the lowest N_10 skewness of the four rules, both ways"
    highest = "and the highest R@10, both ways"
    rules = by([cell for cell in cells if cell["centred"]], "rule")
    if "sinkhorn" not in rules:
        return [Goal(lowest, NOTHING, None), Goal(highest, NOTHING, None)]
    skews = {
        rule: [mean(cell["skewness"][side] for cell in mine) for side in (0, 1)]
        for rule, mine in rules.items()
    }
    found = {rule: [recall(mine, way, 10) for way in WAYS] for rule, mine in rules.items()}
    low = all(skews["sinkhorn"][side] <= min(s[side] for s in skews.values()) for side in (0, 1))
    high = all(found["sinkhorn"][side] >= max(r[side] for r in found.values()) for side in (0, 1))

    def told(values: Mapping[str, list[float]], write: Callable[[float], str]) -> str:
        return ", ".join(f"{rule} {' / '.join(map(write, two))}" for rule, two in values.items())

    return [
        Goal(lowest, told(skews, lambda value: f"{value:.2f}"), low),
        Goal(highest, told(found, percent), high),
    ]


def overlap_goal(cells: Cells) -> Goal:
    asked = "hidden pairs from none to all: R@10 changes by at most 3 points"
    told, most = [], 0.0
    for name, mine in by(cells, "method").items():
        values = [both(each, 10) for _, each in sorted(by(mine, "overlap").items())]
        if name in OURS and len(values) > 1:
            apart = max(values) - min(values)
            told.append(f"`{name}` {' / '.join(map(percent, values))}")
            most = max(most, apart)
    if not told:
        return Goal(asked, NOTHING, None)
    return Goal(asked, ", ".join(told), most <= OVERLAP_MOST)


def auto_goal(cells: Cells) -> Goal:
    asked = "100 and 200 pairs of one modality: `auto` with unpaired rows at least 1.1 times nDCG"
    methods = by([cell for cell in cells if cell["overlap"]], "method")
    if not {"auto", "auto, unpaired"} <= set(methods):
        return Goal(asked, NOTHING, None)
    found = {name: by(methods[name], "pairs", "seed") for name in ("auto", "auto, unpaired")}
    ratios = {}
    for pairs in FEW:
        shared = [
            key for key in found["auto, unpaired"] if key[0] == pairs and key in found["auto"]
        ]
        without, beside = (
            [cell["nDCG@10"] for key in shared for cell in found[name][key]] for name in found
        )
        if shared:
            ratios[pairs] = mean(beside) / mean(without)
    if not ratios:
        return Goal(asked, NOTHING, None)
    told = ", ".join(f"{pairs} pairs {ratio:.2f}" for pairs, ratio in ratios.items())
    return Goal(asked, told, min(ratios.values()) >= OVER_AUTO)


def time_goal(cells: Cells) -> Goal:
    asked = "`anchordot`, 500 anchors, 2,000 rows a side: under 120 s, the search apart"
    took = [
        (cell["seconds"], cell["processor seconds"])
        for cell in cells
        if (cell["method"], cell["anchors"], cell["pool"]) == ("anchordot", 500, 2_000)
    ]
    if not took:
        return Goal(asked, NOTHING, None)
    clock, processor = (mean(each) for each in zip(*took, strict=True))
    return Goal(asked, f"{clock:.0f} s, {processor:.0f} of processors", clock < FIT_SECONDS)
