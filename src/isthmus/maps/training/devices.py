"""Where torch computes."""

from __future__ import annotations

from types import ModuleType

from isthmus._optional import require
from isthmus.errors import ParameterError

__all__ = ["check_device", "find_device"]


def find_device(name: str) -> object:
    """Return torch's device of that name.

    Raises
    ------
    MissingExtraError
        Without torch.
    ParameterError
        A device that torch does not have here.
    """
    return check_device(require("torch", extra="torch"), name)


def check_device(torch: ModuleType, name: str) -> object:
    """Return torch's device of that name, or say that there is none.

    Raises
    ------
    ParameterError
    """
    try:
        device: object = torch.device(name)
        torch.zeros(1, device=device).item()  # some devices hold no numbers
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ParameterError(
            expected="a device that torch has here, as 'cpu' or 'cuda'",
            got=repr(name),
            do="use device='cpu'",
        ) from error
    return device
