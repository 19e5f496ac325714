"""Provenance: what a bridge was made from, with what, and when."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from isthmus._types import IdArray, IntArray
from isthmus.bridge.judgement import MIN_RETENTION
from isthmus.bridge.rule import Purpose
from isthmus.bridge.unpaired import Unpaired
from isthmus.maps import Map
from isthmus.spaces import Pairs

__all__ = ["Provenance", "hash_ids", "hash_pairs", "record_rows"]

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
    purpose : {"search", "score"}, default "search"
        What the mapped rows were to be for.
    min_retention : float, default 0.5
        The preservation target that the verdict was given by.
    paired : bool, default True
        False for maps that pairs did not enter; ``n_pairs`` is 0 then.
    n_unpaired_source, n_unpaired_target : int, default 0
        Rows without a pair that the map was fitted on.
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
    pair_hashes : IntArray of shape (n_pairs, 2), optional
        Hashes of the source and target ids of the pairs (`hash_ids`), so that nobody takes them for
        held-out rows later. Empty where they are not known.

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
    purpose: Purpose = "search"
    min_retention: float = MIN_RETENTION
    paired: bool = True
    n_unpaired_source: int = 0
    n_unpaired_target: int = 0
    weighted: bool = False
    strategy: str = "as given"
    coverage: Mapping[str, Any] | None = None
    candidates: Sequence[Mapping[str, Any]] = ()
    libraries: Mapping[str, str] = field(default_factory=dict)
    pair_hashes: IntArray = field(
        default_factory=lambda: np.empty((0, 2), np.int64), repr=False, compare=False
    )

    def fitted_on(
        self, ids: IdArray, *, side: Literal["source", "target"]
    ) -> npt.NDArray[np.bool_]:
        """Tell which ids of one side stand in the pairs, as booleans of shape (n,).

        Examples
        --------
        >>> ids = np.array(["a", "b"])
        >>> hashes = hash_pairs(ids[:1], ids[:1])
        >>> made = Provenance.now(
        ...     seed=0, n_pairs=1, source_kind="", target_kind="", pair_hashes=hashes
        ... )
        >>> made.fitted_on(ids, side="target").tolist()
        [True, False]
        """
        column = 0 if side == "source" else 1
        return np.isin(hash_ids(ids), self.pair_hashes[:, column])

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


def hash_ids(ids: IdArray) -> IntArray:
    """Return 64 bits of BLAKE2b of each id (UTF-8), as little-endian int64 of shape (n,).

    Eight bytes for an id of any length; with 20,000 pairs and a billion other ids, the chance that
    any of these is taken for a paired one is one in a million.
    """
    digests = (hashlib.blake2b(one.encode(), digest_size=8).digest() for one in ids.tolist())
    return np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64)


def hash_pairs(source_ids: IdArray, target_ids: IdArray) -> IntArray:
    """Return the hashes of both sides, of shape (n, 2)."""
    return np.stack([hash_ids(source_ids), hash_ids(target_ids)], axis=1)


def record_rows(
    inner: Map, pairs: Pairs | None, unpaired: Unpaired, *, held_out: int
) -> dict[str, Any]:
    """Return what a provenance says of the rows that a map was fitted on.

    Parameters
    ----------
    inner : Map
    pairs : Pairs or None
    unpaired : Unpaired
    held_out : int
        Pairs whose rows a map that needs no pairs was not fitted on.
    """
    strategy = {} if pairs is None else {"strategy": pairs.strategy}
    if not inner.paired or pairs is None:
        rest = 0 if pairs is None else len(pairs) - held_out
        source, target = (count + rest for count in unpaired.counts)
        return {
            **strategy,
            "paired": False,
            "n_pairs": 0,
            "n_unpaired_source": source,
            "n_unpaired_target": target,
        }
    source, target = unpaired.counts if inner.sees_unpaired else (0, 0)
    return {
        **strategy,
        "n_pairs": len(pairs),
        "n_unpaired_source": source,
        "n_unpaired_target": target,
        "weighted": pairs.weight is not None,
        "pair_hashes": hash_pairs(pairs.source_ids, pairs.target_ids),
    }
