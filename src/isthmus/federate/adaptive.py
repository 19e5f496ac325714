"""An adaptive budget: stores that can hardly contribute to an answer are not searched.

Every store is outlined by centroids in the hub's space (`isthmus.federate.outline`). From the query
follows how many of its k best rows each store is expected to hold; the stores that hold least are
left out, as long as all of them together hold no more than a given share of the answer. That share
is set on rows of the stores themselves, asked as queries, so that what is really lost stays within
the loss that was allowed, with a factor of two to spare: queries lose more than documents do.

When to use it: stores of different topics, where most of a search goes to stores that have nothing
to say. Where documents lie in stores at random there is nothing to leave out, and it leaves out
nearly nothing.

References: HVMap, section 3.3.1 (left to future work); Si and Callan (SIGIR 2003), who estimate
from a sample of every source how many relevant documents it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray, Metric
from isthmus._validate import check_share, check_whole
from isthmus.errors import ConfigError, CountMismatchError, EmptyInputError
from isthmus.federate.budget import Budget
from isthmus.federate.outline import StoreOutline, as_products, expected_counts
from isthmus.federate.patience import Patience
from isthmus.federate.sampling import back_bridges, draw
from isthmus.federate.source import Source
from isthmus.federate.spokes import make_spokes
from isthmus.neighbors import top_k
from isthmus.spaces import Space

__all__ = ["Adaptive"]

LOSS = 0.01
SAMPLE = 20_000
CENTROIDS, DIRECTIONS = 64, 64
ASKED = 1_000
"""Rows of the stores that are asked as queries; at most a tenth of the sample."""
USUAL_K = 10
CAUTION = 2.0
"""Queries lose up to about twice what rows of the stores lose when they are asked as queries
(``benchmarks/federate_budget.py``, splits that are not reported)."""
LEVELS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0)
"""Tried as shares of the loss that was allowed, from the top, on rows asked as queries."""


@dataclass(frozen=True, eq=False)
class Adaptive(Budget):
    """Search the stores that can contribute.

    Parameters
    ----------
    outlines : tuple of StoreOutline, one per source
        In the hub's space.
    names : tuple of str
        Of the sources, in their order.
    bridges : tuple of str
        Hash of the bridge to the hub of each source, "" for those of the hub's space.
    hub : Space
    loss : float
        Share of the k best that may be lost in the mean, from 0 to 1.
    level : float
        Expected share under which stores are left out: ``loss``, or less where rows asked as
        queries lost more than half of that.
    measured_loss, measured_searched : float
        Share of the k best that rows of the stores, asked as queries, lost, and the share of stores
        that was searched for them. NaN where there were too few rows to ask.
    """

    outlines: tuple[StoreOutline, ...]
    names: tuple[str, ...]
    bridges: tuple[str, ...]
    hub: Space
    loss: float
    level: float
    measured_loss: float
    measured_searched: float

    def __repr__(self) -> str:
        """Say for which stores and what may be lost; the outlines are long."""
        return f"Adaptive({', '.join(map(repr, self.names))}, loss={self.loss:g})"

    @classmethod
    def fit(
        cls,
        hub: Space,
        sources: Sequence[Source],
        *,
        loss: float = LOSS,
        sample: int = SAMPLE,
        n_centroids: int = CENTROIDS,
        k: int = USUAL_K,
        seed: int = 0,
        patience: Sequence[Patience] | None = None,
    ) -> Adaptive:
        """Outline the stores from a sample of their vectors.

        Parameters
        ----------
        hub : Space
        sources : sequence of Source
            With bridges to the hub, see `Federation`.
        loss : float, default 0.01
            Share of the k best documents that may be lost in the mean.
        sample : int, default 20,000
            Vectors of each store that are looked at; the store is scanned once for them.
        n_centroids : int, default 64
            Per store.
        k : int, default 10
            Answers per query at which the loss is measured (HVMap, section 5.1.3: K = 10).
        seed : int, default 0
        patience : sequence of Patience, optional
            Per source: one that cannot be read, after attempts that it says, is always searched.
            Default: whatever a store raises is raised.

        Raises
        ------
        ParameterError, EmptyInputError
            A loss outside 0 to 1, a size under 1; no store with vectors.
        ConfigError
            A source without a bridge to the hub.
        """
        check_share(loss, name="loss")
        for name, size in (("sample", sample), ("n_centroids", n_centroids), ("k", k)):
            check_whole(size, name=name)
        drawn = draw(hub, sources, limit=sample, seed=seed, patience=patience)
        samples, counts = drawn.rows, drawn.counts
        if not sum(counts) and patience is None:
            raise EmptyInputError(
                expected="a store with vectors", got="empty stores", do="fill one of them"
            )
        asked = [len(rows) // 10 for rows in samples]
        asked = [round(many * min(1.0, ASKED / max(1, sum(asked)))) for many in asked]
        outlines = tuple(
            StoreOutline.fit(
                as_products(rows[held:], hub.metric, query=False),
                count=count,
                n_centroids=n_centroids,
                n_directions=DIRECTIONS,
                seed=seed + place,
            )
            for place, (rows, count, held) in enumerate(zip(samples, counts, asked, strict=True))
        )
        level, lost, searched = _set_level(
            outlines, _Asked(samples, counts, asked, hub.metric), loss=loss, k=k
        )
        names = tuple(source.name for source in sources)
        bridges = back_bridges(make_spokes(hub, sources), sources)
        return cls(outlines, names, bridges, hub, loss, level, lost, searched)

    def choose(
        self, queries: Sequence[FloatArray], *, spaces: IntArray, k: int
    ) -> npt.NDArray[np.bool_]:
        """Say which stores are searched, from the queries in the hub's space; see `Budget.choose`.

        A store that was empty, or could not be read, when the budget was fitted is always searched.

        Raises
        ------
        CountMismatchError
            Another number of sources than the budget was fitted on.
        """
        if len(spaces) != len(self.outlines):
            raise CountMismatchError(
                expected=f"the {len(self.outlines)} sources that the budget was fitted on",
                got=f"{len(spaces)}",
                do="fit the budget again",
            )
        asked = as_products(queries[0], self.hub.metric, query=True)
        counts = expected_counts(self.outlines, asked, k)
        chosen = _at_level(counts, self.level)
        chosen[:, [not len(outline.sizes) for outline in self.outlines]] = True
        return chosen

    def check(self, hub: Space, sources: Sequence[Source]) -> None:
        """Refuse a federation of another hub, of other sources, or of other bridges to the hub.

        Raises
        ------
        SpaceMismatchError, ConfigError
        """
        self.hub.check(hub, what="the hub of the adaptive budget")
        names = tuple(source.name for source in sources)
        if names != self.names:
            raise ConfigError(
                expected=f"the sources that the budget was fitted on: {', '.join(self.names)}",
                got=", ".join(names),
                do="fit the budget again",
            )
        bridges = back_bridges(make_spokes(hub, sources), sources)
        if bridges != self.bridges:
            other = [
                name
                for name, *both in zip(names, bridges, self.bridges, strict=True)
                if len(set(both)) > 1
            ]
            raise ConfigError(
                expected="the bridges to the hub that the budget was fitted with",
                got=f"another one for {', '.join(map(repr, other))}",
                do="fit the budget again",
            )

    def to_file(self, path: Path | str) -> None:
        """Write everything as safetensors; nothing is left half written.

        Raises
        ------
        WriteFailedError
        """
        from isthmus.federate._adaptive_file import write_adaptive

        write_adaptive(self, Path(path))

    @classmethod
    def from_file(cls, path: Path | str) -> Adaptive:
        """Read what `to_file` wrote.

        Raises
        ------
        MissingFileError, CorruptFileError, MalformedArtifactError, UnknownVersionError
        """
        from isthmus.federate._adaptive_file import read_adaptive

        return read_adaptive(Path(path))


@dataclass(frozen=True)
class _Asked:
    """Samples of the stores in the hub's space, of which the first ``asked`` rows are queries."""

    samples: Sequence[FloatArray]
    counts: Sequence[int]
    asked: Sequence[int]
    metric: Metric

    @property
    def queries(self) -> FloatArray:
        parts = [rows[:held] for rows, held in zip(self.samples, self.asked, strict=True)]
        return np.concatenate(parts)

    def true_shares(self, k: int) -> FloatArray:
        """Return which share of each query's k best rows each store holds, (m, n_sources).

        A row of a sample stands for as many rows as its store has per row of the sample.
        """
        starts = np.cumsum([0, *map(len, self.samples)])[:-1]
        own = np.concatenate(
            [start + np.arange(held) for start, held in zip(starts, self.asked, strict=True)]
        )
        every = np.concatenate(self.samples)
        found = top_k(
            self.queries, every, k=min(k, len(every) - 1), metric=self.metric, exclude=own
        )
        # stores that start at one row are empty but for the last of them
        holder = np.searchsorted(starts, found.rows, side="right") - 1
        weights = [
            count / max(1, len(rows)) for count, rows in zip(self.counts, self.samples, strict=True)
        ]
        each = np.asarray(weights)[holder]
        shares = np.stack(
            [np.where(holder == place, each, 0.0).sum(axis=1) for place in range(len(starts))],
            axis=1,
        )
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _set_level(
    outlines: Sequence[StoreOutline], rows: _Asked, *, loss: float, k: int
) -> tuple[float, float, float]:
    """Return the highest level that loses no more than allowed, its loss, and what it searches."""
    if not sum(rows.asked):
        return loss, float("nan"), float("nan")
    shares = rows.true_shares(k)
    expected = expected_counts(outlines, as_products(rows.queries, rows.metric, query=True), k)
    for share in LEVELS:
        chosen = _at_level(expected, share * loss)
        lost = float(np.where(chosen, 0.0, shares).sum(axis=1).mean())
        if CAUTION * lost <= loss:
            break
    return share * loss, lost, float(chosen.mean())


def _at_level(counts: FloatArray, level: float) -> npt.NDArray[np.bool_]:
    """Leave out the stores that hold least, while together they hold no more than ``level``."""
    total = counts.sum(axis=1, keepdims=True)
    shares = counts / np.where(total > 0, total, 1)
    order = np.argsort(shares, axis=1, kind="stable")
    lost = np.cumsum(np.take_along_axis(shares, order, axis=1), axis=1)
    chosen = np.empty(shares.shape, dtype=np.bool_)
    np.put_along_axis(chosen, order, lost > level, axis=1)
    np.put_along_axis(chosen, order[:, -1:], values=True, axis=1)
    return chosen
