"""Importing Isthmus stays light, and the command starts quickly."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

import isthmus

HEAVY = (
    *("numpy", "scipy", "sklearn", "faiss", "torch", "apsw", "sqlite_vec", "pyarrow", "pydantic"),
    *("safetensors", "matplotlib", "rich", "typer", "onnx", "onnxruntime"),
)
CLIENTS = (
    *("qdrant_client", "qdrant_edge", "chromadb", "pymilvus", "milvus_lite", "lancedb", "duckdb"),
    *("psycopg", "redis", "typesense", "weaviate", "elasticsearch"),
    *("opensearchpy", "usearch"),
)
WATCH = """
import json, sys
{code}
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""


def loaded(code: str) -> set[str]:
    """Return the top-level modules that a fresh process has after some code."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH.format(code=code)], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_isthmus_imports_nothing_heavy():
    assert not loaded("import isthmus") & {*HEAVY, *CLIENTS}


def test_the_whole_public_interface_imports_neither_torch_nor_a_client():
    names = ", ".join(isthmus.__all__)
    found = loaded(f"from isthmus import {names}")
    assert not found & {"torch", "matplotlib", *CLIENTS}
    # scikit-learn gives the maps their habits; k-means and the rest are loaded when they are used
    assert "sklearn" in found


def test_no_store_is_loaded_before_its_scheme_is_used():
    found = loaded("import isthmus.stores; isthmus.stores.schemes()")
    assert not found & {"apsw", "sqlite_vec", *CLIENTS}


def test_no_client_is_loaded_before_a_connection_is_made():
    """A store's class tells what it can do, also where its client is not installed."""
    found = loaded("import isthmus.stores as s; [s.store_class(scheme) for scheme in s.schemes()]")
    assert not found & set(CLIENTS)


@pytest.mark.parametrize("arguments", ["", "--help", "--version", "fit --help"])
def test_the_command_answers_without_loading_what_it_does_not_need(arguments):
    code = f"from isthmus.cli.run import run; run({arguments.split()})"
    theirs = {"typer", "rich", "pydantic"}  # the library that reads the options loads these
    assert not loaded(code) & ({*HEAVY, *CLIENTS} - theirs)


def test_the_command_starts_quickly():
    """Under a second, with room for a machine that does other things: the best of five."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "isthmus", "--version"], check=True, timeout=60)
        times.append(time.perf_counter() - start)
    assert min(times) < 1.0


def test_every_public_name_is_there():
    for name in isthmus.__all__:
        assert getattr(isthmus, name).__doc__
    assert set(isthmus.__all__) <= set(dir(isthmus))
    with pytest.raises(AttributeError, match="module 'isthmus' has no attribute 'nothing'"):
        _ = isthmus.nothing
