"""What a federation refuses before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from isthmus._validate import check_share, check_whole
from isthmus.errors import DuplicateIdError, EmptyInputError, ParameterError, UnknownNameError
from isthmus.federate.fusion import Fusion
from isthmus.federate.source import Source
from isthmus.federate.spokes import Spoke
from isthmus.federate.superseding import newer_of

if TYPE_CHECKING:
    from isthmus.federate.hub import Federation

__all__ = ["check_metrics", "check_min_probability", "check_parameters"]


def check_parameters(federation: Federation) -> None:
    """Refuse sources that cannot be told apart, and numbers out of their range."""
    from isthmus.federate.hub import Dedup

    _check_names(federation.sources)
    newer_of(federation.sources)
    if federation.depth is not None:
        check_whole(federation.depth, name="depth")
    for name in ("remember", "retries", "seed"):
        check_whole(getattr(federation, name), name=name, minimum=0)
    if federation.dedup not in get_args(Dedup):
        raise UnknownNameError.of("way to merge (dedup)", str(federation.dedup), get_args(Dedup))
    if not 0 <= federation.dedup_similarity <= 1:
        raise ParameterError(
            expected="dedup_similarity from 0 to 1",
            got=f"{federation.dedup_similarity}",
            do="leave it out for the default",
        )


def check_min_probability(value: float | None, calibration: object) -> None:
    """Refuse what is no probability, and one that nothing can be compared with."""
    if value is None:
        return
    check_share(value, name="min_probability")
    if calibration is None:
        raise ParameterError(
            expected="a federation with a calibration, for min_probability",
            got="none: its scores are no probabilities",
            do="fit one and give it as calibration, see docs/federation.md",
        )


def _check_names(sources: Sequence[Source]) -> None:
    """Refuse no sources, and two of one name."""
    if not sources:
        raise EmptyInputError(
            expected="at least one source in a federation", got="none", do="add a store"
        )
    names = [source.name for source in sources]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DuplicateIdError(
            expected="a name of its own for each source",
            got=f"{', '.join(repeated)} more than once",
            do="rename one of them: hits are told apart by it",
        )


def check_metrics(spokes: Sequence[Spoke], method: Fusion) -> None:
    """Refuse to add up a cosine and a distance."""
    metrics = sorted({spokes[space].space.metric for space in method.spaces(len(spokes))})
    if len(metrics) > 1:
        raise ParameterError(
            expected=f"spaces of one metric for fusion method {method.name!r}: it adds up their "
            "similarities",
            got=" and ".join(metrics),
            do="use one_directional, which compares in one space, or rrf",
        )
