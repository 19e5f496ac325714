"""Federated search: one query, encoded once, over stores of different models.

The query is carried from the hub's space into every other, each store is searched for its K best,
the candidates are gathered in the hub's space and carried into the spaces that the fusion method
asks for, and one list is made of them. With two stores these are the steps 1 to 7 of HVMap's
figure 2, with more the hub and spokes of its figure 3 (sections 3.3 and 3.4.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from isthmus._types import FloatArray, IdArray
from isthmus._validate import check_whole
from isthmus.federate.answers import make_ranking
from isthmus.federate.assembly import assemble
from isthmus.federate.budget import Budget
from isthmus.federate.candidates import Candidates
from isthmus.federate.checks import check_min_probability, check_parameters
from isthmus.federate.fusion import Fusion
from isthmus.federate.memory import REMEMBER
from isthmus.federate.merging import DEDUP_SIMILARITY
from isthmus.federate.patience import RETRIES, TIMEOUT_SECONDS, Clock
from isthmus.federate.pool import Pool
from isthmus.federate.scoring import Scoring
from isthmus.federate.source import Source
from isthmus.federate.spokes import Spoke
from isthmus.rankings import Ranking
from isthmus.spaces import VectorSet

if TYPE_CHECKING:
    from isthmus.federate.calibration import ScoreCalibration
    from isthmus.spaces import Space

__all__ = ["Dedup", "Federation"]

QUERY_BLOCK = 4096
"""Queries at a time, which bounds the candidate vectors in memory; fewer beyond this depth."""
USUAL_DEPTH = 100

Dedup = Literal["none", "id", "vector"]


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
        different spaces are one document (`isthmus.federate.merging`, docs/federation.md).
    remember : int, default 16,384
        Candidates per source that stay in memory in each other space and are not mapped again: at
        most 50 MB in 768 dimensions for each source and space, and for each common space. A
        document that was replaced is mapped anew.
    timeout : float or None, default 30.0
        Seconds for one search of one store, for up to 100 queries, attempts and pauses together; a
        larger block has as many times more. Not for stores that compute in this process, unless
        their source says so. None waits as long as it takes.
    retries : int, default 2
        Further attempts after an error that may pass, after pauses of up to 0.1 s, 0.2 s and so on.
    require_all : bool, default False
        Whether a store that fails ends the search; else `Ranking.outages` says what is missing.
    budget : {"uniform", "adaptive"} or Budget, default "uniform"
        Which stores are searched for which query: all of them, or those that can contribute
        (`isthmus.federate.adaptive`, fitted here by scanning the stores once).
    calibration : ScoreCalibration, optional
        Gives the probability that each hit is relevant, beside its score
        (`isthmus.federate.calibration`); hits are ranked by their scores.
    clock : Clock, for tests
    seed : int, default 0
        Of the pauses between attempts.

    Raises
    ------
    EmptyInputError, DuplicateIdError
        No sources; a name twice.
    SpaceMismatchError, WrongDirectionError, ConfigError
        A bridge that does not lead between the hub's space and its store's, or is missing.
    UnknownNameError, ParameterError
        Among them: metrics that ``score`` cannot add up.
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
    calibration: ScoreCalibration | None = None
    clock: Clock = field(default_factory=Clock, repr=False)
    seed: int = 0
    spokes: tuple[Spoke, ...] = field(init=False, repr=False, compare=False)
    method: Fusion = field(init=False, repr=False, compare=False)
    _pool: Pool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(self.sources))
        check_parameters(self)
        pool, method = assemble(self)
        made = {"_pool": pool, "method": method, "spokes": pool.spokes}
        for name, value in made.items():
            object.__setattr__(self, name, value)
        if self.calibration is not None:
            names = [source.name for source in self.sources]
            self.calibration.check(names, self.scoring)

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The spaces, the hub's first, the others in the order of the sources."""
        return tuple(spoke.space for spoke in self.spokes)

    @property
    def scoring(self) -> Scoring:
        """What its scores depend on: the fusion method and the bridges."""
        return Scoring.of(self.method, self.spokes, self._pool.common, dedup=self.dedup)

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
        from isthmus.federate.opening import load

        return load(Path(path), cls, changes)

    def search(
        self,
        queries: VectorSet,
        *,
        k: int = 10,
        depth: int | None = None,
        native_queries: Mapping[str, VectorSet] | None = None,
        explain: bool = False,
        min_probability: float | None = None,
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
            Whether to keep what made the scores: `Ranking.similarities`, ``common``, ``weights``.
        min_probability : float in [0, 1], optional
            Leaves out hits that are less likely to be relevant, the same in every store; for a
            federation with a calibration. Rows may then hold fewer than k.

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
            Among them: ``min_probability`` without a calibration.
        StoreError
            Every store failed; or one did, and all are required.
        """
        check_whole(k, name="k")
        check_min_probability(min_probability, self.calibration)
        k, each = self._pool.within_rows(k, self._depth(k, depth))
        by_space = self._pool.in_every_space(queries, native_queries or {})
        blocks = []
        step = max(1, QUERY_BLOCK * USUAL_DEPTH // max(each, USUAL_DEPTH))
        for start in range(0, len(queries), step):
            block = slice(start, start + step)
            candidates = self._candidates(
                [one[block] for one in by_space], each, k, explain=explain
            )
            ids = queries.ids[block]
            blocks.append(self.rank(candidates, ids, k=k, min_probability=min_probability))
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

        For trying several fusion methods on one search: hand it to `Fusion.score`.
        """
        check_whole(depth, name="depth")
        _, depth = self._pool.within_rows(1, depth)
        by_space = self._pool.in_every_space(queries, native_queries or {})
        return self._candidates(by_space, depth, depth, explain=explain)

    def rank(
        self,
        candidates: Candidates,
        query_ids: IdArray,
        *,
        k: int,
        min_probability: float | None = None,
    ) -> Ranking:
        """Return the k best candidates per query by this federation's fusion method.

        As many columns as there are candidates, where these are fewer than k. Those that are less
        likely to be relevant than ``min_probability`` are left out.
        """
        check_min_probability(min_probability, self.calibration)
        method = self.method.settled(common=candidates.common is not None)
        scores = method.score(candidates)
        probabilities = None
        if self.calibration is not None:
            probabilities = self.calibration.probability(scores, candidates.source)
        return make_ranking(
            candidates,
            scores,
            query_ids,
            k=k,
            merge=self.dedup != "none",
            names=self._pool.names,
            fingerprints=self._pool.fingerprints,
            spaces=self.spaces,
            shares=method.shares(len(self.spokes)),
            probabilities=probabilities,
            min_probability=min_probability,
        )

    def close(self) -> None:
        """Close every store; closing twice does nothing.

        A store in which a call that timed out is still running is closed when that call ends.
        """
        for source, patience in zip(self.sources, self._pool.patience, strict=True):
            patience.close(source.store.close)

    def __enter__(self) -> Self:
        """Return the federation; at the end of the block it is closed, and with it its stores."""
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
            check_whole(depth, name="depth")
        return max(k, depth or self.depth or k)

    def _candidates(
        self, queries: Sequence[FloatArray], depth: int, k: int, *, explain: bool
    ) -> Candidates:
        wanted = self.method.spaces(len(self.spokes))
        return self._pool.candidates(queries, wanted=wanted, depth=depth, k=k, explain=explain)
