"""How far a conversion has come, by what its target keeps."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.errors import EmptyInputError, MissingCollectionError, MissingFileError
from isthmus.stores.base import Store
from isthmus.workflows._convert_checkpoint import NOTE, SWITCH, Checkpoint, State
from isthmus.workflows._convert_job import opened
from isthmus.workflows._convert_switch import Switch

__all__ = ["ConversionStatus", "conversion_status"]


@dataclass(frozen=True)
class ConversionStatus:
    """How far a conversion has come, by what its target keeps.

    Parameters
    ----------
    target : str
        URL.
    rows : int
        Of the target.
    state : State or None
        None: no conversion wrote here.
    bridged_from : str
        Hash of the bridge that the target's space records.
    switched : str
        Name that leads to the target since a cutover; empty without one.
    exists : bool, default True
        False where there is no such collection: nothing was begun, or it has another name since a
        cutover.
    """

    target: str
    rows: int
    state: State | None
    bridged_from: str
    switched: str
    exists: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**vars(self), "state": None if self.state is None else self.state.to_dict()}


def conversion_status(
    target: Store | str, *, checkpoint: Path | str | None = None
) -> ConversionStatus:
    """Say how far the conversion into a target has come.

    Parameters
    ----------
    target : Store, or URL
    checkpoint : path, optional
        The file that `convert` was given.

    Raises
    ------
    CorruptStoreError, UnsupportedOperationError, StoreError

    Examples
    --------
    >>> from isthmus import Space
    >>> from isthmus.stores import MemoryStore
    >>> conversion_status(MemoryStore(Space(model="m", dim=2))).state is None
    True
    """
    with contextlib.ExitStack() as stack:
        try:
            store = stack.enter_context(opened(target))
        except (MissingCollectionError, MissingFileError):
            return ConversionStatus(str(target), 0, None, "", "", exists=False)
        except EmptyInputError:  # of another program, without a row or a record
            return ConversionStatus(str(target), 0, None, "", "")
        kept = Checkpoint.of(store, checkpoint)
        switch = kept.read(SWITCH)
        text = kept.read(NOTE)
        return ConversionStatus(
            target=store.url,
            rows=store.count(),
            state=None if text is None else State.parse(text),
            bridged_from=store.space.bridged_from,
            switched="" if not switch else Switch.parse(switch).name,
        )
