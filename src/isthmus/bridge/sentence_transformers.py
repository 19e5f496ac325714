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
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus._files import atomic_folder
from isthmus.bridge.chain import Bend, Part, Unit, chain_of
from isthmus.errors import (
    CorruptFileError,
    DimensionError,
    MissingFileError,
    WriteFailedError,
)

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
    parts = chain_of(bridge)
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
