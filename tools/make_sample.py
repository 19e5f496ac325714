"""Make the bundled sample, src/isthmus/sample/, from the SciFact vectors.

Every document relevant to a test query, plus others drawn by seed, 1,500 in all, in two models;
all test queries in both; the judgements. Ids, vectors (float16) and labels only, no text.

    python tools/make_sample.py --data ../shared/data
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from isthmus._files import atomic_path
from isthmus.sample import MODELS
from isthmus.spaces import Qrels, VectorSet

ROWS = 1_500
SEED = 0


def choose(documents: VectorSet, qrels: Qrels) -> list[str]:
    """Return the ids to keep, in the order of the corpus."""
    relevant = np.isin(documents.ids, qrels.relevant_ids)
    others = np.random.default_rng(SEED).permutation(np.flatnonzero(~relevant))
    kept = np.sort(np.r_[np.flatnonzero(relevant), others[: ROWS - relevant.sum()]])
    return documents.ids[kept].tolist()


def write_qrels(qrels: Qrels, path: Path) -> None:
    """Write the judgements as the three columns that `Qrels.load` reads."""
    rows = zip(qrels.query_ids, qrels.document_ids, qrels.scores, strict=True)
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        out.write("query-id\tcorpus-id\tscore\n")
        out.writelines(f"{query}\t{document}\t{score:g}\n" for query, document, score in rows)


def main() -> None:
    """Read the vectors, choose, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds scifact/")
    parser.add_argument("--out", type=Path, default=Path("src/isthmus/sample"))
    arguments = parser.parse_args()
    source = arguments.data / "scifact"
    qrels = Qrels.load(source / "qrels.tsv")
    kept = choose(VectorSet.load(source / f"docs.{MODELS[0]}.npz"), qrels)
    for model in MODELS:
        documents = VectorSet.load(source / f"docs.{model}.npz")
        documents.select(documents.rows_of(kept)).save(arguments.out / f"documents.{model}.npz")
        VectorSet.load(source / f"queries.{model}.npz").save(arguments.out / f"queries.{model}.npz")
    write_qrels(qrels.restrict(kept), arguments.out / "qrels.tsv")
    size = sum(path.stat().st_size for path in arguments.out.iterdir() if path.is_file())
    print(f"{len(kept):,} documents, {size / 1e6:.1f} MB in {arguments.out}")


if __name__ == "__main__":
    main()
