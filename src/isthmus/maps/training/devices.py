"""Where torch computes."""

from __future__ import annotations

from isthmus._optional import require
from isthmus.errors import ParameterError

__all__ = ["find_device"]


def find_device(name: str) -> object:
    """Return torch's device of that name.

    Raises
    ------
    MissingExtraError
        Without torch.
    ParameterError
        A device that torch does not have here.
    """
    torch = require("torch", extra="torch")
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
