"""What a search index of Redis says of itself, and the numbers of its vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from isthmus._types import FloatArray, Metric
from isthmus.errors import CorruptStoreError, InvalidIdError, ParameterError
from isthmus.stores._rows import OtherLengths, spread

__all__ = ["Field", "Index", "read_index"]

METRICS: Mapping[str, Metric] = MappingProxyType({"COSINE": "cosine", "IP": "dot", "L2": "l2"})
STORED: Mapping[str, tuple[str, str, float]] = MappingProxyType(
    {
        "FLOAT32": ("<f4", "float32", 0.0),
        "FLOAT64": ("<f8", "float64", 0.0),
        "FLOAT16": ("<f2", "float16", 2.0**-11),
        "BFLOAT16": ("<u2", "bfloat16", 2.0**-8),
    }
)
"""Types of numbers: how numpy calls them, how we do, the error of a float32 that is read back."""


@dataclass(frozen=True)
class Field:
    """One field of an index.

    Parameters
    ----------
    name : str
        In the hash.
    attribute : str
        In queries.
    type : str
    facts : mapping of str to str
        The rest of what the index says of it.
    """

    name: str
    attribute: str
    type: str
    facts: Mapping[str, str]


@dataclass(frozen=True)
class Index:
    """An index over hashes, seen from one of its vectors.

    Parameters
    ----------
    name : str
        Its own, also where it was found by an alias.
    prefixes : tuple of str
        Of the keys.
    fields : mapping of str to Field
        By their names in the hash.
    vector : Field
    failures : int
        Hashes that it could not take in.
    busy : bool
        Whether it still takes in what was there before it.
    """

    name: str
    prefixes: tuple[str, ...]
    fields: Mapping[str, Field]
    vector: Field
    failures: int
    busy: bool

    @property
    def own(self) -> bool:
        """Whether Isthmus made it."""
        return self.prefixes == (own_prefix(self.name),)

    @property
    def prefix(self) -> str:
        """What stands before the ids; empty where there are several prefixes."""
        return self.prefixes[0] if len(self.prefixes) == 1 else ""

    @property
    def dim(self) -> int:
        """Length of the vectors."""
        return int(self.vector.facts["dim"])

    @property
    def metric(self) -> Metric:
        """What it searches by."""
        return METRICS[self.vector.facts["distance_metric"]]

    @property
    def exact(self) -> bool:
        """Whether it compares every row."""
        return self.vector.facts["algorithm"] == "FLAT"

    @property
    def storage(self) -> str:
        """Type of the numbers."""
        return STORED[self._type][1]

    @property
    def read_back_error(self) -> float:
        """Of a float32, relative to the largest number of its row."""
        return STORED[self._type][2]

    @property
    def _type(self) -> str:
        return self.vector.facts["data_type"]

    def key(self, text: str) -> bytes:
        """Return the key of an id."""
        return (self.prefix + text).encode()

    def id_of(self, key: bytes) -> str:
        """Return the id of a key.

        Raises
        ------
        InvalidIdError
            A key that is not text.
        """
        try:
            return key.decode().removeprefix(self.prefix)
        except UnicodeDecodeError as error:
            raise InvalidIdError(
                expected="keys that are text", got=repr(key[:40]), do="rename these keys"
            ) from error

    def to_bytes(self, vectors: FloatArray) -> list[bytes]:
        """Return each vector as the hash keeps it."""
        numbers: npt.NDArray[Any]
        if self._type == "BFLOAT16":
            bits = np.ascontiguousarray(vectors, "<f4").view("<u4")
            numbers = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
        else:
            with np.errstate(over="ignore"):
                numbers = vectors.astype(STORED[self._type][0])
        return [row.tobytes() for row in numbers]

    def to_vectors(self, found: Sequence[bytes]) -> tuple[FloatArray, OtherLengths | None]:
        """Return vectors as float32 of shape (n, dim), NaN where they have another length.

        The database keeps such hashes, and does not index them.
        """
        kind = np.dtype(STORED[self._type][0])

        def read(fits: npt.NDArray[np.bool_]) -> FloatArray:
            return self._numbers([one for one, fit in zip(found, fits, strict=True) if fit])

        lengths = [len(one) / kind.itemsize for one in found]
        return spread(lengths, self.dim, read, error=self._lengths_differ)

    def _lengths_differ(self, lengths: Sequence[float], dim: int) -> CorruptStoreError:
        return CorruptStoreError(
            expected=f"vectors of {dim} numbers in every hash of the index {self.name!r}",
            got=f"hashes with {', '.join(f'{length:g}' for length in lengths)}; "
            f"the index could not take in {self.failures:,}, which no search finds",
            do="find out which rows came from another model, and move them to a collection of "
            "their own",
        )

    def _numbers(self, found: Sequence[bytes]) -> FloatArray:
        kind = np.dtype(STORED[self._type][0])
        numbers = np.frombuffer(b"".join(found), kind).reshape(len(found), self.dim)
        if self._type == "BFLOAT16":
            return (numbers.astype("<u4") << 16).view("<f4")
        return numbers.astype(np.float32)


def own_prefix(name: str) -> str:
    """Return the prefix of the keys of a collection of ours: no name is the beginning of another.

    Examples
    --------
    >>> own_prefix("a:b")
    'isthmus:a%3Ab:'
    """
    return f"isthmus:{quote(name, safe='')}:"


def read_index(answer: Sequence[Any], wanted: str) -> Index:
    """Read what ``FT.INFO`` answers; ``wanted`` names the vector where there are several.

    Raises
    ------
    ParameterError
    """
    said = _pairs(answer)
    definition = _pairs(said["index_definition"])
    if _text(definition["key_type"]) != "HASH":
        raise ParameterError(
            expected="an index over hashes",
            got=f"one over {_text(definition['key_type'])}",
            do="make an index over hashes, in which vectors read back as they were written",
        )
    fields = [_field(_flags_out(one)) for one in said["attributes"]]
    vectors = [field for field in fields if field.type == "VECTOR"]
    chosen = [field for field in vectors if wanted in ("", field.name, field.attribute)]
    if len(chosen) != 1:
        names = ", ".join(repr(field.name) for field in vectors)
        raise ParameterError(
            expected=f"one field of vectors in the index {_text(said['index_name'])!r}",
            got=f"{len(chosen)} of them" + (f" called {wanted!r}" if wanted else ""),
            do=f"choose one: &field=NAME; the index has {names or 'none'}",
        )
    return Index(
        name=_text(said["index_name"]),
        prefixes=tuple(map(_text, definition["prefixes"])),
        fields={field.name: field for field in fields},
        vector=chosen[0],
        failures=int(said.get("hash_indexing_failures", 0)),
        busy=str(_text(said.get("indexing", 0))) != "0",
    )


def _field(pairs: Mapping[str, Any]) -> Field:
    facts = {key: str(_text(value)) for key, value in pairs.items()}
    return Field(facts["identifier"], facts["attribute"], facts["type"], facts)


def _flags_out(items: Sequence[Any]) -> dict[str, Any]:
    """Read the facts of a field: pairs, and at their end flags that stand alone."""
    names = [_text(item) for item in items]
    flags = {"SORTABLE", "UNF", "NOSTEM", "NOINDEX", "CASESENSITIVE", "WITHSUFFIXTRIE"}
    end = next((at for at, name in enumerate(names) if at % 2 == 0 and name in flags), len(names))
    return _pairs(items[:end]) | dict.fromkeys(names[end:], "1")


def _pairs(items: Sequence[Any]) -> dict[str, Any]:
    return {_text(items[at]): items[at + 1] for at in range(0, len(items) - 1, 2)}


def _text(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
