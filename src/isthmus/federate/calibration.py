"""Calibrated scores: the probability of relevance, so that one threshold fits all stores.

A canonical score orders the candidates of one query. A threshold needs more: that .6 means the same
in every store, whatever its model, its bridges and its documents. One isotonic curve per source,
from canonical score to probability of relevance, gives that; it keeps the order within a source.
Sources with few relevant candidates lean on the curve of all sources together.

Rank by the canonical score and show the probability beside it: the curves compare candidates of
all queries, and ranking one query's candidates by them was worse by .01 to .03 nDCG@10 where many
were relevant (docs/federation_rivals.md). They need judgements: rows of the stores, asked as
queries, have far more relevant neighbours than real queries, and gave curves that mean nothing.

The curves are those of `isthmus.bridge.calibration`: no steps, so that two scores that differ stay
apart. Reference: Zadrozny and Elkan (KDD 2002).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, IntArray
from isthmus.bridge.calibration import Calibration
from isthmus.errors import (
    ConfigError,
    CountMismatchError,
    IsthmusError,
    MalformedArtifactError,
    MissingFileError,
    TooFewPairsError,
    UnknownVersionError,
)
from isthmus.federate.calibration_quality import as_labels
from isthmus.federate.scoring import Scoring

if TYPE_CHECKING:
    from isthmus.federate.candidates import Candidates
    from isthmus.federate.hub import Federation

__all__ = ["ScoreCalibration"]

VERSION = 2
LEAST_RELEVANT = 10
"""In all sources together, for a curve."""

LEAN = 50
"""Relevant candidates at which a source's own curve and that of all sources count the same (least
calibration error of 0, 50, 100 and 200 on splits that are not reported)."""

END = 0.01
"""Where curves bend so that they never reach 0 and 1, and never go flat."""


@dataclass(frozen=True, eq=False)
class ScoreCalibration:
    """One rising curve per source, from canonical score to probability of relevance.

    Parameters
    ----------
    names : tuple of str
        Of the sources, in their order.
    together : Calibration
        The curve of all sources.
    curves : tuple of Calibration, one per source
    shares : tuple of float, one per source
        How much its own curve counts, from 0 to under 1; the rest is that of all sources.
    scoring : Scoring, optional
        What made the scores; without it no federation takes the curves.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random((200, 4)).astype(np.float32)
    >>> relevant = rng.random((200, 4)) < scores ** [1, 1, 2, 2]
    >>> curves = ScoreCalibration.fit(scores, relevant, np.array([0, 0, 1, 1]), names=("a", "b"))
    >>> one, two = curves.probability(np.float32([[0.5, 0.5]]), np.array([0, 1]))[0]
    >>> bool(0.4 < one < 0.6), bool(0.15 < two < 0.35)
    (True, True)
    """

    names: tuple[str, ...]
    together: Calibration
    curves: tuple[Calibration, ...]
    shares: tuple[float, ...]
    scoring: Scoring | None = None

    def __repr__(self) -> str:
        """Say whose scores; the curves are long."""
        made = "scores" if self.scoring is None else self.scoring.method
        return f"ScoreCalibration({made} of {', '.join(map(repr, self.names))})"

    @classmethod
    def of(
        cls, federation: Federation, candidates: Candidates, relevant: npt.ArrayLike
    ) -> ScoreCalibration:
        """Learn the curves of a federation, for its file or as its ``calibration``.

        Parameters
        ----------
        federation : Federation
        candidates : Candidates of m labelled queries
            As `Federation.candidates` gives them, at the depth of later searches.
        relevant : array-like of shape (m, w)
            Judgements, ``qrels.gains(query_ids, candidates.ids)``; over 0 is relevant.

        Raises
        ------
        CountMismatchError, TooFewPairsError
            See `fit`.
        """
        return cls.fit(
            federation.method.score(candidates),
            relevant,
            candidates.source,
            names=[source.name for source in federation.sources],
            scoring=federation.scoring,
        )

    @classmethod
    def fit(
        cls,
        scores: FloatArray,
        relevant: npt.ArrayLike,
        source: IntArray,
        *,
        names: Sequence[str],
        scoring: Scoring | None = None,
    ) -> ScoreCalibration:
        """Learn the curves from the scores of the candidates of labelled queries.

        Parameters
        ----------
        scores : FloatArray of shape (m, w)
            Canonical scores, NaN where there is no candidate.
        relevant : array-like of shape (m, w)
            Judgements; over 0 is relevant.
        source : IntArray of shape (w,)
            Which source each column comes from.
        names : sequence of str
            Of the sources.
        scoring : Scoring, optional
            What made the scores (`Federation.scoring`), for curves that a federation is to take.

        Raises
        ------
        CountMismatchError, TooFewPairsError
            Other shapes; fewer than 10 relevant candidates in all sources together.
        """
        labels = as_labels(scores, relevant, source)
        found = np.isfinite(scores)
        if (count := int(labels[found].sum())) < LEAST_RELEVANT:
            raise TooFewPairsError(
                expected=f"at least {LEAST_RELEVANT} relevant candidates",
                got=f"{count}",
                do="judge more queries",
            )
        query = np.broadcast_to(np.arange(len(scores))[:, None], scores.shape)
        holder = np.broadcast_to(source, scores.shape)

        def learn(taken: npt.NDArray[np.bool_]) -> Calibration:
            return Calibration.fit(scores[taken], labels[taken], groups=query[taken])

        together = learn(found)
        curves, shares = [], []
        for place in range(len(names)):
            mask = found & (holder == place)
            count = int(labels[mask].sum())
            curves.append(learn(mask) if count else together)
            shares.append(count / (count + LEAN))
        return cls(tuple(names), together, tuple(curves), tuple(shares), scoring)

    def probability(self, scores: FloatArray, source: IntArray) -> FloatArray:
        """Return the probability that each candidate is relevant, float32 in (0, 1), NaN kept.

        Parameters
        ----------
        scores : FloatArray of shape (m, w)
        source : IntArray of shape (w,)

        Raises
        ------
        CountMismatchError
            A source without a curve, or another number of columns.
        """
        if scores.ndim != 2 or source.shape != scores.shape[1:]:
            raise CountMismatchError(
                expected="one source per column of the scores",
                got=f"shapes {source.shape} and {scores.shape}",
                do="take Candidates.source",
            )
        if source.size and not 0 <= source.min() <= source.max() < len(self.curves):
            raise CountMismatchError(
                expected=f"sources from 0 to {len(self.curves) - 1}",
                got=f"{int(source.min())} to {int(source.max())}",
                do="fit the calibration again, on all sources",
            )
        known = np.full(scores.shape, np.nan, dtype=np.float32)
        for place, (curve, share) in enumerate(zip(self.curves, self.shares, strict=True)):
            columns = source == place
            own, all_of_them = (
                _into_unit(one.to_native(scores[:, columns])) for one in (curve, self.together)
            )
            known[:, columns] = share * own + (1 - share) * all_of_them
        return known

    def check(self, names: Sequence[str], scoring: Scoring) -> None:
        """Refuse a federation of other sources, or one whose scores are made in another way.

        Raises
        ------
        ConfigError
        """
        if tuple(names) != self.names:
            raise ConfigError(
                expected=f"the sources that were calibrated: {', '.join(self.names)}",
                got=", ".join(names),
                do="calibrate again",
            )
        if self.scoring is None:
            raise ConfigError(
                expected="a calibration that says which scores it was learned on",
                got="one that does not",
                do="learn it by ScoreCalibration.of(federation, candidates, relevant)",
            )
        if self.scoring != scoring:
            same = self.scoring.method == scoring.method
            raise ConfigError(
                expected="the bridges that the calibrated scores were made with"
                if same
                else f"the fusion method that was calibrated, {self.scoring.method}",
                got="other ones" if same else scoring.method,
                do="calibrate again",
            )

    def to_file(self, path: Path | str) -> None:
        """Write the curves as JSON; nothing is left half written.

        Raises
        ------
        WriteFailedError
        """
        from isthmus._files import atomic_path

        curves = [
            {"name": name, "share": share, **_plain(curve)}
            for name, share, curve in zip(self.names, self.shares, self.curves, strict=True)
        ]
        fields = {
            "version": VERSION,
            "scoring": None if self.scoring is None else self.scoring.to_dict(),
            "together": _plain(self.together),
            "curves": curves,
        }
        text = json.dumps(fields, indent=1)
        with atomic_path(Path(path)) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def from_file(cls, path: Path | str) -> ScoreCalibration:
        """Read what `to_file` wrote, trusting nothing in it.

        Raises
        ------
        MissingFileError, MalformedArtifactError, UnknownVersionError
        """
        path = Path(path)
        try:
            text = path.read_bytes()
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise MissingFileError(
                expected="calibrated scores", got=f"no file at {str(path)!r}", do="check the path"
            ) from error
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _malformed(path.name, "no JSON") from error
        if not isinstance(fields, dict) or fields.get("version") != VERSION:
            raise UnknownVersionError(
                expected=f"version {VERSION} of calibrated scores in {path.name!r}",
                got=repr(fields.get("version") if isinstance(fields, dict) else fields)[:80],
                do="calibrate again, or use the version of Isthmus that wrote it",
            )
        try:
            together = _read_curve(fields["together"])
            curves = tuple(_read_curve(one) for one in fields["curves"])
            names = tuple(str(one["name"]) for one in fields["curves"])
            shares = tuple(float(one["share"]) for one in fields["curves"])
            made = fields["scoring"]
            scoring = None if made is None else Scoring.from_dict(made)
        except (KeyError, TypeError, ValueError, OverflowError, IsthmusError) as error:
            raise _malformed(path.name, f"{type(error).__name__}: {error}"[:200]) from error
        if not all(0 <= share < 1 for share in shares):
            raise _malformed(path.name, f"shares {shares}"[:200])
        return cls(names, together, curves, shares, scoring)


def _into_unit(values: FloatArray) -> FloatArray:
    """Bend a rising curve so that it stays in (0, 1) and rises everywhere; the middle stays."""
    wide = values.astype(np.float64)
    low = END / (1 + np.maximum(END - wide, 0) / END)
    high = 1 - END / (1 + np.maximum(wide - (1 - END), 0) / END)
    bent: FloatArray = np.where(wide < END, low, np.where(wide > 1 - END, high, wide))
    return bent.astype(np.float32)


def _plain(curve: Calibration) -> dict[str, Any]:
    return curve.to_dict() | {axis: knots.tolist() for axis, knots in curve.tensors().items()}


def _read_curve(fields: dict[str, Any]) -> Calibration:
    tensors = {axis: np.asarray(fields[axis], dtype=np.float64) for axis in ("bridged", "native")}
    if not all(np.isfinite(knots).all() for knots in tensors.values()):
        raise ValueError("knots that are not finite")
    return Calibration.from_dict(fields, tensors)


def _malformed(name: str, got: str) -> MalformedArtifactError:
    return MalformedArtifactError(
        expected=f"calibrated scores in {name!r}", got=got, do="calibrate again"
    )
