"""What the benchmarks of federation share: data, pairs, fitted maps, stores, and what is measured.

Documents of a data set are cut in two: auxiliary ones, relevant to no query, whose vectors in both
models are pairs, and the rest, which lies in the stores. Pairs are named by where they come from:

- ``in:0.2``: a random fifth of the data set's own documents;
- ``other``: all documents of the other data set;
- ``stackoverflow``: 20,000 titles, for the two models that have embedded them.

The stores hold the same documents whatever the pairs are. Pairs of other data sets do not depend on
the split, and their maps are fitted once, with seed 0.
"""

from __future__ import annotations

import argparse
import base64
import inspect
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import common
import numpy as np

from isthmus import Bridge, Federation, Pairs, Space, VectorSet
from isthmus.bridge.calibration import Calibration
from isthmus.bridge.provenance import Provenance
from isthmus.bridge.scope import Scope
from isthmus.bridge.verdict import Verdict
from isthmus.evaluate.report import Report
from isthmus.evaluate.retrieval import ndcg, recall
from isthmus.federate import Candidates, Fusion, Source
from isthmus.federate.fusion import Score
from isthmus.federate.fusion.score import COMMON
from isthmus.maps import Centre, Compose, Normalise, make, names
from isthmus.neighbors import top_k
from isthmus.spaces import Qrels
from isthmus.stores import Store, open_store

DATASETS = ("climate-fever", "scifact")
MODELS = ("minilm-l6", "para-l3", "mpnet")
TITLES, TITLE_MODELS = "stackoverflow", ("minilm-l6", "mpnet")
OTHER = dict(zip(DATASETS, DATASETS[::-1], strict=True))
OBJECTIVES = ("fuzzy_contrastive", "contrastive", "mse", "rkd_mse")
LEARNED = tuple(f"mlp:objective={name},start=procrustes_ridge" for name in OBJECTIVES)
"""Objectives are compared from one start, so that nothing else differs."""
DEFAULT_MLP = "mlp:objective=fuzzy_contrastive"
BASE_MAPS = ("dummy", "auto", "procrustes", "procrustes_ridge", "ridge", DEFAULT_MLP, *LEARNED)
RIVAL_MAPS = ("drift_adapter", "embedding_converter")
K = 10
SHARE = 0.2
MAPS_ONLY, WITH_COMMON = Score(common=0.0), Score(common=COMMON)
"""HVMap's formula, and with the common space, which is the default where sources have one."""


def known_maps() -> list[str]:
    """List the maps of the grid that this version has."""
    return [*BASE_MAPS, *(name for name in RIVAL_MAPS if name in names())]


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with what every benchmark of federation takes."""
    parser = common.arguments(description)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--again", action="store_true", help="run cells that are done, too")
    parser.add_argument("--queries", type=int, help="only so many queries: to try a command")
    parser.add_argument(
        "--keep-maps", type=Path, help="folder for fitted maps, shared by commands of one version"
    )
    return parser


@dataclass(frozen=True)
class Problem:
    """A data set, where its pairs come from, and the seed of everything random."""

    data: Path
    dataset: str
    auxiliary: str = f"in:{SHARE}"
    seed: int = 0
    queries: int | None = None

    def documents(self, model: str) -> VectorSet:
        """Return all documents in one model."""
        return documents(self.data, self.dataset, model)

    def asked(self, model: str) -> VectorSet:
        """Return the judged queries in one model."""
        found = common.queries(self.data, self.dataset, model)
        return found if self.queries is None else found.select(np.arange(self.queries))

    @property
    def fit_seed(self) -> int:
        """Seed of the maps: pairs from elsewhere are the same for all splits, and fitted once."""
        return self.seed if self.auxiliary.startswith("in:") else 0

    def split(self) -> tuple[np.ndarray, np.ndarray]:
        """Return auxiliary rows, and the rows that lie in stores; in random order."""
        share = float(self.auxiliary[3:]) if self.auxiliary.startswith("in:") else SHARE
        ids = self.documents(next(iter(models_of(self.data, self.dataset)))).ids
        qrels = judgements(self.data, self.dataset)
        auxiliary, rest = common.split_auxiliary(qrels, ids, share=share, seed=self.seed)
        return auxiliary, rest

    def pairs(self, source: str, target: str) -> Pairs:
        """Return the auxiliary pairs of two models."""
        if self.auxiliary.startswith("in:"):
            sides = self.documents(source), self.documents(target)
            rows = self.split()[0]
            return Pairs.from_rows(*sides, rows, rows)
        dataset = OTHER[self.dataset] if self.auxiliary == "other" else self.auxiliary
        return Pairs.from_ids(*(documents(self.data, dataset, name) for name in (source, target)))


@lru_cache(maxsize=16)
def documents(data: Path, dataset: str, model: str) -> VectorSet:
    return common.documents(data, dataset, model)


@lru_cache(maxsize=4)
def judgements(data: Path, dataset: str) -> Qrels:
    return common.judgements(data, dataset)


@lru_cache(maxsize=8)
def models_of(data: Path, dataset: str) -> tuple[str, ...]:
    paths = sorted((data / dataset).glob("docs.*.npz"))
    return tuple(path.name.removeprefix("docs.").removesuffix(".npz") for path in paths)


def make_map(spec: str, seed: int) -> Compose:
    """Make an unfitted map with its steps from ``name`` or ``name:parameter=value,...``."""
    name, _, told = spec.partition(":")
    params = dict(one.split("=") for one in told.split(",") if one)
    values = {key: _value(text) for key, text in params.items()}
    takes_seed = "seed" in inspect.signature(type(make(name)).__init__).parameters
    inner = make(name, **values, **({"seed": seed} if takes_seed else {}))
    steps = [Normalise(), *([Centre()] if inner.centred else [])]
    return Compose(steps, inner, steps)


def fit_map(
    spec: str, source: np.ndarray, target: np.ndarray, *, seed: int, collection: np.ndarray
) -> Compose:
    """Fit a map on pairs; those that are trained stop by neighbours in the target's collection."""
    made = make_map(spec, seed)
    more = {"unpaired_target": collection} if made.inner.sees_collection else {}
    return made.fit(source, target, **more)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


@dataclass
class Maps:
    """Fitted maps, each fitted once in a run, or once for all runs that share a folder."""

    folder: Path | None = None
    fitted: dict[str, Compose] = field(default_factory=dict)

    def bridge(self, spec: str, problem: Problem, source: str, target: str, *, hub: str) -> Bridge:
        """Return the map of a problem's pairs as a bridge."""
        key = self._key(spec, problem, source, target)
        if spec == "auto":  # chosen by what it is for
            key += f".{'search' if source == hub else 'score'}"
        spaces = [problem.documents(name).space for name in (source, target)]
        if key not in self.fitted:
            self.fitted[key] = self._read(key) or self._fit(key, spec, problem, source, target)
        return bridge_of(self.fitted[key], *spaces)

    def put(self, spec: str, problem: Problem, source: str, target: str, fitted: Compose) -> None:
        """Let this map be the one of that name, for this run only."""
        self.fitted[self._key(spec, problem, source, target)] = fitted

    def _key(self, spec: str, problem: Problem, source: str, target: str) -> str:
        return f"{problem.dataset}.{problem.auxiliary}.{problem.fit_seed}.{source}.{target}.{spec}"

    def _fit(self, key: str, spec: str, problem: Problem, source: str, target: str) -> Compose:
        pairs, seed = problem.pairs(source, target), problem.fit_seed
        if spec == "auto":
            purpose = key.rpartition(".")[2]
            inside = problem.documents(target) if problem.auxiliary.startswith("in:") else None
            fitted = Bridge.fit(pairs, purpose=purpose, collection=inside, seed=seed).map
        else:
            held = problem.documents(target).matrix()
            fitted = fit_map(spec, pairs.source, pairs.target, seed=seed, collection=held)
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            told = json.dumps(fitted.describe())
            np.savez(self._path(key), description=np.array(told), **fitted.get_state())
        return fitted

    def _read(self, key: str) -> Compose | None:
        if self.folder is None or not self._path(key).exists():
            return None
        with np.load(self._path(key)) as arrays:
            told = json.loads(str(arrays["description"]))
            state = {name: arrays[name] for name in arrays.files if name != "description"}
        return Compose.from_description(told, state)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key.replace(':', '=')}.npz" if self.folder else Path()


def bridge_of(fitted: Compose, source: Space, target: Space) -> Bridge:
    """Make a bridge of a fitted map, without its report: a federation does not look at it."""
    dim = fitted.n_features_in_
    nothing = np.empty((dim, 0), dtype=np.float32)
    return Bridge(
        source=source,
        target=target,
        map=fitted,
        report=Report({}, {}),
        verdict=Verdict(status="bridge", reason="fitted by a benchmark, which measures it"),
        calibration=Calibration.identity(),
        scope=Scope(np.zeros(dim, np.float32), nothing, 4.0, unit_rows=True, kind=source.kind),
        provenance=Provenance.now(seed=0, n_pairs=0, source_kind="", target_kind=""),
    )


@dataclass(frozen=True)
class Stage:
    """The filled stores of a problem, to be searched with any maps.

    ``models`` and ``rows`` say per store what it holds; queries are those of the hub's model.
    """

    problem: Problem
    hub: str
    models: Sequence[str]
    rows: Sequence[np.ndarray]
    stores: Sequence[Store]

    @property
    def spokes(self) -> list[str]:
        """The models other than the hub's, in the order of the stores."""
        return [name for name in dict.fromkeys(self.models) if name != self.hub]

    def bridges(self, spec: str, maps: Maps, model: str) -> tuple[Bridge, Bridge]:
        """Return the bridges from the hub's space to a model's and back, ``out|back`` for two."""
        out, _, home = spec.partition("|")
        there = maps.bridge(out, self.problem, self.hub, model, hub=self.hub)
        back = maps.bridge(home or out, self.problem, model, self.hub, hub=self.hub)
        return there, back

    def pool(
        self,
        spec: str | None,
        maps: Maps,
        fusion: Fusion,
        *,
        depth: int = K,
        native: bool = False,
        **settings: Any,
    ) -> Candidates:
        """Return the candidates; ``native`` asks every store with queries of its own model."""
        federation, asked, encoded = self.federation(spec, maps, fusion, **settings)
        return federation.candidates(asked, depth=depth, native_queries=encoded if native else None)

    def federation(
        self, spec: str | None, maps: Maps, fusion: Fusion, **settings: Any
    ) -> tuple[Federation, VectorSet, dict[str, VectorSet]]:
        """Return the federation, queries of the hub's model, and per source those of its own."""
        sources = []
        bridges = {name: self.bridges(spec, maps, name) for name in (self.spokes if spec else [])}
        common_of = {
            name: maps.bridge("cca", self.problem, self.hub, name, hub=self.hub)
            for name in (self.spokes if fusion.common_directions else [])
        }
        for place, (model, store) in enumerate(zip(self.models, self.stores, strict=True)):
            ends = bridges.get(model, (None, None))
            sources.append(Source(str(place), store, *ends, common=common_of.get(model)))
        asked = {name: self.problem.asked(name) for name in {self.hub, *self.models}}
        native = {str(place): asked[name] for place, name in enumerate(self.models)}
        federation = Federation(
            self.problem.documents(self.hub).space, sources, fusion=fusion, **settings
        )
        return federation, asked[self.hub], native

    def scored(self, spec: str, maps: Maps, judge: Judge, *, k: int = K) -> dict[str, np.ndarray]:
        """Return both measures of score through a map, and of score with the common space."""
        pool = self.pool(spec, maps, WITH_COMMON, depth=k)
        ways = {spec: MAPS_ONLY, f"{spec}, common": WITH_COMMON}
        return judge.of_scores(pool, {name: way.score(pool) for name, way in ways.items()}, k=k)

    def integrated(self, model: str, bridges: Mapping[str, Bridge], *, k: int = K) -> np.ndarray:
        """Return ids of the k best of all rows in one model: native, or through bridges to it."""
        parts = []
        for name, rows in zip(self.models, self.rows, strict=True):
            if name in bridges:
                parts.append(bridges[name].transform(self.problem.documents(name).matrix()[rows]))
            else:
                parts.append(self.problem.documents(model).matrix()[rows])
        every, first = np.unique(np.concatenate(self.rows), return_index=True)
        ids = self.problem.documents(model).ids[every]
        found = top_k(self.problem.asked(model).matrix(), np.concatenate(parts)[first], k=k)
        return ids[found.rows]


@contextmanager
def stage(
    problem: Problem, hub: str, models: Sequence[str], rows: Sequence[np.ndarray]
) -> Iterator[Stage]:
    """Fill one SQLite store per model and its rows; they are gone when the block ends."""
    with TemporaryDirectory() as folder:
        stores: list[Store] = []
        for place, (name, some) in enumerate(zip(models, rows, strict=True)):
            held = problem.documents(name).select(some)
            url = f"sqlite:///{folder}/{place}.db?collection=docs"
            stores.append(open_store(url, space=held.space))
            stores[-1].upsert(held)
        yield Stage(problem, hub, models, rows, stores)
        for store in stores:
            store.close()


@dataclass(frozen=True)
class Judge:
    """nDCG and Recall per query."""

    query_ids: np.ndarray
    qrels: Qrels

    @classmethod
    def of(cls, problem: Problem, model: str) -> Judge:
        """Return that of a problem's queries."""
        return cls(problem.asked(model).ids, judgements(problem.data, problem.dataset))

    def of_ids(self, ids: np.ndarray, *, k: int = K) -> np.ndarray:
        """Return nDCG@k and Recall@k of ranked ids, of shape (2, m)."""
        return self._measure(self.qrels.gains(self.query_ids, ids[:, :k]), k)

    def of_scores(
        self, pool: Candidates, scores: Mapping[str, np.ndarray], *, k: int = K
    ) -> dict[str, np.ndarray]:
        """Return the same for several ways to score one pool of candidates."""
        gains = self.qrels.gains(self.query_ids, pool.ids)
        found = {}
        for name, values in scores.items():
            order = np.argsort(-values, axis=1, kind="stable")[:, :k]
            found[name] = self._measure(np.take_along_axis(gains, order, axis=1), k)
        return found

    def _measure(self, gains: np.ndarray, k: int) -> np.ndarray:
        ideal = self.qrels.ideal(self.query_ids, k)
        relevant = self.qrels.n_relevant(self.query_ids)
        return np.stack([ndcg(gains, ideal, k), recall(gains, relevant, k)])


def summary(found: Mapping[str, np.ndarray], *, k: int = K) -> dict[str, dict[str, float]]:
    """Return the means of both measures by the name of the row."""
    return {
        measure: {name: float(np.nanmean(values[place])) for name, values in found.items()}
        for place, measure in enumerate((f"nDCG@{k}", f"Recall@{k}"))
    }


def pack(values: np.ndarray) -> str:
    """Write values per query as text: float16, compressed."""
    return base64.b85encode(zlib.compress(values.astype("<f2").tobytes(), 9)).decode()


def unpack(text: str) -> np.ndarray:
    """Read what `pack` wrote, as float64."""
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), "<f2").astype(np.float64)
