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
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, get_args

import numpy as np

from isthmus._types import FloatArray, IdArray, IntArray
from isthmus.errors import ParameterError, UnknownNameError
from isthmus.federate.answers import make_ranking
from isthmus.federate.asked import in_every_space
from isthmus.federate.budget import Budget
from isthmus.federate.candidates import Candidates
from isthmus.federate.checks import check_count, check_metrics, check_names, make_fusion
from isthmus.federate.common import join_spaces
from isthmus.federate.fusion import Fusion
from isthmus.federate.gather import Count, run
from isthmus.federate.memory import CarriedRows
from isthmus.federate.merging import DEDUP_SIMILARITY
from isthmus.federate.patience import RETRIES, TIMEOUT_SECONDS, Clock, Patience, Problem
from isthmus.federate.pool import Pool
from isthmus.federate.source import Source
from isthmus.federate.spokes import Spoke, make_spokes
from isthmus.rankings import Ranking
from isthmus.spaces import VectorSet

if TYPE_CHECKING:
    from isthmus.spaces import Space

__all__ = ["Calibration", "Dedup", "Federation"]

QUERY_BLOCK = 4096
"""Queries at a time, which bounds the candidate vectors in memory; fewer beyond this depth."""
USUAL_DEPTH = 100

COUNT_FROM = 1_000
"""From this depth on, stores are asked how many rows they have."""

REMEMBER = 16_384
"""Candidates per source and space that stay in memory."""

Dedup = Literal["none", "id", "vector"]


class Calibration(Protocol):
    """What turns canonical scores into probabilities, per source."""

    def probability(self, scores: FloatArray, source: IntArray, /) -> FloatArray:
        """Return probabilities (m, w) for scores (m, w), whose columns come from source (w,)."""

    def check(self, names: Sequence[str], /) -> None:
        """Refuse sources of other names than it was made for."""


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
    dedup : {"none", "id", "vector"}, default "none"
        ``id``: the same id in two stores is one document. ``vector``: so are candidates whose
        vectors agree, see docs/federation.md. The better candidate is shown, and names the others.
        ``none``: stores number their documents independently.
    dedup_similarity : float in [0, 1], default 0.9
        For ``vector``: cosine and lead in the hub's space from which on candidates of stores with
        different spaces are one document (`isthmus.federate.merging`); stores with one space are
        compared there, and copies are equal but for rounding. Measured in docs/federation.md.
    remember : int, default 16,384
        Candidates per source that stay in memory in each other space, so that a document which
        later queries find is not mapped again: at most 75 MB for 384 and 768 dimensions. A document
        that was replaced in its store is mapped anew; 0 remembers nothing.
    timeout : float or None, default 30.0
        Seconds for one search of one store, for up to 100 queries; a larger block has as many times
        more. Attempts and pauses together; mapping is not counted. Not for stores that compute in
        this process, unless their source says so. None waits as long as it takes.
    retries : int, default 2
        Further attempts after an error that may pass, after pauses of 0.1 s, 0.2 s and so on, each
        shortened by up to a half at random.
    require_all : bool, default False
        Whether a store that fails ends the search; else the answers of the others are given, and
        `Ranking.outages` says what is missing.
    budget : {"uniform", "adaptive"} or Budget, default "uniform"
        Which stores are searched for which query: all of them, or those that can contribute
        (`isthmus.federate.adaptive`, fitted here by scanning the stores once).
    calibration : object with ``probability``, optional
        Turns canonical scores into probabilities, before the best candidate of a document is chosen
        and hits are ranked; see `isthmus.federate.calibration`.
    clock : Clock
        Another one for tests.
    seed : int, default 0
        Of the pauses between attempts.

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
    dedup_similarity: float = DEDUP_SIMILARITY
    remember: int = REMEMBER
    timeout: float | None = TIMEOUT_SECONDS
    retries: int = RETRIES
    require_all: bool = False
    budget: str | Budget = "uniform"
    calibration: Calibration | None = None
    clock: Clock = field(default_factory=Clock, repr=False)
    seed: int = 0
    spokes: tuple[Spoke, ...] = field(init=False, repr=False, compare=False)
    method: Fusion = field(init=False, repr=False, compare=False)
    _names: IdArray = field(init=False, repr=False, compare=False)
    _fingerprints: IdArray = field(init=False, repr=False, compare=False)
    _pool: Pool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sources = tuple(self.sources)
        check_names(sources)
        self._check_parameters()
        spokes = make_spokes(self.hub, sources)
        places = {spoke.space.fingerprint: place for place, spoke in enumerate(spokes)}
        fingerprints = [source.store.space.fingerprint for source in sources]
        self._set("sources", sources)
        self._set("spokes", spokes)
        self._set("method", make_fusion(self.fusion, self.weight))
        self._set("_names", np.array([source.name for source in sources]))
        self._set("_fingerprints", np.array(fingerprints))
        check_metrics(spokes, self.method)
        if self.calibration is not None:
            self.calibration.check(self._names.tolist())
        wanted = set(self.method.spaces(len(spokes)))
        for row, spoke in enumerate(spokes[1:], start=1):
            back = bool(wanted - {row}) or self.dedup == "vector"
            spoke.check(into=bool(wanted), back=back)
        space_of = np.array([places[one] for one in fingerprints])
        directions = self.method.common_directions
        pool = Pool(
            sources=sources,
            spokes=spokes,
            space_of=space_of,
            carried=tuple(tuple(CarriedRows(self.remember) for _ in spokes) for _ in sources),
            patience=tuple(self._patience(place, one) for place, one in enumerate(sources)),
            budget=self._make_budget(),
            dedup=self.dedup,
            dedup_similarity=self.dedup_similarity,
            require_all=self.require_all,
            common=join_spaces(sources, spokes, space_of, directions=directions)
            if directions
            else None,
        )
        self._set("_pool", pool)

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The spaces, the hub's first, the others in the order of the sources."""
        return tuple(spoke.space for spoke in self.spokes)

    @classmethod
    def load(cls, path: Path | str, **changes: Any) -> Self:
        """Open the stores and bridges that a federation's file names; see docs/federation.md.

        Parameters
        ----------
        path : Path or str
        **changes
            Parameters of the federation in place of what the file says.

        Raises
        ------
        MissingFileError, ConfigError
            And whatever the stores and bridges raise.
        """
        from isthmus.federate.config import load

        return load(Path(path), cls, changes)

    def search(
        self,
        queries: VectorSet,
        *,
        k: int = 10,
        depth: int | None = None,
        native_queries: Mapping[str, VectorSet] | None = None,
        explain: bool = False,
    ) -> Ranking:
        """Return the k best documents of all stores for each query.

        Hand over many queries at once where you have them: a batch costs one search per store and
        one mapping per distinct document, however many queries found it.

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
        explain : bool, default False
            Whether to keep the similarity of every hit in every space (`Ranking.similarities`).

        Returns
        -------
        Ranking
            Stores that failed are left out and listed under ``outages``.
            ``scores`` are the fusion method's; ``native_scores`` the similarity in each document's
            own space; ``mapped_scores`` that in the other space (the mean over the others, for more
            than two), NaN where the method does not map.

        Raises
        ------
        SpaceMismatchError
            Queries of another space than the hub's, or native ones of another than their store's.
        ParameterError, CountMismatchError
        StoreError
            Every store failed; or one did, and all are required.
        """
        check_count(k, name="k")
        k, each = self._within_rows(k, self._depth(k, depth))
        by_space = self._queries(queries, native_queries or {})
        blocks = []
        step = max(1, QUERY_BLOCK * USUAL_DEPTH // max(each, USUAL_DEPTH))
        for start in range(0, len(queries), step):
            block = slice(start, start + step)
            candidates = self._candidates(
                [one[block] for one in by_space], each, k, explain=explain
            )
            blocks.append(self.rank(candidates, queries.ids[block], k=k))
        return Ranking.concatenate(blocks)

    def candidates(
        self,
        queries: VectorSet,
        *,
        depth: int,
        native_queries: Mapping[str, VectorSet] | None = None,
        explain: bool = False,
    ) -> Candidates:
        """Return the candidates before they are ranked, all in memory.

        For trying several fusion methods or weights on one search: hand the result to
        `Fusion.score`. Parameters as in `search`.
        """
        check_count(depth, name="depth")
        _, depth = self._within_rows(1, depth)
        by_space = self._queries(queries, native_queries or {})
        return self._candidates(by_space, depth, depth, explain=explain)

    def rank(self, candidates: Candidates, query_ids: IdArray, *, k: int) -> Ranking:
        """Return the k best candidates per query by this federation's fusion method.

        As many columns as there are candidates, where these are fewer than k.
        """
        scores = self.method.score(candidates)
        if self.calibration is not None:
            scores = self.calibration.probability(scores, candidates.source)
        return make_ranking(
            candidates,
            scores,
            query_ids,
            k=k,
            merge=self.dedup != "none",
            names=self._names,
            fingerprints=self._fingerprints,
            spaces=self.spaces,
        )

    def close(self) -> None:
        """Close every store; closing twice does nothing.

        A store in which a call that timed out is still running is closed when that call ends.
        """
        for source, patience in zip(self.sources, self._pool.patience, strict=True):
            patience.close(source.store.close)

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

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_parameters(self) -> None:
        if self.depth is not None:
            check_count(self.depth, name="depth")
        check_count(self.remember, name="remember", least=0)
        check_count(self.retries, name="retries", least=0)
        check_count(self.seed, name="seed", least=0)
        if self.dedup not in get_args(Dedup):
            raise UnknownNameError.of("way to merge (dedup)", str(self.dedup), get_args(Dedup))
        if not 0 <= self.dedup_similarity <= 1:
            raise ParameterError(
                expected="dedup_similarity from 0 to 1",
                got=f"{self.dedup_similarity}",
                do="leave it out for the default",
            )

    def _patience(self, place: int, source: Source) -> Patience:
        timeout = None if source.in_process else self.timeout
        return Patience(
            source.name,
            timeout=timeout if source.timeout is None else source.timeout,
            retries=self.retries,
            clock=self.clock,
            seed=[self.seed, place],
        )

    def _make_budget(self) -> Budget | None:
        """Return None for the uniform one, which needs no choice."""
        budget = self.budget
        if budget == "adaptive":
            from isthmus.federate.adaptive import Adaptive

            budget = Adaptive.fit(self.hub, self.sources, seed=self.seed)
        if not isinstance(budget, Budget):
            if budget != "uniform":
                raise UnknownNameError.of("budget", str(budget), ("uniform", "adaptive"))
            return None
        budget.check(self.hub, self._names.tolist())
        return budget

    def _depth(self, k: int, depth: int | None) -> int:
        if depth is not None:
            check_count(depth, name="depth")
        return max(k, depth or self.depth or k)

    def _within_rows(self, k: int, depth: int) -> tuple[int, int]:
        """Return both, no larger than there are rows: what is asked for is also allocated."""
        if depth <= COUNT_FROM:  # counting costs more than empty columns
            return k, depth
        asked = run([Count(source) for source in self.sources], self._pool.patience)
        counts = [COUNT_FROM if isinstance(one, Problem) else one for one in asked]
        return max(1, min(k, sum(counts))), max(1, min(depth, max(counts)))

    def _queries(self, queries: VectorSet, native: Mapping[str, VectorSet]) -> list[FloatArray]:
        return in_every_space(
            queries,
            native,
            hub=self.hub,
            sources=self.sources,
            space_of=self._pool.space_of,
            spokes=self.spokes,
        )

    def _candidates(
        self, queries: Sequence[FloatArray], depth: int, k: int, *, explain: bool
    ) -> Candidates:
        wanted = self.method.spaces(len(self.spokes))
        return self._pool.candidates(queries, wanted=wanted, depth=depth, k=k, explain=explain)
