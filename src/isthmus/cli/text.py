"""Text that is safe to print, whatever a file held."""

from __future__ import annotations

__all__ = ["one_line", "printable"]


def printable(text: str) -> str:
    r"""Replace what would move the cursor or speak to the terminal.

    Examples
    --------
    >>> printable("red \x1b[31m")
    'red ?[31m'
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def one_line(text: str) -> str:
    r"""Return the text on one line, printable.

    Examples
    --------
    >>> one_line("first\n  second")
    'first second'
    """
    return printable(" ".join(text.split()))
