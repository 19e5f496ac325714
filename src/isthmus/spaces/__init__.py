"""Which vectors: spaces, sets of vectors, pairs of them."""

from isthmus.spaces.space import Space

__all__ = ["Space"]
