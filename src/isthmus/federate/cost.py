"""What each way to search several stores as one costs: to build, and per query.

Counts follow from the numbers of stores, spaces and vectors alone; `estimate` turns them into
seconds with rates that were measured on some machine, so that 50 million and a billion vectors can
be reckoned from a run on a thousand (as HVMap's figure 6 does for its larger size).

References: HVMap, sections 5.2.2 and 5.3.2, figure 6 and table 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from isthmus._validate import check_share, check_whole
from isthmus.errors import CountMismatchError, EmptyInputError, ParameterError, UnknownNameError

__all__ = ["METHODS", "Cost", "Estimate", "Rates", "Setting", "cost_of", "estimate"]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Stores, spaces, and what is asked of them.

    Parameters
    ----------
    rows : tuple of int
        Vectors in each store, at least one store.
    spaces : tuple of int
        Which space each store holds, from 0; the hub's is 0, whether or not a store holds it.
    k : int, default 10
        Candidates from each store (HVMap, section 5.1.3).
    pairs : int, default 20,000
        Pairs that each map is trained on.
    adapter_share : float, default 0.02
        Share of a store that a drift adapter is trained on in place of ``pairs`` (HVMap, section
        5.2.2: "approximately 2% of the corpus").

    Raises
    ------
    EmptyInputError, CountMismatchError, ParameterError
    """

    rows: tuple[int, ...]
    spaces: tuple[int, ...]
    k: int = 10
    pairs: int = 20_000
    adapter_share: float = 0.02

    def __post_init__(self) -> None:
        if not self.rows:
            raise EmptyInputError(expected="at least one store", got="none", do="add its rows")
        if len(self.rows) != len(self.spaces):
            raise CountMismatchError(
                expected=f"a space for each of the {len(self.rows)} stores",
                got=f"{len(self.spaces)}",
                do="name one per store",
            )
        for count in self.rows:
            check_whole(count, name="rows", minimum=0)
        for space in self.spaces:
            check_whole(space, name="spaces", minimum=0)
        check_whole(self.k, name="k")
        check_whole(self.pairs, name="pairs", minimum=0)
        check_share(self.adapter_share, name="adapter_share")

    @property
    def n_stores(self) -> int:
        """Count the stores."""
        return len(self.rows)

    @property
    def n_spaces(self) -> int:
        """Count the spaces, the hub's among them."""
        return len({0, *self.spaces})

    @property
    def spoke_rows(self) -> int:
        """Count the vectors that are not in the hub's space."""
        return sum(rows for rows, space in zip(self.rows, self.spaces, strict=True) if space)

    @property
    def n_spoke_stores(self) -> int:
        """Count the stores that do not hold the hub's space."""
        return sum(1 for space in self.spaces if space)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Counts for one method.

    Parameters
    ----------
    method : str
    vectors_embedded : int
        Documents of the stores that a model embeds again.
    maps_trained : int
    pairs_trained : int
        Pairs times maps.
    vectors_mapped : int
        Stored vectors that are carried into another space.
    vectors_indexed : int
        Vectors that are written into a new index.
    encoders : int
        Models that encode each query.
    searches : tuple of int
        Size of each index that is searched for a query.
    mapped_per_query : int
        Vectors that are carried into another space for a query, itself included.
    similarities_per_query : int
        Similarities computed besides those that stores return.
    """

    method: str
    vectors_embedded: int = 0
    maps_trained: int = 0
    pairs_trained: int = 0
    vectors_mapped: int = 0
    vectors_indexed: int = 0
    encoders: int = 1
    searches: tuple[int, ...] = ()
    mapped_per_query: int = 0
    similarities_per_query: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "searches": list(self.searches)}


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Seconds per unit, as measured on some machine; what is left out costs nothing.

    Parameters
    ----------
    embed : float
        Per document that is embedded again.
    train : float
        Per pair and map, the whole training.
    map : float
        Per vector that is mapped.
    index : float
        Per vector that is written into a new index.
    encode : float
        Per query and model.
    search : float
        Per search, whatever the size.
    search_row : float
        Per search and row: exact search.
    search_log_row : float
        Per search and binary logarithm of the rows: graph indexes.
    similarity : float
        Per similarity.
    """

    embed: float = 0.0
    train: float = 0.0
    map: float = 0.0
    index: float = 0.0
    encode: float = 0.0
    search: float = 0.0
    search_row: float = 0.0
    search_log_row: float = 0.0
    similarity: float = 0.0

    def __post_init__(self) -> None:
        for name, rate in asdict(self).items():
            if not (math.isfinite(rate) and rate >= 0):
                raise ParameterError(
                    expected=f"{name} in seconds, from 0 on", got=f"{rate}", do="measure it again"
                )


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Seconds: the first four to build, the others per query."""

    embedding: float
    training: float
    converting: float
    indexing: float
    encoding: float
    searching: float
    mapping: float
    ranking: float

    @property
    def construction(self) -> float:
        """Seconds until the first query can be asked."""
        return self.embedding + self.training + self.converting + self.indexing

    @property
    def query(self) -> float:
        """Seconds per query, one part after the other."""
        return self.encoding + self.searching + self.mapping + self.ranking


def _score(setting: Setting) -> Cost:
    others = setting.n_spaces - 1
    candidates = setting.n_stores * setting.k
    return Cost(
        method="score",
        maps_trained=2 * others,
        pairs_trained=2 * others * setting.pairs,
        searches=setting.rows,
        # candidates of a spoke go to the hub, and from there to the other spokes
        mapped_per_query=others + candidates * others,
        similarities_per_query=candidates * others,
    )


def _score_common(setting: Setting) -> Cost:
    score, common = _score(setting), _cca(setting)
    return Cost(
        method="score_common",
        maps_trained=score.maps_trained + common.maps_trained,
        pairs_trained=score.pairs_trained + common.pairs_trained,
        searches=setting.rows,
        mapped_per_query=score.mapped_per_query + common.mapped_per_query,
        similarities_per_query=score.similarities_per_query + common.similarities_per_query,
    )


def _one_directional(setting: Setting) -> Cost:
    others = setting.n_spaces - 1
    candidates = setting.n_spoke_stores * setting.k
    return Cost(
        method="one_directional",
        maps_trained=2 * others,
        pairs_trained=2 * others * setting.pairs,
        searches=setting.rows,
        mapped_per_query=others + candidates,
        similarities_per_query=candidates,
    )


def _lists(method: str) -> Callable[[Setting], Cost]:
    def cost(setting: Setting) -> Cost:
        return Cost(method=method, encoders=setting.n_spaces, searches=setting.rows)

    return cost


def _cca(setting: Setting) -> Cost:
    others = setting.n_spaces - 1
    # a candidate of the hub's space is compared in the common space of every spoke
    of_hub = setting.n_stores - setting.n_spoke_stores
    compared = setting.k * (of_hub * others + setting.n_spoke_stores)
    return Cost(
        method="cca",
        maps_trained=others,
        pairs_trained=others * setting.pairs,
        encoders=setting.n_spaces,
        searches=setting.rows,
        mapped_per_query=others + compared,
        similarities_per_query=compared,
    )


def _da(setting: Setting) -> Cost:
    others = setting.n_spaces - 1
    return Cost(
        method="da",
        maps_trained=others,
        pairs_trained=round(setting.adapter_share * setting.spoke_rows),
        searches=setting.rows,
        mapped_per_query=others,
    )


def _ec(setting: Setting) -> Cost:
    others = setting.n_spaces - 1
    return Cost(
        method="ec",
        maps_trained=others,
        pairs_trained=others * setting.pairs,
        vectors_mapped=setting.spoke_rows,
        vectors_indexed=sum(setting.rows),
        searches=(sum(setting.rows),),
    )


def _mig(setting: Setting) -> Cost:
    return Cost(
        method="mig",
        vectors_embedded=setting.spoke_rows,
        vectors_indexed=sum(setting.rows),
        searches=(sum(setting.rows),),
    )


METHODS: Mapping[str, Callable[[Setting], Cost]] = MappingProxyType(
    {
        "score": _score,
        "score_common": _score_common,
        "one_directional": _one_directional,
        "agg": _lists("agg"),
        "rrf": _lists("rrf"),
        "combmnz": _lists("combmnz"),
        "cca": _cca,
        "da": _da,
        "ec": _ec,
        "mig": _mig,
    }
)
"""Every method whose cost is known."""


def cost_of(method: str, setting: Setting) -> Cost:
    """Count what a method needs.

    ``agg``, ``rrf``, ``combmnz`` and ``cca`` encode a query by every model, as in the paper; ``da``
    is agg with mapped queries. ``score`` is the paper's; ``score_common`` counts a common space
    too, as a federation does whose spokes all have one. ``ec`` and ``mig`` write one new index in
    the hub's space.

    Parameters
    ----------
    method : str
        A key of `METHODS`.
    setting : Setting

    Raises
    ------
    UnknownNameError

    Examples
    --------
    Six stores of six models, ten candidates each:

    >>> six = Setting(rows=(1_000_000,) * 6, spaces=tuple(range(6)))
    >>> cost_of("score", six).maps_trained, cost_of("score", six).mapped_per_query
    (10, 305)
    >>> cost_of("mig", six).vectors_embedded
    5000000
    """
    if method not in METHODS:
        raise UnknownNameError.of("method with a cost model", method, METHODS)
    return METHODS[method](setting)


def estimate(cost: Cost, rates: Rates) -> Estimate:
    """Turn counts into seconds.

    Parameters
    ----------
    cost : Cost
    rates : Rates

    Examples
    --------
    >>> mig = cost_of("mig", Setting(rows=(50_000_000, 50_000_000), spaces=(0, 1)))
    >>> round(estimate(mig, Rates(embed=1e-3, index=2e-4)).construction / 3600, 1)
    19.4
    """
    searching = sum(
        rates.search + rates.search_row * rows + rates.search_log_row * math.log2(max(1, rows))
        for rows in cost.searches
    )
    return Estimate(
        embedding=rates.embed * cost.vectors_embedded,
        training=rates.train * cost.pairs_trained,
        converting=rates.map * cost.vectors_mapped,
        indexing=rates.index * cost.vectors_indexed,
        encoding=rates.encode * cost.encoders,
        searching=searching,
        mapping=rates.map * cost.mapped_per_query,
        ranking=rates.similarity * cost.similarities_per_query,
    )
