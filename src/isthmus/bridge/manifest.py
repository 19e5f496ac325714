"""The manifest ``bridge.json``: its fields, its canonical form, its hash.

Every field of the "bridge (v1)" record of the map family is here under its own name. The models
refuse what they do not know; SPEC.md says why, and what each field means.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from isthmus.bridge.reading import malformed
from isthmus.errors import TamperedArtifactError, UnknownVersionError, UnsafePathError

__all__ = [
    "FORMAT",
    "VERSION",
    "VERSIONS",
    "WEIGHTS_FILE",
    "Manifest",
    "canonical",
    "check_manifest_hash",
    "manifest_hash",
    "parse_manifest",
]

FORMAT = "isthmus.bridge"
VERSION = 2
"""The newest. A bridge is written in the oldest that can hold it, which more readers know."""
WEIGHTS_FILE = "weights.safetensors"

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]
Numbers = dict[str, float | None]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class SpaceRecord(_Record):
    """A space with its fingerprint."""

    model: str
    dim: Annotated[int, Field(ge=1, le=65_536)]
    revision: str
    metric: Literal["cosine", "dot", "l2"]
    normalized: bool
    preprocessing: str
    kind: str
    prompt: str
    bridged_from: str
    fingerprint: Hash


class PreprocessingRecord(_Record):
    """What is done to the vectors before and after the map; the arrays are tensors."""

    center: bool
    normalize: str
    source_pca: str
    target_pca: str
    source_steps: list[str]
    target_steps: list[str]


class NullMapRecord(_Record):
    """The floor: what doing nothing gives."""

    cos: float | None
    top1: float | None
    retrieval_agreement: float | None


class AnchorRecord(_Record):
    """How the pairs were chosen and what they cover."""

    strategy: str
    coverage_report: dict[str, Any] | None


class ValueRecord(_Record):
    """One value of the report; its per-query values are a tensor."""

    mean: float | None
    low: float | None
    high: float | None
    per_query: str | None


class ReportRecord(_Record):
    """Values of the bridge, of the null map and of the oracle."""

    values: dict[str, ValueRecord]
    null: dict[str, ValueRecord]
    oracle: dict[str, ValueRecord]
    n_queries: Count


class VerdictRecord(_Record):
    """What the verdict says beside the status."""

    reason: str
    pairs_needed: int | None


class CalibrationRecord(_Record):
    """Bridged scores to native scores; the knots are tensors."""

    method: Literal["isotonic"]
    error_before: float | None
    error_after: float | None
    n_scores: Count


class ScopeRecord(_Record):
    """Where the bridge was learned; the directions are a tensor."""

    method: Literal["principal_residual"]
    radius: Annotated[float, Field(ge=0)]
    inside: Annotated[float, Field(gt=0, le=1)]
    unit_rows: bool
    kind: str


class ProvenanceRecord(_Record):
    """What the bridge was made from."""

    created: str
    seed: int
    n_pairs: Count
    source_kind: str
    target_kind: str
    purpose: Literal["search", "score"]
    min_retention: Annotated[float, Field(gt=0, le=1)]
    weighted: bool
    candidates: list[dict[str, Any]]
    libraries: dict[str, str]


class ProvenanceRecord2(ProvenanceRecord):
    """What the bridge was made from, with the rows that stand in no pair."""

    n_unpaired_source: Count
    n_unpaired_target: Count


class TensorRecord(_Record):
    """What a tensor must be."""

    dtype: str
    shape: list[Count]
    sha256: Hash


class Manifest(_Record):
    """All of ``bridge.json``."""

    format: Literal["isthmus.bridge"]
    format_version: Literal[1]
    hash: Hash
    weights_file: Literal["weights.safetensors"]
    source: SpaceRecord
    target: SpaceRecord
    method: str
    lands_in: Literal["target", "comparison"]
    paired: bool
    status: Literal["pre_aligned", "bridge", "insufficient_pairs", "reindex"]
    verdict: VerdictRecord
    usable_for: list[str]
    chosen_because: str
    preprocessing: PreprocessingRecord
    map: dict[str, Any]
    null_map_baseline: NullMapRecord
    anchor_selection: AnchorRecord
    preservation_metrics: Numbers
    reconstruction_metrics: Numbers
    report: ReportRecord
    calibration: CalibrationRecord
    scope: ScopeRecord
    provenance: ProvenanceRecord
    tensors: dict[str, TensorRecord]


class Manifest2(Manifest):
    """All of ``bridge.json`` where the map was fitted on rows without a pair."""

    format_version: Literal[2]  # type: ignore[assignment]
    provenance: ProvenanceRecord2


VERSIONS: Mapping[int, type[Manifest]] = {1: Manifest, 2: Manifest2}


def canonical(fields: Mapping[str, Any]) -> bytes:
    """Return JSON with sorted keys and no white space, as UTF-8.

    Examples
    --------
    >>> canonical({"b": 1, "a": [0.5]})
    b'{"a":[0.5],"b":1}'
    """
    text = json.dumps(
        fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def manifest_hash(fields: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical form of everything but ``hash``, 64 digits."""
    covered = {name: value for name, value in fields.items() if name != "hash"}
    return hashlib.sha256(canonical(covered)).hexdigest()


def parse_manifest(fields: Mapping[str, Any]) -> Manifest:
    """Check version, paths, hash and fields, in this order.

    Raises
    ------
    UnknownVersionError
        A version that this Isthmus does not read.
    UnsafePathError
        A path where a plain file name must stand.
    TamperedArtifactError
        Fields that do not match the recorded hash.
    MalformedArtifactError
        Fields that are missing, unknown, or of the wrong type.
    """
    version = _check_version(fields)
    _check_path(fields.get("weights_file"))
    check_manifest_hash(fields)
    try:
        return VERSIONS[version].model_validate(dict(fields))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:80]
        raise malformed(f"a manifest of version {version}", f"{where}: {first['msg']}") from error


def _check_version(fields: Mapping[str, Any]) -> int:
    if fields.get("format") != FORMAT:
        raise malformed(f"a manifest with format {FORMAT!r}", repr(fields.get("format"))[:80])
    version = fields.get("format_version")
    if isinstance(version, bool) or not isinstance(version, int):
        raise malformed("a whole number as format_version", repr(version)[:80])
    if version not in VERSIONS:
        raise UnknownVersionError(
            expected=f"a bridge of format version {' or '.join(map(str, VERSIONS))}",
            got=f"version {version}",
            do="upgrade Isthmus (pip install --upgrade isthmus)"
            if version > VERSION
            else "fit the bridge again",
        )
    return version


def _check_path(name: Any) -> None:
    """Refuse a path in a manifest. The name is never used; who writes a path means harm."""
    if isinstance(name, str) and (set(name) & set("/\\:\0") or name.strip(".") == ""):
        raise UnsafePathError(
            expected=f"{WEIGHTS_FILE!r} as the file of the tensors",
            got=repr(name[:80]),
            do="do not use this bridge",
        )


def check_manifest_hash(fields: Mapping[str, Any]) -> None:
    """Refuse a manifest whose hash does not cover its fields.

    Raises
    ------
    TamperedArtifactError
    """
    recorded = fields.get("hash")
    if not isinstance(recorded, str):
        raise malformed("a manifest with its hash", repr(recorded)[:80])
    if manifest_hash(fields) != recorded:
        raise TamperedArtifactError(
            expected=f"a manifest with the hash {recorded[:16]}...",
            got=f"{manifest_hash(fields)[:16]}...: it was changed after it was written",
            do="do not use this bridge; fetch it again from its maker",
        )
