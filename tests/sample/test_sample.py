"""The bundled sample."""

from importlib import resources

import numpy as np

from isthmus import sample
from isthmus.neighbors import top_k
from isthmus.spaces import Pairs


def test_what_it_holds():
    loaded = sample.load()
    assert set(loaded.documents) == set(loaded.queries) == set(sample.MODELS)
    for model, dim in (("minilm-l6", 384), ("mpnet", 768)):
        documents, queries = loaded.documents[model], loaded.queries[model]
        assert documents.matrix().shape == (1_500, dim)
        assert queries.matrix().shape == (300, dim)
        documents.space.check(queries.space)
        assert (documents.space.kind, queries.space.kind) == ("passage", "query")
        assert documents.space.normalized
        lengths = np.linalg.norm(documents.matrix(), axis=1)
        assert np.allclose(lengths, 1, atol=1e-3)


def test_both_models_hold_the_same_objects():
    loaded = sample.load()
    pairs = Pairs.from_ids(loaded.documents["minilm-l6"], loaded.documents["mpnet"])
    assert len(pairs) == 1_500
    assert loaded.queries["minilm-l6"].ids.tolist() == loaded.queries["mpnet"].ids.tolist()


def test_every_query_is_judged_and_every_relevant_document_is_there():
    loaded = sample.load()
    queries = loaded.queries["mpnet"].ids
    assert loaded.qrels.judged(queries).all()
    assert len(loaded.qrels) == 339
    assert (loaded.documents["mpnet"].find(loaded.qrels.relevant_ids) >= 0).all()


def test_the_vectors_answer_the_queries():
    """A plain search finds a relevant document among the first ten for most claims."""
    loaded = sample.load()
    for model in sample.MODELS:
        queries, documents = loaded.queries[model], loaded.documents[model]
        rows = top_k(queries.matrix(), documents.matrix(), k=10).rows
        gains = loaded.qrels.gains(queries.ids, documents.ids[rows])
        assert (gains.max(axis=1) > 0).mean() > 0.8


def test_it_is_small_and_names_its_licence():
    folder = resources.files("isthmus.sample")
    assert sum(len(path.read_bytes()) for path in folder.iterdir() if path.is_file()) < 8_000_000
    licence = (folder / "LICENSE.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in licence
    assert "ODC-By" in licence
