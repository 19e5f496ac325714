"""Requests that are cut where a server takes no larger one."""

from __future__ import annotations

from collections.abc import Callable

from isthmus.stores._client_errors import too_large
from isthmus.stores._connected import Rows

__all__ = ["write_in_parts"]


def write_in_parts(write: Callable[[Rows], None], rows: Rows) -> None:
    """Write rows in one request, or in as many halves as the server's limit of bytes asks for.

    Rows of metadata have any size, so that their number alone does not tell.
    """
    try:
        write(rows)
    except Exception as error:
        if len(rows.ids) == 1 or not too_large(error):
            raise
        middle = len(rows.ids) // 2
        for part in (slice(0, middle), slice(middle, None)):
            some = Rows(rows.ids[part], rows.vectors[part], rows.metadata[part])
            write_in_parts(write, some)
