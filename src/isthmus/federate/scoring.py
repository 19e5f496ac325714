"""What the scores of a federation depend on, by which a calibration of them is known to fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from isthmus.errors import MalformedArtifactError

if TYPE_CHECKING:
    from isthmus.federate.common import CommonSpaces
    from isthmus.federate.fusion import Fusion
    from isthmus.federate.spokes import Spoke

__all__ = ["Scoring"]


@dataclass(frozen=True)
class Scoring:
    """The fusion method with its parameters, and the bridges whose numbers enter the scores.

    Parameters
    ----------
    method : str
        Name and parameters that are not left out: ``score(common=0.2)``.
    bridges : tuple of str
        ``SPACE ROLE HASH`` of each bridge, in the order of the spaces.
    """

    method: str
    bridges: tuple[str, ...]

    @classmethod
    def of(
        cls, method: Fusion, spokes: Sequence[Spoke], common: CommonSpaces | None, *, dedup: str
    ) -> Self:
        """Describe the scores of a federation.

        Parameters
        ----------
        method : Fusion
            With its defaults resolved.
        spokes : sequence of Spoke
            All spaces, the hub's first.
        common : CommonSpaces, optional
        dedup : str
            Counts for methods that add up the lists which hold a document.
        """
        params: dict[str, Any] = {
            field.name: getattr(method, field.name)
            for field in fields(method)  # type: ignore[arg-type]  # all are dataclasses
        }
        if method.adds_up_lists:
            params["dedup"] = dedup
        given = ", ".join(
            f"{name}={value!r}" for name, value in params.items() if value is not None
        )
        compared = method.spaces(len(spokes))
        used = []
        for place, spoke in enumerate(spokes):
            roles = {
                "to": spoke.into,
                "from": spoke.back if set(compared) - {place} else None,
                "common": None if common is None else common.bridges.get(place),
            }
            used += [
                f"{spoke.space.fingerprint[:12]} {role} {bridge.hash}"
                for role, bridge in roles.items()
                if bridge is not None
            ]
        return cls(f"{method.name}({given})", tuple(used))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"method": self.method, "bridges": list(self.bridges)}

    @classmethod
    def from_dict(cls, fields: Any) -> Self:
        """Read what `to_dict` gave, trusting nothing in it.

        Raises
        ------
        MalformedArtifactError
        """
        known = isinstance(fields, dict) and set(fields) == {"method", "bridges"}
        texts = [fields["method"], *fields["bridges"]] if known else [None]
        if not all(isinstance(text, str) for text in texts):
            raise MalformedArtifactError(
                expected="the method and the bridges that made scores",
                got=repr(fields)[:80],
                do="calibrate again",
            )
        return cls(fields["method"], tuple(fields["bridges"]))
