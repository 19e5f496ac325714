"""The main job on real vectors: two stores of two models, one query, one ranked answer."""

from __future__ import annotations

import csv
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isthmus import sample
from isthmus._files import atomic_folder
from isthmus._progress import Track, silent
from isthmus.bridge import Bridge, Verdict
from isthmus.bridge.rule import Purpose
from isthmus.errors import ParameterError
from isthmus.sample import Sample
from isthmus.spaces import VectorSet
from isthmus.workflows._demo_systems import System, measure_systems
from isthmus.workflows.fit_bridge import fit_bridge

__all__ = ["DemoResult", "Parts", "demo", "split_sample"]

HUB, SPOKE = sample.MODELS
"""The model that encodes the queries, and the other one."""

FEDERATION = """\
hub = "one"

[[stores]]
name = "one"
url = "sqlite:///one.db?collection=docs"

[[stores]]
name = "two"
url = "sqlite:///two.db?collection=docs"
bridge_to = "bridges/one-two"
bridge_from = "bridges/two-one"
"""


@dataclass(frozen=True)
class Parts:
    """Which documents are where; three parts without a document in common.

    Parameters
    ----------
    one, two : VectorSet
        In the store of each model: embedded by that model only, as far as the demo knows.
    pairs_one, pairs_two : VectorSet
        The same documents, embedded by both: what the bridges are fitted on. None is relevant to a
        query, and none is in a store.
    """

    one: VectorSet
    two: VectorSet
    pairs_one: VectorSet
    pairs_two: VectorSet


@dataclass(frozen=True, kw_only=True)
class DemoResult:
    """What the demo wrote and measured.

    Parameters
    ----------
    folder : Path
        Stores, bridges, ``federation.toml``, and the sample as files.
    systems : tuple of System
    documents, pairs, queries : int
        Documents in both stores together, pairs, queries.
    to_spoke, to_hub : Verdict
        Of the two bridges.
    methods : tuple of str
        Maps that were chosen, in the same order.
    """

    folder: Path
    systems: tuple[System, ...]
    documents: int
    pairs: int
    queries: int
    to_spoke: Verdict
    to_hub: Verdict
    methods: tuple[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "folder": str(self.folder),
            "documents": self.documents,
            "pairs": self.pairs,
            "queries": self.queries,
            "bridges": {
                name: {"method": method, **verdict.to_dict()}
                for name, method, verdict in zip(
                    ("one-two", "two-one"), self.methods, (self.to_spoke, self.to_hub), strict=True
                )
            },
            "systems": [system.to_dict() for system in self.systems],
        }


def demo(
    folder: Path | str | None = None, *, seed: int = 0, track: Track[Any] = silent
) -> DemoResult:
    """Join two stores of two models and measure the federated search beside its rivals.

    The bundled sample of SciFact is cut in three: a third in a SQLite store of each model, a third
    embedded by both, which gives the pairs. Bridges are fitted both ways, saved, and read again by
    the federation, which is asked all queries, encoded by the hub's model only.

    Parameters
    ----------
    folder : path, optional
        Where to write; new or empty. By default a new folder among the temporary ones, which stays.
    seed : int, default 0
        Of the split, the fits and the draws for intervals.
    track : Track, default silent

    Returns
    -------
    DemoResult

    Raises
    ------
    ParameterError
        A folder that holds something.
    WriteFailedError
    """
    path = _check_folder(folder)
    bundled = sample.load()
    parts = split_sample(bundled, seed=seed)
    with atomic_folder(path) as work:
        _write_sample(work, bundled, parts)
        to_spoke, to_hub = _fit_both_ways(work / "bridges", parts, seed=seed, track=track)
        _fill_store(work / "one.db", parts.one)
        _fill_store(work / "two.db", parts.two)
        (work / "federation.toml").write_text(FEDERATION, encoding="utf-8")
        ids = np.concatenate([parts.one.ids, parts.two.ids])
        systems = measure_systems(work / "federation.toml", bundled, ids, seed=seed, track=track)
    return DemoResult(
        folder=path,
        systems=systems,
        documents=len(parts.one) + len(parts.two),
        pairs=len(parts.pairs_one),
        queries=len(bundled.queries[HUB]),
        to_spoke=to_spoke.verdict,
        to_hub=to_hub.verdict,
        methods=(to_spoke.method, to_hub.method),
    )


def split_sample(bundled: Sample, *, seed: int = 0) -> Parts:
    """Cut the sample's documents in three at random; documents relevant to a query are no pairs.

    Parameters
    ----------
    bundled : Sample
    seed : int, default 0
    """
    ids = bundled.documents[HUB].ids
    draw = np.random.default_rng(seed)
    free = np.flatnonzero(~np.isin(ids, bundled.qrels.relevant_ids))
    pairs = np.sort(draw.choice(free, len(ids) // 3, replace=False))
    rest = draw.permutation(np.setdiff1d(np.arange(len(ids)), pairs))
    one, two = (np.sort(half) for half in np.array_split(rest, 2))

    def pick(model: str, rows: np.ndarray[Any, Any]) -> VectorSet:
        documents = bundled.documents[model]
        return documents.select(documents.rows_of(ids[rows]))

    return Parts(
        one=pick(HUB, one),
        two=pick(SPOKE, two),
        pairs_one=pick(HUB, pairs),
        pairs_two=pick(SPOKE, pairs),
    )


def _check_folder(folder: Path | str | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="isthmus-demo-"))
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ParameterError(
            expected="a new or an empty folder for the demo",
            got=f"{str(path)!r}, which {'holds something' if path.is_dir() else 'is a file'}",
            do="choose another one, or remove it yourself",
        )
    return path


def _fit_both_ways(
    folder: Path, parts: Parts, *, seed: int, track: Track[Any]
) -> tuple[Bridge, Bridge]:
    """Fit on what both owners know: their own store and the pairs; save, and read again."""
    one, two = _join(parts.one, parts.pairs_one), _join(parts.two, parts.pairs_two)
    folder.mkdir()
    loaded = []
    there: tuple[str, VectorSet, VectorSet, Purpose] = ("one-two", one, two, "search")
    back: tuple[str, VectorSet, VectorSet, Purpose] = ("two-one", two, one, "score")
    for name, source, target, purpose in (there, back):
        bridge = fit_bridge(source, target, purpose=purpose, seed=seed, track=track)
        bridge.save(folder / name)
        loaded.append(Bridge.load(folder / name))
    return loaded[0], loaded[1]


def _join(first: VectorSet, second: VectorSet) -> VectorSet:
    return VectorSet(
        np.concatenate([first.ids, second.ids]),
        np.concatenate([first.matrix(), second.matrix()]),
        first.space,
    )


def _fill_store(path: Path, vectors: VectorSet) -> None:
    from isthmus.stores.registry import open_store, resolve_url

    url = resolve_url(f"sqlite:///{path.name}?collection=docs", path.parent)
    with open_store(url, space=vectors.space) as store:
        store.upsert(vectors)


def _write_sample(folder: Path, bundled: Sample, parts: Parts) -> None:
    """Write the sample as files, for the commands that a user tries next."""
    for model in sample.MODELS:
        bundled.documents[model].save(folder / f"documents.{model}.npz")
        bundled.queries[model].save(folder / f"queries.{model}.npz")
    with (folder / "qrels.tsv").open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out, delimiter="\t", lineterminator="\n")
        rows.writerow(["query-id", "corpus-id", "score"])
        qrels = bundled.qrels
        scores = qrels.scores.astype(int).tolist()
        rows.writerows(
            zip(qrels.query_ids.tolist(), qrels.document_ids.tolist(), scores, strict=True)
        )
    with (folder / "pairs.csv").open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(["source", "target"])
        rows.writerows([one, one] for one in parts.pairs_one.ids.tolist())
