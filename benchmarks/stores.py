"""Every store on real vectors: the public conformance suite, what reads back, and how fast.

    python benchmarks/stores.py --data ../shared/data [--stores duckdb redis ...]

Starts the servers of the tests where a store needs one. Each store passes the suite, then takes the
5,183 abstracts of SciFact (minilm-l6, 384 wide) with a metadata field each, in one call, gives them
back by a scan, and answers the 300 claims, one by one and as one batch. Recall is that of the exact
ten; the read-back error is the largest of a number, relative to the largest of its row. Rates are
those of the machine that ran it, so beside each stands the ratio to SQLite in the same run, for
which the calls of SQLite and of the store take turns. A fake's rates say nothing and are left out.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from common import arguments, documents, queries, write

from isthmus import VectorSet
from isthmus.neighbors import top_k
from isthmus.stores import Store, open_store, schemes, store_class
from isthmus.testing import store_suite

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.places import PLACES, opened

TURNS = 5
K = 10


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--stores", nargs="+", default=[s for s in schemes() if s != "memory"])
    asked = parser.parse_args()
    vectors = documents(asked.data, "scifact", "minilm-l6")
    claims = queries(asked.data, "scifact", "minilm-l6")
    for scheme in asked.stores:
        result = measure(scheme, vectors, claims)
        write(asked.results, "stores", scheme.replace("+", "-"), {"scheme": scheme}, result)
        rates = {name: round(rate) for name, rate in result.get("rates", {}).items()}
        print(f"{scheme:16} {result['passed']} of {result['checks']} {rates} {result['failed']}")


def measure(scheme: str, vectors: VectorSet, claims: VectorSet) -> dict[str, Any]:
    """Run the suite, then time the calls beside those of SQLite."""
    with tempfile.TemporaryDirectory() as folder, opened(scheme, Path(folder)) as url:
        failed = suite(lambda space: open_store(url(), space=space))
        result: dict[str, Any] = {
            "checks": len(store_suite.CHECKS),
            "passed": len(store_suite.CHECKS) - len(failed),
            "failed": failed,
            "proof": store_class(scheme).capabilities.proof,
            "on": PLACES[scheme].versions(),
        }
        aside = f"sqlite:///{folder}/aside.db?collection="
        seconds: dict[str, list[float]] = {}
        for turn in range(TURNS):
            for who, place in (("store", url()), ("sqlite", f"{aside}turn-{turn}")):
                with open_store(place, space=vectors.space) as store:
                    for name, call in calls(store, vectors, claims).items():
                        start = time.perf_counter()
                        call()
                        seconds.setdefault(f"{who} {name}", []).append(time.perf_counter() - start)
                    if who == "store" and turn == 0:
                        result |= quality(store, vectors, claims)
    counts = {"write": len(vectors), "scan": len(vectors), "one": 50, "batch": len(claims)}
    if result["proof"] != "protocol fake":
        result["seconds"] = seconds
        result["rates"] = {n: c / median(seconds[f"store {n}"]) for n, c in counts.items()}
        result["ratios"] = {
            name: median(seconds[f"sqlite {name}"]) / median(seconds[f"store {name}"])
            for name in counts
        }
    return result


def suite(make: Callable[..., Store]) -> dict[str, str]:
    """Return the checks that failed, with their reason."""
    failed = {}
    for check in store_suite.CHECKS:
        try:
            check(make)
        except Exception as error:  # noqa: BLE001 - a connector may raise anything
            failed[store_suite.name(check)] = f"{type(error).__name__}: {str(error)[:200]}"
    return failed


def calls(store: Store, vectors: VectorSet, claims: VectorSet) -> dict[str, Callable[[], object]]:
    """Return what is timed, in this order."""
    able = store.capabilities.filters
    metadata = [{"half": row % 2} for row in range(len(vectors))] if able else None
    matrix = claims.matrix()
    return {
        "write": lambda: store.upsert(vectors, metadata=metadata),
        "scan": lambda: [len(batch.vectors) for batch in store.scan()],
        "one": lambda: [store.search(matrix[row : row + 1], k=K) for row in range(50)],
        "batch": lambda: store.search(matrix, k=K),
    }


def quality(store: Store, vectors: VectorSet, claims: VectorSet) -> dict[str, float]:
    """Return the recall of the exact answers, and the error of what reads back."""
    exact = vectors.ids[top_k(claims.matrix(), vectors.matrix(), k=K).rows]
    found = store.search(claims.matrix(), k=K).ids
    hits = [len(set(one) & set(other)) for one, other in zip(found, exact, strict=True)]
    back = store.fetch(vectors.ids[:1_000].tolist()).matrix().astype(np.float64)
    written = vectors.matrix()[:1_000].astype(np.float64)
    if not store.capabilities.stores_raw:
        written /= np.linalg.norm(written, axis=1, keepdims=True)
    error = np.abs(back - written).max(axis=1) / np.abs(written).max(axis=1)
    return {
        "recall@10": float(np.mean(hits)) / K,
        "read_back_error": float(error.max()),
        "declared_error": store.capabilities.read_back_error,
    }


if __name__ == "__main__":
    main()
