"""The demo: what it writes, that its rivals are what they say, and that nothing is given away."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from isthmus import Bridge, Federation, Pairs, VectorSet, sample
from isthmus.errors import ParameterError
from isthmus.evaluate.retrieval import measure_run
from isthmus.neighbors import top_k
from isthmus.spaces import Qrels
from isthmus.stores import open_store
from isthmus.workflows import demo
from isthmus.workflows.demo import split_sample


@pytest.fixture(scope="module")
def bundled() -> sample.Sample:
    return sample.load()


def test_three_parts_without_a_document_in_common(bundled):
    parts = split_sample(bundled, seed=3)
    ids = [set(part.ids.tolist()) for part in (parts.one, parts.two, parts.pairs_one)]
    assert [len(one) for one in ids] == [500, 500, 500]
    assert len(ids[0] | ids[1] | ids[2]) == 1500
    assert parts.pairs_one.ids.tolist() == parts.pairs_two.ids.tolist()
    assert not ids[2] & set(bundled.qrels.relevant_ids.tolist())
    assert set(bundled.qrels.relevant_ids.tolist()) <= ids[0] | ids[1]
    assert (parts.one.dim, parts.two.dim) == (384, 768)
    assert (parts.pairs_one.dim, parts.pairs_two.dim) == (384, 768)
    assert split_sample(bundled, seed=4).one.ids.tolist() != parts.one.ids.tolist()


def test_the_systems_in_their_order(shown):
    assert [system.name for system in shown.systems] == [
        "null map",
        "AGG, 2 encoders",
        "RRF, 2 encoders",
        "CombMNZ, 2 encoders",
        "one-directional",
        "Isthmus",
        "oracle, all minilm-l6",
        "oracle, all mpnet",
    ]
    assert [system.encoders == "both" for system in shown.systems] == [
        *(False, True, True, True),
        *(False, False, False, False),
    ]
    assert (shown.queries, shown.documents, shown.pairs) == (300, 1000, 500)
    assert all(system.seconds_per_query > 0 for system in shown.systems)
    for system in shown.systems:
        assert len(system.ndcg.per_query) == 300
        assert system.ndcg.low < system.ndcg.mean < system.ndcg.high


def test_the_bridges_earn_their_place(shown):
    by_name = {system.name: system for system in shown.systems}
    ndcg = {name: system.ndcg.mean for name, system in by_name.items()}
    assert shown.to_spoke.status == shown.to_hub.status == "bridge"
    assert ndcg["null map"] + 0.2 < ndcg["Isthmus"] < ndcg["oracle, all minilm-l6"]
    assert ndcg["Isthmus"] > 0.95 * ndcg["AGG, 2 encoders"]
    assert by_name["null map"].ndcg.high < by_name["Isthmus"].ndcg.low


def test_the_oracle_is_a_plain_search_of_all_documents(shown, bundled):
    parts = split_sample(bundled)
    ids = np.concatenate([parts.one.ids, parts.two.ids])
    for model in sample.MODELS:
        documents = bundled.documents[model]
        documents = documents.select(documents.rows_of(ids))
        queries = bundled.queries[model]
        rows = top_k(queries.matrix(), documents.matrix(), k=10).rows
        by_hand = measure_run(
            bundled.qrels.gains(queries.ids, documents.ids[rows]),
            bundled.qrels.ideal(queries.ids, 10),
            bundled.qrels.n_relevant(queries.ids),
        )
        told = next(one for one in shown.systems if one.name == f"oracle, all {model}")
        assert told.ndcg.mean == pytest.approx(by_hand["nDCG@10"].mean, abs=1e-9)
        assert told.recall.mean == pytest.approx(by_hand["Recall@10"].mean, abs=1e-9)


def test_isthmus_is_what_the_written_federation_answers(shown):
    queries = VectorSet.load(shown.folder / "queries.minilm-l6.npz")
    qrels = Qrels.load(shown.folder / "qrels.tsv")
    with Federation.load(shown.folder / "federation.toml") as federation:
        ids = federation.search(queries, k=10).ids
    values = measure_run(
        qrels.gains(queries.ids, ids), qrels.ideal(queries.ids, 10), qrels.n_relevant(queries.ids)
    )
    told = next(one for one in shown.systems if one.name == "Isthmus")
    assert told.ndcg.mean == pytest.approx(values["nDCG@10"].mean, abs=1e-9)


def test_the_files_are_there_for_the_next_commands(shown, bundled):
    for model in sample.MODELS:
        written = VectorSet.load(shown.folder / f"documents.{model}.npz")
        assert written.ids.tolist() == bundled.documents[model].ids.tolist()
        assert np.array_equal(written.matrix(), bundled.documents[model].matrix())
    documents = [VectorSet.load(shown.folder / f"documents.{m}.npz") for m in sample.MODELS]
    pairs = Pairs.from_file(shown.folder / "pairs.csv", *documents)
    assert pairs.source_ids.tolist() == split_sample(bundled).pairs_one.ids.tolist()
    assert len(Qrels.load(shown.folder / "qrels.tsv")) == len(bundled.qrels)
    for name, dim in (("one", 384), ("two", 768)):
        with open_store(f"sqlite:///{shown.folder}/{name}.db?collection=docs") as store:
            assert (store.count(), store.space.dim) == (500, dim)
    for name, dim in (("one-two", 384), ("two-one", 768)):
        bridge = Bridge.load(shown.folder / "bridges" / name)
        assert (bridge.source.dim, bridge.provenance.n_pairs) == (dim, 500)


def test_what_it_tells_is_plain_json(shown):
    import json

    told = json.loads(json.dumps(shown.to_dict(), allow_nan=False))
    assert told["bridges"]["one-two"]["status"] == "bridge"
    assert set(told["systems"][0]) == {
        *("name", "encoders", "nDCG@10", "Recall@10", "milliseconds_per_query"),
    }


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path):
    (tmp_path / "photo.jpg").write_text("me")
    with pytest.raises(ParameterError, match="which holds something"):
        demo(tmp_path)
    with pytest.raises(ParameterError, match="which is a file"):
        demo(tmp_path / "photo.jpg")
    assert (tmp_path / "photo.jpg").read_text() == "me"


def test_a_failure_leaves_no_half_a_demo(tmp_path: Path, monkeypatch):
    module = sys.modules["isthmus.workflows.demo"]  # the name itself is the function

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_fill_store", fail)
    monkeypatch.setattr(module, "_fit_both_ways", lambda *_, **__: (None, None))
    with pytest.raises(OSError, match="No space left on device"):
        demo(tmp_path / "demo")
    assert list(tmp_path.iterdir()) == []
