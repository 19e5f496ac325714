"""Drift between samples, and canaries: false alarms, power, and what is told apart."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from doctor_data import Loader

from isthmus.evaluate.drift import Drift, measure_drift

COLLECTIONS = (
    ("scifact", "minilm-l6"),
    ("climate-fever", "para-l3"),
    ("stackoverflow", "mpnet"),
    ("locomo", "openai-3-small"),
)
SIZES = (100, 300, 1000)
REPEATS = 50
SHARES = (0.1, 0.2, 0.5)
PERMUTATIONS = 199


def drift(args: argparse.Namespace, load: Loader) -> None:
    from doctor import keep

    for dataset, model in COLLECTIONS:
        rows = load(dataset, model)
        for size in SIZES:
            first = args.seeds[0] * 1000
            repeats = REPEATS if size < 1000 else REPEATS // 2
            found = [halves(rows, size, first + repeat) for repeat in range(repeats)]
            keep(args, "drift", f"halves of {dataset} {model}, {size}", told(found, size, 0.0))
    for name, one, other in drifts(load):
        for size in SIZES:
            for share in SHARES:
                found = [
                    shifted(one, other, size, share, seed * 1000 + repeat)
                    for seed in args.seeds[:5]
                    for repeat in range(2)
                ]
                keep(args, "drift", f"{share:.0%} {name}, {size}", told(found, size, share))


def drifts(load: Loader) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield what comes in: another topic of the same model, or another model."""
    minilm = load("scifact", "minilm-l6")
    yield "climate-fever in scifact", minilm, load("climate-fever", "minilm-l6")
    titles = load("stackoverflow", "mpnet")
    order = np.argsort(first_axis(titles))
    halves = np.array_split(order, 2)
    yield "of one half of stackoverflow's topics in the other", titles[halves[0]], titles[halves[1]]
    yield "para-l3 in minilm-l6, scifact", minilm, load("scifact", "para-l3")


def first_axis(rows: np.ndarray) -> np.ndarray:
    centred = rows - rows.mean(axis=0)
    return centred @ np.linalg.eigh(centred.T @ centred)[1][:, -1]


def halves(rows: np.ndarray, size: int, seed: int) -> Drift:
    order = np.random.default_rng(seed).permutation(len(rows))
    return measure_drift(
        rows[order[:size]], rows[order[size : 2 * size]], permutations=PERMUTATIONS, seed=seed
    )


def shifted(one: np.ndarray, other: np.ndarray, size: int, share: float, seed: int) -> Drift:
    draw = np.random.default_rng(seed)
    order, news = draw.permutation(len(one)), draw.permutation(len(other))
    count = round(share * size)
    after = np.concatenate([one[order[size : 2 * size - count]], other[news[:count]]])
    return measure_drift(one[order[:size]], after, permutations=PERMUTATIONS, seed=seed)


def told(found: list, size: int, share: float) -> dict:
    verdicts = [one.verdict for one in found]
    return {
        "size": size,
        "share": share,
        "repeats": len(found),
        "drift": verdicts.count("drift") / len(found),
        "no drift": verdicts.count("no drift") / len(found),
        "not enough data": verdicts.count("not enough data") / len(found),
        "moved": round(float(np.mean([one.moved for one in found])), 4),
        "smallest": round(float(np.mean([one.smallest for one in found])), 4),
        "p_values": [round(one.p_value, 4) for one in found],
    }


CANARIES = (10, 30, 100)


def canaries(args: argparse.Namespace, load: Loader) -> None:
    """Change the vectors of real canaries in known ways; two models stand for other weights."""
    from doctor import keep

    from isthmus.workflows.canary import compare_canaries

    rows, other = load("scifact", "minilm-l6"), load("scifact", "para-l3")
    for name, change in changes(other).items():
        kinds: dict[str, int] = {}
        for count in CANARIES:
            for seed in args.seeds:
                draw = np.random.default_rng(seed)
                some = draw.permutation(len(rows))[:count]
                found = compare_canaries(rows[some], change(rows[some], some, draw))
                kinds[found.kind] = kinds.get(found.kind, 0) + 1
        keep(args, "canaries", name, {"kinds": kinds, "expected": EXPECTED.get(name, name)})


EXPECTED = {
    "bfloat16": "rounding of bfloat16",
    "float16 twice": "rounding of float16",
    "noise of 1 %": "rounding of bfloat16",
    "another model": "other weights",
    "pushed by 10 %": "other weights",
    "length of a random factor": "other lengths",
    "permutation and signs": "order of dimensions",
    "cut to 256 and padded": "cut to 256 dimensions",
}


def changes(other: np.ndarray) -> dict[str, Callable[..., np.ndarray]]:
    def noise(rows: np.ndarray, draw: np.random.Generator, size: float) -> np.ndarray:
        drawn = draw.standard_normal(rows.shape)
        return rows + size * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    def bfloat16(rows: np.ndarray) -> np.ndarray:
        bits = np.ascontiguousarray(rows, np.float32).view(np.uint32)
        return ((bits + 0x8000) & 0xFFFF0000).view(np.float32)

    def cut(rows: np.ndarray) -> np.ndarray:
        short = rows.copy()
        short[:, 256:] = 0
        return short / np.linalg.norm(short, axis=1, keepdims=True)

    def turn(rows: np.ndarray, draw: np.random.Generator) -> np.ndarray:
        return rows @ np.linalg.qr(draw.standard_normal((rows.shape[1],) * 2))[0]

    return {
        "equal": lambda rows, _, __: rows,
        "bfloat16": lambda rows, _, __: bfloat16(rows),
        "float16 twice": lambda rows, _, __: (
            (rows * np.float32(0.7)).astype(np.float16) / np.float32(0.7)
        ),
        "noise of 1 %": lambda rows, _, draw: noise(rows, draw, 0.0099),
        "length of a random factor": lambda rows, _, draw: (
            rows * draw.lognormal(0, 0.5, (len(rows), 1))
        ),
        "cut to 256 and padded": lambda rows, _, __: cut(rows),
        "signs of dimensions": lambda rows, _, draw: rows * draw.choice([-1.0, 1.0], rows.shape[1]),
        "permutation and signs": lambda rows, _, draw: (
            rows[:, draw.permutation(rows.shape[1])] * draw.choice([-1.0, 1.0], rows.shape[1])
        ),
        "rotation": lambda rows, _, draw: turn(rows, draw),
        "pushed by 10 %": lambda rows, _, draw: noise(rows, draw, 0.10),
        "another model": lambda _, some, __: other[some],
    }
