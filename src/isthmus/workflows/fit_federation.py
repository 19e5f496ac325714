"""Fit every bridge that a federation needs, and write its file.

Two bridges per space that is not the hub's, and a third to a common space: what three runs of
`fit_bridge` per store would give, once for stores of one space.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from isthmus._files import atomic_path, check_file_writable, check_folder_writable
from isthmus._progress import Track, silent
from isthmus.bridge import Bridge
from isthmus.errors import IsthmusError, UnknownNameError, WriteFailedError
from isthmus.federate.config import validate
from isthmus.spaces import Pairs, Space, VectorSet
from isthmus.stores.base import Store
from isthmus.stores.registry import open_store, resolve_url
from isthmus.workflows._opening import open_vectors
from isthmus.workflows.fit_bridge import fit_bridge

__all__ = ["FittedBridge", "FittedFederation", "fit_federation"]

Role = Literal["bridge_to", "bridge_from", "bridge_common"]

LEAST_COMMON_PAIRS = 100
"""Pairs for a common space: with 30 it made rankings worse, with 100 no longer (see `Score`)."""


@dataclass(frozen=True)
class FittedBridge:
    """One bridge of a federation's file.

    Parameters
    ----------
    role : {"bridge_to", "bridge_from", "bridge_common"}
    stores : tuple of str
        Names of the stores that share it.
    folder : Path
    bridge : Bridge
    """

    role: Role
    stores: tuple[str, ...]
    folder: Path
    bridge: Bridge


@dataclass(frozen=True)
class FittedFederation:
    """A federation's file and the bridges that it names.

    Parameters
    ----------
    path : Path
    hub : str
    bridges : tuple of FittedBridge
    without_common : tuple of str
        Stores without a common space: too few pairs, or another metric than the cosine.
    """

    path: Path
    hub: str
    bridges: tuple[FittedBridge, ...]
    without_common: tuple[str, ...]


def fit_federation(
    stores: Mapping[str, str],
    out: Path | str,
    *,
    hub: str | None = None,
    vectors: Mapping[str, VectorSet | Path | str] | None = None,
    bridges: Path | str | None = None,
    method: str = "auto",
    method_from: str = "auto",
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    track: Track[Any] = silent,
) -> FittedFederation:
    """Fit what a federation of these stores needs, write it, and write the federation's file.

    Pairs are rows with equal ids: documents that the hub's model and a store's have both embedded.
    Stores of one space share their bridges. Everything is fitted before anything is written, and
    nothing is overwritten. Stores are read only.

    Parameters
    ----------
    stores : mapping of name to URL
        Relative paths are relative to the working directory.
    out : Path or str
        The federation's file, a new one.
    hub : str, optional
        Name of the store whose space queries come in, or of ``vectors`` in that space; default: the
        first store.
    vectors : mapping of name to VectorSet, or path of its file, optional
        What bridges are fitted on, by name of a store (or the hub). Default: what the store itself
        holds, all of it in memory.
    bridges : Path or str, optional
        Folder for the bridges; default: ``bridges`` beside the file.
    method : str, default "auto"
        Map of the bridges from the hub to the stores; see `fit_bridge`. The common space is always
        ``cca``.
    method_from : str, default "auto"
        Map of the bridges back to the hub, chosen by purpose ``score``: what carries queries best
        is not what keeps similarities best, whatever ``method`` is.
    params : mapping, optional
        Parameters of ``method``, and of ``method_from`` where it is the same map.
    seed : int, default 0
    track : Track, default silent

    Returns
    -------
    FittedFederation
        A lesser verdict of a bridge is a result and not an error.

    Raises
    ------
    WriteFailedError
        The file or a bridge is there already, or cannot be written.
    UnknownNameError, ConfigError
        A hub or vectors of a name that no store has; one collection twice.
    EmptyInputError, TooFewPairsError
        No ids, or too few, that the hub's vectors and a store's have in common.
    SpaceMismatchError
        Vectors of another space than their store's.
    """
    out, given = Path(out), dict(vectors or {})
    folder = out.parent / "bridges" if bridges is None else Path(bridges)
    _check_new(out, folder)
    hub = _name_hub(stores, given, hub)
    with contextlib.ExitStack() as opened:
        open_ = {name: opened.enter_context(open_store(url)) for name, url in stores.items()}
        shared = _by_space(open_, given, hub)
        fields = _fields(stores, out, hub, shared[0].vectors.space)
        validate(fields, out)
        fits = _Fits(
            partial(fit_bridge, seed=seed, track=track),
            {"method": method, "params": params},
            {"method": method_from, "params": params if method_from == method else None},
        )
        fitted = [
            made
            for group, inside in zip(shared[1:], _folders(shared[1:]), strict=True)
            for made in _fit(shared[0], group, folder / inside, fits)
        ]
    for one in fitted:
        one.bridge.save(one.folder)
        for table in fields["stores"]:
            if table["name"] in one.stores:
                table[one.role] = _relative(one.folder, out.parent)
    with atomic_path(out) as temporary:
        temporary.write_text(_as_toml(fields), encoding="utf-8")
    common = {name for one in fitted if one.role == "bridge_common" for name in one.stores}
    spokes = [name for group in shared[1:] for name in group.names]
    return FittedFederation(
        out, hub, tuple(fitted), tuple(name for name in spokes if name not in common)
    )


@dataclass(frozen=True)
class _Group:
    """Stores of one space, and the vectors to fit on."""

    names: tuple[str, ...]
    vectors: VectorSet


@dataclass(frozen=True)
class _Fits:
    """How to fit a bridge, and with what there and back."""

    fit: Callable[..., Bridge]
    there: Mapping[str, Any]
    back: Mapping[str, Any]


def _check_new(out: Path, folder: Path) -> None:
    for path, check in ((out, check_file_writable), (folder, check_folder_writable)):
        check(path)
        if path.exists() and (path.is_file() or any(path.iterdir())):
            raise WriteFailedError(
                expected=f"{path.name!r} not to be there yet: nothing is overwritten",
                got="a file" if path.is_file() else "a folder with something in it",
                do="write somewhere else, or remove it",
            )


def _name_hub(stores: Mapping[str, str], given: Mapping[str, Any], hub: str | None) -> str:
    """Return the hub's name, the first store's by default; refuse names that mean nothing."""
    hub = next(iter(stores), "") if hub is None else hub
    if hub not in stores and hub not in given:
        raise UnknownNameError.of("hub", hub, [*stores, *given])
    for name in given:
        if name not in (*stores, hub):
            raise UnknownNameError.of("store", name, list(stores))
    return hub


def _by_space(
    stores: Mapping[str, Store], given: Mapping[str, VectorSet | Path | str], hub: str
) -> list[_Group]:
    """Return the stores of each space with their vectors, those of the hub's space first."""
    sets = {name: open_vectors(one) for name, one in given.items()}
    for name, one in sets.items():
        if name in stores:
            stores[name].space.check(one.space, what=f"the vectors for store {name!r}")
    space = stores[hub].space if hub in stores else sets[hub].space
    names: dict[str, list[str]] = {space.fingerprint: [hub]}
    for name, store in stores.items():
        if name != hub:
            names.setdefault(store.space.fingerprint, []).append(name)
    groups = []
    for alike in names.values():
        with_file = next((name for name in alike if name in sets), None)
        held = _scan(stores[alike[0]]) if with_file is None else sets[with_file]
        groups.append(_Group(tuple(alike), held))
    return groups


def _scan(store: Store) -> VectorSet:
    """Return all that a store holds."""
    batches = [batch.vectors for batch in store.scan()]
    if not batches:
        return VectorSet(np.empty(0, "<U1"), np.empty((0, store.space.dim)), store.space)
    ids = np.concatenate([one.ids for one in batches])
    return VectorSet(ids, np.concatenate([one.matrix() for one in batches]), store.space)


def _fit(hub: _Group, group: _Group, folder: Path, fits: _Fits) -> Iterator[FittedBridge]:
    """Yield the bridges of one space."""
    here, there = hub.vectors, group.vectors
    try:
        pairs = Pairs.from_ids(here, there)
        into = fits.fit(here, there, pairs, **fits.there)
        back = fits.fit(there, here, pairs.reverse(), purpose="score", **fits.back)
    except IsthmusError as error:
        error.add_note(
            f"between the hub {hub.names[0]!r} and store {group.names[0]!r}; documents that both "
            "models have embedded can be given as vectors (--vectors NAME=F)"
        )
        raise
    yield FittedBridge("bridge_to", group.names, folder / "to", into)
    yield FittedBridge("bridge_from", group.names, folder / "from", back)
    cosine = here.space.metric == there.space.metric == "cosine"
    if cosine and len(pairs) >= LEAST_COMMON_PAIRS:
        common = fits.fit(here, there, pairs, method="cca")
        yield FittedBridge("bridge_common", group.names, folder / "common", common)


def _fields(stores: Mapping[str, str], out: Path, hub: str, space: Space) -> dict[str, Any]:
    """Return the federation's file without its bridges."""
    here = out.parent.resolve() == Path.cwd()
    tables = [
        {"name": name, "url": url if here else resolve_url(url, Path.cwd())}
        for name, url in stores.items()
    ]
    said = {"hub": hub} if hub in stores else {"hub_space": space.to_dict()}
    return {**said, "stores": tables}


def _folders(groups: Sequence[_Group]) -> list[str]:
    """Return a folder of its own for each group, named by its first store where that may be."""
    names = [group.names[0] for group in groups]
    folders: list[str] = []
    taken = {name.casefold() for name in names}  # some file systems do not tell "a" from "A"
    for place, name in enumerate(names, start=1):
        usual = re.fullmatch(r"\w[\w.-]{0,63}", name) is not None
        if usual and name.casefold() not in {one.casefold() for one in folders}:
            folders.append(name)
            continue
        number = place
        while f"store-{number}" in taken:
            number += 1
        folders.append(f"store-{number}")
        taken.add(folders[-1])
    return folders


def _relative(folder: Path, base: Path) -> str:
    """Return the folder as the file names it."""
    folder, base = folder.resolve(), base.resolve()
    return folder.relative_to(base).as_posix() if folder.is_relative_to(base) else str(folder)


def _as_toml(fields: Mapping[str, Any]) -> str:
    """Write text, numbers, truths, and tables of them."""
    plain = {name: value for name, value in fields.items() if not isinstance(value, dict | list)}
    lines = _lines(plain)
    if "hub_space" in fields:
        lines += ["", "[hub_space]", *_lines(fields["hub_space"])]
    for table in fields["stores"]:
        lines += ["", "[[stores]]", *_lines(table)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {_value(value)}" for name, value in table.items()]


def _value(value: str | float | bool) -> str:  # noqa: FBT001 - a value of TOML, which has them
    """Write a value: text as in JSON, but for the one character that TOML escapes besides."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
