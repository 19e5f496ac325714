"""Alignment of two spaces from few pairs and many unpaired rows, after AnchorDOT.

    python benchmarks/align.py --data ../shared/data --study retrieval
    python benchmarks/align.py --data ../shared/data --study anchors --seeds 0 --methods ridge

Molecules to their descriptions (ChEBI-20) unless a study says otherwise: 500 anchor pairs, 400 test
pairs, and the other pairs cut in two, a half of which gives only its molecules, the other only its
texts. Recall at 1, 5 and 10 is that of the test pairs among themselves, in both directions. One
JSON per study and map in benchmarks/results/align/, written after every cell; cells that are done
are skipped.

- retrieval: all maps (table 2 of the paper).
- anchors, pool, overlap: how many anchor pairs, unpaired rows, hidden pairs (figures 2 and 3).
- hubness: four matching rules on one cost (figure 4); costs: three costs (figures 8 and 9); fgw: a
  structural term (figure 10); teacher: the plan and what was learned from it (figure 5).
- participation: how many directions a profile has (appendix C.1).
- zero_pairs: what can be found without a pair (figure 7).
- time: seconds of a fit (table 7).
- transfer: fitted on one data set, tested on another (appendix C.5.2, with texts).
- same_modality: queries of one text model over documents of another.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

from align_cells import TASK, code_commit, known, parser_of
from align_studies import STUDIES
from link_measure import Kept

from isthmus.errors import MissingExtraError


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--study", nargs="+", choices=[*STUDIES, "all"], default=["all"])
    args = parser.parse_args()
    studies = list(STUDIES) if "all" in args.study else args.study
    if args.jobs == 1:
        for study in studies:
            run(args, study)
        return
    with ProcessPoolExecutor(args.jobs) as pool:
        list(pool.map(partial(run, args), studies))


def run(args: argparse.Namespace, study: str) -> None:
    """Run the cells of a study that are not done, seed by seed."""
    methods = STUDIES[study].methods
    wanted = [name for name in methods if args.methods is None or name in args.methods]
    for seed in args.seeds:
        for method in wanted if methods else [""]:
            run_method(args, study, method, seed)


def run_method(args: argparse.Namespace, study: str, method: str, seed: int) -> None:
    """Run one map, or a study without maps, on one split."""
    asked = STUDIES[study]
    if method and not (known(method) or method in asked.others):
        print(f"{study}: {method} is left out: not among the maps")
        return
    name = f"{study}.{method.replace(', ', '-').replace(' ', '_')}".rstrip(".")
    parameters = {"study": study, **({"method": method} if method else {})}
    kept = Kept(args.results, TASK, name, parameters, (*asked.keys, "seed"))
    for key, work in asked.make(args, method, seed):
        if kept.has(**key, seed=seed) and not args.again:
            continue
        try:
            found: dict[str, Any] = work()
        except MissingExtraError as error:
            print(f"{study}: {method} is left out: {error}")
            return
        kept.add({**key, "seed": seed, **found, "commit": code_commit()})
        print(study, method, seed, key, short(found), flush=True)


def short(found: dict[str, Any]) -> str:
    """Write the numbers of a cell on one line."""
    return ", ".join(
        f"{name} {[round(one, 3) for one in value] if isinstance(value, list) else value}"
        for name, value in found.items()
        if not isinstance(value, dict)
    )


if __name__ == "__main__":
    main()
