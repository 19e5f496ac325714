"""Files of vectors: one format per file of this folder, found by the ending of the path."""

from isthmus.spaces.io.registry import FORMATS, format_of, load
from isthmus.spaces.io.writer import VectorWriter, open_writer

__all__ = ["FORMATS", "VectorWriter", "format_of", "load", "open_writer"]
