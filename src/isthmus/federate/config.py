"""A federation's file: TOML, checked before anything is opened.

    hub = "one"                                    # the store whose space queries come in

    [[stores]]
    name = "one"
    url = "sqlite:///dir/one.db?collection=docs"

    [[stores]]
    name = "two"
    url = "sqlite:///dir/two.db?collection=docs"
    bridge_to = "bridges/one-two"                  # hub's space to the store's
    bridge_from = "bridges/two-one"                # and back

Relative paths are relative to the file. See docs/federation.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from isthmus.errors import ConfigError, MissingFileError, ParameterError, UnknownNameError
from isthmus.federate.memory import REMEMBER
from isthmus.federate.merging import DEDUP_SIMILARITY
from isthmus.federate.patience import RETRIES, TIMEOUT_SECONDS
from isthmus.federate.superseding import check_superseding

__all__ = ["FederationConfig", "StoreConfig", "read", "read_text", "validate"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class StoreConfig(_Strict):
    """One store of the file."""

    name: str = Field(min_length=1, description="What its hits are called by.")
    url: str = Field(min_length=1, description="Store URL; three slashes are a relative path.")
    bridge_to: str | None = Field(None, min_length=1, description="Folder: hub's space to store's.")
    bridge_from: str | None = Field(None, min_length=1, description="Folder: store's to hub's.")
    bridge_common: str | None = Field(
        None, min_length=1, description="Folder: hub's and store's to a common space."
    )
    timeout: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="Seconds, in place of the federation's."
    )
    supersedes: str | None = Field(
        None, min_length=1, description="Name of the store of the same ids that this one replaces."
    )


class FederationConfig(_Strict):
    """The whole file."""

    stores: list[StoreConfig] = Field(min_length=1, description="One table per store.")
    hub: str | None = Field(None, description="Name of the store whose space queries come in.")
    hub_space: str | dict[str, Any] | None = Field(
        None, description="In place of hub: that space itself, a table or a path to its JSON."
    )
    fusion: str = Field("score", description="Fusion method.")
    weight: float | None = Field(None, ge=0, le=1, description="Share of the native similarity.")
    weights: list[float] | None = Field(
        None, min_length=1, description="How much each space counts, the hub's first."
    )
    common: float | None = Field(
        None, ge=0, le=1, description="Share of the common space's similarity."
    )
    depth: int | None = Field(None, ge=1, description="Candidates from each store.")
    dedup: str = Field("none", description="none; id or vector: what makes two hits one document.")
    dedup_similarity: float = Field(
        DEDUP_SIMILARITY, ge=0, le=1, description="Cosine and lead from which on vectors agree."
    )
    remember: int = Field(
        REMEMBER, ge=0, le=2**24, description="Mapped candidates kept per source and space."
    )
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["none"] = Field(
        TIMEOUT_SECONDS, description="Seconds for one search of one store; none waits."
    )
    retries: int = Field(RETRIES, ge=0, le=100, description="Further attempts after an error.")
    require_all: bool = Field(default=False, description="A store that fails ends the search.")
    budget: str = Field(
        "uniform", min_length=1, description="uniform, adaptive, or the file of a budget."
    )
    calibration: str | None = Field(
        None, min_length=1, description="File of a calibration of scores."
    )

    @model_validator(mode="after")
    def _check_stores(self) -> Self:
        names = [store.name for store in self.stores]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"name {repeated[0]!r} stands in more than one store")
        return self

    @model_validator(mode="after")
    def _check_superseding(self) -> Self:
        try:
            check_superseding({store.name: store.supersedes for store in self.stores})
        except (UnknownNameError, ParameterError) as error:
            raise ValueError(f"expected {error.expected}, got {error.got}") from error
        return self

    @model_validator(mode="after")
    def _check_hub(self) -> Self:
        if (self.hub is None) == (self.hub_space is None):
            raise ValueError("needs either hub (the name of a store) or hub_space")
        by_name = {store.name: store for store in self.stores}
        if self.hub is None:
            return self
        if self.hub not in by_name:
            raise ValueError(f"hub {self.hub!r} is not among the stores: {', '.join(by_name)}")
        own = by_name[self.hub]
        if own.bridge_to or own.bridge_from or own.bridge_common:
            raise ValueError(f"the hub {self.hub!r} needs no bridges: queries come in its space")
        return self


def read(path: Path) -> FederationConfig:
    """Read and check a federation's file; nothing is opened.

    Raises
    ------
    MissingFileError
        No such file.
    ConfigError
        Not TOML, or not what it must say; each fault with its place.
    """
    text = read_text(path, what="a federation's file", field="the path")
    try:
        fields = tomllib.loads(text)
    except ValueError as error:  # not TOML, or a number of thousands of digits
        raise _not_toml(path, str(error)) from error
    except RecursionError as error:
        raise _not_toml(path, "values inside values, too deep to read") from error
    return validate(fields, path)


def validate(fields: Mapping[str, Any], path: Path) -> FederationConfig:
    """Check what a federation's file says, or will say, at this path.

    Raises
    ------
    ConfigError
        Not what it must say; each fault with its place.
    """
    try:
        config = FederationConfig.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(
            expected=f"a federation in {path.name}",
            got="; ".join(_explain(dict(fault)) for fault in error.errors()),
            do="see docs/federation.md for the fields",
        ) from error
    _check_places(config, path)
    return config


def _check_places(config: FederationConfig, path: Path) -> None:
    """Refuse one collection in two stores: every hit would come twice."""
    from isthmus.stores.registry import place_of

    seen: dict[str, StoreConfig] = {}
    for store in config.stores:
        first = seen.setdefault(place_of(store.url, path.parent), store)
        if first is not store:
            raise ConfigError(
                expected=f"a collection of its own for each store in {path.name}",
                got=f"url {store.url!r} stands in more than one store: {first.name!r} and "
                f"{store.name!r} are the same collection",
                do="leave one of them out",
            )


def read_text(path: Path, *, what: str, field: str) -> str:
    """Read a file of text that the user named."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(
            expected=f"text as {what}",
            got=f"bytes that are not UTF-8 in {path.name}",
            do="fix the file",
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise MissingFileError(
            expected=what, got=f"no file at {str(path)[:300]!r} ({reason})", do=f"check {field}"
        ) from error


def _not_toml(path: Path, got: str) -> ConfigError:
    return ConfigError(expected=f"TOML in {path.name}", got=got, do="fix the file")


def _explain(fault: dict[str, Any]) -> str:
    """Say one fault of the file: where and what."""
    place = ".".join(f"{part}" if isinstance(part, str) else f"{part + 1}" for part in fault["loc"])
    said = str(fault["msg"]).removeprefix("Value error, ")
    said = "a field that is not known" if fault["type"] == "extra_forbidden" else said
    return f"{place}: {said}" if place else said
