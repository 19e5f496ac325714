"""The command ``isthmus``: thin, every command calls one workflow."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line with the arguments of this process, and exit with its code."""
    try:
        from isthmus.cli.run import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while the libraries were still loading
        if sys.stderr is not None:
            sys.stderr.write("isthmus: interrupted\n")
        code = 130
    raise SystemExit(code)
