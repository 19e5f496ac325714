"""Builds a benchmark of queries that need several corpora at once; see docs/cross_domain.md."""
