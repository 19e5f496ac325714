"""The plan of an integration: how every batch of every source becomes rows of the new store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from isthmus._types import FloatArray, IdArray
from isthmus.errors import CountMismatchError, ParameterError, UnknownNameError
from isthmus.federate import Federation, Source
from isthmus.federate.spokes import Spoke
from isthmus.spaces import Space, VectorSet
from isthmus.workflows._opening import open_vectors

__all__ = ["Ids", "Integration", "Plan"]

Integration = Literal["ec", "mig"]
Ids = Literal["prefix", "keep"]


@dataclass(frozen=True)
class Plan:
    """What is carried where, and how.

    Parameters
    ----------
    federation : Federation
    method : {"ec", "mig"}
    target : Space
        Of the new store.
    native : mapping of source name to VectorSet
        For ``mig``.
    ids : {"prefix", "keep"}
    """

    federation: Federation
    method: Integration
    target: Space
    native: Mapping[str, VectorSet]
    ids: Ids

    @classmethod
    def make(
        cls,
        federation: Federation,
        method: Integration,
        space: str | None,
        native: Mapping[str, VectorSet | Path | str],
        ids: Ids,
    ) -> Plan:
        """Check that every source can get there, before anything is written."""
        names = [source.name for source in federation.sources]
        for name in (*native, *([] if space is None else [space])):
            if name not in names:
                raise UnknownNameError.of("source", name, names)
        if ids == "prefix":
            _check_prefixes(names)
        target = federation.hub
        if space is not None:
            target = federation.sources[names.index(space)].store.space
        # vectors of several origins: what is true of one of them is not true of all
        target = replace(target, kind=federation.hub.kind, bridged_from="")
        plan = cls(federation, method, target, {}, ids)
        if method == "ec":
            plan.check_bridges()
            if native:
                raise ParameterError(
                    expected="no native vectors for ec: it maps what is stored",
                    got=", ".join(native),
                    do="leave them out, or take mig",
                )
            return plan
        opened = {name: open_vectors(vectors) for name, vectors in native.items()}
        plan = replace(plan, native=opened)
        plan.check_native()
        return plan

    @property
    def converted(self) -> list[str]:
        """Names of the sources that hold another space than the target."""
        return [
            source.name
            for source in self.federation.sources
            if source.store.space.fingerprint != self.target.fingerprint
        ]

    def spoke(self, space: Space) -> Spoke:
        """Return the spoke of a space."""
        return next(
            spoke
            for spoke in self.federation.spokes
            if spoke.space.fingerprint == space.fingerprint
        )

    def check_bridges(self) -> None:
        """Refuse a source without a way to the target, and a target without a way from the hub."""
        hub = self.federation.hub.fingerprint
        for source in self.federation.sources:
            if source.name in self.converted and source.store.space.fingerprint != hub:
                self.spoke(source.store.space).check(into=False, back=True)
        if self.target.fingerprint != hub and self.converted:
            self.spoke(self.target).check(into=True, back=False)

    def check_native(self) -> None:
        """Refuse missing files, and files of another space or without all documents."""
        for name in self.converted:
            if name not in self.native:
                raise ParameterError(
                    expected=f"native vectors of the documents of source {name!r}",
                    got="none",
                    do="embed them with the target's model and give the file, or take ec",
                )
            self.target.check(self.native[name].space, what=f"native vectors of source {name!r}")
        for source in self.federation.sources:
            if source.name in self.converted:
                count, given = source.store.count(), len(self.native[source.name])
                if given < count:
                    raise CountMismatchError(
                        expected=f"the {count:,} documents of source {source.name!r} in its file",
                        got=f"{given:,}",
                        do="embed all of them with the target's model",
                    )

    def carry(self, source: Source, vectors: VectorSet) -> VectorSet:
        """Return a batch as it is written: its vectors in the target, its ids told apart."""
        ids = vectors.ids
        if source.name not in self.converted:
            rows = vectors.matrix()
        elif self.method == "mig":
            rows = self._native_rows(source, ids)
        else:
            rows = vectors.matrix()
            if source.store.space.fingerprint != self.federation.hub.fingerprint:
                rows = self.spoke(source.store.space).to_hub(rows)
            if self.target.fingerprint != self.federation.hub.fingerprint:
                rows = self.spoke(self.target).from_hub(rows)
        if self.ids == "prefix":
            ids = np.char.add(f"{source.name}/", ids)
        return VectorSet(ids, rows, self.target)

    def _native_rows(self, source: Source, ids: IdArray) -> FloatArray:
        given = self.native[source.name]
        rows = given.find(ids)
        if (rows < 0).any():
            raise CountMismatchError(
                expected=f"every document of source {source.name!r} in its file",
                got=f"{int((rows < 0).sum()):,} that are not there, first "
                f"{str(ids[int(np.argmax(rows < 0))])!r}",
                do="embed all of them with the target's model",
            )
        return given.select(rows).matrix()

    def describe(self) -> dict[str, Any]:
        """Return what makes two integrations the same, as plain JSON values."""
        bridges = {}
        if self.method == "ec":
            for spoke in self.federation.spokes[1:]:
                used = {"back": spoke.back, "into": spoke.into}
                bridges[spoke.space.fingerprint] = {
                    way: bridge.hash for way, bridge in used.items() if bridge is not None
                }
        return {
            "method": self.method,
            "ids": self.ids,
            "sources": [
                [source.name, source.store.url, source.store.space.fingerprint]
                for source in self.federation.sources
            ],
            "bridges": bridges,
        }


def _check_prefixes(names: Sequence[str]) -> None:
    """Refuse names of which one, with a slash, begins another: two ids could become one."""
    for name in names:
        other = next((one for one in names if one.startswith(f"{name}/")), None)
        if other is not None:
            raise ParameterError(
                expected="names of sources by which NAME/id can be told apart",
                got=f"{name!r} and {other!r}",
                do='rename one of them, or take ids "keep"',
            )
