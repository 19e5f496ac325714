"""Files of vectors: one format per file of this folder, found by the ending of the path."""

from isthmus.spaces.io.records import Part, Records, open_records
from isthmus.spaces.io.registry import FORMATS, format_of, load
from isthmus.spaces.io.writer import VectorWriter, open_writer

__all__ = [
    "FORMATS",
    "Part",
    "Records",
    "VectorWriter",
    "format_of",
    "load",
    "open_records",
    "open_writer",
]
