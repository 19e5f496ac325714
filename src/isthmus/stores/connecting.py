"""What a connector of a database is made of, for those outside this project, too.

A subclass of `ConnectedStore` knows one database: how to connect, and a handful of small requests.
Checks, batches, tries, records, secrets and canonical scores come from here. See docs/stores.md, "A
store of your own".

Examples
--------
>>> from isthmus.stores.duckdb import DuckdbStore
>>> issubclass(DuckdbStore, ConnectedStore)
True
"""

from isthmus.stores._connected import ConnectedStore, Hits, Page, Rows, stacked
from isthmus.stores._url import StoreUrl

__all__ = ["ConnectedStore", "Hits", "Page", "Rows", "StoreUrl", "stacked"]
