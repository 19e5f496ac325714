"""Make docs/numbers.md and docs/lab19.md from the raw results; writes the same pages every time.

    python benchmarks/tables.py

What was not measured yet is named with the command that measures it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import lab19_tables
from table_format import Goal, Part, Record, load, markdown
from tables_align import ALIGNING
from tables_convert import CONVERTING
from tables_doctor import DOCTORING
from tables_federate import FEDERATING
from tables_link import LINKING
from tables_quality import QUALITY
from tables_speed import SPEED
from tables_stores import STORES

HERE = Path(__file__).parent
DATA = "--data ../shared/data"
HEAD = """# Numbers

Made by `python benchmarks/tables.py` from the raw results in `benchmarks/results/` (one JSON per
run, with versions and machine); not edited by hand. The data are real vectors of public texts. The
models are small and differ: their ten nearest neighbours agree by .34 to .55, so these bridges are
hard cases. Quality is reported on seeds 0 to 4; nothing was tuned on them. Speed is a ratio within
one run; times are those of the machine that ran it.
"""


@dataclass(frozen=True)
class Section:
    """A benchmark: its question, how to repeat it, and whether numbers to reach were set for it."""

    task: str
    title: str
    question: str
    command: str
    has_goals: bool = True


SECTIONS = (
    Section(
        "align",
        "Alignment from few pairs",
        "ChEBI-20: molecules (minimol) and their descriptions (minilm-l6). 500 anchor pairs; 400 "
        "test pairs, of which recall is that among themselves; of the other pairs one half gives "
        "its molecules, the other its texts. [What it shows](align.md).",
        f"python benchmarks/align.py {DATA} && python benchmarks/plots_align.py",
    ),
    Section(
        "federate",
        "Stores of two or three models, one ranking",
        "Documents lie in equal parts in stores of different models; auxiliary documents, relevant "
        "to no query, are the pairs: a share of the data set's own (in:), all of the other data "
        "set, or stackoverflow titles. Queries are encoded by the hub's model only, unless a row "
        "says all encoders.",
        f"python benchmarks/federate.py {DATA}",
    ),
    Section(
        "federate_studies",
        "Federation: stores, skew, pairs, maps, graphs",
        "What changes when one thing does. `minilm-l6` is the hub unless models are named; pairs "
        "are a fifth of the documents unless they are studied.",
        f"python benchmarks/federate_studies.py all {DATA}",
    ),
    Section(
        "federate_cost",
        "What each part of a federated search costs",
        "Six SQLite stores of real vectors; parts in processor time within one run, by turns.",
        f"OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/federate_cost.py {DATA}",
    ),
    Section(
        "federate_training",
        "Training a learned map",
        "All of a fit, beside the same matrix products with nothing between them.",
        f"OMP_NUM_THREADS=2 python benchmarks/federate_training.py {DATA}",
    ),
    Section(
        "query_mapping",
        "Queries of one model over documents of another",
        "nDCG@10 of mapped queries over that of native ones, on the documents that were not used "
        "as pairs, beside three other packages with their defaults.",
        f"make peers && python benchmarks/query_mapping.py {DATA}",
    ),
    Section(
        "honesty",
        "Do reports hold",
        "The interval that a report gives for retention@10, from held-out pairs alone, against the "
        "value on documents in no pair: 5 data sets, 18 ordered pairs of models, 100 to 2,000 "
        "pairs.",
        f"python benchmarks/honesty.py {DATA}",
    ),
    Section(
        "lab19",
        "Lab 19: which map, which pairs",
        "All maps on the same pairs, chosen in four ways.",
        f"python benchmarks/lab19.py {DATA}",
        has_goals=False,
    ),
    Section(
        "scope",
        "Rows that a bridge was not made for",
        "Share of rows outside the scope that was learned on the pairs: of the same data set it "
        "should be small, of other data sets near 1. The rule in use is the principal residual; "
        "the others were turned down, and measured on one seed.",
        f"python benchmarks/scope.py {DATA}",
        has_goals=False,
    ),
    Section(
        "apply_speed",
        "Carrying a collection over",
        "Streamed from disk to disk, 384 to 768 columns, beside a bare loop of the same reads, "
        "products and writes.",
        "python benchmarks/apply_speed.py --rows 1000000",
    ),
    Section(
        "convert",
        "Converting a collection",
        "20,000 real vectors with metadata, from one collection of a database into another, beside "
        "a bulk copy that scans the same source and writes vectors that were mapped before, by "
        "turns; medians. Reading ahead needs a second core that is free. Peaks of whole "
        "processes. And SciFact while it is converted from minilm-l6 to mpnet: queries of the new "
        "model over both stores, each id once. [What it is](convert.md).",
        f"python benchmarks/convert.py speed --stores sqlite duckdb lancedb postgresql {DATA} && "
        f"python benchmarks/convert.py memory {DATA} && "
        f"python benchmarks/convert.py halfway {DATA}",
    ),
    Section(
        "store_search",
        "The SQLite store beside faiss in memory",
        "A batch of queries over 10,000 real vectors, and what happens once.",
        f"python benchmarks/store_search.py {DATA}",
    ),
    Section(
        "federated_overhead",
        "What federation costs",
        "Federated search over two SQLite stores, over the two searches alone, by turns: ratios of "
        "clock time (of processor time), when nothing, some or all of the candidates that were "
        "mapped before are remembered.",
        f"python benchmarks/federated_overhead.py {DATA}",
    ),
    Section(
        "fit_speed",
        "Fitting",
        "Time of fitting over that of an SVD of the source rows, with one product per penalty for "
        "maps that choose one; peak memory of a process that loads the pairs and fits.",
        f"python benchmarks/fit_speed.py {DATA}",
    ),
    Section(
        "neighbors_speed",
        "Exact search and measures",
        "Seconds, beside faiss and numpy alone, which break ties as it happens.",
        f"python benchmarks/neighbors_speed.py {DATA}",
        has_goals=False,
    ),
    Section(
        "link",
        "Linking two clouds",
        "Two clouds that share some objects, and 15 to 30 seed pairs of them: which vectors are "
        "the same object. Split as in section 5.1 of the paper: overlap is shared / union.",
        f"python benchmarks/link.py {DATA}",
    ),
    Section(
        "link_studies",
        "Linking where it is hard, and the parts of GEH",
        "Seeds from elsewhere, wrong ones, badly placed ones; unequal and unrelated clouds; what "
        "`geh` owes to its parts and parameters. Precision / recall / F1 in percent, ± the "
        "standard deviation of F1 over draws.",
        f"python benchmarks/link_studies.py all {DATA} && python benchmarks/link_geh.py all {DATA}",
    ),
    Section(
        "link_speed",
        "Time and memory of linking",
        "Whole runs from 15 seeds, each a process of its own, and one view of `geh` beside its "
        "bare product and numpy's top 50 both ways. 20,000 titles a side are all there are "
        "(overlap 1), or are filled up with two other data sets.",
        f"python benchmarks/link_speed.py {DATA}",
    ),
    Section(
        "stores",
        "Stores",
        "The public conformance suite on every store; then 5,183 abstracts of SciFact (minilm-l6, "
        "384 wide) with metadata written in one call, scanned, and 300 claims answered. Rates are "
        "those of one machine; beside each stands the ratio to SQLite, whose calls took turns with "
        "the store's. A fake's rates say nothing.",
        f"python benchmarks/stores.py {DATA}",
    ),
    Section(
        "doctor",
        "The doctor: mixed spaces, canaries, drift",
        "Rows of one encoder shuffled into those of another of equal width, found without "
        "metadata; no alarm on collections of one encoder. Draws 0 to 9; the limits were set on "
        "draws from 100. [What it shows](doctor.md).",
        f"python benchmarks/doctor.py all {DATA}",
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--docs", type=Path, default=HERE.parent / "docs")
    args = parser.parse_args()
    pages = {"numbers.md": numbers(args.results), "lab19.md": lab19(args.results)}
    for name, text in pages.items():
        (args.docs / name).write_text(text, encoding="utf-8")
        print(f"wrote {args.docs / name}")


def lab19(results: Path) -> str:
    return lab19_tables.page(load(results, "lab19"))


def numbers(results: Path) -> str:
    """Return the page: what was asked for and what came out, then a section per benchmark."""
    parts = {section: part_of(section, load(results, section.task)) for section in SECTIONS}
    rows = [
        [": ".join(filter(None, (section.title, goal.asked))), goal.measured, goal.answer]
        for section, part in parts.items()
        for goal in part.goals
    ]
    lines = [HEAD, "## Asked for and measured", ""]
    lines += [*markdown(["asked for", "measured", "reached"], rows), ""]
    for section, part in parts.items():
        lines += [f"## {section.title}", "", section.question, "", f"    {section.command}", ""]
        lines += part.lines
    return "\n".join(lines).rstrip() + "\n"


def part_of(section: Section, records: Sequence[Record]) -> Part:
    """Return what a section says; results of an older format are named, not guessed at."""
    if not records:
        return nothing(section, "not measured yet")
    makers: dict[str, Callable[[Sequence[Record]], Part]] = {
        **QUALITY,
        **SPEED,
        **STORES,
        **LINKING,
        **FEDERATING,
        **ALIGNING,
        **DOCTORING,
        **CONVERTING,
    }
    try:
        return makers[section.task](records)
    except (KeyError, TypeError, IndexError) as error:
        print(f"{section.task}: results of another format ({error!r})")
        return nothing(section, "results are of another format than these tables; run it again")


def nothing(section: Section, why: str) -> Part:
    return Part([f"{why.capitalize()}.", ""], [Goal("", why, None)] if section.has_goals else [])


if __name__ == "__main__":
    main()
