"""Converting collections: rate beside the stores' own bulk copy, memory, search half-way.

    python benchmarks/convert.py speed --data ../shared/data --stores sqlite duckdb lancedb
    python benchmarks/convert.py memory --data ../shared/data
    python benchmarks/convert.py halfway --data ../shared/data

speed: 20,000 real vectors of 384 numbers, with metadata, become 768 by a bridge. A bulk copy scans
the same source and writes vectors that were mapped before, in the same batches: what the stores do
alone. Both by turns, each into a new collection; the second pass is not in it. Beside the time of
the clock stands that of the processor (of this process, not of a server), in which nothing is
gained by reading ahead. PostgreSQL is the server of the tests.
memory: peak of a whole process of `isthmus convert`, over SQLite.
halfway: SciFact, old model minilm-l6, new model mpnet; queries come from the new model.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from common import arguments, documents, judgements, ndcg_of, queries, split_auxiliary, write

from isthmus import Bridge, Pairs, VectorSet
from isthmus.federate import Federation, Source
from isthmus.rankings import Ranking
from isthmus.stores import open_store
from isthmus.workflows import convert
from isthmus.workflows.convert import BATCH_ROWS

Spent = tuple[float, float]
"""Seconds of the clock, and of the processor."""

PAIRS = 2_000
MEMORY_ROWS = (20_000, 200_000)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
FUSIONS = ("score", "one_directional")
PEAK = """
def peak():  # of this program alone: what getrusage says began with the process before it
    from pathlib import Path
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            print(line.split()[1])
"""
CHILD = (
    PEAK
    + """
import sys
from isthmus.cli.run import run
code = run(["convert", *sys.argv[1:], "--quiet"])
peak()
sys.exit(code)
"""
)
IDLE = (
    PEAK
    + """
import isthmus.workflows, isthmus.stores.sqlite
import isthmus.bridge.bridge
peak()
"""
)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("what", choices=["speed", "memory", "halfway"])
    parser.add_argument("--stores", nargs="+", default=["sqlite"])
    parser.add_argument("--method", default="ridge")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if args.what == "halfway":
        halfway(args)
        return
    source = documents(args.data, "stackoverflow", "minilm-l6")
    target = documents(args.data, "stackoverflow", "mpnet")
    pairs = Pairs.from_ids(source, target).sample(PAIRS, seed=0)
    bridge = Bridge.fit(pairs, method=args.method)
    if args.what == "memory":
        memory(args, source, bridge)
        return
    for name in args.stores:
        speed(args, name, source, bridge)


# --- speed ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def collections(scheme: str) -> Iterator[Callable[[str], str]]:
    """Give a function from a name to the URL of a collection."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if scheme == "postgresql":
            sys.path.insert(0, str(Path(__file__).parent.parent))
            from tests.servers import PostgresServer

            server = stack.enter_context(PostgresServer())
            os.environ["ISTHMUS_POSTGRESQL_SECRET"] = server.password
            yield lambda name: f"{server.dsn}?collection={name}"
        else:
            yield lambda name: f"{scheme}:///{folder}/store.{scheme}?collection={name}"


def speed(args: Namespace, scheme: str, source: VectorSet, bridge: Bridge) -> None:
    """Measure one store, into a second collection of the same database."""
    metadata = [{"row": row, "label": f"class {row % 20}"} for row in range(len(source))]
    mapped = bridge.apply(source)
    spent: dict[str, list[Spent]] = {"bulk_copy": [], "conversion": []}
    with collections(scheme) as url:
        with open_store(url("old"), space=source.space) as store:
            for start in range(0, len(source), BATCH_ROWS):
                rows = np.arange(start, min(start + BATCH_ROWS, len(source)))
                store.upsert(source.select(rows), metadata=[metadata[row] for row in rows])
        for place in range(args.rounds):
            turns = [bulk_copy, conversion] if place % 2 else [conversion, bulk_copy]
            for turn in turns:
                name = turn.__name__
                spent[name].append(turn(url("old"), url(f"{name}{place}"), bridge, mapped))
    both = list(zip(spent["bulk_copy"], spent["conversion"], strict=True))
    result = {
        "seconds": {name: [one[0] for one in each] for name, each in spent.items()},
        "processor_seconds": {name: [one[1] for one in each] for name, each in spent.items()},
        "ratio": statistics.median(copied[0] / converted[0] for copied, converted in both),
        "processor_ratio": statistics.median(
            copied[1] / converted[1] for copied, converted in both
        ),
    }
    print(scheme, result)
    parameters = {
        "what": "speed",
        "store": scheme,
        "method": args.method,
        "rows": len(source),
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
    }
    write(args.results, "convert", f"speed.{scheme}.{args.method}", parameters, result)


def bulk_copy(old: str, new: str, bridge: Bridge, mapped: VectorSet) -> Spent:
    """Return the time of scan and upsert, without mapping."""
    del bridge
    with open_store(old) as source, open_store(new, space=mapped.space) as target:
        begun = now()
        ready = mapped.iter_batches(BATCH_ROWS)
        for batch, rows in zip(source.scan(batch_size=BATCH_ROWS), ready, strict=True):
            target.upsert(rows, metadata=batch.metadata)
        return since(begun)


def conversion(old: str, new: str, bridge: Bridge, mapped: VectorSet) -> Spent:
    """Return the time of the first pass."""
    passes: list[Spent] = []

    @contextlib.contextmanager
    def metered(*_: object) -> Iterator[Callable[[int], None]]:
        begun = now()
        yield lambda _: None
        passes.append(since(begun))

    done = convert(old, new, bridge=bridge, counting=metered)
    if not done.settled or done.rows != len(mapped):
        raise SystemExit(f"not what was asked for: {done}")
    return passes[0]


def now() -> Spent:
    return time.perf_counter(), time.process_time()


def since(begun: Spent) -> Spent:
    return time.perf_counter() - begun[0], time.process_time() - begun[1]


# --- memory ---------------------------------------------------------------------------------------


def memory(args: Namespace, source: VectorSet, bridge: Bridge) -> None:
    """Measure the peak of whole processes."""
    peaks, idle = {}, peak(IDLE)
    with tempfile.TemporaryDirectory() as folder:
        bridge.save(Path(folder) / "bridge")
        for rows in MEMORY_ROWS:
            url = f"sqlite:///{folder}/{rows}.db?collection="
            with open_store(url + "old", space=source.space) as store:
                for tile in range(rows // len(source)):
                    ids = [f"{tile}-{text}" for text in source.ids.tolist()]
                    store.upsert(VectorSet(ids, source.matrix(), source.space))
            peaks[rows] = peak(CHILD, url + "old", url + "new", "--bridge", f"{folder}/bridge")
            Path(f"{folder}/{rows}.db").unlink()
    result = {
        "idle_mb": idle,
        "peak_mb": {str(rows): one for rows, one in peaks.items()},
        "batch_rows": BATCH_ROWS,
    }
    print(result)
    parameters = {"what": "memory", "method": args.method}
    write(args.results, "convert", f"memory.{args.method}", parameters, result)


def peak(program: str, *given: str) -> float:
    """Return the largest resident size of a process, in MB; on Linux."""
    done = subprocess.run(
        [sys.executable, "-c", program, *given], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[-1]) * 1024 / 1e6


# --- search half-way ------------------------------------------------------------------------------


def halfway(args: Namespace) -> None:
    """Search while a share of the rows is in both stores."""
    old, new = (documents(args.data, "scifact", name) for name in ("minilm-l6", "mpnet"))
    asked, qrels = queries(args.data, "scifact", "mpnet"), judgements(args.data, "scifact")
    for seed in args.seeds:
        auxiliary, rest = split_auxiliary(qrels, old.ids, share=0.2, seed=seed)
        pairs = Pairs.from_ids(old.select(auxiliary), new.select(auxiliary))
        there, back = (Bridge.fit(one, method=args.method) for one in (pairs, pairs.reverse()))
        result: dict[str, dict[str, float]] = {fusion: {} for fusion in FUSIONS}
        for share in SHARES:
            found = search(old.select(rest), there, back, asked, share=share)
            for fusion, ranking in found.items():
                if any(len(set(ids)) < len(ids) for ids in ranking.ids.tolist()):
                    raise SystemExit("an id came twice")
                result[fusion][str(share)] = float(ndcg_of(ranking, asked.ids, qrels).mean())
        print(seed, result)
        parameters = {"what": "halfway", "method": args.method, "seed": seed}
        write(args.results, "convert", f"halfway.{args.method}.{seed}", parameters, result)


def search(
    held: VectorSet, there: Bridge, back: Bridge, asked: VectorSet, *, share: float
) -> dict[str, Ranking]:
    """Return the ten best of federations in which a share of the rows is converted."""
    part = round(share * len(held))
    space = there.space_of_applied(held.space)
    found = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(f"sqlite:///{folder}/old.db?collection=docs", space=held.space) as before,
        open_store(f"sqlite:///{folder}/new.db?collection=docs", space=space) as after,
    ):
        before.upsert(held)
        if part:
            after.upsert(there.apply(held.select(np.arange(part))))
        sources = [
            Source("old", before, back, there),
            Source("new", after, supersedes="old"),
        ]
        for fusion in FUSIONS:
            found[fusion] = Federation(asked.space, sources, fusion=fusion).search(asked, k=10)
    return found


if __name__ == "__main__":
    main()
