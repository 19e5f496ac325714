"""Optional libraries, asked for in one place that prints the line to install them."""

from __future__ import annotations

import importlib
from types import ModuleType

from isthmus.errors import MissingExtraError

__all__ = ["require"]


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional module, or say how to install it.

    Parameters
    ----------
    module : str
        Name to import, for example ``"matplotlib.pyplot"``.
    extra : str
        Extra of Isthmus that brings it, for example ``"plot"``.

    Raises
    ------
    MissingExtraError
        When the module is not installed.

    Examples
    --------
    >>> require("json", extra="plot").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and not f"{module}.".startswith(f"{error.name}."):
            raise  # the library is there, but one of its own imports is not: say that
        raise MissingExtraError(
            expected=f"the library {module.split('.', maxsplit=1)[0]!r}",
            got="no such library in this environment",
            do=f"pip install 'isthmus[{extra}]'",
        ) from error
