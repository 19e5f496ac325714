"""A file of JSON lines that only grows: what stands in it survives a killed process."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from isthmus._files import atomic_path
from isthmus.errors import ConfigError, CorruptFileError, FileError, MissingFileError

__all__ = ["Appender", "check_plan", "read_json", "read_lines", "write_json"]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the whole lines; a last one without its end was being written and does not count.

    Raises
    ------
    CorruptFileError
        With the number of a line that is no JSON object.
    """
    if not path.exists():
        return []
    entries = []
    for number, line in enumerate(_whole(path.read_bytes()).splitlines(), start=1):
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            raise CorruptFileError(
                expected=f"a JSON object in line {number} of {path.name!r}",
                got="something else",
                do="restore the line, or remove the file to begin again",
            )
        entries.append(entry)
    return entries


def _whole(content: bytes) -> bytes:
    """Cut off what follows the last end of a line."""
    return content[: content.rfind(b"\n") + 1]


class Appender:
    """Writes whole lines to the end of a file, each on the disk before the next one is asked for.

    Parameters
    ----------
    path : Path
        A torn last line is cut off. Another process that appends to it is refused.
    """

    def __init__(self, path: Path) -> None:
        self._stream = path.open("ab", buffering=0)
        try:
            _lock(self._stream.fileno(), path)
            self._stream.truncate(len(_whole(path.read_bytes())))
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()

    def append(self, entry: dict[str, Any]) -> None:
        """Write one line."""
        line = json.dumps(entry, ensure_ascii=False) + "\n"
        rest = memoryview(line.encode("utf-8", errors="replace"))
        while rest:
            rest = rest[self._stream.write(rest) :]
        os.fsync(self._stream.fileno())


def _lock(handle: int, path: Path) -> None:
    """Hold the file alone while it is open, where the system can."""
    with contextlib.suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileError(
                expected=f"to be alone in writing {path.name!r}",
                got="another process that writes it",
                do="wait for it, or end it",
            ) from None


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a file whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", "utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises
    ------
    MissingFileError, CorruptFileError
    """
    if not path.is_file():
        raise MissingFileError(
            expected=f"a file at {str(path)!r}",
            got="nothing there",
            do="name the folder that generate wrote",
        )
    try:
        value = json.loads(path.read_bytes())
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CorruptFileError(
            expected=f"a JSON object in {path.name!r}", got="something else", do="restore the file"
        )
    return value


def check_plan(path: Path, plan: dict[str, Any]) -> None:
    """Write a plan, or check that the one that is there says the same.

    Raises
    ------
    ConfigError
        Names the first setting that differs.
    """
    if not path.exists():
        write_json(path, plan)
        return
    before = read_json(path)
    for name in sorted(before.keys() | plan.keys()):
        if before.get(name) != plan.get(name):
            was, now = _say(name, before.get(name)), _say(name, plan.get(name))
            raise ConfigError(
                expected=f"{was} as in {path.name!r}",
                got=f"{now} with other content" if was == now else now,
                do="run with the same settings, or write to another folder",
            )


def _say(name: str, value: Any) -> str:
    """Put a setting into words; the value alone would not say what it is."""
    if value is None:
        return f"no {name}"
    if isinstance(value, dict):
        return f"{name} {', '.join(map(str, value))}"
    return f"{name} {value!r:.60}"
