"""Measures as named values: ``nDCG@10`` is a name, and its parameter is part of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from isthmus.errors import ParameterError, UnknownNameError

__all__ = ["MEASURES", "Definition", "Measure"]

Family = Literal["preservation", "retrieval", "reconstruction", "hubness", "consistency"]


@dataclass(frozen=True, kw_only=True)
class Definition:
    """What a measure is, for tables and documentation.

    Parameters
    ----------
    family : str
        File that computes it. Preservation comes first; reconstruction is a diagnostic.
    summary : str
        One line.
    cutoff : bool, default False
        Whether its name takes ``@k``.
    low, high : float, default 0 and 1
        Range; infinite where there is no bound.
    higher_is_better : bool, default True
    per_query : bool, default True
        Whether it exists per query; otherwise for the whole set only.
    """

    family: Family
    summary: str
    cutoff: bool = False
    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = True
    per_query: bool = True


MEASURES: Mapping[str, Definition] = MappingProxyType(
    {
        "nbr_overlap": Definition(
            family="preservation", cutoff=True, summary="share of the k native neighbours kept"
        ),
        "retrieval_agreement": Definition(
            family="preservation", cutoff=True, summary="share of the first k native answers kept"
        ),
        "hit": Definition(
            family="preservation", cutoff=True, summary="own target row among the first k found"
        ),
        "rank_corr": Definition(
            family="preservation", low=-1.0, summary="order of the native neighbours kept"
        ),
        "relation_order_corr": Definition(
            family="preservation", low=-1.0, summary="order of relations among held-out rows kept"
        ),
        "cluster_agreement": Definition(
            family="preservation",
            low=-1.0,
            per_query=False,
            summary="adjusted Rand index of mapped and native clusters",
        ),
        "threshold_transfer": Definition(
            family="preservation", summary="match decisions kept at the native threshold"
        ),
        "calibration_transfer": Definition(
            family="preservation", summary="match decisions kept after calibrating the scores"
        ),
        "similarity_error": Definition(
            family="preservation",
            high=float("inf"),
            higher_is_better=False,
            summary="error of the similarities to the native neighbours",
        ),
        "hard_negative_margin": Definition(
            family="preservation",
            low=-float("inf"),
            high=float("inf"),
            summary="similarity to the own target row less that to the closest wrong one",
        ),
        "nDCG": Definition(
            family="retrieval", cutoff=True, summary="discounted gain over the ideal one"
        ),
        "Recall": Definition(
            family="retrieval", cutoff=True, summary="relevant documents among the first k"
        ),
        "cos_to_target": Definition(
            family="reconstruction", low=-1.0, summary="cosine of mapped and target row"
        ),
        "mse": Definition(
            family="reconstruction",
            high=float("inf"),
            higher_is_better=False,
            summary="mean squared difference per coordinate",
        ),
        "r2": Definition(
            family="reconstruction",
            low=-float("inf"),
            per_query=False,
            summary="share of the target's variance reconstructed",
        ),
        "hubness": Definition(
            family="hubness",
            cutoff=True,
            low=-float("inf"),
            high=float("inf"),
            higher_is_better=False,
            per_query=False,
            summary="skewness of how often a row is a neighbour",
        ),
        "NNO": Definition(
            family="consistency",
            cutoff=True,
            summary="overlap of neighbours within two spaces, before any map",
        ),
        "Jaccard": Definition(
            family="consistency",
            cutoff=True,
            summary="neighbours shared by two spaces over all neighbours in either",
        ),
    }
)
"""Every measure by the name before ``@``."""


@dataclass(frozen=True)
class Measure:
    """A measure with its parameter; equal and hashable by its name.

    Parameters
    ----------
    base : str
        A name in `MEASURES`.
    k : int, optional
        Cutoff; needed where the definition has one, refused elsewhere.

    Raises
    ------
    UnknownNameError
        A base that is not in `MEASURES`.
    ParameterError
        A cutoff that is missing, out of place or under 1.

    Examples
    --------
    >>> Measure("nDCG", 10)
    Measure('nDCG@10')
    >>> Measure.parse("nbr_overlap@5").k
    5
    """

    base: str
    k: int | None = None

    def __post_init__(self) -> None:
        if self.base not in MEASURES:
            raise UnknownNameError.of("measure", self.base, MEASURES)
        cutoff = MEASURES[self.base].cutoff
        if cutoff and (self.k is None or self.k < 1):
            raise ParameterError(
                expected=f"a cutoff of at least 1, as in {self.base}@10",
                got=f"{self.base}" if self.k is None else f"{self.base}@{self.k}",
                do="write the cutoff after @",
            )
        if not cutoff and self.k is not None:
            raise ParameterError(
                expected=f"{self.base} without a cutoff", got=f"@{self.k}", do="leave it out"
            )

    @classmethod
    def parse(cls, name: str) -> Measure:
        """Read a name such as ``nDCG@10``.

        Raises
        ------
        UnknownNameError
            The part before ``@`` is not a measure.
        ParameterError
            The part after ``@`` is not a whole number from 1, is missing or does not belong.

        Examples
        --------
        >>> str(Measure.parse("rank_corr"))
        'rank_corr'
        """
        base, at, cutoff = name.partition("@")
        if base not in MEASURES:
            raise UnknownNameError.of("measure", base, MEASURES)
        if at and not re.fullmatch(r"[1-9][0-9]{0,8}", cutoff):
            raise ParameterError(
                expected=f"a whole number from 1 after @ in {base}@k", got=name, do="change it"
            )
        return cls(base, int(cutoff) if at else None)

    @property
    def definition(self) -> Definition:
        """What it is."""
        return MEASURES[self.base]

    def __str__(self) -> str:
        """Give the name."""
        return self.base if self.k is None else f"{self.base}@{self.k}"

    def __repr__(self) -> str:
        """Give the name as code."""
        return f"Measure({str(self)!r})"
