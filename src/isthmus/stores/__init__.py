"""Databases that keep collections of vectors, one file per database."""
