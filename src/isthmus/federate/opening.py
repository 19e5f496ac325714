"""Opens the stores and bridges that a federation's file names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from isthmus.errors import FileError, IsthmusError, MissingFileError, StoreError
from isthmus.federate.config import FederationConfig, StoreConfig, read, read_text
from isthmus.federate.fusion import make
from isthmus.federate.patience import may_pass
from isthmus.federate.source import Source
from isthmus.federate.unopened import UnopenedStore
from isthmus.spaces import Space

if TYPE_CHECKING:
    from isthmus.bridge import Bridge
    from isthmus.federate.budget import Budget
    from isthmus.federate.calibration import ScoreCalibration
    from isthmus.federate.hub import Federation
    from isthmus.stores import Store

    F = TypeVar("F", bound=Federation)

__all__ = ["load"]


def load(path: Path, kind: type[F], changes: Mapping[str, Any]) -> F:
    """Open the stores and bridges of a federation's file, and make the federation.

    A store that is missing, damaged or cannot be reached now takes part as one that fails, unless
    all are required or nothing else says which space it holds: each search tries to open it.

    Parameters
    ----------
    path : Path
    kind : type
        `Federation` or a subclass.
    changes : mapping
        Fields of the federation in place of what the file says.

    Raises
    ------
    MissingFileError, ConfigError
        And whatever the stores and bridges raise; stores already opened are closed again.
    """
    from isthmus.stores import registry

    config = read(path)
    loaded = _Bridges(path.parent)
    changes = dict(changes)
    options = {
        **_ranked_by(config, changes),
        "depth": config.depth,
        "dedup": config.dedup,
        "dedup_similarity": config.dedup_similarity,
        "remember": config.remember,
        "timeout": None if config.timeout == "none" else config.timeout,
        "retries": config.retries,
        "require_all": config.require_all,
        **changes,
    }
    if "budget" not in changes:
        options["budget"] = _budget(config.budget, path.parent)
    if "calibration" not in changes:
        options["calibration"] = _calibration(config.calibration, path.parent)
    bridges = [
        (loaded.load(one, "bridge_to"), loaded.load(one, "bridge_from")) for one in config.stores
    ]
    with contextlib.ExitStack() as opened:
        sources = []
        for one, (to_store, to_hub) in zip(config.stores, bridges, strict=True):
            space = None if options["require_all"] else _promised(config, one, bridges)
            url = registry.resolve_url(one.url, path.parent)
            store = opened.enter_context(_open(one.name, url, space))
            common = loaded.load(one, "bridge_common")
            sources.append(
                Source(
                    one.name,
                    store,
                    to_store,
                    to_hub,
                    timeout=one.timeout,
                    common=common,
                    supersedes=one.supersedes,
                )
            )
        federation = kind(_hub_space(config, sources, path.parent), sources, **options)
        opened.pop_all()
    return federation


def _ranked_by(config: FederationConfig, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the fusion method and its weight, or the method with all that the file says of it.

    Another method in the changes comes without the file's parameters, which are not its own;
    another weight, taken out of the changes, goes into the method.
    """
    if "fusion" in changes:
        return {}
    weight = changes.pop("weight", config.weight)
    more = {"weights": config.weights, "common": config.common}
    given = {name: value for name, value in more.items() if value is not None}
    if not given:
        return {"fusion": config.fusion, "weight": weight}
    if weight is not None:
        given["weight"] = weight
    return {"fusion": make(config.fusion, **given), "weight": None}


def _open(name: str, url: str, space: Space | None) -> Store:
    """Open a store; one that is missing, damaged or out of reach where we know what it holds."""
    from isthmus.stores import registry

    try:
        return registry.open_store(url)
    except Exception as error:
        of_the_store = isinstance(error, FileError | StoreError) or may_pass(error)
        if space is None or not of_the_store:
            error.add_note(f"in store {name!r}, {url}")
            raise
        return UnopenedStore(url, space)


def _promised(
    config: FederationConfig,
    store: StoreConfig,
    bridges: Sequence[tuple[Bridge | None, Bridge | None]],
) -> Space | None:
    """Return the space of a store by its own bridges, or, of the hub, by those of the others."""
    to_store, to_hub = bridges[config.stores.index(store)]
    if to_store is not None:
        return to_store.target
    if to_hub is not None:
        return to_hub.source
    if store.name != config.hub:
        return None
    for other_to, other_from in bridges:
        if other_to is not None:
            return other_to.source
        if other_from is not None:
            return other_from.target
    return None


class _Bridges:
    """Bridge folders, each loaded once; folders with the same bridge give the same object."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._by_folder: dict[Path, Bridge] = {}
        self._by_hash: dict[str, Bridge] = {}

    def load(self, store: StoreConfig, field: str) -> Bridge | None:
        from isthmus.bridge import Bridge

        folder: str | None = getattr(store, field)
        if folder is None:
            return None
        try:
            path = (self._base / folder).resolve()
            bridge = self._by_folder.get(path) or Bridge.load(path)
        except IsthmusError as error:
            error.add_note(f"{field} of store {store.name!r}: {folder[:300]!r}")
            raise
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise MissingFileError(
                expected=f"the folder of a bridge, {field} of store {store.name!r}",
                got=f"{folder[:300]!r} ({error})"[:400],
                do=f"check {field}",
            ) from error
        if path not in self._by_folder:
            self._by_folder[path] = self._by_hash.setdefault(bridge.hash, bridge)
        return self._by_folder[path]


def _budget(given: str, base: Path) -> str | Budget:
    if given in ("uniform", "adaptive"):
        return given
    from isthmus.federate.adaptive import Adaptive

    with _naming("budget", given):
        return Adaptive.from_file(base / given)


def _calibration(given: str | None, base: Path) -> ScoreCalibration | None:
    if given is None:
        return None
    from isthmus.federate.calibration import ScoreCalibration

    with _naming("calibration", given):
        return ScoreCalibration.from_file(base / given)


@contextlib.contextmanager
def _naming(field: str, given: str) -> Iterator[None]:
    """Say in a note of whatever is raised inside which field of the file named it."""
    try:
        yield
    except IsthmusError as error:
        error.add_note(f"{field}: {given[:300]!r}")
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise MissingFileError(
            expected=f"the file of a {field}",
            got=f"{given[:300]!r} ({error})"[:400],
            do=f"check {field}",
        ) from error


def _hub_space(config: FederationConfig, sources: Sequence[Source], base: Path) -> Space:
    if config.hub is not None:
        return next(source.store.space for source in sources if source.name == config.hub)
    if isinstance(config.hub_space, dict):
        return Space.from_dict(config.hub_space)
    path = base / str(config.hub_space)
    return Space.from_json(read_text(path, what="the hub's space", field="hub_space"))
