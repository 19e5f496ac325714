"""Run as ``python tools/cross_domain VERB ...``."""

from __future__ import annotations

import sys
from pathlib import Path


def start() -> int:
    """Make the folder a package, since it was started by its path, and run the command line."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from cross_domain.command import main

    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(start())
