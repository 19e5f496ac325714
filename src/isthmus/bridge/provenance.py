"""Provenance: what a bridge was made from, with what, and when."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

__all__ = ["Provenance"]

LIBRARIES = ("isthmus", "numpy", "scipy", "scikit-learn", "faiss-cpu", "safetensors")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a bridge comes from.

    Parameters
    ----------
    created : str
        Time in UTC, ISO 8601 with seconds.
    seed : int
        Of everything random in the fit and the held-out splits.
    n_pairs : int
        Pairs that the map was fitted on.
    source_kind, target_kind : str
        ``query`` or ``passage``: kinds of the paired rows.
    paired : bool, default True
        False for maps that were fitted on pseudo pairs.
    weighted : bool, default False
        Whether the pairs carried weights.
    strategy : str, default "as given"
        How the pairs were chosen.
    coverage : mapping, optional
        What `Pairs.coverage` reported, as plain JSON values; None where the two sets that the pairs
        come from were not at hand.
    candidates : sequence of mappings, default ()
        The maps that were compared, as plain JSON values.
    libraries : mapping of str to str
        Versions.

    Examples
    --------
    >>> made = Provenance.now(seed=0, n_pairs=10, source_kind="passage", target_kind="passage")
    >>> made.n_pairs, sorted(made.libraries)[0]
    (10, 'faiss-cpu')
    """

    created: str
    seed: int
    n_pairs: int
    source_kind: str
    target_kind: str
    paired: bool = True
    weighted: bool = False
    strategy: str = "as given"
    coverage: Mapping[str, Any] | None = None
    candidates: Sequence[Mapping[str, Any]] = ()
    libraries: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def now(cls, **fields: Any) -> Self:
        """Record the time and the versions of this moment.

        ``SOURCE_DATE_EPOCH`` (seconds since 1970), where it is set, stands for the time, so that
        the same fit gives the same artifact, byte for byte.
        """
        fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
        moment = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)
        versions = {name: importlib.metadata.version(name) for name in LIBRARIES}
        return cls(
            created=moment.isoformat(timespec="seconds"),
            libraries={"python": platform.python_version(), **versions},
            **fields,
        )
