"""How far a conversion has come: kept as a note of the target, or in a file beside it.

Batch first, cursor second: what a checkpoint says is written is written. No clock decides anything.
Each run puts a token of its own into the checkpoint and looks before every batch whether it is
still there: of two runs into one target the later one goes on and the earlier one stops.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from isthmus._files import atomic_path, check_file_writable
from isthmus.errors import (
    CorruptFileError,
    CorruptStoreError,
    ParameterError,
    StoreBusyError,
    UnsupportedOperationError,
)
from isthmus.spaces import VectorSet
from isthmus.stores.base import Store
from isthmus.workflows._copying import parse_note, which_store

__all__ = ["NOTE", "SWITCH", "Checkpoint", "Stage", "State"]

NOTE = "convert"
"""Note of the target: what it is made of, and how far it has come."""

SWITCH = "convert switch"
"""Note of the target: the name that was moved to it, and where that led before."""

Stage = Literal["copy", "compare", "done"]
KINDS = {
    "source": str,
    "space": str,
    "bridge": str,
    "run": str,
    "stage": str,
    "cursor": str,
    "rows": int,
    "copied": int,
    "seconds": float,
    "added": int,
    "changed": int,
    "removed": int,
    "passes": int,
}


@dataclass(frozen=True)
class State:
    """What a conversion is, and how far it has come.

    Parameters
    ----------
    source : str
        URL of where its rows come from.
    space : str
        Fingerprint of their space.
    bridge : str
        Hash of the bridge; empty for a copy.
    run : str
        Token of the run that wrote this last.
    stage : {"copy", "compare", "done"}
        In the first pass, in a second one, between passes.
    cursor : str
        Of the scan of this pass.
    rows : int
        Rows that this pass has read.
    copied : int
        Rows that the first pass wrote.
    seconds : float
        Time that it took; only for estimates.
    added, changed, removed : int
        What the last second pass found, or this one so far.
    passes : int
        Second passes that were finished.
    """

    source: str
    space: str
    bridge: str
    run: str = field(default_factory=lambda: secrets.token_hex(8))
    stage: str = "copy"
    cursor: str = ""
    rows: int = 0
    copied: int = 0
    seconds: float = 0.0
    added: int = 0
    changed: int = 0
    removed: int = 0
    passes: int = 0

    @classmethod
    def parse(cls, text: str) -> State:
        """Read what `dump` gave, trusting nothing in it.

        Raises
        ------
        CorruptStoreError
        """
        found = parse_note(
            text,
            KINDS,
            what="the checkpoint of a conversion, as an earlier run left it",
            do="convert into a new collection; the rows of this one stay as they are",
        )
        return cls(**found)

    def dump(self) -> str:
        """Return it as JSON."""
        return json.dumps(vars(self))

    def differences(self, other: State) -> list[str]:
        """Say what another conversion carries otherwise than this one; empty: they are the same."""
        found = []
        if which_store(self.source) != which_store(other.source):
            found.append(f"the source was {self.source}, and is {other.source}")
        if self.space != other.space:
            found.append(
                f"the fingerprint of the source's space was {short(self.space)}, and is "
                f"{short(other.space)}"
            )
        if self.bridge != other.bridge:
            found.append(f"the bridge was {short(self.bridge)}, and is {short(other.bridge)}")
        return found

    def taken_over(self) -> State:
        """Return it for a run of its own."""
        return replace(self, run=secrets.token_hex(8))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dict(vars(self))


@dataclass(frozen=True)
class Checkpoint:
    """The place where states are kept.

    Parameters
    ----------
    store : Store
        The target.
    path : Path or None
        A file in place of the notes.
    """

    store: Store
    path: Path | None = None

    @classmethod
    def of(cls, store: Store, path: Path | str | None) -> Checkpoint:
        """Choose the place.

        Raises
        ------
        UnsupportedOperationError
            A store that keeps no notes, and no file.
        WriteFailedError
        """
        if path is not None:
            check_file_writable(Path(path))
            return cls(store, Path(path))
        check_notes_or_file(store, path)
        return cls(store)

    def read(self, key: str = NOTE) -> str | None:
        """Return what was kept, None where nothing was.

        Raises
        ------
        CorruptFileError
        """
        if self.path is None:
            return self.store.notes().get(key)
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not all(type(one) is str for one in found.values()):
            raise CorruptFileError(
                expected=f"the checkpoint of a conversion in {self.path.name!r}",
                got="a file that holds none",
                do="name the file that the conversion was begun with, or convert into a new "
                "collection",
            )
        return found.get(key)

    def state(self) -> State | None:
        """Return the state that was kept.

        Raises
        ------
        CorruptStoreError
        """
        text = self.read()
        return None if text is None else State.parse(text)

    def keep(self, state: State) -> None:
        """Keep a state."""
        self.write({NOTE: state.dump()})

    def write(self, notes: dict[str, str]) -> None:
        """Keep texts; the empty one removes what was there."""
        if self.path is None:
            self.store.write_notes(notes)
            return
        kept = {key: self.read(key) for key in (NOTE, SWITCH)}
        with atomic_path(self.path) as temporary:
            text = json.dumps({key: value for key, value in {**kept, **notes}.items() if value})
            temporary.write_text(text, encoding="utf-8")

    def commit(
        self, vectors: VectorSet, metadata: list[dict[str, Any]] | None, state: State
    ) -> None:
        """Write rows, and then the state that they are in."""
        if self.path is None:
            self.store.upsert(vectors, metadata=metadata, notes={NOTE: state.dump()})
            return
        self.store.upsert(vectors, metadata=metadata)
        self.keep(state)

    def check_owner(self, state: State) -> None:
        """Stop where another run has begun on the same target.

        Raises
        ------
        StoreBusyError
        """
        now = self.state()
        if now is None or now.run != state.run:
            raise StoreBusyError(
                expected="one conversion at a time into this target",
                got="another one that began later, and goes on",
                do="let it end; then run the same command again",
            )


def short(of: str) -> str:
    """Return as much of a hash as is shown."""
    return of[:16] or "none"


def check_bridge(store: Store, bridge: str, path: Path | str | None) -> None:
    """Refuse another bridge than that of the conversion into this target, or none.

    Raises
    ------
    ParameterError
    """
    if path is None and store.capabilities.notes is None:
        return
    with contextlib.suppress(CorruptStoreError):  # refused where it is needed
        state = Checkpoint(store, None if path is None else Path(path)).state()
        if state is not None and state.bridge != bridge:
            way = f"give it: --bridge FOLDER (in Python: bridge=) of the hash {short(state.bridge)}"
            raise ParameterError(
                expected=f"the bridge of this conversion, {short(state.bridge)}",
                got=f"another one, {short(bridge)}" if bridge else "none",
                do=f"{way if state.bridge else 'give none: it is a copy'}; or, to convert anew, "
                "name a new collection",
            )


def check_notes_or_file(store: Store | type[Store], path: Path | str | None) -> None:
    """Refuse a target without notes where no file is named.

    Raises
    ------
    UnsupportedOperationError
    """
    if path is None and store.capabilities.notes is None:
        raise UnsupportedOperationError(
            expected="a target that keeps notes, for the cursor of the conversion",
            got=f"a {store.scheme} store, which keeps none",
            do="name a file for it: --checkpoint FILE (in Python: checkpoint=), and the same file "
            "whenever you run the command again",
        )


def refuse_foreign(count: int) -> ParameterError:
    """Say that a target holds rows that no conversion wrote."""
    return ParameterError(
        expected="a new collection, an empty one, or that of an earlier run of this conversion: "
        "nothing else is ever replaced",
        got=f"one with {count:,} rows of another origin",
        do="name a new collection",
    )
