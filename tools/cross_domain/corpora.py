"""Corpora: JSON lines with an id and a text each; texts stay on disk until they are asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from isthmus.errors import (
    CorruptFileError,
    DuplicateIdError,
    EmptyInputError,
    MissingFileError,
    UnknownIdError,
)
from isthmus.spaces.ids import as_ids

__all__ = ["Corpus", "read_corpora", "read_corpus"]


@dataclass(frozen=True)
class Corpus:
    """One collection of documents.

    Parameters
    ----------
    name : str
        The name of the file without its ending.
    path : Path
    sha256 : str
        Of the bytes of the file.
    offsets : dict of str to int
        Where the line of each document begins, in the order of the file.
    """

    name: str
    path: Path
    sha256: str
    offsets: dict[str, int]

    @cached_property
    def ids(self) -> list[str]:
        """Ids in the order of the file."""
        return list(self.offsets)

    def text(self, document: str) -> str:
        """Read the text of one document.

        Raises
        ------
        UnknownIdError
        """
        if document not in self.offsets:
            raise UnknownIdError(
                expected=f"a document of the corpus {self.name!r}",
                got=repr(document),
                do="use the files that the benchmark was made from",
            )
        with self.path.open("rb") as stream:
            stream.seek(self.offsets[document])
            return str(json.loads(stream.readline())["text"])


def read_corpus(path: Path) -> Corpus:
    """Check every line of a corpus and note where it begins.

    Raises
    ------
    MissingFileError, CorruptFileError, DuplicateIdError, EmptyInputError, InvalidIdError
        With the number of the line.
    """
    if not path.is_file():
        raise MissingFileError(
            expected=f"a corpus at {str(path)!r}", got="nothing there", do="check the path"
        )
    offsets: dict[str, int] = {}
    place, digest = 0, hashlib.sha256()
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            digest.update(line)
            if line.strip():
                document = _check(line, path, number)
                if document in offsets:
                    raise DuplicateIdError(
                        expected=f"each id once in {path.name!r}",
                        got=f"{document!r} again in line {number}",
                        do="drop one of the two lines",
                    )
                offsets[document] = place
            place += len(line)
    if not offsets:
        raise EmptyInputError(
            expected=f"at least one document in {path.name!r}", got="none", do="check the file"
        )
    as_ids(list(offsets), name=f"ids of {path.name}")
    return Corpus(path.stem, path, digest.hexdigest(), offsets)


def read_corpora(paths: Sequence[Path]) -> list[Corpus]:
    """Read at least two corpora of different names that share no id.

    Raises
    ------
    DuplicateIdError, EmptyInputError
        And those of `read_corpus`.
    """
    if len(paths) < 2:
        raise EmptyInputError(
            expected="at least two corpora", got=f"{len(paths)}", do="name another file"
        )
    corpora: list[Corpus] = []
    for path in paths:
        corpus = read_corpus(path)
        for other in corpora:
            _check_apart(corpus, other)
        corpora.append(corpus)
    return corpora


def _check_apart(corpus: Corpus, other: Corpus) -> None:
    """Refuse a name or an id that two corpora have: a judgement could mean either."""
    if corpus.name == other.name:
        raise DuplicateIdError(
            expected="corpora of different file names",
            got=f"{corpus.name!r} twice",
            do="rename one of the files",
        )
    shared = corpus.offsets.keys() & other.offsets.keys()
    if shared:
        raise DuplicateIdError(
            expected=f"no id in both {corpus.name!r} and {other.name!r}",
            got=f"{min(shared)!r} and {len(shared) - 1:,} more",
            do="put the name of the corpus before its ids, here and in its vectors",
        )


def _check(line: bytes, path: Path, number: int) -> str:
    """Return the id of a line that holds an id and a text."""
    try:
        entry: Any = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except (ValueError, RecursionError) as error:
        raise _broken(path, number, "no JSON") from error
    if not isinstance(entry, dict):
        raise _broken(path, number, f"a {type(entry).__name__}")
    document, text = entry.get("id"), entry.get("text")
    if not isinstance(document, str) or not document or set(document) & set("\t\r\n"):
        raise _broken(path, number, f"the id {document!r:.60}")
    if not isinstance(text, str) or not text.strip():
        raise _broken(path, number, f"no text for {document!r:.60}")
    return document


def _broken(path: Path, number: int, got: str) -> CorruptFileError:
    return CorruptFileError(
        expected=f'{{"id": "...", "text": "..."}} in line {number} of {path.name!r}',
        got=got,
        do="fix the line: id and text are text, neither is empty, an id has no tab or newline",
    )
