"""A model and a bridge in one folder, which the library sentence-transformers loads as one model.

``SentenceTransformer(folder)`` then gives vectors of the target space. The bridge stands in it as
that library's own modules (Dense, Normalize), so that neither Isthmus nor foreign code is needed to
load it. Only files are written: the library itself is not used.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus._files import atomic_folder
from isthmus._types import FloatArray
from isthmus.errors import (
    CorruptFileError,
    DimensionError,
    MissingFileError,
    UnsupportedOperationError,
    WriteFailedError,
)
from isthmus.maps import (
    MLP,
    PCA,
    Barycentric,
    Centre,
    DriftAdapter,
    Dummy,
    LowRank,
    Map,
    MiniVec2Vec,
    Normalise,
    Null,
    Procrustes,
    ProcrustesRidge,
    Ridge,
    SmallMLP,
    Step,
    UnpairedIterative,
    Whiten,
)
from isthmus.maps.training import Network

if TYPE_CHECKING:
    from isthmus.bridge.bridge import Bridge

__all__ = ["write_sentence_transformer"]

MODULES = "modules.json"
CONFIG = "config_sentence_transformers.json"
RECORD = "isthmus_bridge.json"
CARD = "README.md"
TYPES = "sentence_transformers.models"
"""Where every version of the library finds its modules; later ones know where they went."""
WIDTHS = ("out_features", "embedding_dimension", "word_embedding_dimension")
SIMILARITY = {"cosine": "cosine", "dot": "dot", "l2": "euclidean"}
MAX_JSON_BYTES = 1 << 24


@dataclass(frozen=True)
class Affine:
    """Rows times ``weight`` (inputs, outputs) plus ``bias``, in float64."""

    weight: FloatArray
    bias: FloatArray


@dataclass(frozen=True)
class Unit:
    """Rows of length one."""


@dataclass(frozen=True)
class Bend:
    """An activation, by its name in torch."""

    name: str


Part = Affine | Unit | Bend


def write_sentence_transformer(bridge: Bridge, folder: Path, model: Any) -> None:
    """Write a folder that sentence-transformers loads as the source's model with the bridge behind.

    Parameters
    ----------
    bridge : Bridge
    folder : Path
        A new folder, which is written whole or not at all.
    model : Path or str, or SentenceTransformer
        The source's model: the folder that its ``save`` wrote, or the model, which is saved first.

    Raises
    ------
    UnsupportedOperationError
        A map that lands in a comparison space, or that the library's modules cannot express.
    DimensionError
        A model of another width than the bridge's source.
    MissingFileError, CorruptFileError
        The folder is none of that library.
    WriteFailedError
    """
    bridge.check_lands_in_target()
    parts = _folded(_parts(bridge))
    if folder.exists():
        raise WriteFailedError(
            expected=f"a new folder {folder.name!r} to write",
            got="something there",
            do="name another folder, or remove it first",
        )
    with _folder_of(model) as saved:
        modules = _read_list(saved / MODULES)
        _check_width(modules, saved, bridge.source.dim)
        config = _read_dict(saved / CONFIG) if (saved / CONFIG).is_file() else {}
        config["similarity_fn_name"] = SIMILARITY[bridge.target.metric]
        with atomic_folder(folder) as made:
            shutil.copytree(saved, made, dirs_exist_ok=True)
            modules += _write_parts(parts, made, first=len(modules))
            _write_json(made / MODULES, modules)
            _write_json(made / CONFIG, config)
            _write_json(made / RECORD, _record(bridge))
            (made / CARD).write_text(_card(bridge), encoding="utf-8")


@contextlib.contextmanager
def _folder_of(model: Any) -> Iterator[Path]:
    """Give the folder of the source's model; one in memory is saved for as long as it is needed."""
    if not isinstance(model, Path | str):
        with tempfile.TemporaryDirectory() as saved:
            model.save(saved)
            yield Path(saved)
        return
    if not (Path(model) / MODULES).is_file():
        raise MissingFileError(
            expected=f"a folder with {MODULES!r}, as sentence-transformers saves a model",
            got=f"{str(model)!r} without it",
            do="save the model first: SentenceTransformer(NAME).save(FOLDER)",
        )
    yield Path(model)


def _check_width(modules: Sequence[Any], folder: Path, dim: int) -> None:
    """Refuse a model whose last module of a known width has another than the bridge's source."""
    for module in reversed(modules):
        path = PurePosixPath(str(module.get("path")) if isinstance(module, dict) else "..")
        if path.is_absolute() or ".." in path.parts:
            raise _corrupt(folder / MODULES, "modules with a path each", f"{module!r:.80}")
        file = folder / path / "config.json"
        config = _read_dict(file) if path.parts and file.is_file() else {}
        width = next((config[name] for name in WIDTHS if name in config), None)
        if isinstance(width, int):
            if width != dim:
                raise DimensionError(
                    expected=f"a model of {dim} dimensions, as the bridge's source has",
                    got=f"{width}",
                    do="use the model that the bridge was fitted on",
                )
            return


def _write_parts(parts: Sequence[Part], folder: Path, *, first: int) -> list[dict[str, Any]]:
    """Write one module a part, an activation with the part before it; return their entries."""
    from safetensors.numpy import save_file

    entries: list[dict[str, Any]] = []
    for place, part in enumerate(parts):
        if isinstance(part, Bend):
            continue
        number = first + len(entries)
        kind = "Normalize" if isinstance(part, Unit) else "Dense"
        path = f"{number}_{kind}"
        (folder / path).mkdir()
        entries.append(
            {"idx": number, "name": str(number), "path": path, "type": f"{TYPES}.{kind}"}
        )
        if isinstance(part, Unit):
            continue
        after = parts[place + 1] if place + 1 < len(parts) else None
        bend = after.name if isinstance(after, Bend) else "linear.Identity"
        inputs, outputs = part.weight.shape
        config = {
            "in_features": inputs,
            "out_features": outputs,
            "bias": True,
            "activation_function": f"torch.nn.modules.{bend}",
        }
        _write_json(folder / path / "config.json", config)
        tensors = {
            "linear.weight": np.ascontiguousarray(part.weight.T, dtype=np.float32),
            "linear.bias": np.ascontiguousarray(part.bias, dtype=np.float32),
        }
        save_file(tensors, folder / path / "model.safetensors", metadata={"format": "pt"})
        (folder / path / "model.safetensors").chmod((folder / path / "config.json").stat().st_mode)
    return entries


# --- the bridge as parts -----------------------------------------------------------------------


def _parts(bridge: Bridge) -> list[Part]:
    """Return the way from source rows to what `Bridge.transform` gives."""
    parts: list[Part] = [Unit()] if bridge.source.normalized else []
    parts += [_step(step) for step in bridge.map.source_steps_]
    parts += _map(bridge.map.inner_)
    parts += [_step_back(step) for step in bridge.map.target_steps_[::-1]]
    return [*parts, Unit()] if bridge.target.normalized else parts


def _folded(parts: Sequence[Part]) -> list[Part]:
    """Multiply neighbours out where both are affine, and drop a second unit length."""
    made: list[Part] = []
    for part in parts:
        last = made[-1] if made else None
        if isinstance(last, Affine) and isinstance(part, Affine):
            made[-1] = Affine(last.weight @ part.weight, last.bias @ part.weight + part.bias)
        elif not (isinstance(last, Unit) and isinstance(part, Unit)):
            made.append(part)
    return made


def _shift(row: FloatArray) -> Affine:
    return Affine(np.eye(len(row)), np.asarray(row, dtype=np.float64))


def _around(mean: FloatArray, matrix: FloatArray, after: FloatArray | float = 0.0) -> Affine:
    """``(rows - mean) @ matrix + after``."""
    weight = np.asarray(matrix, dtype=np.float64)
    return Affine(weight, -np.asarray(mean, dtype=np.float64) @ weight + after)


def _step(step: Step) -> Part:
    match step:
        case Centre():
            return _shift(-step.mean_)
        case Normalise():
            return Unit()
        case Whiten():
            return _around(step.mean_, step.matrix_)
        case PCA():
            return _around(step.mean_, step.directions_)
    raise _no_rule(step.name)


def _step_back(step: Step) -> Part:
    match step:
        case Centre():
            return _shift(step.mean_)
        case Normalise():
            length = np.float64(step.length_) * np.eye(step.n_features_in_)
            return Affine(length, np.zeros(step.n_features_in_))
        case Whiten():
            return _linear(step.inverse_, step.mean_)
        case PCA():
            return _linear(step.directions_.T, step.mean_)
    raise _no_rule(step.name)


def _linear(weight: FloatArray, bias: FloatArray | None = None) -> Affine:
    wide = np.asarray(weight, dtype=np.float64)
    return Affine(wide, np.zeros(wide.shape[1]) if bias is None else np.asarray(bias, np.float64))


def _map(fitted: Map) -> list[Part]:
    for kind, rule in RULES.items():
        if isinstance(fitted, kind):
            return rule(fitted)
    raise _no_rule(fitted.name)


def _no_rule(name: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        expected=f"one of {', '.join(sorted(kind.name for kind in RULES))}, without a branch that "
        "skips a bent layer: what Dense and Normalize of sentence-transformers can express",
        got=name,
        do="fit procrustes_ridge or ridge, or write the bridge with Bridge.to_onnx",
    )


def _procrustes(fitted: Procrustes | UnpairedIterative | MiniVec2Vec) -> list[Part]:
    turned = fitted.rotation_.astype(np.float64) * float(fitted.scale_)
    return [_around(fitted.mean_source_, turned, fitted.mean_target_)]


def _network(network: Network, name: str) -> list[Part]:
    """Return the layers; a skip branch can be kept only where nothing is bent between."""
    layers: list[Part] = [
        _linear(weight, bias) for weight, bias in zip(network.weights, network.biases, strict=True)
    ]
    bent = network.activation != "identity" and len(layers) > 1
    if network.skip is not None:
        if bent:
            raise _no_rule(f"{name} with such a branch")
        (whole,) = _folded(layers)
        assert isinstance(whole, Affine)  # noqa: S101 - affine layers fold to one
        return [Affine(whole.weight + network.skip, whole.bias)]
    if not bent:
        return layers
    bend = Bend(ACTIVATIONS[network.activation])
    return [part for layer in layers[:-1] for part in (layer, bend)] + layers[-1:]


def _learned(fitted: MLP | DriftAdapter) -> list[Part]:
    parts = _network(fitted.network, fitted.name)
    return [*parts, Unit()] if int(fitted.unit_) else parts


def _small(fitted: SmallMLP) -> list[Part]:
    weights = [fitted.weight_1_, fitted.weight_2_, fitted.weight_3_]
    biases = [fitted.bias_1_, fitted.bias_2_, fitted.bias_3_]
    return _network(Network(weights, biases, activation="relu"), fitted.name)


ACTIVATIONS = {
    "selu": "activation.SELU",
    "relu": "activation.ReLU",
    "gelu": "activation.GELU",
}

Rule = Callable[[Any], list[Part]]
RULES: Mapping[type[Map], Rule] = {
    Null: lambda fitted: [_linear(np.eye(fitted.n_features_in_, fitted.n_features_target_))],
    Dummy: lambda fitted: [_linear(fitted.rotation_)],
    Procrustes: _procrustes,
    UnpairedIterative: _procrustes,
    MiniVec2Vec: _procrustes,
    Barycentric: lambda fitted: [_linear(fitted.rotation_, fitted.bias_)],
    Ridge: lambda fitted: [_linear(fitted.weight_, fitted.bias_)],
    ProcrustesRidge: lambda fitted: [_linear(fitted.weight_, fitted.bias_)],
    LowRank: lambda fitted: [_linear(fitted.down_), _linear(fitted.up_, fitted.bias_)],
    SmallMLP: _small,
    MLP: _learned,
    DriftAdapter: _learned,
}
"""How each map is written; a subclass is written as its parent."""


# --- what is written beside --------------------------------------------------------------------


def _record(bridge: Bridge) -> dict[str, Any]:
    return {
        "bridge": bridge.hash,
        "method": bridge.method,
        "source": bridge.source.to_dict(),
        "target": bridge.target.to_dict(),
        "verdict": bridge.verdict.status,
    }


def _card(bridge: Bridge) -> str:
    return (
        "---\nlibrary_name: sentence-transformers\ntags:\n- sentence-transformers\n---\n\n"
        f"# {bridge.source.model}, carried into the space of {bridge.target.model}\n\n"
        f"`SentenceTransformer(folder)` embeds with {bridge.source.model} and carries the vectors "
        f"({bridge.source.dim} numbers) into the space of {bridge.target.model} "
        f"({bridge.target.dim} numbers, metric {bridge.target.metric}). They are near to what "
        f"{bridge.target.model} would give, and not the same.\n\n"
        f"Method: {bridge.method}. Verdict of its report: {bridge.verdict.status} "
        f"({bridge.verdict.reason}). Bridge: `{bridge.hash}`.\n"
    )


def _read_list(path: Path) -> list[Any]:
    content = _read_json(path)
    if not isinstance(content, list) or not content:
        raise _corrupt(path, "a list of modules", f"{content!r:.80}")
    return content


def _read_dict(path: Path) -> dict[str, Any]:
    content = _read_json(path)
    if not isinstance(content, dict):
        raise _corrupt(path, "a JSON object", f"{content!r:.80}")
    return content


def _read_json(path: Path) -> Any:
    if path.stat().st_size > MAX_JSON_BYTES:
        raise _corrupt(path, f"at most {MAX_JSON_BYTES:,} bytes", f"{path.stat().st_size:,}")
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _corrupt(path, "JSON", str(error)[:100]) from error


def _write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _corrupt(path: Path, expected: str, got: str) -> CorruptFileError:
    return CorruptFileError(
        expected=f"{path.name!r} with {expected}", got=got, do="save the model again"
    )
