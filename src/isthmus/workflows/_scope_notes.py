"""What should be known of rows before a bridge's report is believed for them."""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.bridge import ScopeReport

__all__ = ["scope_notes"]

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
