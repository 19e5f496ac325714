"""From the numbers of a report to a verdict."""

from __future__ import annotations

import math

from isthmus.bridge.retention import NAME, Curve
from isthmus.bridge.verdict import Verdict
from isthmus.evaluate.report import Report, Value

__all__ = [
    "FEWEST_PAIRS",
    "MIN_RETENTION",
    "judge",
    "judge_too_few",
    "judge_unmeasured",
    "judge_unpaired",
]

# Below this, ten folds hold out one or two pairs each and no interval means anything.
FEWEST_PAIRS = 20
# At .5 to .6 on documents, mapped queries keep .75 to .86 of the native nDCG@10: docs/numbers.md,
# benchmarks/query_mapping.py with 500 and 1,000 pairs.
MIN_RETENTION = 0.5
# More pairs than this many times what is there are not "a few more": embed again.
MOST_TIMES = 20
# What else the numbers support: use, value, and the least that its lower bound must reach.
USES = (
    ("finding the same record", "hit@1", 0.9),
    ("candidates for re-ranking", "hit@10", 0.9),
    ("clustering", "cluster_agreement", 0.6),
    ("thresholds", "threshold_transfer", 0.9),
)


def judge_too_few(n_pairs: int, *, different: int, needed: int = FEWEST_PAIRS) -> Verdict:
    """Say that no number can be given: too few pairs, or too few that differ.

    ``needed`` pairs would be enough to hold some out.
    """
    said = f"{n_pairs} pairs" + (f", {different} of them different" if different < n_pairs else "")
    return Verdict(
        status="insufficient_pairs",
        reason=f"{said}: too few to hold any out and measure; {needed} would do for that",
        pairs_needed=needed,
        chosen_because="nothing could be measured; the most constrained fitted map",
    )


def judge(
    report: Report,
    *,
    method: str,
    because: str,
    curve: Curve,
    n_pairs: int,
    min_retention: float,
) -> Verdict:
    """Judge a bridge by the lower bound of its retention and by its learning curve.

    Parameters
    ----------
    report : Report
        Holds ``retention@10``.
    method, because : str
        The chosen map, and why it was chosen.
    curve : Curve
    n_pairs : int
    min_retention : float

    Returns
    -------
    Verdict
        ``pre_aligned``: the null map meets the target. ``bridge``: the lower bound does.
        ``insufficient_pairs``: it does not, but up to 20 times the pairs should.
        ``reindex``: no number of pairs in reach would.
    """
    value = report.values[NAME]
    said = f"keeps {value} of the native top 10, the null map {report.null[NAME].mean:.3f}"
    if value.low >= min_retention:
        uses = ("search", *_uses(report))
        return Verdict(
            status="pre_aligned" if method == "null" else "bridge",
            reason=f"{said}; {min_retention:g} is asked for",
            usable_for=uses,
            chosen_because=because,
        )
    needed = _pairs_needed(value, curve, n_pairs=n_pairs, min_retention=min_retention)
    if needed is not None and needed <= MOST_TIMES * n_pairs:
        needed = max(needed, n_pairs + 1)
        return Verdict(
            status="insufficient_pairs",
            reason=f"{said}; {min_retention:g} takes about {needed} pairs or more",
            usable_for=_uses(report),
            pairs_needed=needed,
            chosen_because=because,
        )
    return Verdict(
        status="reindex",
        reason=f"{said}; more pairs will not reach {min_retention:g}: embed again",
        usable_for=_uses(report),
        chosen_because=because,
    )


def judge_unpaired(report: Report, *, because: str, min_retention: float) -> Verdict:
    """Judge a map that pairs measure and do not enter, by the lower bound of its retention.

    Parameters
    ----------
    report : Report
        Holds ``retention@10``.
    because : str
    min_retention : float

    Returns
    -------
    Verdict
        ``bridge``: the lower bound meets the target. ``insufficient_pairs``: only the mean does,
        and more pairs would tell. ``reindex``: it does not; more pairs change nothing here.
    """
    value, n = report.values[NAME], report.n_queries
    said = (
        f"fitted without pairs; on {n} of them it keeps {value} of the native top 10, the null map "
        f"{report.null[NAME].mean:.3f}"
    )
    if value.low >= min_retention:
        return Verdict(
            status="bridge",
            reason=f"{said}; {min_retention:g} is asked for",
            usable_for=("search", *_uses(report)),
            chosen_because=because,
        )
    if value.mean > min_retention:
        surer = ((value.mean - value.low) / (value.mean - min_retention)) ** 2
        needed = max(math.ceil(n * min(surer, MOST_TIMES)), n + 1)
        return Verdict(
            status="insufficient_pairs",
            reason=f"{said}; to tell whether it keeps {min_retention:g} takes about {needed} pairs",
            usable_for=_uses(report),
            pairs_needed=needed,
            chosen_because=because,
        )
    return Verdict(
        status="reindex",
        reason=f"{said}; it does not learn from pairs: name a map that does, or embed again",
        usable_for=_uses(report),
        chosen_because=because,
    )


def judge_unmeasured(confidence: float | None, *, reliable: bool, n_pairs: int) -> Verdict:
    """Judge a map that was fitted without pairs, and of which nothing could be measured.

    Parameters
    ----------
    confidence : float or None
        Of the map itself, from 0 to 1: how far what it found is more than chance. None where the
        map has no such number.
    reliable : bool
        False where the map itself says that what it found is worthless.
    n_pairs : int
        Pairs that there were: too few to measure by.

    Returns
    -------
    Verdict
        ``reindex`` where the map says that it found nothing; else ``insufficient_pairs``, since
        nobody has seen whether it is right.
    """
    because = "it was asked for by name; it needs no pairs"
    said = "fitted without pairs"
    if confidence is not None:
        said += f"; its own confidence, which no pair has checked, is {confidence:.2f}"
    if not reliable:
        return Verdict(
            status="reindex",
            reason=f"{said}: what it found is worthless; give pairs, or embed again",
            chosen_because=because,
        )
    there = f"{n_pairs} pairs are too few to measure it" if n_pairs else "nothing could be measured"
    return Verdict(
        status="insufficient_pairs",
        reason=f"{said}; {there}: {FEWEST_PAIRS} pairs would do for that",
        pairs_needed=FEWEST_PAIRS,
        chosen_because=because,
    )


def _pairs_needed(value: Value, curve: Curve, *, n_pairs: int, min_retention: float) -> int | None:
    """Return how many pairs bring the lower bound to the target; None where none would."""
    needed = curve.pairs_for(min_retention + (value.mean - value.low) / 2.0)
    if value.mean > min_retention:
        # Enough is kept, but not surely: the interval narrows with the root of the pairs.
        surer = n_pairs * ((value.mean - value.low) / (value.mean - min_retention)) ** 2
        needed = math.ceil(surer) if needed is None else min(needed, math.ceil(surer))
        return min(needed, MOST_TIMES * n_pairs)
    if n_pairs < curve.dim and (needed is None or needed > MOST_TIMES * n_pairs):
        # Not every direction has a pair yet: the curve cannot say where it ends.
        return min(curve.dim, MOST_TIMES * n_pairs)
    return needed


def _uses(report: Report) -> tuple[str, ...]:
    return tuple(
        use
        for use, name, least in USES
        if name in report.values and report.values[name].low >= least
    )
