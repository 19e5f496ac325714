"""What came out of a selection: a verdict with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from isthmus.errors import UnknownNameError

__all__ = ["Status", "Verdict"]

Status = Literal["pre_aligned", "bridge", "insufficient_pairs", "reindex"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether the bridge may be used, and for what.

    Parameters
    ----------
    status : {"pre_aligned", "bridge", "insufficient_pairs", "reindex"}
    reason : str
        One sentence with the numbers behind the status.
    usable_for : tuple of str, default ()
        Uses that the held-out numbers support.
    pairs_needed : int, optional
        How many pairs in all would do, from the learning curve; for ``insufficient_pairs`` only.
    chosen_because : str, default ""
        Why this map and not another.

    Raises
    ------
    UnknownNameError
        Another status.

    Examples
    --------
    >>> Verdict(status="bridge", reason="retention .91").to_dict()["status"]
    'bridge'
    """

    status: Status
    reason: str
    usable_for: tuple[str, ...] = ()
    pairs_needed: int | None = None
    chosen_because: str = ""

    def __post_init__(self) -> None:
        if self.status not in get_args(Status):
            raise UnknownNameError.of("verdict", str(self.status), get_args(Status))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**vars(self), "usable_for": list(self.usable_for)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Verdict:
        """Read what `to_dict` gave."""
        return cls(**{**fields, "usable_for": tuple(fields["usable_for"])})
