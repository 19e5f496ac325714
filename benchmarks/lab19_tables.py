"""The page of Lab 19: its tables, and the statement that its success criterion asks for.

Everything is computed from the JSON of `lab19.py`. A difference is within noise where its 95 %
interval (paired bootstrap) holds 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from table_format import Record, gain, markdown, span

from isthmus.maps import make

# What the criterion asks of a map, and the number that coverage of pairs is said to move.
ASKED = ("nbr_overlap@10", "rank_corr", "agreement@10")
HARD = "agreement@10, hard"
HARD_DOCUMENTS = "nbr_overlap@10, hard"
BALANCED, EASY = "coverage", "all-easy"
MOVE = f"{EASY} to {BALANCED}"
# "A rotation that gets you to 0.85 [...] is better than an MLP that gets you to 0.87".
TOLERANCE = 0.02
FAILED = 0.1  # of the best map's nbr_overlap@10: less means that the training failed

HEAD = """# Lab 19: map bake-off

Made by `python benchmarks/tables.py`; not edited by hand. Repeat it:

    python benchmarks/lab19.py --data ../shared/data
    python benchmarks/tables.py

Every map is fitted on the same {pairs:,} pairs with the same preprocessing (unit length, centring;
the null map takes vectors as they are), seeds {seeds}. It is measured on the same {held_out:,}
held-out documents and on all labelled queries; both search the whole target collection. Pairs are
documents relevant to no query. CCA and relative representations move both sides: there the
collection is searched in the space where they meet.

- **Held-out documents**: `cos_to_target` (where both sides move, in the space where they meet: not
  comparable across maps), `nbr_overlap@10`, `rank_corr`, `hit@1`; see `measures.md`.
- **Queries**: `agreement@10` with the native queries' answers (retrieval agreement), `nDCG@10` and
  its ratio to that of native queries.
- **Pairs**: *all-easy* ones have no hard negative close by; here they are those furthest from their
  nearest other document in the source space. *one spot*: a document and its nearest ones. *random*.
  *coverage*: the same number from every cluster, half of them with a hard negative close by where
  there are enough (`Pairs.sample`).
- **Hard** queries: the quarter whose two best native answers differ least in similarity. Hard
  documents: the quarter closest to another document. Equal up to rounding is hopeless, not hard.
- **Intervals**, in brackets: 95 %, paired bootstrap over queries (documents) after averaging each
  over the seeds. *Within noise*: the interval of the difference holds 0. They say how far other
  queries could move a number; the range over the seeds says what other pairs did.
"""
MISSING = """# Lab 19: map bake-off

Not measured yet: `python benchmarks/lab19.py --data ../shared/data`.
"""


def page(records: Sequence[Record]) -> str:
    """Return the page; it says so where nothing was measured yet."""
    cells = pooled(records)
    if not cells:
        return MISSING
    given = cells[0]["parameters"]
    seeds = ", ".join(str(seed) for seed in given["seeds"])
    parts = [HEAD.format(pairs=given["pairs"], held_out=given["held_out"], seeds=seeds)]
    parts += ["## Statement\n", *statement(cells, records), ""]
    for cell in cells:
        parts += [f"## {title(cell)}\n", *cell_tables(cell, runs_of(cell, records)), ""]
    return "\n".join(parts).rstrip() + "\n"


def pooled(records: Sequence[Record]) -> list[Record]:
    """Return the records that pool the seeds, one per data set and direction."""
    return [record for record in records if "seeds" in record["parameters"]]


def runs_of(cell: Record, records: Sequence[Record]) -> list[Record]:
    """Return the runs, one per seed, of a data set and direction."""
    same = {name: cell["parameters"][name] for name in ("dataset", "source", "target")}
    return [
        record
        for record in records
        if record["parameters"].get("seed") in cell["parameters"]["seeds"]
        and record["parameters"] | same == record["parameters"]
    ]


def title(cell: Record) -> str:
    given = cell["parameters"]
    return f"{given['dataset']}, {given['source']} to {given['target']}"


def near_best(cell: Record, choice: str, name: str, *, tolerance: float) -> list[str]:
    """Return the maps within noise, or the tolerance, of the best on one measure."""
    below = dict(cell["result"]["below_best"][choice][name])
    best = below.pop("best")
    near = [
        method
        for method, (difference, low, _) in below.items()
        if method == best or low <= 0 or difference <= tolerance
    ]
    return sorted(near, key=freedom)


def freedom(method: str) -> int:
    return make(method).freedom


def pick(cell: Record, choice: str, *, tolerance: float = 0.0) -> str | None:
    """Return the most constrained map near the best on all that is asked for."""
    near = [near_best(cell, choice, name, tolerance=tolerance) for name in ASKED]
    return next((method for method in near[0] if all(method in each for each in near)), None)


def counted_picks(cells: Sequence[Record], *, tolerance: float = 0.0) -> str:
    picks = [pick(cell, BALANCED, tolerance=tolerance) for cell in cells]
    often = sorted(dict.fromkeys(picks), key=picks.count, reverse=True)
    named = [
        f"{f'**{each}**' if each else 'none on all three'} in {picks.count(each)}" for each in often
    ]
    return f"{', '.join(named)} of {len(cells)} cases"


def statement(cells: Sequence[Record], records: Sequence[Record]) -> list[str]:
    """Say which map the criterion picks, and what coverage and complexity moved."""
    asked = ", ".join(f"`{name}`" for name in ASKED)
    return [
        f"The most constrained map whose preservation ({asked}; coverage-balanced pairs)",
        f"is within noise of the best: {counted_picks(cells)} (data set and direction).",
        f"Within noise or {TOLERANCE} of it, which the map family gives away for a rotation:",
        f"{counted_picks(cells, tolerance=TOLERANCE)}.",
        "",
        f"What moved `{HARD}`. *By coverage*: from all-easy to coverage-balanced pairs,",
        "with the map within noise of the best (the best one where there is none). *By",
        f"complexity*: from {plainest(cells[0])}, the most constrained fitted map, to the best,",
        "with coverage-balanced pairs. *Maps span*: from the worst to the best fitted map that",
        "learned.",
        "",
        *moved_table(cells, records),
        "",
        *verdict(cells),
    ]


def plainest(cell: Record) -> str:
    """Return the most constrained map that is fitted at all."""
    methods = [method for method in cell["result"]["values"][BALANCED] if method != "null"]
    return min(methods, key=freedom)


def mover(cell: Record) -> str:
    """Return the map whose numbers the statement follows."""
    best: str = cell["result"]["below_best"][BALANCED][ASKED[0]]["best"]
    return pick(cell, BALANCED) or best


def moved_table(cells: Sequence[Record], records: Sequence[Record]) -> list[str]:
    rows = []
    for cell in cells:
        method, values = mover(cell), cell["result"]["values"]
        moves = cell["result"]["moves"][MOVE][method]
        hard = cell["result"]["below_best"][BALANCED][HARD]
        spans = [values[BALANCED][name][HARD][0] for name in learned(cell)]
        of_seeds = seed_gains(runs_of(cell, records), method)
        rows.append(
            [
                title(cell),
                method,
                f"{values[EASY][method][HARD][0]:.3f} to {values[BALANCED][method][HARD][0]:.3f}",
                gain(moves[HARD]),
                f"{min(of_seeds):+.3f} to {max(of_seeds):+.3f}" if of_seeds else "",
                "0, it is the best"
                if hard["best"] == plainest(cell)
                else f"{gain(hard[plainest(cell)])} ({hard['best']})",
                f"{min(spans):.3f} to {max(spans):.3f}",
                gain(moves[HARD_DOCUMENTS]),
            ]
        )
    head = ["", "map", f"`{HARD}`", "by coverage", "over the seeds", "by complexity", "maps span"]
    return markdown([*head, f"`{HARD_DOCUMENTS}`, by coverage"], rows)


def seed_gains(runs: Sequence[Record], method: str) -> list[float]:
    """Return what coverage moved in each run."""
    means = [run["result"]["means"] for run in runs]
    return [each[BALANCED][method][HARD] - each[EASY][method][HARD] for each in means]


def verdict(cells: Sequence[Record]) -> list[str]:
    """Say in one sentence each what coverage did and what complexity could have done."""

    def moved(old: str, name: str) -> str:
        moves = [
            cell["result"]["moves"][f"{old} to {BALANCED}"][mover(cell)][name] for cell in cells
        ]
        sizes = [mean for mean, _, _ in moves]
        return (
            f"by {np.mean(sizes):+.3f} on average, from {min(sizes):+.3f} to {max(sizes):+.3f} "
            f"({counted(moves)})."
        )

    left = [cell["result"]["below_best"][BALANCED][HARD][plainest(cell)] for cell in cells]
    gains = [cell["result"]["below_best"][BALANCED]["nDCG@10"] for cell in cells]
    above = [each[mover(cell)] for each, cell in zip(gains, cells, strict=True)]
    bests = sorted({each["best"] for each in gains})
    return [
        f"- Coverage: coverage-balanced instead of all-easy pairs moved `{HARD}`",
        f"  {moved(EASY, HARD)}",
        f"  It moved `{HARD_DOCUMENTS}` {moved(EASY, HARD_DOCUMENTS)}",
        f"- Complexity: from {plainest(cells[0])} to the best map it moved by "
        f"{np.mean([each[0] for each in left]):+.3f} on average,",
        f"  at most {max(each[0] for each in left):+.3f} ({counted(left)}).",
        f"- Instead of random pairs, coverage-balanced ones moved `{HARD}`",
        f"  {moved('random', HARD)}",
        f"- Instead of pairs from one spot, they moved it {moved('one spot', HARD)}",
        "- `nDCG@10`, which the criterion does not ask for: the best map "
        f"({' or '.join(bests)}) is above the one picked",
        f"  by {max(each[0] for each in above):.3f} at most ({counted(above)}).",
    ]


def counted(moves: Sequence[Sequence[float]]) -> str:
    up = sum(low > 0 for _, low, _ in moves)
    down = sum(high < 0 for _, _, high in moves)
    same = len(moves) - up - down
    return f"beyond noise: up in {up} of {len(moves)} cases, down in {down}; within noise in {same}"


def cell_tables(cell: Record, runs: Sequence[Record]) -> list[str]:
    result = cell["result"]
    native = result["native"]["nDCG@10"]
    lines = [
        f"{result['queries']:,} queries ({result['hard_queries']:,} hard), "
        f"{result['documents']:,} documents ({result['hard_documents']:,} hard); native nDCG@10 "
        f"{native:.3f}, "
        f"on hard queries {result['native']['nDCG@10, hard']:.3f}.\n",
        "Coverage-balanced pairs:\n",
        *maps_table(cell),
        "",
        *failed(cell),
        f"`{HARD}` by the choice of pairs, and what {MOVE} adds:\n",
        *choices_table(cell),
    ]
    picked = {choice: pick(cell, choice) or "none" for choice in result["values"]}
    said = ", ".join(f"{choice} {method}" for choice, method in picked.items())
    lines += ["", f"Picked by the criterion: {said}."]
    return lines + (["", *anchors_table(runs)] if runs else [])


def maps_table(cell: Record) -> list[str]:
    plain = ("cos_to_target", "rank_corr", "hit@1, hard")
    bounded = ("nbr_overlap@10", "agreement@10", HARD)
    rows = []
    for method, found in cell["result"]["values"][BALANCED].items():
        ratio = cell["result"]["ratio"][BALANCED][method]
        rows.append(
            [
                method,
                *(f"{found[name][0]:.3f}" for name in plain),
                *(span(found[name]) for name in bounded),
                f"{found['nDCG@10'][0]:.3f}",
                span(ratio["nDCG@10"]),
                span(ratio["nDCG@10, hard"]),
            ]
        )
    return markdown(["map", *plain, *bounded, "nDCG@10", "of native", "of native, hard"], rows)


def learned(cell: Record) -> list[str]:
    """Return the fitted maps that keep at least a tenth of the neighbours that the best keeps."""
    values = {
        method: found["nbr_overlap@10"][0]
        for method, found in cell["result"]["values"][BALANCED].items()
        if method != "null"
    }
    least = FAILED * max(values.values())
    return [method for method, value in values.items() if value >= least]


def failed(cell: Record) -> list[str]:
    """Name the maps that did not learn, so that nobody reads them as a finding."""
    every = [method for method in cell["result"]["values"][BALANCED] if method != "null"]
    weak = [f"`{method}`" for method in every if method not in learned(cell)]
    if not weak:
        return []
    return [
        f"{' and '.join(weak)} kept less than a tenth of the neighbours that the best map kept:",
        "training failed here, which says nothing of such maps in general.\n",
    ]


def choices_table(cell: Record) -> list[str]:
    values = cell["result"]["values"]
    rows = [
        [
            method,
            *(f"{values[choice][method][HARD][0]:.3f}" for choice in values),
            gain(cell["result"]["moves"][MOVE][method][HARD]),
            gain(cell["result"]["moves"][MOVE][method][HARD_DOCUMENTS]),
        ]
        for method in values[BALANCED]
        if method != "null"
    ]
    return markdown(["map", *values, "gain", f"gain, {HARD_DOCUMENTS}"], rows)


def anchors_table(runs: Sequence[Record]) -> list[str]:
    """Show how the pairs of each choice lie, mean over the seeds."""
    rows = []
    for choice in runs[0]["result"]["anchors"]:
        sides = [run["result"]["anchors"][choice] for run in runs]
        means = {key: np.mean([side[key] for side in sides]) for key in sides[0]}
        rows.append(
            [
                choice,
                f"{means['covered']:.3f}",
                f"{means['hard_pairs']:.3f}",
                f"{means['empty_clusters']:.1f} of {means['clusters']:.0f}",
            ]
        )
    head = ["pairs", "documents covered", "pairs with a hard negative", "clusters without a pair"]
    return markdown(head, rows)
