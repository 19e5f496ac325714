"""Federated search: one query, encoded once, over stores of different models.

The query is carried from the hub's space into every other, each store is searched for its K best,
the candidates are gathered in the hub's space and carried into the spaces that the fusion method
asks for, and one list is made of them. With two stores these are the steps 1 to 7 of HVMap's
figure 2, with more the hub and spokes of its figure 3.

Reference: HVMap, sections 3.3 and 3.4.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, get_args

import numpy as np

from isthmus._types import FloatArray, IdArray, IntArray
from isthmus.errors import (
    CountMismatchError,
    DuplicateIdError,
    EmptyInputError,
    InputError,
    ParameterError,
    UnknownNameError,
)
from isthmus.federate.candidates import Candidates, first_columns
from isthmus.federate.fusion import Fusion, make
from isthmus.federate.gather import Task, run
from isthmus.federate.memory import CarriedRows
from isthmus.federate.source import Source
from isthmus.federate.spokes import Spoke, make_spokes
from isthmus.rankings import Ranking
from isthmus.spaces import VectorSet

if TYPE_CHECKING:
    from isthmus.spaces import Space

__all__ = ["Dedup", "Federation"]

QUERY_BLOCK = 4096
"""Queries at a time, which bounds the candidate vectors in memory; fewer beyond this depth."""
USUAL_DEPTH = 100

COUNT_FROM = 1_000
"""From this depth on, stores are asked how many rows they have."""

REMEMBER = 16_384
"""Candidates per source and space that stay in memory."""

Dedup = Literal["none", "id"]


@dataclass(frozen=True)
class Federation:
    """Stores of one or more models, searched as one.

    Parameters
    ----------
    hub : Space
        The space that queries come in. A store may hold it, or none.
    sources : sequence of Source
        At least one, each with a name of its own.
    fusion : str or Fusion, default "score"
        How candidates are ranked: ``score``, ``agg``, ``rrf``, ``combmnz``, ``one_directional``,
        or a method with parameters (``Rrf(c=10)``).
    weight : float in [0, 1], optional
        Share of the native similarity, for ``score`` only; default: see `isthmus.federate.fusion`.
    depth : int, optional
        Candidates from each store; default: as many as answers are asked for, and never fewer, so
        that the whole answer may come from one store (HVMap, section 3.3.1).
    dedup : {"none", "id"}, default "none"
        ``id``: the same id in two stores is one document; the better candidate is kept. ``none``:
        stores number their documents independently.
    remember : int, default 16,384
        Candidates per source that stay in memory in each other space, so that a document which
        later queries find is not mapped again: at most 75 MB for 384 and 768 dimensions. A document
        that was replaced in its store is mapped anew; 0 remembers nothing.

    Raises
    ------
    EmptyInputError
        No sources.
    DuplicateIdError
        A name twice.
    SpaceMismatchError, WrongDirectionError, ConfigError
        A bridge that does not lead between the hub's space and its store's, is exchanged with the
        other, or is missing.
    UnknownNameError, ParameterError
        An unknown fusion method or way to merge; a parameter out of range; metrics that ``score``
        cannot add up.
    """

    hub: Space
    sources: Sequence[Source]
    _: KW_ONLY
    fusion: str | Fusion = "score"
    weight: float | None = None
    depth: int | None = None
    dedup: Dedup = "none"
    remember: int = REMEMBER
    spokes: tuple[Spoke, ...] = field(init=False, repr=False, compare=False)
    method: Fusion = field(init=False, repr=False, compare=False)
    _names: IdArray = field(init=False, repr=False, compare=False)
    _fingerprints: IdArray = field(init=False, repr=False, compare=False)
    _space: IntArray = field(init=False, repr=False, compare=False)
    _carried: tuple[tuple[CarriedRows, ...], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sources = tuple(self.sources)
        _check_names(sources)
        if self.depth is not None:
            _check_count(self.depth, name="depth")
        _check_count(self.remember, name="remember", least=0)
        if self.dedup not in get_args(Dedup):
            raise UnknownNameError.of("way to merge (dedup)", str(self.dedup), get_args(Dedup))
        spokes = make_spokes(self.hub, sources)
        places = {spoke.space.fingerprint: place for place, spoke in enumerate(spokes)}
        fingerprints = [source.store.space.fingerprint for source in sources]
        for name, value in (
            ("sources", sources),
            ("spokes", spokes),
            ("method", _make_fusion(self.fusion, self.weight)),
            ("_names", np.array([source.name for source in sources])),
            ("_fingerprints", np.array(fingerprints)),
            ("_space", np.array([places[one] for one in fingerprints])),
            ("_carried", tuple(tuple(CarriedRows(self.remember) for _ in spokes) for _ in sources)),
        ):
            object.__setattr__(self, name, value)
        _check_metrics(self.spokes, self.method)
        wanted = set(self.method.spaces(len(self.spokes)))
        for row, spoke in enumerate(self.spokes[1:], start=1):
            spoke.check(into=bool(wanted), back=bool(wanted - {row}))

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The spaces, the hub's first, the others in the order of the sources."""
        return tuple(spoke.space for spoke in self.spokes)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Open the stores and bridges that a federation's file names; see docs/federation.md.

        Raises
        ------
        MissingFileError, ConfigError
            And whatever the stores and bridges raise.
        """
        from isthmus.federate.config import load

        return load(Path(path), cls)

    def search(
        self,
        queries: VectorSet,
        *,
        k: int = 10,
        depth: int | None = None,
        native_queries: Mapping[str, VectorSet] | None = None,
    ) -> Ranking:
        """Return the k best documents of all stores for each query.

        Parameters
        ----------
        queries : VectorSet
            In the hub's space.
        k : int, default 10
            Answers per query, at least 1 (HVMap, section 5.1.3: K = 10). Over 1,000, no more
            columns than the stores have rows.
        depth : int, optional
            Candidates from each store for this search; default: that of the federation.
        native_queries : mapping of source name to VectorSet, optional
            The same queries, encoded by the model of that source: used there in place of the
            mapped ones. For comparisons "with both encoders", and needed where ``agg``, ``rrf`` or
            ``combmnz`` run without a bridge to a store.

        Returns
        -------
        Ranking
            ``scores`` are the fusion method's; ``native_scores`` the similarity in each document's
            own space; ``mapped_scores`` that in the other space (the mean over the others, for more
            than two), NaN where the method does not map.

        Raises
        ------
        SpaceMismatchError
            Queries of another space than the hub's, or native ones of another than their store's.
        ParameterError, CountMismatchError, StoreError
        """
        _check_count(k, name="k")
        k, each = self._within_rows(k, self._depth(k, depth))
        by_space = self._queries(queries, native_queries or {})
        blocks = []
        step = max(1, QUERY_BLOCK * USUAL_DEPTH // max(each, USUAL_DEPTH))
        for start in range(0, len(queries), step):
            block = slice(start, start + step)
            candidates = self._candidates([one[block] for one in by_space], each)
            blocks.append(self.rank(candidates, queries.ids[block], k=k))
        return Ranking.concatenate(blocks)

    def candidates(
        self,
        queries: VectorSet,
        *,
        depth: int,
        native_queries: Mapping[str, VectorSet] | None = None,
    ) -> Candidates:
        """Return the candidates before they are ranked, all in memory.

        For trying several fusion methods or weights on one search: hand the result to
        `Fusion.score`. Parameters as in `search`.
        """
        _check_count(depth, name="depth")
        _, depth = self._within_rows(1, depth)
        return self._candidates(self._queries(queries, native_queries or {}), depth)

    def rank(self, candidates: Candidates, query_ids: IdArray, *, k: int) -> Ranking:
        """Return the k best candidates per query by this federation's fusion method.

        As many columns as there are candidates, where these are fewer than k.
        """
        scores = self.method.score(candidates)
        if self.dedup != "none":
            scores = _keep_best(scores, candidates.same)
        best = _order(scores)[:, :k]
        rows = np.arange(len(best))[:, None]
        chosen = scores[rows, best]
        absent = np.isnan(chosen)
        nothing = np.float32("nan")
        holder = candidates.source[best]
        return Ranking(
            query_ids=query_ids,
            ids=np.where(absent, "", candidates.ids[rows, best]),
            scores=chosen,
            stores=np.where(absent, "", self._names[holder]),
            spaces=np.where(absent, "", self._fingerprints[holder]),
            native_scores=np.where(absent, nothing, candidates.native[rows, best]),
            mapped_scores=np.where(absent, nothing, candidates.mapped[rows, best]),
        )

    def close(self) -> None:
        """Close every store; closing twice does nothing."""
        for source in self.sources:
            source.store.close()

    def __enter__(self) -> Self:
        """Return the federation, to be closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every store."""
        self.close()

    def _depth(self, k: int, depth: int | None) -> int:
        if depth is not None:
            _check_count(depth, name="depth")
        return max(k, depth or self.depth or k)

    def _within_rows(self, k: int, depth: int) -> tuple[int, int]:
        """Return both, no larger than there are rows: what is asked for is also allocated."""
        if depth <= COUNT_FROM:  # counting costs more than empty columns
            return k, depth
        counts = [source.store.count() for source in self.sources]
        return max(1, min(k, sum(counts))), max(1, min(depth, max(counts)))

    def _queries(self, queries: VectorSet, native: Mapping[str, VectorSet]) -> list[FloatArray]:
        """Return the queries in every space, the native ones where they are given."""
        if not isinstance(queries, VectorSet):
            raise InputError(
                expected=f"queries as a VectorSet in {self.hub}",
                got=f"a {type(queries).__name__}, which names no space",
                do="pass VectorSet(ids, vectors, space), with the space of the model that made "
                "them",
            )
        self.hub.check(queries.space, what="queries")
        by_space: dict[int, FloatArray] = {0: queries.matrix()}
        names = [source.name for source in self.sources]
        for name, vectors in native.items():
            if name not in names:
                raise UnknownNameError.of("source", name, names)
            source = self.sources[names.index(name)]
            source.store.space.check(vectors.space, what=f"native queries of source {name!r}")
            if not np.array_equal(vectors.ids, queries.ids):
                raise CountMismatchError(
                    expected=f"native queries of source {name!r} with the ids of the queries, in "
                    "their order",
                    got=f"{len(vectors)} ids that differ",
                    do="select the rows in the queries' order first",
                )
            by_space[int(self._space[names.index(name)])] = vectors.matrix()
        return [
            by_space[space] if space in by_space else spoke.from_hub(by_space[0])
            for space, spoke in enumerate(self.spokes)
        ]

    def _candidates(self, queries: Sequence[FloatArray], depth: int) -> Candidates:
        wanted = self.method.spaces(len(self.spokes))
        catches = run(
            [
                Task(source, int(space), self.spokes, queries, wanted, depth, carried)
                for source, space, carried in zip(
                    self.sources, self._space, self._carried, strict=True
                )
            ]
        )
        ids = np.concatenate([catch.ids for catch in catches], axis=1)
        return Candidates(
            ids=ids,
            similarities=np.concatenate([catch.similarities for catch in catches], axis=2),
            source=np.repeat(np.arange(len(catches)), depth),
            rank=np.tile(np.arange(1, depth + 1), len(catches)),
            space=np.repeat(self._space, depth),
            same=first_columns(ids, merge=self.dedup == "id"),
        )


def _check_names(sources: Sequence[Source]) -> None:
    if not sources:
        raise EmptyInputError(
            expected="at least one source in a federation", got="none", do="add a store"
        )
    names = [source.name for source in sources]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DuplicateIdError(
            expected="a name of its own for each source",
            got=f"{', '.join(repeated)} more than once",
            do="rename one of them: hits are told apart by it",
        )


def _check_count(value: int, *, name: str, least: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(
            expected=f"{name} as a whole number of at least {least}",
            got=f"{value!r}",
            do="change it",
        )


def _make_fusion(fusion: str | Fusion, weight: float | None) -> Fusion:
    if isinstance(fusion, Fusion):
        if weight is not None:
            raise ParameterError(
                expected="the weight inside the fusion method",
                got=f"both {fusion} and weight {weight}",
                do="give only one of them",
            )
        return fusion
    return make(fusion) if weight is None else make(fusion, weight=weight)


def _check_metrics(spokes: Sequence[Spoke], method: Fusion) -> None:
    """Refuse to add up a cosine and a distance."""
    metrics = sorted({spokes[space].space.metric for space in method.spaces(len(spokes))})
    if len(metrics) > 1:
        raise ParameterError(
            expected=f"spaces of one metric for fusion method {method.name!r}: it adds up their "
            "similarities",
            got=" and ".join(metrics),
            do="use one_directional, which compares in one space, or rrf",
        )


def _order(scores: FloatArray) -> IntArray:
    """Return the columns best first, ties in the order of the columns, NaN last."""
    return np.argsort(-scores, axis=1, kind="stable")


def _keep_best(scores: FloatArray, same: IntArray) -> FloatArray:
    """Return the scores with NaN for all but the best candidate of each document."""
    width = scores.shape[1]
    rows = np.arange(len(scores))[:, None]
    place = np.argsort(_order(scores), axis=1)
    best = np.full(scores.shape, width, dtype=np.int64)
    np.minimum.at(best, (rows, same), place)
    return np.where(place == best[rows, same], scores, np.float32("nan"))
