"""Pairs: rows of two spaces that stand for the same objects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IdArray, IntArray
from isthmus._validate import check_weight
from isthmus.errors import (
    CountMismatchError,
    EmptyInputError,
    ParameterError,
    TooFewPairsError,
)
from isthmus.spaces._mapped import gather
from isthmus.spaces.ids import name_few
from isthmus.spaces.space import Space
from isthmus.spaces.vector_set import VectorSet, as_rows

if TYPE_CHECKING:
    from isthmus.spaces.coverage import PairCoverage
    from isthmus.spaces.suggestion import Suggestion

__all__ = ["MatchedRows", "Pairs"]


class MatchedRows(Protocol):
    """What links and couplings give for a threshold: rows of both sides and a confidence."""

    @property
    def source_rows(self) -> IntArray:
        """Rows of the source set, shape (n,)."""

    @property
    def target_rows(self) -> IntArray:
        """Rows of the target set, shape (n,)."""

    @property
    def confidence(self) -> FloatArray:
        """From 0 to 1, shape (n,)."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Pairs:
    """Aligned rows of two spaces; an id stands in at most one pair on each side.

    Parameters
    ----------
    source : FloatArray of shape (n, dim_source)
    target : FloatArray of shape (n, dim_target)
        Row i of both is the same object.
    source_ids, target_ids : IdArray of shape (n,)
    source_space, target_space : Space
    weight : FloatArray of shape (n,), optional
        How far each pair is trusted, not negative: the posterior of a link, for example.
    strategy : str, default "as given"
        How the pairs were chosen, for the record in a bridge.

    Raises
    ------
    CountMismatchError, DimensionError, DuplicateIdError, EmptyInputError, InvalidVectorsError,
    ParameterError

    Examples
    --------
    >>> a = VectorSet(["x", "y", "z"], [[1, 0], [0, 1], [1, 1]], Space(model="a", dim=2))
    >>> b = VectorSet(["z", "x"], [[1], [2]], Space(model="b", dim=1, metric="dot"))
    >>> pairs = Pairs.from_ids(a, b)
    >>> pairs.source_ids.tolist(), pairs.target.ravel().tolist()
    (['x', 'z'], [2.0, 1.0])
    """

    source: FloatArray
    target: FloatArray
    source_ids: IdArray
    target_ids: IdArray
    source_space: Space
    target_space: Space
    weight: FloatArray | None = None
    strategy: str = "as given"

    def __post_init__(self) -> None:
        source = VectorSet(self.source_ids, self.source, self.source_space)
        target = VectorSet(self.target_ids, self.target, self.target_space)
        if len(source) != len(target):
            raise CountMismatchError(
                expected="as many source rows as target rows",
                got=f"{len(source):,} source rows and {len(target):,} target rows",
                do="pair them by id first (Pairs.from_ids)",
            )
        weight = check_weight(self.weight, rows=len(source))
        values = {
            "source": source.vectors,
            "target": target.vectors,
            "source_ids": source.ids,
            "target_ids": target.ids,
            "weight": None if weight is None else weight.astype(np.float32),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.source_ids)

    def __repr__(self) -> str:
        return f"Pairs({len(self):,} from {self.source_space} to {self.target_space})"

    @classmethod
    def from_ids(cls, source: VectorSet, target: VectorSet) -> Self:
        """Pair the rows that have the same id in both sets, in the order of ``source``.

        Raises
        ------
        EmptyInputError
            No id stands in both.
        """
        target_rows = target.find(source.ids)
        source_rows = np.flatnonzero(target_rows >= 0)
        if not len(source_rows):
            raise EmptyInputError(
                expected="ids that stand in both sets",
                got=f"none; source has {name_few(source.ids)}, target has {name_few(target.ids)}",
                do="pass a file of pairs (source,target), or find links first",
            )
        return cls.from_rows(source, target, source_rows, target_rows[source_rows])

    @classmethod
    def from_rows(
        cls,
        source: VectorSet,
        target: VectorSet,
        source_rows: npt.ArrayLike,
        target_rows: npt.ArrayLike,
        weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Pair row ``source_rows[i]`` of ``source`` with row ``target_rows[i]`` of ``target``.

        Raises
        ------
        CountMismatchError, ParameterError, EmptyInputError
            Rows that do not fit each other or the sets.
        DuplicateIdError
            A row that stands in two pairs.
        """
        left = as_rows(source_rows, count=len(source))
        right = as_rows(target_rows, count=len(target))
        if len(left) != len(right):
            raise CountMismatchError(
                expected="as many source rows as target rows",
                got=f"{len(left):,} and {len(right):,}",
                do="name both rows of every pair",
            )
        return cls(
            source=gather(source.vectors, left),
            target=gather(target.vectors, right),
            source_ids=source.ids[left],
            target_ids=target.ids[right],
            source_space=source.space,
            target_space=target.space,
            weight=None if weight is None else np.asarray(weight, dtype=np.float32),
        )

    @classmethod
    def from_file(cls, path: Path | str, source: VectorSet, target: VectorSet) -> Self:
        """Read pairs of ids from ``.csv`` or ``.parquet`` with columns ``source,target``.

        A third column, ``posterior``, from 0 to 1, becomes the weight.

        Raises
        ------
        MissingFileError, UnknownFormatError, CorruptFileError
            No such file, another ending, a header or a column that is missing, a broken line.
        UnknownIdError
            Ids that the sets do not have: the first few and how many.
        DuplicateIdError
            A pair that is repeated, or an id in two pairs.
        """
        from isthmus.spaces.pairs_file import read_pairs

        listed = read_pairs(Path(path))
        left, right = listed.rows(source, target)
        return cls.from_rows(source, target, left, right, listed.posterior)

    @classmethod
    def from_links(cls, source: VectorSet, target: VectorSet, matched: MatchedRows) -> Self:
        """Pair the rows that were linked; their confidence becomes the weight."""
        return cls.from_rows(
            source, target, matched.source_rows, matched.target_rows, matched.confidence
        )

    def reverse(self) -> Pairs:
        """Return the same pairs from target to source."""
        return replace(
            self,
            source=self.target,
            target=self.source,
            source_ids=self.target_ids,
            target_ids=self.source_ids,
            source_space=self.target_space,
            target_space=self.source_space,
        )

    def select(self, rows: npt.ArrayLike) -> Pairs:
        """Return these pairs, in this order: row numbers, or one boolean per pair."""
        picked = as_rows(rows, count=len(self))
        return replace(
            self,
            source=self.source[picked],
            target=self.target[picked],
            source_ids=self.source_ids[picked],
            target_ids=self.target_ids[picked],
            weight=None if self.weight is None else self.weight[picked],
        )

    def split(self, test: float = 0.2, seed: int = 0) -> tuple[Pairs, Pairs]:
        """Split at random into training pairs and held-out pairs, each in the old order.

        Parameters
        ----------
        test : float, default 0.2
            Share held out, between 0 and 1; rounded, at least one pair on each side.
        seed : int, default 0

        Raises
        ------
        ParameterError
            A share outside (0, 1).
        TooFewPairsError
            Fewer than two pairs.
        """
        if not 0 < test < 1:
            raise ParameterError(
                expected="a share between 0 and 1 to hold out", got=f"{test}", do="use 0.2"
            )
        if len(self) < 2:
            raise TooFewPairsError(
                expected="at least 2 pairs to split", got=f"{len(self)}", do="add pairs"
            )
        count = min(max(round(test * len(self)), 1), len(self) - 1)
        held_out = np.zeros(len(self), dtype=np.bool_)
        held_out[np.random.default_rng(seed).permutation(len(self))[:count]] = True
        return self.select(~held_out), self.select(held_out)

    def sample(self, n: int, strategy: str = "random", seed: int = 0) -> Pairs:
        """Choose ``n`` pairs by where their source vectors lie.

        Parameters
        ----------
        n : int
            From 1 to the number of pairs.
        strategy : {"random", "fps", "kmeans", "nearest", "coverage"}, default "random"
            See `isthmus.spaces.sampling`.
        seed : int, default 0

        Raises
        ------
        TooFewPairsError, ParameterError, UnknownNameError
        """
        from isthmus.spaces.sampling import choose

        rows = choose(self.source, n, strategy=strategy, metric=self.source_space.metric, seed=seed)
        return replace(self.select(rows), strategy=strategy)

    @staticmethod
    def suggest(
        a: VectorSet,
        b: VectorSet | None = None,
        *,
        n: int,
        strategy: str = "kmeans",
        scores: npt.ArrayLike | None = None,
        seed: int = 0,
    ) -> Suggestion:
        """Suggest which rows of a set to pair, when every pair has to be paid for.

        Parameters
        ----------
        a : VectorSet
            Rows without a pair.
        b : VectorSet, optional
            Where partners will be sought, in the space of ``a``: rows of the other collection to
            which a first bridge carried ``a``, for example. Only the half of ``a`` that lies
            nearest to it, at least ``n`` rows, can then be chosen: a row far from all others
            probably has no partner.
        n : int
            How many, at most the rows of ``a``.
        strategy : {"random", "fps", "kmeans", "coverage", "uncertainty"}, default "kmeans"
            See `isthmus.spaces.sampling` and `isthmus.spaces.suggestion`; docs/spaces.md says what
            each is worth. Of more than 20,000 rows that many are drawn to choose from.
        scores : array-like of shape (len(a),), optional
            For ``uncertainty``: how little is known of each row, as the entropy of a coupling.
        seed : int, default 0

        Returns
        -------
        Suggestion
            Ids and rows, in the order of choice; `Suggestion.save` writes a sheet to fill in.

        Raises
        ------
        UnknownNameError, ParameterError
            Another strategy; ``n`` out of range; scores without ``uncertainty``, or none with it.
        CountMismatchError, InvalidVectorsError
            Another number of scores than rows; scores that are not finite.
        SpaceMismatchError
            ``b`` of another space than ``a``.

        Examples
        --------
        >>> line = [[0.0], [0.1], [5.0], [9.0]]
        >>> a = VectorSet(["p", "q", "r", "s"], line, Space(model="m", dim=1, metric="l2"))
        >>> Pairs.suggest(a, n=2, strategy="uncertainty", scores=[0.8, 0.9, 0.1, 0.5]).ids.tolist()
        ['q', 's']
        """
        from isthmus.spaces.suggestion import suggest

        return suggest(a, b, n=n, strategy=strategy, scores=scores, seed=seed)

    def coverage(self, source: VectorSet, target: VectorSet, *, seed: int = 0) -> PairCoverage:
        """Report how well the pairs cover the two sets they were taken from.

        Raises
        ------
        SpaceMismatchError, UnknownIdError
            Sets that the pairs do not come from.
        """
        from isthmus.spaces.coverage import measure_coverage

        return measure_coverage(self, source, target, seed=seed)
