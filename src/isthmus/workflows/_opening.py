"""Files and collections that stand in for the objects they hold."""

from __future__ import annotations

from pathlib import Path

from isthmus.errors import InputError, SpaceMismatchError
from isthmus.spaces import Qrels, VectorSet
from isthmus.spaces.io import format_of
from isthmus.stores._record import is_unrecorded
from isthmus.stores.reading import is_store_url, read_collection

__all__ = ["NONE_GIVEN", "open_qrels", "open_vectors"]

NONE_GIVEN = "none"
"""In the place of a file of pairs or of seeds: there are none, and equal ids are chance."""


def open_vectors(vectors: VectorSet | Path | str) -> VectorSet:
    """Return a set, read from its file or store where a path or a store URL was given.

    What is in a file stays on disk where it can; a collection is read into memory.

    Raises
    ------
    MissingFileError, UnknownFormatError, CorruptFileError, InputError, StoreError
    SpaceMismatchError
        A collection whose space is not recorded.
    """
    if isinstance(vectors, VectorSet):
        return vectors
    if not isinstance(vectors, Path | str):
        shape = getattr(vectors, "shape", None)
        raise InputError(
            expected="a VectorSet, the path of its file, or a store URL",
            got=f"a {type(vectors).__name__}" + (f" of shape {shape}" if shape else ""),
            do="make one: VectorSet(ids, vectors, Space(model=..., dim=...))",
        )
    if isinstance(vectors, str) and is_store_url(vectors):
        return _known(read_collection(vectors))
    path = Path(vectors)
    return VectorSet.load(path, memory_map=format_of(path).memory_maps)


def _known(vectors: VectorSet) -> VectorSet:
    """Refuse vectors of which nobody said which model made them: they meet no others."""
    if is_unrecorded(vectors.space):
        raise SpaceMismatchError(
            expected="a collection whose model is recorded",
            got=vectors.space.model,
            do="if you know which model made it, say so: isthmus store record URL --model NAME",
        )
    return vectors


def open_qrels(qrels: Qrels | Path | str) -> Qrels:
    """Return judgements, read from their file where a path was given.

    Raises
    ------
    MissingFileError, CorruptFileError
    """
    return qrels if isinstance(qrels, Qrels) else Qrels.load(qrels)
