"""The folder layout of the Vector Dataset Format: ``VDF_META.json`` and parts in parquet.

A folder holds indexes, each with one or more namespaces; a namespace is a set of vectors. The whole
space is kept in its ``index_config``, which other tools leave alone.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from isthmus._files import atomic_folder
from isthmus._types import FloatArray, IdArray, Metric
from isthmus.errors import InputError, UnsafePathError, WriteFailedError
from isthmus.spaces.io.asked import Asked
from isthmus.spaces.io.base import Block, FileFormat, Metadata, Plan, Raw, Stream, corrupt
from isthmus.spaces.io.jsonable import dump_metadata
from isthmus.spaces.io.names import several
from isthmus.spaces.io.parquet import OPENED, PANDAS_INDEX, blocks_of, open_file
from isthmus.spaces.io.space_json import parse_space
from isthmus.spaces.space import Space

__all__ = ["VDF", "is_vdf"]

META = "VDF_META.json"
VERSION = "0.1.248"
"""Of the library whose layout this is."""
MAX_JSON_BYTES = 1 << 24
METRICS: Mapping[str, Metric] = {
    "cosine": "cosine",
    "dot": "dot",
    "dotproduct": "dot",
    "ip": "dot",
    "euclid": "l2",
    "euclidean": "l2",
    "l2": "l2",
}
WRITTEN: Mapping[Metric, str] = {"cosine": "Cosine", "dot": "Dot", "l2": "Euclid"}
UNNAMED = {"", "na", "n/a", "none", "unknown"}


def is_vdf(path: Path) -> bool:
    """Tell a folder of this layout, or its ``VDF_META.json``.

    Examples
    --------
    >>> is_vdf(Path("no such folder"))
    False
    """
    return (path / META).is_file() or (path.name == META and path.is_file())


def _read(path: Path, asked: Asked) -> Raw:
    return _stream(path, asked, metadata=False).whole(path)


def _stream(path: Path, asked: Asked, *, metadata: bool = True) -> Stream:
    folder = path.parent if path.name == META else path
    index, part = _choose(_meta(folder), asked, folder)
    name, files = _vector_column(part, asked, folder), _files(part, folder)
    inside = Asked(id=asked.id or _text(part.get("id_column")), vector=name)
    rows = 0
    for file in files:
        with open_file(file) as opened:
            rows += opened.metadata.num_rows
    space, partial = _space(part, folder)
    told = part.get("exported_vector_count")
    if isinstance(told, int) and told != rows:
        raise corrupt(folder, expected=f"{told:,} vectors, as {META} says", got=f"{rows:,}")
    return Stream(
        blocks=_blocks(files, inside, metadata=metadata),
        rows=rows,
        space=space,
        stored=sum(file.stat().st_size for file in files),
        partial=partial,
        taken=f"index {index!r}, namespace {_text(part.get('namespace'))!r}, vectors from {name!r}",
    )


def _blocks(files: list[Path], inside: Asked, *, metadata: bool) -> Iterator[Block]:
    width: int | None = None
    for file in files:
        for block in blocks_of(file, inside, metadata=metadata):
            if width is not None and block.vectors.shape[1] != width:
                raise corrupt(
                    file,
                    expected=f"vectors of {width} numbers, as in the parts before",
                    got=f"{block.vectors.shape[1]}",
                    do="put the vectors of each model in a folder of their own",
                )
            width = block.vectors.shape[1]
            yield block


# --- what the folder says --------------------------------------------------------------------


def _meta(folder: Path) -> dict[str, Any]:
    path = folder / META
    if path.stat().st_size > MAX_JSON_BYTES:
        raise corrupt(path, expected=f"at most {MAX_JSON_BYTES:,} bytes", got="more")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise corrupt(path, expected="a JSON object", got=str(error)[:100]) from error
    if not isinstance(content, dict) or not isinstance(content.get("indexes"), dict):
        raise corrupt(path, expected="a JSON object with 'indexes'", got="none")
    return content


def _choose(meta: dict[str, Any], asked: Asked, folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the one namespace of the one index, or those that were named."""
    indexes = meta["indexes"]
    name = _one(list(indexes), asked.index, folder, of="index")
    held = indexes[name]
    parts = held if isinstance(held, list) else [held]
    if not parts or not all(isinstance(each, dict) for each in parts):
        raise corrupt(folder / META, expected=f"namespaces of the index {name!r}", got="none")
    spaces = [_text(each.get("namespace")) for each in parts]
    if len(parts) == 1 and not asked.namespace:
        return name, {"id_column": meta.get("id_column"), **parts[0]}
    chosen = _one(spaces, asked.namespace, folder, of="namespace")
    return name, {"id_column": meta.get("id_column"), **parts[spaces.index(chosen)]}


def _one(names: list[str], asked: str, folder: Path, *, of: str) -> str:
    if asked and asked in names:
        return asked
    if asked or not names:
        raise InputError(
            expected=f"the {of} {asked!r} in {folder.name!r}" if asked else f"one {of}",
            got=", ".join(map(repr, names))[:200] or "none",
            do="name one that is there",
        )
    if len(names) > 1:
        raise several(names, path=folder, what=of, of=of)
    return names[0]


def _vector_column(part: dict[str, Any], asked: Asked, folder: Path) -> str:
    listed = part.get("vector_columns")
    names = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    if asked.vector or not names:
        return asked.vector
    if len(names) > 1:
        raise several(names, path=folder, what="column", of="vector")
    return names[0]


def _files(part: dict[str, Any], folder: Path) -> list[Path]:
    """List the parts in the order of their numbers, none of them outside the folder."""
    told = part.get("data_path")
    if not isinstance(told, str):
        raise corrupt(folder / META, expected="a data_path", got=f"{told!r:.80}")
    place = PurePosixPath(told.replace("\\", "/"))
    where = (folder / place).resolve()
    if place.is_absolute() or not where.is_relative_to(folder.resolve()):
        raise UnsafePathError(
            expected=f"a data_path inside {folder.name!r}",
            got=repr(told[:80]),
            do="copy the parts into the folder and write their path from there",
        )
    files = [where] if where.is_file() else list(where.glob("*.parquet"))
    files = [file for file in files if file.resolve().is_relative_to(folder.resolve())]
    if not files:
        raise corrupt(folder, expected=f"parts in parquet under {told[:80]!r}", got="none")
    return sorted(files, key=lambda file: (len(file.name), file.name))


def _space(part: dict[str, Any], folder: Path) -> tuple[Space | None, dict[str, Any]]:
    """Return the space of files of ours, and what others say of theirs."""
    kept = part.get("index_config")
    ours = kept.get("isthmus_space") if isinstance(kept, dict) else None
    if ours is not None:
        return parse_space(json.dumps(ours), folder / META), {}
    partial: dict[str, Any] = {}
    model, dim = _text(part.get("model_name")), part.get("dimensions")
    if model.lower() not in UNNAMED:
        partial["model"] = model
    if isinstance(dim, int) and not isinstance(dim, bool) and dim > 0:
        partial["dim"] = dim
    metric = _text(part.get("metric"))
    if metric:
        if metric.lower() not in METRICS:
            raise corrupt(
                folder / META,
                expected=f"a metric of {', '.join(METRICS)}",
                got=repr(metric[:80]),
                do="convert the vectors to a metric that Isthmus has",
            )
        partial["metric"] = METRICS[metric.lower()]
    if "model" in partial and "dim" not in partial:
        raise corrupt(folder / META, expected="the number of dimensions", got=f"{dim!r:.80}")
    return None, partial


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# --- writing ---------------------------------------------------------------------------------


class _Sink:
    """Writes each batch as one part: a file with the metadata as columns of its own."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder = folder
        self._plan = plan
        self.parts = 0

    def write(self, ids: IdArray, vectors: FloatArray, metadata: Metadata) -> None:
        """Append one part."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.parts += 1
        number = pa.float16() if self._plan.dtype == "float16" else pa.float32()
        flat = pa.array(vectors.reshape(-1), number)
        width = vectors.shape[1]
        offsets = pa.array(np.arange(0, len(flat) + 1, width, dtype=np.int32))
        columns = {"id": pa.array(ids.tolist()), "vector": pa.ListArray.from_arrays(offsets, flat)}
        beside = columns_of(metadata, taken=columns)
        pq.write_table(
            pa.table({**columns, **beside}),
            self._folder / f"{self.parts}.parquet",
            use_dictionary=list(beside),
        )


def columns_of(metadata: Metadata, *, taken: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as columns where each name has values of one plain type, else as JSON text.

    A column cannot tell a null from nothing, nor hold several types; where the rows need that, all
    of it goes into one column ``metadata``.
    """
    import pyarrow as pa

    names = list(dict.fromkeys(name for row in metadata for name in row))
    if not names:
        return {}
    values = {name: [row.get(name) for row in metadata if name in row] for name in names}
    plain = all(len(set(map(type, each))) == 1 and _is_plain(each) for each in values.values())
    own = {*taken, *OPENED}
    if plain and not any(name in own or name.startswith(PANDAS_INDEX) for name in names):
        with contextlib.suppress(pa.ArrowException, OverflowError):
            return {name: pa.array([row.get(name) for row in metadata]) for name in names}
    return {"metadata": pa.array([dump_metadata(row) for row in metadata])}


def _is_plain(column: list[Any]) -> bool:
    """Tell values of one type that a column gives back as they are."""
    kind = type(column[0])
    return kind in {str, int, bool} or (kind is float and all(map(math.isfinite, column)))


@contextlib.contextmanager
def _open_sink(plan: Plan) -> Iterator[_Sink]:
    if plan.path.exists() and not is_vdf(plan.path):
        raise WriteFailedError(
            expected=f"to write the folder {plan.path.name!r}",
            got="something else there",
            do="name a new folder, or one of this layout to be replaced",
        )
    name = plan.path.stem
    with atomic_folder(plan.path) as folder:
        (folder / name).mkdir()
        sink = _Sink(folder / name, plan)
        yield sink
        text = json.dumps(_describe(plan, name, sink.parts), indent=4, ensure_ascii=False)
        (folder / META).write_text(text + "\n", encoding="utf-8")


def _describe(plan: Plan, name: str, parts: int) -> dict[str, Any]:
    space = plan.space
    return {
        "version": VERSION,
        "file_structure": [*(f"{name}/{part}.parquet" for part in range(1, parts + 1)), META],
        "author": "isthmus",
        "exported_from": "isthmus",
        "indexes": {
            name: [
                {
                    "namespace": "",
                    "index_name": name,
                    "total_vector_count": plan.rows,
                    "exported_vector_count": plan.rows,
                    "dimensions": space.dim,
                    "model_name": space.model,
                    "vector_columns": ["vector"],
                    "data_path": name,
                    "metric": WRITTEN[space.metric],
                    "index_config": {"isthmus_space": space.to_dict()},
                }
            ]
        },
        "exported_at": dt.datetime.now(dt.UTC).isoformat(),
        "id_column": "id",
    }


VDF = FileFormat(
    suffix=".vdf",
    read=_read,
    stream=_stream,
    open_sink=_open_sink,
    keeps_metadata=True,
    asks=("id", "vector", "index", "namespace"),
)
