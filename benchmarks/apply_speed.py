"""Rate and memory of apply, beside a bare loop that reads, multiplies and writes the same.

    python benchmarks/apply_speed.py --rows 1000000

Makes vectors of 384 columns on disk, a bridge to 768 columns, and carries them over by turns with
`isthmus.apply_bridge` and with bare loops, each in a process of its own. A bare loop maps the same
file, converts to float32, multiplies by one matrix, adds one row, converts and writes the same
bytes: no checks, no ids, no unit length, no scope. It runs with small and with large blocks; apply
is compared with the faster of them. Writes one JSON into benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

DIM_SOURCE, DIM_TARGET = 384, 768
BLOCK_ROWS = 8_192
BARE_BLOCKS = (1_024, 8_192, 65_536)
SIDES = ("ours", *(f"bare-{rows}" for rows in BARE_BLOCKS))
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--method", default="ridge")
    parser.add_argument("--dtype", choices=("float16", "float32"), default="float16")
    parser.add_argument("--folder", type=Path, help="where the vectors go (about 3 kB a row)")
    parser.add_argument("--run", choices=SIDES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run_one(arguments)
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        prepare(Path(folder), rows=arguments.rows, method=arguments.method, dtype=arguments.dtype)
        runs = [
            measure(arguments, Path(folder), which)
            for repeat in range(arguments.repeats)
            for which in (SIDES if repeat % 2 else reversed(SIDES))
        ]
    report(arguments, runs)


def prepare(folder: Path, *, rows: int, method: str, dtype: str) -> None:
    """Write a mapped file of unit rows with ids, and a bridge fitted on 2,000 pairs."""
    from isthmus import Bridge, Pairs, Space, VectorSet
    from isthmus.spaces.io import open_writer

    rng = np.random.default_rng(0)
    source = Space(model="source", dim=DIM_SOURCE, normalized=True)
    target = Space(model="target", dim=DIM_TARGET, normalized=True)
    mixing = rng.normal(size=(DIM_SOURCE, DIM_TARGET)).astype(np.float32)
    X = unit(rng.normal(size=(2_000, DIM_SOURCE)).astype(np.float32))
    Y = unit(X @ mixing + rng.normal(size=(2_000, DIM_TARGET)).astype(np.float32))
    ids = [f"p{row}" for row in range(len(X))]
    pairs = Pairs.from_ids(VectorSet(ids, X, source), VectorSet(ids, Y, target))
    Bridge.fit(pairs, method=method).save(folder / "bridge")
    with open_writer(folder / "source.npy", source, rows=rows, dtype=dtype) as writer:
        for start in range(0, rows, BLOCK_ROWS):
            count = min(BLOCK_ROWS, rows - start)
            block = unit(rng.normal(size=(count, DIM_SOURCE)).astype(np.float32))
            named = np.char.add("doc", np.arange(start, start + count).astype(str))
            writer.write(VectorSet(named, block, source))


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def measure(arguments: argparse.Namespace, folder: Path, which: str) -> dict[str, object]:
    """Run one side in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, __file__, "--run", which, "--folder", str(folder)]
    command += ["--dtype", arguments.dtype, "--rows", str(arguments.rows)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, object] = json.loads(done.stdout)
    for written in folder.glob(f"{which}.*"):
        written.unlink()
    print(f"{which}: {result['rows_per_second']:,.0f} rows/s, {result['peak_mb']:.0f} MB")
    return result


def run_one(arguments: argparse.Namespace) -> None:
    """Time one side from opening the file to the finished copy on disk."""
    extra: dict[str, object] = {}
    if arguments.run == "ours":
        seconds, extra = ours(arguments.folder, arguments.dtype)
    else:
        block_rows = int(arguments.run.removeprefix("bare-"))
        seconds = bare(arguments.folder, arguments.dtype, block_rows=block_rows)
    peak = peak_mb()
    result = {
        "which": arguments.run,
        "seconds": seconds,
        "rows_per_second": arguments.rows / seconds,
        "cpu_seconds": time.process_time(),
        "peak_mb": peak,
        **extra,
    }
    print(json.dumps(result))


def peak_mb() -> float:
    """Return the largest resident memory of this process; getrusage would add its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def ours(folder: Path, dtype: str) -> tuple[float, dict[str, object]]:
    from isthmus import Bridge, apply_bridge

    bridge = Bridge.load(folder / "bridge")
    start = time.perf_counter()
    applied = apply_bridge(bridge, folder / "source.npy", folder / "ours.npy", dtype=dtype)
    return time.perf_counter() - start, {"share_outside": applied.share_outside}


def bare(folder: Path, dtype: str, *, block_rows: int) -> float:
    weight = np.random.default_rng(1).normal(size=(DIM_SOURCE, DIM_TARGET)).astype(np.float32)
    bias = np.zeros(DIM_TARGET, np.float32)
    start = time.perf_counter()
    vectors = np.load(folder / "source.npy", mmap_mode="r")
    with (folder / f"bare-{block_rows}.npy").open("wb") as out:
        header = {"descr": np.dtype(dtype).str, "fortran_order": False}
        np.lib.format.write_array_header_1_0(out, {**header, "shape": (len(vectors), DIM_TARGET)})
        for first in range(0, len(vectors), block_rows):
            block = np.asarray(vectors[first : first + block_rows], np.float32)
            mapped = block @ weight
            mapped += bias
            out.write(mapped.astype(dtype).data)
        out.flush()
        os.fsync(out.fileno())
    return time.perf_counter() - start


def report(arguments: argparse.Namespace, runs: list[dict[str, object]]) -> None:
    """Print the ratio of the medians and keep every run."""
    seconds = {
        which: statistics.median(
            float(str(run["seconds"])) for run in runs if run["which"] == which
        )
        for which in SIDES
    }
    peak = max(float(str(run["peak_mb"])) for run in runs if run["which"] == "ours")
    fastest = min(seconds[which] for which in SIDES if which != "ours")
    ratio = fastest / seconds["ours"]
    print(f"rate of apply: {ratio:.0%} of the fastest bare loop (median of {arguments.repeats}), "
          f"peak {peak:.0f} MB")  # fmt: skip
    RESULTS.mkdir(exist_ok=True)
    name = f"apply_speed-{arguments.rows}-{arguments.method}-{arguments.dtype}.json"
    settings = {"rows": arguments.rows, "method": arguments.method, "dtype": arguments.dtype}
    machine = {"processor": platform.machine(), "cores": os.cpu_count(), "numpy": np.__version__}
    result = {**settings, "ratio": ratio, "peak_mb": peak, "runs": runs, "machine": machine}
    (RESULTS / name).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    if shutil.disk_usage(tempfile.gettempdir()).free < 8 * 2**30:
        sys.exit("needs 8 GB of free disk in the temporary folder")
    main()
