"""What linking finds: candidate links with a posterior each, and what was seen on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from isthmus._matched import MatchedRows
from isthmus._types import FloatArray, IntArray
from isthmus._validate import check_share
from isthmus.errors import CountMismatchError, ParameterError

__all__ = ["Iteration", "LinkVerdict", "Links", "MatchedRows", "Threshold"]

Threshold = float | Literal["own", "max_f1"]
"""A posterior, the method's own, or the one with the highest expected F1."""

Status = Literal["linked", "doubtful", "no_overlap_found", "not_judged"]


@dataclass(frozen=True)
class Iteration:
    """What one iteration did.

    Parameters
    ----------
    number : int
        From 1.
    phase : str
        What kind of step it was, where a method has several; its own name otherwise.
    views : int
        Views of this iteration.
    anchors : int
        Anchor pairs that the views were drawn from.
    candidates : int
        Candidate links known so far.
    links : int
        Links that were promoted.
    ratio : float
        Mutual-nearest-neighbour ratio: rows in at least one proposed pair, over the larger cloud
        (vector linking, appendix C.2.1). From 0 to 2.
    threshold : float
        Posterior that promotion asked for.
    seconds : float
    """

    number: int
    phase: str
    views: int
    anchors: int
    candidates: int
    links: int
    ratio: float
    threshold: float
    seconds: float


@dataclass(frozen=True)
class LinkVerdict:
    """Whether the links can be used, and why.

    Parameters
    ----------
    status : {"linked", "doubtful", "no_overlap_found", "not_judged"}
        ``doubtful``: too few seeds, or wrong ones. ``not_judged``: the method cannot say.
    reasons : tuple of str
        One sentence each, with its numbers.
    """

    status: Status
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Links:
    """Candidate links, one-to-one, the surest first (equal posteriors by source row).

    Parameters
    ----------
    source_rows, target_rows : IntArray of shape (n_candidates,)
        A row is in at most one candidate.
    posterior : FloatArray of shape (n_candidates,), float64
        Probability that the link is true, from 0 to 1; how well calibrated is the method's matter.
    votes : IntArray of shape (n_candidates,)
        Views that proposed the link.
    views : int
        Views that could have.
    threshold : float
        The method's own: links with at least this posterior are what it stands for.
    method : str
    overlap : float, optional
        Estimated number of shared objects; None where a method does not estimate it.
    history : tuple of Iteration
    verdict : LinkVerdict
    interrupted : bool, default False
        Whether it was stopped before its end.

    Examples
    --------
    >>> links = Links(
    ...     source_rows=np.array([4, 2]), target_rows=np.array([0, 1]),
    ...     posterior=np.array([0.9, 0.3]), votes=np.array([5, 1]), views=5,
    ...     threshold=0.5, method="geh", history=(), verdict=LinkVerdict("not_judged"))
    >>> links.matched_rows().source_rows.tolist(), len(links.matched_rows(0.0))
    ([4], 2)
    """

    source_rows: IntArray
    target_rows: IntArray
    posterior: FloatArray
    votes: IntArray
    views: int
    threshold: float
    method: str
    overlap: float | None = None
    history: tuple[Iteration, ...]
    verdict: LinkVerdict
    interrupted: bool = False

    def __post_init__(self) -> None:
        counts = {
            len(self.source_rows),
            len(self.target_rows),
            len(self.posterior),
            len(self.votes),
        }
        if len(counts) != 1:
            raise CountMismatchError(
                expected="as many rows, posteriors and votes", got=f"{counts}", do="fix the counts"
            )
        order = np.lexsort((self.source_rows, -self.posterior))
        for name in ("source_rows", "target_rows", "posterior", "votes"):
            object.__setattr__(self, name, getattr(self, name)[order])

    def __len__(self) -> int:
        """Count the candidate links."""
        return len(self.source_rows)

    def __repr__(self) -> str:
        kept = int(np.count_nonzero(self.posterior >= self.threshold))
        return (
            f"Links({kept:,} of {len(self):,} candidates by {self.method}, {self.verdict.status})"
        )

    def matched_rows(
        self,
        threshold: Threshold = "own",
        *,
        precision: float | None = None,
        coverage: float | None = None,
    ) -> MatchedRows:
        """Return the links that are sure enough.

        Parameters
        ----------
        threshold : float, "own" or "max_f1", default "own"
            Least posterior; the method's own threshold; or the one with the highest expected F1.
        precision : float, optional
            Instead: the most links whose mean posterior is at least this.
        coverage : float, optional
            Instead: the surest links, this share of all candidates.

        Raises
        ------
        ParameterError
            Numbers outside [0, 1], or several of the three.
        """
        count = self._count(threshold, precision=precision, coverage=coverage)
        return MatchedRows(
            source_rows=self.source_rows[:count],
            target_rows=self.target_rows[:count],
            confidence=self.posterior[:count],
        )

    def _count(
        self, threshold: Threshold, *, precision: float | None, coverage: float | None
    ) -> int:
        """Count the links to keep, surest first."""
        if [threshold != "own", precision is not None, coverage is not None].count(True) > 1:
            raise ParameterError(
                expected="one of threshold, precision and coverage",
                got="several",
                do="give the one that you mean",
            )
        if precision is not None:
            check_share(precision, name="precision")
            running = np.cumsum(self.posterior) / np.arange(1, len(self) + 1)
            # Posteriors fall, so their running mean does, too: but for the rounding of sums.
            return int(np.count_nonzero(running >= precision - 1e-12))
        if coverage is not None:
            check_share(coverage, name="coverage")
            return round(coverage * len(self))
        if threshold == "max_f1":
            return self._count_of_best_f1()
        least = self.threshold if isinstance(threshold, str) else threshold
        if isinstance(threshold, str) and threshold != "own":
            raise ParameterError(
                expected="a posterior, 'own' or 'max_f1'", got=repr(threshold), do="change it"
            )
        check_share(least, name="threshold")
        return int(np.count_nonzero(self.posterior >= least))

    def _count_of_best_f1(self) -> int:
        if not len(self):
            return 0
        true = np.cumsum(self.posterior)
        shared = max(float(true[-1]), self.overlap or 0.0)
        expected = 2.0 * true / (np.arange(1, len(self) + 1) + shared)
        return int(np.argmax(expected)) + 1
