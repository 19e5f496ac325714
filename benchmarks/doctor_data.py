"""Collections for the doctor's benchmark: of one model, of one model and two topics, of two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import documents

MODELS = {
    "scifact": ("minilm-l6", "para-l3", "mpnet"),
    "climate-fever": ("minilm-l6", "para-l3", "mpnet"),
    "stackoverflow": ("minilm-l6", "mpnet"),
    "locomo": ("openai-3-small", "minilm-l6"),
    "chebi20": ("molecules.minimol", "texts.minilm-l6"),
}
ROWS = 6_000


@dataclass(frozen=True)
class Cell:
    """One collection: its rows, and which of them are foreign."""

    name: str
    vectors: np.ndarray
    foreign: np.ndarray


class Loader:
    """The vectors of a data set by one model, cut to some dimensions; read once."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._read: dict[tuple[str, str, int], np.ndarray] = {}

    def __call__(self, dataset: str, model: str, dim: int = 0) -> np.ndarray:
        """Return the rows, of unit length."""
        key = (dataset, model, dim)
        if key not in self._read:
            rows = documents(self.data, dataset, model).matrix()
            if dim:
                rows = rows[:, :dim] / np.linalg.norm(rows[:, :dim], axis=1, keepdims=True)
            self._read[key] = rows
        return self._read[key]


def mixed(one: np.ndarray, other: np.ndarray, share: float, how: str, seed: int) -> Cell:
    """Shuffle rows of another encoder into those of one.

    ``disjoint``: no document is in both parts. ``same documents``: all documents in the one, and
    some of them again in the other. ``other topic``: the two have no documents in common anyway.
    """
    draw = np.random.default_rng(seed)
    order = draw.permutation(len(one))
    if how == "disjoint":
        foreign = round(share * len(one))
        first, second = order[foreign:], order[:foreign]
    elif how == "same documents":
        second = order[: min(len(order), round(len(one) * share / (1 - share)))]
        first = order
    else:
        rows = min(len(one), len(other), ROWS)
        second = draw.permutation(len(other))[: round(share * rows)]
        first = order[: rows - len(second)]
    rows = np.concatenate([one[first], other[second]])
    foreign = np.repeat([False, True], [len(first), len(second)])
    shuffled = draw.permutation(len(rows))
    return Cell("", rows[shuffled], foreign[shuffled])


MIXTURES = {
    **{
        f"{dataset}: {other} in {one}, {how}": ((dataset, one, 0), (dataset, other, 0), how)
        for dataset in ("scifact", "climate-fever")
        for one, other in (("minilm-l6", "para-l3"), ("para-l3", "minilm-l6"))
        for how in ("disjoint", "same documents")
    },
    "climate-fever's para-l3 in scifact's minilm-l6": (
        ("scifact", "minilm-l6", 0),
        ("climate-fever", "para-l3", 0),
        "other topic",
    ),
    "scifact's minilm-l6 in climate-fever's para-l3": (
        ("climate-fever", "para-l3", 0),
        ("scifact", "minilm-l6", 0),
        "other topic",
    ),
    **{
        f"locomo: {names[1]} in {names[0]}, {how}": (*cells, how)
        for names, cells in (
            (
                ("minilm-l6", "openai-3-small cut to 384"),
                (("locomo", "minilm-l6", 0), ("locomo", "openai-3-small", 384)),
            ),
            (
                ("openai-3-small cut to 384", "minilm-l6"),
                (("locomo", "openai-3-small", 384), ("locomo", "minilm-l6", 0)),
            ),
        )
        for how in ("disjoint", "same documents")
    },
}
"""Name: rows of one encoder, rows of the other, how they share documents."""


def unmixed(load: Loader, seed: int) -> Iterator[Cell]:
    """Yield collections of one model: whole, halves, clusters, and two or five topics together."""
    draw = np.random.default_rng(seed)
    for dataset, models in MODELS.items():
        for model in models:
            rows = load(dataset, model)
            rows = rows[draw.permutation(len(rows))[:ROWS]]
            yield one(f"{dataset} {model}", rows)
            if rows.shape[1] > 1000:
                continue
            half = len(rows) // 2
            yield one(f"{dataset} {model}, a half", rows[:half])
            yield one(f"{dataset} {model}, the other half", rows[half:])
            yield one(f"{dataset} {model}, two clusters of eight", clusters(rows, seed))
    for name, pairs in ONE_MODEL.items():
        for first, second in pairs:
            for share in (0.02, 0.1, 0.5):
                cell = mixed(load(*first), load(*second), share, "other topic", seed)
                said = f"{share:.0%} {second[0]} in {first[0]}, {name}"
                yield one(said, cell.vectors)


def one(name: str, rows: np.ndarray) -> Cell:
    return Cell(name, rows, np.zeros(len(rows), bool))


def clusters(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return two of eight clusters: topics as far apart as the collection has them."""
    from sklearn.cluster import KMeans

    found = KMeans(8, n_init=1, random_state=seed).fit(rows)
    centres = found.cluster_centers_
    far = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    pair = np.unravel_index(far.argmax(), far.shape)
    return rows[np.isin(found.labels_, pair)]


MINILM = (
    ("scifact", "minilm-l6"),
    ("climate-fever", "minilm-l6"),
    ("stackoverflow", "minilm-l6"),
    ("locomo", "minilm-l6"),
    ("chebi20", "texts.minilm-l6"),
)
ONE_MODEL = {
    "minilm-l6": [(a, b) for a in MINILM for b in MINILM if a != b],
    "para-l3": [
        (("scifact", "para-l3"), ("climate-fever", "para-l3")),
        (("climate-fever", "para-l3"), ("scifact", "para-l3")),
    ],
    "mpnet": [
        (("scifact", "mpnet"), ("climate-fever", "mpnet")),
        (("stackoverflow", "mpnet"), ("scifact", "mpnet")),
    ],
}
"""Two topics of one model; all ordered pairs of data sets where there are five."""
