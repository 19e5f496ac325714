"""What to take of a file that holds more than one answer: ``theirs.parquet?vector=emb&id=key``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import parse_qsl

from isthmus.errors import ParameterError, UnknownNameError

__all__ = ["Asked", "split_asked"]


@dataclass(frozen=True)
class Asked:
    """What the caller wants of a file; the empty text leaves it to the file.

    Parameters
    ----------
    id : str
        Name of the column, array or key of the ids.
    vector : str
        The same for the vectors.
    index, namespace : str
        Part of a file that holds several collections.
    lossy : str
        ``yes``: take vectors that were stored as codes and are not what the model gave.
    memory_map : bool
        Leave the vectors on disk.
    """

    id: str = ""
    vector: str = ""
    index: str = ""
    namespace: str = ""
    lossy: str = ""
    memory_map: bool = False


NAMES = tuple(each.name for each in fields(Asked) if each.name != "memory_map")


def split_asked(path: Path | str) -> tuple[Path, Asked]:
    """Part a path from what is asked of it; a file whose own name has a ``?`` is that file.

    Raises
    ------
    ParameterError, UnknownNameError

    Examples
    --------
    >>> split_asked("theirs.parquet?vector=emb")[1].vector
    'emb'
    """
    if isinstance(path, str) and "://" in path:
        raise ParameterError(
            expected="the path of a file", got=f"{path!r}, a store URL", do="name a file here"
        )
    whole = Path(path)
    before, mark, query = str(path).partition("?")
    if not mark or whole.exists():
        return whole, Asked()
    given = dict(parse_qsl(query, keep_blank_values=True))
    for name in given:
        if name not in NAMES:
            raise UnknownNameError.of("choice after the path", name, NAMES)
    asked = Asked(**given)  # type: ignore[arg-type]  # texts: the only other field is no choice
    if asked.lossy not in {"", "yes"} or asked == Asked():
        raise ParameterError(
            expected="choices after the path, such as ?vector=emb&id=key or ?lossy=yes",
            got=repr(query),
            do="leave the ? away, or name a column",
        )
    return Path(before), asked
