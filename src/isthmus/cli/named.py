"""Values with names on the command line: NAME=URL, NAME=F."""

from __future__ import annotations

from isthmus.errors import InputError

__all__ = ["as_named"]


def as_named(texts: list[str] | None, *, what: str, command: str) -> dict[str, str]:
    """Read ``NAME=VALUE``, each name once.

    Parameters
    ----------
    texts : list of str, optional
    what : str
        What is expected, for the message.
    command : str
        Whose help to read.

    Raises
    ------
    InputError
    """
    named: dict[str, str] = {}
    for text in texts or []:
        name, separator, value = text.partition("=")
        if not (name and separator and value) or name in named:
            raise InputError(
                expected=f"{what}, each name once",
                got=repr(text[:200]) + (", the name a second time" if name in named else ""),
                do=f"see 'isthmus {command} --help'",
            )
        named[name] = value
    return named
