"""What linking found between two sets, with ids."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import VerdictError
from isthmus.link import Links, MatchedRows
from isthmus.link.links import Threshold
from isthmus.spaces import Pairs, VectorSet
from isthmus.spaces.links_file import write_links

__all__ = ["FoundLinks"]

QUANTILES = {"min": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "max": 1.0}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FoundLinks:
    """Links between two sets.

    Parameters
    ----------
    source, target : VectorSet
    links : Links
        All candidates, as rows, with history and verdict.
    threshold, precision, coverage
        Which of them count; see `isthmus.link.Links.matched_rows`.
    n_seeds : int
    seeds_inside : bool
        Whether the seeds are rows of the two sets, or of other objects.
    resumed_after : int
        Iterations of an earlier run that this one went on from.
    seconds : float
    notes : tuple of str
        What should be known before the links are believed.
    checkpoint : Path, optional
        File that the run was kept in; `discard_checkpoint` removes it.
    """

    source: VectorSet
    target: VectorSet
    links: Links
    threshold: Threshold = "own"
    precision: float | None = None
    coverage: float | None = None
    n_seeds: int
    seeds_inside: bool
    resumed_after: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    checkpoint: Path | None = None

    def __repr__(self) -> str:
        return (
            f"FoundLinks({len(self):,} of {len(self.links):,} candidates by {self.links.method}, "
            f"{self.links.verdict.status})"
        )

    def __len__(self) -> int:
        """Count the links that are kept."""
        return len(self.matched_rows())

    def matched_rows(self) -> MatchedRows:
        """Return the rows of the links that are kept, the surest first."""
        return self.links.matched_rows(
            self.threshold, precision=self.precision, coverage=self.coverage
        )

    @property
    def least_posterior(self) -> float | None:
        """The posterior that was asked for; the least one that is kept where something else was."""
        if self.precision is None and self.coverage is None and self.threshold != "max_f1":
            return float(self.links.threshold if self.threshold == "own" else self.threshold)
        kept = self.matched_rows().confidence
        return float(kept[-1]) if len(kept) else None

    def pairs(self) -> Pairs:
        """Return the kept links as pairs; posteriors become weights.

        Raises
        ------
        EmptyInputError
            No link was kept.
        ParameterError
            Every posterior is 0.
        """
        return Pairs.from_links(self.source, self.target, self.matched_rows())

    def save(self, path: Path | str, *, every: bool = False) -> None:
        """Write ``source,target,posterior,votes``, the surest first; whole or not at all.

        Parameters
        ----------
        path : path
            ``.csv`` or ``.parquet``; `Pairs.from_file` reads both.
        every : bool, default False
            All candidates, and not only the links that are kept.

        Raises
        ------
        UnknownFormatError, WriteFailedError
        """
        kept = slice(None if every else len(self))
        write_links(
            Path(path),
            self.source.ids[self.links.source_rows[kept]],
            self.target.ids[self.links.target_rows[kept]],
            self.links.posterior[kept],
            self.links.votes[kept],
        )

    def require(self) -> None:
        """Raise where the verdict is less than ``linked``.

        Raises
        ------
        VerdictError
        """
        verdict = self.links.verdict
        if verdict.status != "linked":
            raise VerdictError(
                expected="the verdict linked",
                got=": ".join(filter(None, (verdict.status, "; ".join(verdict.reasons)))),
                do="add seeds that are right, or another method that judges its links"
                if verdict.status == "not_judged"
                else "add seeds, check those there are, and that the sets share objects",
            )

    def discard_checkpoint(self) -> None:
        """Remove the file that the run was kept in; leave it where the run was interrupted."""
        if self.checkpoint is not None and not self.links.interrupted:
            self.checkpoint.unlink(missing_ok=True)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, without the links themselves."""
        kept, verdict = self.matched_rows().confidence, self.links.verdict
        return {
            "method": self.links.method,
            "source": {"rows": len(self.source), "space": str(self.source.space)},
            "target": {"rows": len(self.target), "space": str(self.target.space)},
            "seeds": self.n_seeds,
            "seeds_inside": self.seeds_inside,
            "candidates": len(self.links),
            "links": len(kept),
            "asked": {
                "threshold": self.threshold,
                "precision": self.precision,
                "coverage": self.coverage,
            },
            "threshold": self.least_posterior,
            "posterior": {
                name: float(np.quantile(kept, share)) if len(kept) else None
                for name, share in QUANTILES.items()
            },
            "views": self.links.views,
            "overlap": self.links.overlap,
            "verdict": {"status": verdict.status, "reasons": list(verdict.reasons)},
            "history": [asdict(one) for one in self.links.history],
            "interrupted": self.links.interrupted,
            "resumed_after": self.resumed_after,
            "seconds": self.seconds,
            "notes": list(self.notes),
        }
