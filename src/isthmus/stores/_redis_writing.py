"""Rows on their way into Redis, a batch and its notes in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from isthmus.stores._connected import Rows
from isthmus.stores._redis_hashes import fields_of
from isthmus.stores._redis_index import Index

__all__ = ["order_key", "record_key", "remove", "write"]

# Numbers rows in the order in which they first come, one writer after another.
NUMBER = """
for _, id in ipairs(ARGV) do
  if not redis.call('ZSCORE', KEYS[1], id) then
    redis.call('ZADD', KEYS[1], redis.call('INCR', KEYS[2]), id)
  end
end
"""


def record_key(index: Index) -> str:
    """Return the key of the hash with the record of an index, or of one of its fields."""
    name = quote(index.name, safe="")
    return f"isthmus:record:{name}" + ("" if index.own else f":{index.vector.name}")


def order_key(name: str) -> str:
    """Return the key of the sorted set with the ids of an index of ours, by order of insertion."""
    return f"isthmus:order:{name}"


def write(client: Any, index: Index, rows: Rows | None, notes: Mapping[str, str]) -> None:
    """Replace rows and keep notes: all of it or, after a crash, none."""
    with client.pipeline(transaction=True) as pipe:
        if rows is not None:
            _put(pipe, index, rows)
        for key, text in notes.items():
            place = f":note:{key}"
            if text:
                pipe.hset(record_key(index), place, text)
            else:
                pipe.hdel(record_key(index), place)
        pipe.execute()


def _put(pipe: Any, index: Index, rows: Rows) -> None:
    vectors = index.to_bytes(rows.vectors)
    for text, vector, metadata in zip(rows.ids, vectors, rows.metadata, strict=True):
        fields = fields_of(index, metadata)
        if index.own:
            pipe.delete(index.key(text))  # and with it the metadata that it had
        pipe.hset(index.key(text), mapping={index.vector.name: vector, **fields})
    if index.own:
        pipe.eval(NUMBER, 2, order_key(index.name), f"isthmus:last:{index.name}", *rows.ids)


def remove(client: Any, index: Index, ids: list[str]) -> None:
    """Remove rows."""
    with client.pipeline(transaction=True) as pipe:
        pipe.delete(*map(index.key, ids))
        if index.own:
            pipe.zrem(order_key(index.name), *ids)
        pipe.execute()
