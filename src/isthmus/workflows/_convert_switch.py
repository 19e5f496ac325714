"""Cutover: a name that applications use leads to the converted collection; and back.

What was switched is noted with the target before and after, so that going back needs nobody's
memory. Nothing is deleted.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from isthmus.errors import (
    IsthmusError,
    MissingCollectionError,
    ParameterError,
    UnsupportedOperationError,
)
from isthmus.stores._url import StoreUrl
from isthmus.stores.base import Store
from isthmus.stores.registry import open_store
from isthmus.workflows._convert_checkpoint import SWITCH, Checkpoint
from isthmus.workflows._convert_job import OTHER_FIELDS
from isthmus.workflows._copying import parse_note, place_of_store

__all__ = ["Switch", "cut_over", "roll_back"]

KINDS = {"name": str, "how": str, "before": str, "own": str, "options": str, "done": bool}


@dataclass(frozen=True)
class Switch:
    """A name that was moved.

    Parameters
    ----------
    name : str
        That leads to the target now.
    how : {"alias", "rename", "two renames"}
    before : str
        Collection that the name led to, by the name that it has now; empty: none.
    own : str
        Name of the target before.
    options : str
        URL that opened what the name led to, for its options.
    done : bool
        False while it is being moved.
    url : str, default ""
        That opens the target now: what `roll_back` takes after `cut_over`. Not in the note.
    warnings : tuple of str
        Of `cut_over`. Not in the note.
    """

    name: str
    how: str
    before: str
    own: str
    options: str
    done: bool
    url: str = ""
    warnings: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Switch:
        """Read a note, trusting nothing in it.

        Raises
        ------
        CorruptStoreError
        """
        found = parse_note(
            text,
            KINDS,
            what="the note of a cutover",
            do="move the name by hand, with the database's own tools",
        )
        return cls(**found)

    @property
    def renames(self) -> bool:
        """Whether the collections themselves change their names."""
        return self.how != "alias"

    def dump(self) -> str:
        """Return it as JSON."""
        return json.dumps({name: getattr(self, name) for name in KINDS})

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "warnings": list(self.warnings)}


def cut_over(
    target: str, name: str, *, former: str | None = None, checkpoint: Path | str | None = None
) -> Switch:
    """Make a name lead to the converted collection.

    Where the store has aliases, the name is one, and what it led to keeps its own name. Where it
    renames, the target is called so from now on, and what was called so is called ``former``.

    Parameters
    ----------
    target : str
        URL.
    name : str
        That applications use.
    former : str, optional
        New name for what has it, where the store renames; default: ``NAME_former``.
    checkpoint : path, optional
        The file that `convert` was given.

    Raises
    ------
    UnsupportedOperationError
        A store that cannot move a name, or a target that is a further vector: do it in two steps,
        see docs/convert.md.
    ParameterError
        A conversion that is not finished; a name that cannot be taken.

    Examples
    --------
    >>> import tempfile
    >>> from isthmus import Space, VectorSet
    >>> from isthmus.workflows import convert
    >>> url = f"sqlite:///{tempfile.mkdtemp()}/a.db?collection="
    >>> space = Space(model="m", dim=2)
    >>> with open_store(url + "docs", space=space) as store:
    ...     store.upsert(VectorSet(["a"], [[1, 0]], space))
    >>> done = convert(url + "docs", url + "new")
    >>> cut_over(url + "new", "docs").before
    'docs_former'
    >>> roll_back(url + "docs").own
    'new'
    """
    parsed = StoreUrl.parse(target)
    with _opened(target) as store:
        _check_switchable(store, parsed)
        kept = Checkpoint.of(store, checkpoint)
        switch = _intended(kept, store, name, former)
        warnings = _warnings(kept, store)
        kept.write({SWITCH: switch.dump()})
        if switch.renames and parsed.collection == name:  # moved by a run that was stopped
            before = switch.before if _is_there(switch) else ""
        else:
            try:
                before = store.take_name(name, former=switch.before)
            except (ParameterError, UnsupportedOperationError):
                kept.write({SWITCH: ""})  # refused: nothing moved
                raise
    if not switch.renames and before == switch.own:  # it led here already
        before = switch.before
    url = _named(target, name) if switch.renames else target
    done = replace(switch, before=before, done=True)
    with open_store(url) as store:
        Checkpoint.of(store, checkpoint).write({SWITCH: done.dump()})
    return replace(done, url=url, warnings=warnings)


def roll_back(target: str, *, checkpoint: Path | str | None = None) -> Switch:
    """Let the name lead back to where it led before `cut_over`.

    Parameters
    ----------
    target : str
        URL of the target: by its own name, or, where the store renames, by the name that it took.
    checkpoint : path, optional
        The file that `convert` was given.

    Raises
    ------
    MissingCollectionError
        No such collection; where the store renames, it is called by the name that it took.
    ParameterError
        No name was moved to it; or the name led nowhere before, and the store has no way to take an
        alias away.
    """
    with _opened(target) as store:
        kept = Checkpoint.of(store, checkpoint)
        text = kept.read(SWITCH)
        if not text:
            raise ParameterError(
                expected="a target that a name was moved to",
                got="one without a note of a cutover",
                do="give the collection that was made by isthmus convert",
            )
        switch = Switch.parse(text)
        moved = StoreUrl.parse(store.url).collection == switch.name
        if switch.renames and moved and not _is_there(switch):
            store.take_name(switch.own, former=f"{switch.own}_former")
    if _is_there(switch):
        with open_store(_named(switch.options, switch.before)) as earlier:
            earlier.take_name(switch.name, former=switch.own)
    elif not switch.renames:
        raise ParameterError(
            expected=f"a collection that {switch.name!r} led to before",
            got="none: the name was free",
            do="remove the alias with the database's own tools",
        )
    own = _named(target, switch.own) if switch.renames else target
    with open_store(own) as store:
        Checkpoint.of(store, checkpoint).write({SWITCH: ""})
    return replace(switch, url=own)


def _intended(kept: Checkpoint, store: Store, name: str, former: str | None) -> Switch:
    """Return what a cutover will do, or what one that was stopped was doing.

    Raises
    ------
    ParameterError
    """
    state, text = kept.state(), kept.read(SWITCH)
    if state is None or state.stage != "done":
        raise ParameterError(
            expected="the target of a conversion that came to its end",
            got="one that no conversion wrote" if state is None else "one that is not finished",
            do="run isthmus convert first, until it finds nothing more to do",
        )
    if text:
        earlier = Switch.parse(text)
        if earlier.done or earlier.name != name:
            raise ParameterError(
                expected="a target that has no name of applications yet",
                got=f"one that is called {earlier.name!r} by them",
                do="roll back first",
            )
        return earlier
    parsed = StoreUrl.parse(store.url)
    if parsed.collection == name:
        raise ParameterError(
            expected="the name that applications use, other than that of the target",
            got=f"{name!r}, as which the target is open",
            do="give the name of the collection that it replaces, or a new alias",
        )
    here = str(replace(parsed, collection=name))
    source = place_of_store(state.source)
    options, before = here, ""
    if source is not None and source[0] == (place_of_store(here) or ("", ""))[0]:
        options = state.source  # what has the name is opened as the source was
    if store.capabilities.switch != "alias":
        before = former or f"{name}_former"
    elif source is not None:
        collection = StoreUrl.parse(state.source).collection
        beside = str(replace(parsed, collection=collection))
        if source[0] == (place_of_store(beside) or ("", ""))[0]:
            options, before = state.source, collection
    return Switch(
        name, str(store.capabilities.switch), before, parsed.collection, options, done=False
    )


@contextlib.contextmanager
def _opened(target: str) -> Iterator[Store]:
    try:
        store = open_store(target)
    except MissingCollectionError as error:
        raise MissingCollectionError(
            expected="the target of a conversion",
            got=f"no collection of that name: {target}",
            do="check the name; a store that renames calls it by the name that it took in the "
            f"cutover: {_named(target, 'NAME')}",
        ) from error
    with store:
        yield store


def _warnings(kept: Checkpoint, store: Store) -> tuple[str, ...]:
    """Tell of an application's collection that is replaced by one that is laid out otherwise."""
    state = kept.state()
    if state is None or not store.own:
        return ()
    with contextlib.suppress(IsthmusError), open_store(state.source) as source:
        return () if source.own else (OTHER_FIELDS,)
    return ()  # a source that is not there any more


def _is_there(switch: Switch) -> bool:
    """Whether what the name led to before can be opened."""
    if not switch.before:
        return False
    try:
        with open_store(_named(switch.options, switch.before)):
            return True
    except MissingCollectionError:
        return False


def _check_switchable(store: Store, parsed: StoreUrl) -> None:
    if parsed.options.get("vector"):
        raise UnsupportedOperationError(
            expected="a collection of its own as the target",
            got=f"the vector {parsed.options['vector']!r} of a collection",
            do="let the application search that vector; see docs/convert.md",
        )
    if store.capabilities.switch is None:
        raise UnsupportedOperationError(
            expected="a store that can move a name at one instant",
            got=f"a {store.scheme} store",
            do="point the application at the new collection, in two steps: see docs/convert.md",
        )


def _named(url: str, name: str) -> str:
    return str(replace(StoreUrl.parse(url), collection=name))
