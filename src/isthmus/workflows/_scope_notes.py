"""What should be known of rows before a bridge's report is believed for them."""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.bridge import ScopeReport
from isthmus.spaces import Space

__all__ = ["bridged_notes", "scope_notes"]

USUAL_OUTSIDE = 0.1
"""Share outside the scope beyond which it is said; about .03 is usual."""


def scope_notes(what: str, scope: ScopeReport) -> Iterator[str]:
    """Say where rows are of another kind than the pairs, or many lie outside the scope.

    Examples
    --------
    >>> list(scope_notes("rows", ScopeReport(100, 50, "passage", "passage")))
    ['50% of the rows lie outside the scope of the bridge (about 3% is usual)']
    """
    if scope.kind_differs:
        yield (
            f"the {what} are of kind {scope.kind!r}; the bridge was fitted on "
            f"{scope.pairs_kind!r}, and its report speaks of those"
        )
    if scope.share_outside > USUAL_OUTSIDE:
        yield (
            f"{scope.share_outside:.0%} of the {what} lie outside the scope of the bridge (about "
            "3% is usual)"
        )


def bridged_notes(source: Space, target: Space) -> Iterator[str]:
    """Say which side a bridge made: a bridge that is fitted to its output is fitted to itself.

    Examples
    --------
    >>> plain = Space(model="m", dim=2)
    >>> carried = Space(model="n", dim=2, bridged_from="740e956374207611")
    >>> for note in bridged_notes(plain, carried):
    ...     print(note[:79])
    no encoder made the vectors of the target side (n): the bridge 740e956374207611
    """
    for side, space in (("source", source), ("target", target)):
        if space.bridged_from:
            yield (
                f"no encoder made the vectors of the {side} side ({space.model}): the bridge "
                f"{space.bridged_from[:16]} carried them there, so every number here measures that "
                "bridge, not the model; take vectors that the model made"
            )
