"""Tables of alignment, like those of AnchorDOT and what its figures show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from align_cells import KS, PLANNED
from align_goals import goals
from align_numbers import WAYS, Cells, both, by, mean, percent, recall
from table_format import REPORTED, Part, Record, markdown


def studies(records: Sequence[Record]) -> Part:
    """Return every study that was run: means over the reported seeds."""
    by_study = cells_of(records)
    lines = []
    for name, (title, table) in TABLES.items():
        cells = by_study.get(name, [])
        if cells:
            lines += [f"{title} ({seeds(cells)}):", "", *table(cells), ""]
        if cells and name in DRAWN:
            lines += [f"![{title}](plots/align_{name}.svg)", ""]
    if by_study.get("teacher") and by_study.get("retrieval"):
        lines += ["The coupling beside the maps that learned from it (figure 5):", ""]
        lines += [*taught(by_study["teacher"], by_study["retrieval"]), ""]
    return Part(lines, goals(by_study))


def cells_of(records: Sequence[Record]) -> dict[str, Cells]:
    """Return the reported cells of every study, each with its map."""
    found: dict[str, Cells] = {}
    for record in records:
        given = record["parameters"]
        found.setdefault(given["study"], []).extend(
            {**given, **cell} for cell in record["result"]["cells"] if cell["seed"] in REPORTED
        )
    return found


def seeds(cells: Cells) -> str:
    count = len({cell["seed"] for cell in cells})
    return f"{count} seed{'' if count == 1 else 's'}"


def spread(cells: Cells, way: str, k: int) -> str:
    values = [cell[way][KS.index(k)] for cell in cells]
    return f"{percent(mean(values))} ± {percent(float(np.std(values)))}"


RECALLS = [f"{way} R@{k}" for way in ("there", "back") for k in KS]


def all_recalls(cells: Cells) -> list[str]:
    return [percent(recall(cells, way, k)) for way in WAYS for k in KS]


def retrieval(cells: Cells) -> list[str]:
    """The maps, the best first."""
    methods = by(cells, "method")
    ordered = sorted(methods, key=lambda name: -both(methods[name], 10))
    body = [
        [
            f"`{name}`",
            *(spread(methods[name], way, k) for way in WAYS for k in KS),
            f"{mean(cell['seconds'] for cell in methods[name]):.1f}",
            str(len(methods[name])),
        ]
        for name in ordered
    ]
    return markdown(["", *RECALLS, "s", "seeds"], body)


def sweep(key: str) -> Callable[[Cells], list[str]]:
    """Return a maker of tables: mean R@1 / R@10 of both directions, a column per value."""

    def table(cells: Cells) -> list[str]:
        values = sorted({cell[key] for cell in cells})
        body = []
        for name, mine in by(cells, "method").items():
            each = by(mine, key)
            body.append(
                [
                    f"`{name}`",
                    *(
                        f"{percent(both(each[value], 1))} / {percent(both(each[value], 10))}"
                        if value in each
                        else ""
                        for value in values
                    ),
                    str(len({cell["seed"] for cell in mine})),
                ]
            )
        return markdown([f"R@1 / R@10, {key}", *(f"{value:,g}" for value in values), "seeds"], body)

    return table


def skewed(*keys: str) -> Callable[[Cells], list[str]]:
    """Return a maker of tables: skewness of N_10 and recall, a row per value of the keys."""

    def table(cells: Cells) -> list[str]:
        body = []
        for told, mine in by(cells, *keys).items():
            skew = [mean(cell["skewness"][side] for cell in mine) for side in (0, 1)]
            row = [named(told), *(f"{value:.2f}" for value in skew), *all_recalls(mine)]
            if "teacher" in mine[0]:
                held = [cell["teacher"] for cell in mine]
                row += [percent(recall(held, way, 10)) for way in WAYS]
            body.append(row)
        head = ["", "skewness of texts", "of molecules", *RECALLS]
        more = ["there R@10, in the pools", "back"] if "teacher" in cells[0] else []
        return markdown([*head, *more], body)

    return table


def named(told: Any) -> str:
    """Write what tells a row apart."""
    if isinstance(told, tuple):
        centred, rule = told
        return f"{rule}, {'centred' if centred else 'as they are'}"
    return str(told)


def fgw(cells: Cells) -> list[str]:
    body = [
        [f"{alpha:g}", *all_recalls(mine), f"{mean(cell['seconds'] for cell in mine):.1f}"]
        for alpha, mine in sorted(by(cells, "alpha").items())
    ]
    return markdown(["share of the anchor cost", *RECALLS, "s"], body)


def participation(cells: Cells) -> list[str]:
    from align_studies import GAMMAS

    body = []
    for (count, centred), mine in by(cells, "anchors", "centred").items():
        for side, said in (("source", "molecules"), ("target", "texts")):
            ratios = np.mean([cell[side] for cell in mine], axis=0)
            place = "centred" if centred else "as they are"
            body.append([f"{said}, {count:,} anchors, {place}", *(f"{one:.1f}" for one in ratios)])
    return markdown(["gamma", *(f"{gamma:g}" for gamma in GAMMAS)], body)


def zero_pairs(cells: Cells) -> list[str]:
    datasets = list(dict.fromkeys(cell["dataset"] for cell in cells))
    body = []
    for name, mine in by(cells, "method").items():
        row = [f"`{name}`"]
        for dataset in datasets:
            these = by(mine, "dataset").get(dataset, [])
            sure = [one["confidence"] for one in these if one.get("confidence") is not None]
            row += [
                f"{percent(both(these, 1))} / {percent(both(these, 10))}" if these else "",
                f"{mean(sure):.2f}" if sure else "",
            ]
        body.append([*row, f"{mean(cell['seconds'] for cell in mine):.0f}"])
    head = [one for dataset in datasets for one in (f"{dataset} R@1 / R@10", "confidence")]
    return markdown(["", *head, "s"], body)


def times(cells: Cells) -> list[str]:
    methods = list(by(cells, "method"))
    body = []
    for (count, rows), mine in sorted(by(cells, "anchors", "pool").items()):
        took = {
            name: mean(cell["processor seconds"] for cell in these)
            for name, these in by(mine, "method").items()
        }
        slow = took.get("anchordot")
        row = [f"{count:,} anchors, {rows:,} rows a side"]
        for name in methods:
            ratio = f" ({took[name] / slow:.2f})" if name in took and slow else ""
            row.append(f"{took[name]:.1f}{ratio}" if name in took else "")
        searched = [cell["with search"] for cell in mine if "with search" in cell]
        body.append([*row, f"{mean(searched):.1f}" if searched else ""])
    head = [f"`{name}`" for name in methods]
    return markdown(["s (over `anchordot`)", *head, "`anchor_cca` with the search"], body)


def transfer(cells: Cells) -> list[str]:
    body = []
    for name, mine in by(cells, "method").items():
        own, other, whole = (
            [cell[place] for cell in mine] for place in ("own", "other", "other, all documents")
        )
        row = [f"{percent(both(each, 1))} / {percent(both(each, 10))}" for each in (own, other)]
        kept = f"{both(other, 1) / both(own, 1):.2f}"
        body.append(
            [f"`{name}`", *row, kept, f"{percent(both(whole, 1))} / {percent(both(whole, 10))}"]
        )
    head = ["climate-fever R@1 / R@10", "scifact", "R@1 kept", "all scifact documents"]
    return markdown(["", *head], body)


def same_modality(cells: Cells) -> list[str]:
    values = sorted({cell["pairs"] for cell in cells})
    body = []
    for (name, overlap), mine in by(cells, "method", "overlap").items():
        each = by(mine, "pairs")
        row = [
            f"`{name}`" + ("" if overlap else ", halves"),
            *(kept(each[value]) if value in each else "" for value in values),
        ]
        body.append([*row, str(len({cell["seed"] for cell in mine}))])
    native = mean(cell["native"] for cell in cells)
    head = f"nDCG@10 (over native, {native:.3f}), pairs"
    return markdown([head, *(f"{value:,}" for value in values), "seeds"], body)


def kept(cells: Cells) -> str:
    """Write nDCG@10, and its share of the native one."""
    value = mean(cell["nDCG@10"] for cell in cells)
    chosen = {cell["chosen"] for cell in cells if cell.get("chosen")}
    more = f" {', '.join(sorted(chosen))}" if chosen else ""
    return f"{value:.3f} ({value / mean(cell['native'] for cell in cells):.2f}){more}"


def taught(plans: Cells, maps: Cells) -> list[str]:
    """The teacher and its students on the same seeds."""
    used = {cell["seed"] for cell in plans}
    body = [
        [
            "the coupling" + ("" if chosen else ", gamma 1 and eta .02"),
            *all_recalls(mine),
        ]
        for chosen, mine in by(plans, "chosen").items()
    ]
    for name, mine in by(maps, "method").items():
        same = [cell for cell in mine if cell["seed"] in used]
        if name in PLANNED and same:
            body.append([f"`{name}`", *all_recalls(same)])
    return markdown(["", *RECALLS], body)


TABLES: Mapping[str, tuple[str, Callable[[Cells], list[str]]]] = {
    "retrieval": (
        "500 anchor pairs, molecules to texts (there) and back, in percent ± standard deviation "
        "(table 2); seconds without the search for gamma and eta",
        retrieval,
    ),
    "anchors": ("Anchor pairs, at 2,100 unpaired rows a side (figure 2)", sweep("anchors")),
    "pool": ("Unpaired rows a side, at 500 anchor pairs (figure 2)", sweep("pool")),
    "overlap": (
        "Share of the 2,000 unpaired rows whose partner is on the other side, unknown (figure 3)",
        sweep("overlap"),
    ),
    "hubness": (
        "Four rules on the anchor cost of the 400 test pairs, gamma 1, eta .02 (figure 4)",
        skewed("centred", "rule"),
    ),
    "costs": (
        "Three costs in the same coupling: of the test pairs, and with the pools beside them "
        "(figures 8 and 9)",
        skewed("cost"),
    ),
    "fgw": ("A structural term beside the anchor cost, on the test pairs (figure 10)", fgw),
    "participation": ("Participation ratio of profiles (appendix C.1)", participation),
    "zero_pairs": (
        "Without a pair, recall of both directions; by chance .2 / 2.5 (figure 7)",
        zero_pairs,
    ),
    "time": ("Processor seconds of a fit with gamma 1 and eta .02 (table 7)", times),
    "transfer": (
        "Documents, minilm-l6 to mpnet: fitted on climate-fever, tested on 400 documents of it "
        "and of scifact (appendix C.5.2 in kind)",
        transfer,
    ),
    "same_modality": (
        "Queries of minilm-l6 over climate-fever in mpnet; unpaired rows: all other documents on "
        "both sides, or one half of them on each",
        same_modality,
    ),
}
DRAWN = ("anchors", "hubness", "fgw", "participation")
"""Studies whose pictures lie beside the page."""


ALIGNING: Mapping[str, Callable[[Sequence[Record]], Part]] = {"align": studies}
