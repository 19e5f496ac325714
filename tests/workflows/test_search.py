from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import MissingFileError, ParameterError
from isthmus.federate import Federation, Source
from isthmus.spaces import Space, VectorSet
from isthmus.stores.registry import open_store
from isthmus.workflows.search import search

SPACE = Space(model="m", dim=2)


@pytest.fixture
def documents():
    return VectorSet(["a", "b", "c"], [[1, 0], [0, 1], [1, 1]], SPACE)


@pytest.fixture
def query():
    return VectorSet(["q"], [[1, 0]], SPACE)


def test_a_federation_is_searched(documents, query):
    with open_store("memory://m?collection=docs", space=SPACE) as store:
        store.upsert(documents)
        ranking = search(Federation(SPACE, [Source("only", store)]), query, k=2)
    assert ranking.ids.tolist() == [["a", "c"]]
    np.testing.assert_allclose(ranking.scores, [[1, 0.5**0.5]], rtol=1e-6)


def test_a_file_is_opened_searched_and_closed(documents, query, tmp_path):
    folder = tmp_path / "a b?#"
    folder.mkdir()
    with open_store(f"sqlite:///{folder_url(folder)}/d.db?collection=docs", space=SPACE) as store:
        store.upsert(documents)
    path = folder / "federation.toml"
    path.write_text(
        'hub = "one"\n[[stores]]\nname = "one"\nurl = "sqlite:///d.db?collection=docs"\n'
    )
    for given in (path, str(path)):
        assert search(given, query, k=3).ids.tolist() == [["a", "c", "b"]]
    with pytest.raises(ParameterError, match="k as a whole number"):
        search(path, query, k=0)
    with pytest.raises(MissingFileError, match="a federation's file"):
        search(tmp_path / "none.toml", query)


def folder_url(folder):
    from urllib.parse import quote

    return quote(str(folder))
