"""What the benchmarks of linking share: pairs of models, the paper's split, and its problems."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import common
import numpy as np

from isthmus.link import LinkProblem

MODELS = ("minilm-l6", "para-l3", "mpnet")
THREE = (("minilm-l6", "para-l3"), ("minilm-l6", "mpnet"), ("para-l3", "mpnet"))
PAIRS: dict[str, tuple[tuple[str, str], ...]] = {
    "climate-fever": THREE,
    "scifact": THREE,
    "stackoverflow": (("minilm-l6", "mpnet"),),
    "locomo": (("openai-3-small", "minilm-l6"),),
}
PLANTED = "rotated"  # the pair of one model and its rotated, noisy self
PLANTED_ROWS, PLANTED_NOISE = 2_400, 0.3


@dataclass(frozen=True, order=True)
class Pair:
    """A data set in two models."""

    dataset: str
    source: str
    target: str

    @property
    def name(self) -> str:
        """What its files and cells are called."""
        return f"{self.dataset}.{self.source}.{self.target}"

    @property
    def parameters(self) -> dict[str, str]:
        """What stands in its files."""
        return {"dataset": self.dataset, "source": self.source, "target": self.target}


@dataclass(frozen=True)
class Split:
    """Two clouds cut out of one data set.

    ``source_rows`` and ``target_rows`` are rows of the data set; ``truth`` of shape (n_shared, 2)
    pairs rows of the clouds that are the same object, in random order, so that its first rows are
    seeds drawn at random.
    """

    source_rows: np.ndarray
    target_rows: np.ndarray
    truth: np.ndarray


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with what every benchmark of linking takes."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the real vectors")
    parser.add_argument("--results", type=Path, default=common.RESULTS)
    parser.add_argument("--again", action="store_true", help="run cells that are done, too")
    parser.add_argument(
        "--draws",
        type=int,
        nargs="+",
        default=[0, 1, 2, 3, 4],
        help="splits and seeds; 0 to 4 are reported, so tune on 100 and over",
    )
    parser.add_argument(
        "--cells",
        nargs="+",
        default=[""],
        help="data sets or pairs, by how their names begin: climate-fever scifact.minilm-l6.mpnet",
    )
    return parser


def chosen(cells: Sequence[str], pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs whose names begin with one of these words."""
    return [pair for pair in pairs if pair.name.startswith(tuple(cells))]


def every_pair() -> list[Pair]:
    return [Pair(name, *models) for name, each in PAIRS.items() for models in each]


@lru_cache(maxsize=4)
def matrix(data: Path, dataset: str, model: str) -> np.ndarray:
    return common.documents(data, dataset, model).matrix()


def sides(data: Path, pair: Pair, draw: int) -> tuple[np.ndarray, np.ndarray]:
    """Load both models' vectors of the same objects, row by row."""
    source = matrix(data, pair.dataset, pair.source)
    if pair.target == PLANTED:
        source = source[:PLANTED_ROWS]
        return source, rotated(source, draw)
    return source, matrix(data, pair.dataset, pair.target)


def rotated(cloud: np.ndarray, draw: int) -> np.ndarray:
    """Return the cloud under a random rotation plus Gaussian noise of relative norm .3."""
    rng = np.random.default_rng([draw, 1])
    dim = cloud.shape[1]
    turn, corner = np.linalg.qr(rng.standard_normal((dim, dim)))
    noise = rng.standard_normal(cloud.shape) * (PLANTED_NOISE / np.sqrt(dim))
    moved = cloud @ (turn * np.sign(np.diag(corner))) + noise
    unit: np.ndarray = (moved / np.linalg.norm(moved, axis=1, keepdims=True)).astype(np.float32)
    return unit


def split(n: int, *, overlap: float, draw: int, sizes: tuple[int, int] | None = None) -> Split:
    """Cut a data set of n objects as in section 5.1 of the paper.

    round(overlap n) objects are shared, the others lie half in each cloud (the source has one less
    where they are odd), and each cloud is shuffled. ``sizes`` asks for other sizes of the clouds.
    """
    rng = np.random.default_rng(draw)
    order = rng.permutation(n)
    shared = round(overlap * n)
    rest = order[shared:]
    first = len(rest) // 2
    alone = (first, len(rest) - first) if sizes is None else tuple(s - shared for s in sizes)
    if min(alone) < 0 or sum(alone) > len(rest):
        raise ValueError(f"no clouds of {sizes} rows out of {n} that share {shared}")
    rows = [
        rng.permutation(np.concatenate([order[:shared], mine]))
        for mine in (rest[: alone[0]], rest[alone[0] : sum(alone)])
    ]
    places = np.full((2, n), -1)
    for place, cloud in zip(places, rows, strict=True):
        place[cloud] = np.arange(len(cloud))
    return Split(rows[0], rows[1], places[:, rng.permutation(order[:shared])].T)


def problem_of(
    data: Path, pair: Pair, *, overlap: float, n_seeds: int, draw: int
) -> tuple[LinkProblem, np.ndarray]:
    """Make the problem of a cell: seeds drawn at random from the shared objects; and the truth."""
    source, target = sides(data, pair, draw)
    cut = split(len(source), overlap=overlap, draw=draw)
    problem = LinkProblem.of_rows(
        source[cut.source_rows], target[cut.target_rows], cut.truth[:n_seeds]
    )
    return problem, cut.truth
