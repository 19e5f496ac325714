"""The artifact on disk: a bridge as a manifest and tensors, and back.

Writing and reading are the two halves of SPEC.md. Reading ends by describing what was read again:
unless that gives the same hash, the manifest says something that its own tensors do not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isthmus._files import atomic_folder
from isthmus.bridge.calibration import Calibration
from isthmus.bridge.format import Tensors, read_tensors, tensor_record, write_tensors
from isthmus.bridge.manifest import (
    FORMAT,
    WEIGHTS_FILE,
    Manifest,
    manifest_hash,
    parse_manifest,
)
from isthmus.bridge.preprocessing import describe_preprocessing
from isthmus.bridge.provenance import Provenance
from isthmus.bridge.reading import LIMITS, malformed, parse_json, read_limited
from isthmus.bridge.report_record import (
    describe_report,
    flat_metrics,
    null_map_baseline,
    read_report,
    report_tensors,
)
from isthmus.bridge.scope import Scope
from isthmus.bridge.verdict import Verdict
from isthmus.errors import ArtifactError, IsthmusError, TamperedArtifactError, WriteFailedError
from isthmus.maps import Compose
from isthmus.spaces import Space

if TYPE_CHECKING:
    from isthmus.bridge.bridge import Bridge

__all__ = ["CARD_FILE", "MANIFEST_FILE", "WEIGHTS_FILE", "describe", "load", "save"]

MANIFEST_FILE = "bridge.json"
CARD_FILE = "README.md"
FILES = (MANIFEST_FILE, WEIGHTS_FILE, CARD_FILE)

MAP, SCOPE, CALIBRATION, REPORT = "map/", "scope/", "calibration/", "report/"
PAIRS = "provenance/pairs"
_NOT_FITTING = (IsthmusError, ValueError, TypeError, LookupError, AttributeError)


def describe(bridge: Bridge) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the manifest, with its hash, and the tensors of a bridge."""
    tensors = {
        **_prefixed(MAP, bridge.map.get_state()),
        **_prefixed(SCOPE, bridge.scope.tensors()),
        **_prefixed(CALIBRATION, bridge.calibration.tensors()),
        **report_tensors(bridge.report),
        PAIRS: bridge.provenance.pair_hashes,
    }
    fields: dict[str, Any] = {
        "format": FORMAT,
        "format_version": 2 if _has_unpaired(bridge.provenance) else 1,
        "weights_file": WEIGHTS_FILE,
        "source": _describe_space(bridge.source),
        "target": _describe_space(bridge.target),
        "method": bridge.method,
        "lands_in": bridge.lands_in,
        "paired": bridge.provenance.paired,
        **_describe_verdict(bridge.verdict),
        "preprocessing": describe_preprocessing(bridge.map),
        "map": _plain(bridge.map.describe()),
        "null_map_baseline": null_map_baseline(bridge.report),
        "anchor_selection": {
            "strategy": bridge.provenance.strategy,
            "coverage_report": _plain(bridge.provenance.coverage),
        },
        "preservation_metrics": flat_metrics(bridge.report, reconstruction=False),
        "reconstruction_metrics": flat_metrics(bridge.report, reconstruction=True),
        "report": describe_report(bridge.report),
        "calibration": bridge.calibration.to_dict(),
        "scope": bridge.scope.to_dict(),
        "provenance": _describe_provenance(bridge.provenance),
        "tensors": {name: tensor_record(array, name=name) for name, array in tensors.items()},
    }
    return {"hash": manifest_hash(fields), **fields}, tensors


def save(bridge: Bridge, folder: Path) -> None:
    """Write an artifact; see `Bridge.save`."""
    from isthmus.bridge.card import write_card

    place = folder.resolve()  # a link to the folder is the user's own, and stays
    _check_replaceable(place)
    manifest, tensors = describe(bridge)
    with atomic_folder(place) as temporary:
        write_tensors(temporary / WEIGHTS_FILE, tensors)
        text = json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False)
        (temporary / MANIFEST_FILE).write_text(text + "\n", encoding="utf-8")
        (temporary / CARD_FILE).write_text(write_card(bridge), encoding="utf-8")


def _check_replaceable(folder: Path) -> None:
    """Refuse to put a bridge in the place of anything but an older bridge."""
    if folder.is_dir():
        names = sorted(item.name for item in folder.iterdir())
        if not names or (MANIFEST_FILE in names and set(names) <= set(FILES)):
            return
        found = f"a folder with {', '.join(name for name in names if name != MANIFEST_FILE)[:80]}"
    elif folder.exists():
        found = "a file"
    else:
        return
    raise WriteFailedError(
        expected=f"{folder.name!r} as a new folder, or an older bridge to replace",
        got=found,
        do="choose another folder; nothing was changed",
    )


def load(folder: Path) -> Bridge:
    """Read an artifact; see `Bridge.load`."""
    content = read_limited(folder / MANIFEST_FILE, limit=LIMITS.manifest)
    manifest = parse_manifest(parse_json(content, name=MANIFEST_FILE))
    tensors = read_tensors(folder / WEIGHTS_FILE)
    _check_tensors(manifest, tensors)
    try:
        bridge = _assemble(manifest, tensors)
        _check_widths(bridge)
        again = describe(bridge)[0]
    except ArtifactError:
        raise
    except _NOT_FITTING as error:
        got = error.got if isinstance(error, IsthmusError) else str(error)
        raise malformed(f"a {manifest.method[:40]} map that its own tensors fit", got) from error
    _check_derived(manifest, again)
    return bridge


def _check_derived(manifest: Manifest, again: Mapping[str, Any]) -> None:
    """Refuse a manifest that is not what its own bridge would be described as."""
    recorded = manifest.model_dump()
    differing = [name for name, value in again.items() if recorded[name] != value]
    if differing:
        names = [name for name in differing if name != "hash"]
        raise malformed(
            "a manifest whose fields follow from its own tensors and values",
            f"other values of {', '.join(names) or 'the hash: numbers in another form'}",
        )


def _check_tensors(manifest: Manifest, tensors: Tensors) -> None:
    """Compare every tensor with its record, and refuse numbers that are not finite."""
    if set(tensors) != set(manifest.tensors):
        differing = sorted(set(tensors) ^ set(manifest.tensors))
        raise TamperedArtifactError(
            expected=f"the {len(manifest.tensors)} tensors of the manifest",
            got=f"missing or unknown {', '.join(differing[:3])}",
            do="do not use this bridge; fetch it again from its maker",
        )
    for name, array in tensors.items():
        if tensor_record(array, name=name) != manifest.tensors[name].model_dump():
            raise TamperedArtifactError(
                expected=f"tensor {name!r} as its hash in the manifest says",
                got="other bytes, or another shape or number type",
                do="do not use this bridge; fetch it again from its maker",
            )
        # the value of a query may be undefined; nothing else may
        allowed = np.isnan(array) if name.startswith(REPORT) else False
        if not (np.isfinite(array) | allowed).all():
            raise malformed(f"finite numbers in tensor {name!r}", "NaN or infinity")


def _assemble(manifest: Manifest, tensors: Tensors) -> Bridge:
    """Make the bridge that a checked manifest and checked tensors describe."""
    from isthmus.bridge.bridge import Bridge

    fields = manifest.model_dump()
    source, target = (_read_space(fields[side]) for side in ("source", "target"))
    return Bridge(
        source=source,
        target=target,
        map=Compose.from_description(fields["map"], _below(MAP, tensors)),
        report=read_report(fields["report"], tensors),
        verdict=Verdict(
            status=manifest.status,
            usable_for=tuple(manifest.usable_for),
            chosen_because=manifest.chosen_because,
            **fields["verdict"],
        ),
        calibration=Calibration.from_dict(fields["calibration"], _below(CALIBRATION, tensors)),
        scope=Scope.from_dict(fields["scope"], _below(SCOPE, tensors), dim=source.dim),
        provenance=Provenance(
            paired=manifest.paired,
            strategy=manifest.anchor_selection.strategy,
            coverage=manifest.anchor_selection.coverage_report,
            pair_hashes=_read_pair_hashes(tensors[PAIRS], n_pairs=manifest.provenance.n_pairs),
            **fields["provenance"],
        ),
    )


def _read_pair_hashes(array: npt.NDArray[Any], *, n_pairs: int) -> npt.NDArray[np.int64]:
    """Return the hashes of the pairs: one row per pair, or none where they are not known."""
    if array.dtype != np.int64 or array.shape not in ((n_pairs, 2), (0, 2)):
        raise malformed(
            f"tensor {PAIRS!r} as whole numbers of shape ({n_pairs}, 2)",
            f"{array.dtype} of shape {array.shape}",
        )
    return array


def _check_widths(bridge: Bridge) -> None:
    """Carry one row of each side and look at the shapes: they must be those of the spaces."""
    with np.errstate(all="ignore"):
        mapped = bridge.map.transform(np.full((1, bridge.source.dim), 0.5, np.float32))
        target = bridge.map.transform_target(np.full((1, bridge.target.dim), 0.5, np.float32))
    width = bridge.target.dim if bridge.lands_in == "target" else target.shape[1]
    if mapped.shape != (1, width) or target.shape != (1, width):
        raise malformed(
            f"a map from {bridge.source.dim} to {bridge.target.dim} columns, as the spaces say",
            f"one row of shape {mapped.shape} beside a target row of shape {target.shape}",
        )
    if not (np.isfinite(mapped).all() and np.isfinite(target).all()):
        raise malformed("a map that gives finite numbers", "NaN or infinity")


def _describe_space(space: Space) -> dict[str, Any]:
    return {**space.to_dict(), "fingerprint": space.fingerprint}


def _read_space(fields: Mapping[str, Any]) -> Space:
    return Space.from_dict({name: value for name, value in fields.items() if name != "fingerprint"})


def _describe_verdict(verdict: Verdict) -> dict[str, Any]:
    """Return the verdict's fields: four at the top of the manifest, the rest beside them."""
    fields = verdict.to_dict()
    top = {name: fields.pop(name) for name in ("status", "usable_for", "chosen_because")}
    return {**top, "verdict": fields}


def _describe_provenance(provenance: Provenance) -> dict[str, Any]:
    fields = asdict(provenance)
    elsewhere = ["paired", "strategy", "coverage", "pair_hashes"]
    if not _has_unpaired(provenance):
        elsewhere += ["n_unpaired_source", "n_unpaired_target"]
    kept: dict[str, Any] = _plain(
        {name: value for name, value in fields.items() if name not in elsewhere}
    )
    return kept


def _has_unpaired(provenance: Provenance) -> bool:
    """Tell what needs version 2 of the format: the oldest that can hold a bridge is written."""
    return provenance.n_unpaired_source + provenance.n_unpaired_target > 0


def _prefixed(prefix: str, tensors: Tensors) -> dict[str, npt.NDArray[Any]]:
    return {f"{prefix}{name}": array for name, array in tensors.items()}


def _below(prefix: str, tensors: Tensors) -> dict[str, npt.NDArray[Any]]:
    return {
        name.removeprefix(prefix): array
        for name, array in tensors.items()
        if name.startswith(prefix)
    }


def _plain(value: Any) -> Any:
    """Return plain JSON values: no numpy numbers, no tuples, null for an undefined number."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
