"""The identity of an embedding space."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, cast, get_args

from isthmus._types import Metric
from isthmus.errors import DimensionError, InputError, SpaceMismatchError, UnknownNameError

__all__ = ["Space"]

IDENTITY = ("model", "revision", "dim", "metric", "normalized", "preprocessing")


@dataclass(frozen=True, kw_only=True)
class Space:
    """Which model made these vectors, and how they are compared.

    Two vectors may meet only if the fingerprints of their spaces are equal.

    Parameters
    ----------
    model : str
        Name of the encoder.
    dim : int
        Number of columns.
    revision : str, default ""
        Version of the encoder's weights.
    metric : {"cosine", "dot", "l2"}, default "cosine"
        How the space compares vectors.
    normalized : bool, default False
        Whether the encoder gives vectors of unit length.
    preprocessing : str, default ""
        What was done to the text or the vectors, in the owner's words.
    kind : str, default "passage"
        ``query`` or ``passage``; beside the identity, outside the fingerprint: the queries and
        passages of one model live in one space.
    prompt : str, default ""
        Prompt put before the text; outside the fingerprint.
    bridged_from : str, default ""
        Hash of the bridge that carried the vectors here; outside the fingerprint.

    Raises
    ------
    InputError
        Empty model, dimension under 1 (`DimensionError`), unknown metric (`UnknownNameError`).

    Examples
    --------
    >>> space = Space(model="all-MiniLM-L6-v2", dim=384, normalized=True)
    >>> space.fingerprint[:12]
    '81d97ea62cee'
    >>> space.fingerprint == Space(model="all-MiniLM-L6-v2", dim=384, normalized=True,
    ...                            kind="query").fingerprint
    True
    """

    model: str
    dim: int
    revision: str = ""
    metric: Metric = "cosine"
    normalized: bool = False
    preprocessing: str = ""
    kind: str = "passage"
    prompt: str = ""
    bridged_from: str = ""

    def __post_init__(self) -> None:
        for name in ("model", "revision", "preprocessing", "kind", "prompt", "bridged_from"):
            if not isinstance(getattr(self, name), str):
                raise InputError(
                    expected=f"text as the space's {name}",
                    got=repr(getattr(self, name)),
                    do="fix it",
                )
            if any("\ud800" <= character <= "\udfff" for character in getattr(self, name)):
                raise InputError(
                    expected=f"whole Unicode characters in the space's {name}",
                    got="half of a surrogate pair",
                    do="decode the text as UTF-8",
                )
        if not self.model:
            raise InputError(
                expected="a model name", got="an empty one", do="name the encoder of the vectors"
            )
        if isinstance(self.dim, bool) or not isinstance(self.dim, int) or self.dim < 1:
            raise DimensionError(
                expected="a dimension of at least 1", got=repr(self.dim), do="fix the space"
            )
        if not isinstance(self.normalized, bool):
            raise InputError(
                expected="normalized as true or false",
                got=repr(self.normalized),
                do="fix the space",
            )
        if self.metric not in get_args(Metric):
            raise UnknownNameError.of("metric", str(self.metric), get_args(Metric))

    @property
    def canonical_json(self) -> str:
        """The identity as JSON: sorted keys, no white space, UTF-8 text kept as it is."""
        identity = {name: getattr(self, name) for name in IDENTITY}
        return json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over `canonical_json`, 64 hexadecimal digits."""
        return hashlib.sha256(self.canonical_json.encode()).hexdigest()

    def check(self, other: Space, *, what: str = "vectors") -> None:
        """Refuse ``other`` unless it is this space.

        Parameters
        ----------
        other : Space
            Space of what was handed in.
        what : str, default "vectors"
            What was handed in, for the message.

        Raises
        ------
        SpaceMismatchError
            Names each field that differs.
        """
        if self.fingerprint == other.fingerprint:
            return
        differing = [name for name in IDENTITY if getattr(self, name) != getattr(other, name)]
        raise SpaceMismatchError(
            expected=f"{what} with "
            + ", ".join(f"{name} {getattr(self, name)!r}" for name in differing),
            got=", ".join(f"{name} {getattr(other, name)!r}" for name in differing),
            do="use vectors of that space, or fit a bridge between the two; if it is one model, "
            "spell its name, revision and the rest the same way",
        )

    def with_kind(self, kind: str) -> Space:
        """Return the same space with another kind beside it."""
        return replace(self, kind=kind)

    def to_dict(self) -> dict[str, Any]:
        """Return every field as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Space:
        """Read a space from plain JSON values; fields that Isthmus does not know are refused.

        Raises
        ------
        InputError
            A field is missing, unknown, or of the wrong type.
        """
        known = set(cls.__dataclass_fields__)
        unknown, missing = sorted(set(fields) - known), sorted({"model", "dim"} - set(fields))
        if unknown or missing:
            raise InputError(
                expected=f"a space with model, dim and any of {', '.join(sorted(known))}",
                got=f"unknown fields {unknown}, missing fields {missing}",
                do="rename or add them",
            )
        return cls(**cast("dict[str, Any]", dict(fields)))

    @classmethod
    def from_json(cls, text: str) -> Space:
        """Read a space from JSON text.

        Examples
        --------
        >>> Space.from_json('{"model": "m", "dim": 3}').dim
        3
        """
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(
                expected="a space as JSON", got=f"text that is not JSON ({error})", do="fix it"
            ) from error
        if not isinstance(fields, dict):
            raise InputError(expected="a space as a JSON object", got=text[:40], do="fix it")
        return cls.from_dict(fields)

    def __str__(self) -> str:
        """Say model, width and metric in a few words."""
        return f"{self.model} ({self.dim}, {self.metric})"
