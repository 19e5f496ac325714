"""Any sequence of operations leaves the SQLite store as it leaves the reference."""

from __future__ import annotations

import tempfile

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from isthmus.spaces import Space, VectorSet
from isthmus.stores import MemoryStore, open_store

IDS = st.lists(st.sampled_from([f"id-{n}" for n in range(12)]), min_size=1, max_size=6, unique=True)
QUERIES = np.random.default_rng(1).integers(1, 4, (20, 3)).astype(np.float32)


class Stores(RuleBasedStateMachine):
    """Two handles on one file, and the reference."""

    @initialize(metric=st.sampled_from(["cosine", "dot", "l2"]))
    def start(self, metric):
        self.folder = tempfile.TemporaryDirectory()
        self.space = Space(model="m", dim=3, metric=metric)
        self.url = f"sqlite:///{self.folder.name}/one.db?collection=docs"
        self.reference = MemoryStore(self.space)
        self.handles = [open_store(self.url, space=self.space) for _ in range(2)]

    @rule(ids=IDS, seed=st.integers(0, 99), tagged=st.booleans(), writer=st.integers(0, 1))
    def upsert(self, ids, seed, tagged, writer):
        values = np.random.default_rng(seed).integers(1, 4, (len(ids), 3)).astype(np.float32)
        vectors = VectorSet(ids, values, self.space)
        metadata = [{"tag": seed % 2}] * len(ids) if tagged else None
        notes = {"seed": str(seed) if seed % 3 else ""}
        for store in (self.handles[writer], self.reference):
            store.upsert(vectors, metadata=metadata, notes=notes)

    @rule(ids=IDS, writer=st.integers(0, 1))
    def delete(self, ids, writer):
        assert self.handles[writer].delete(ids) == self.reference.delete(ids)

    @rule(which=st.integers(0, 1))
    def reopen(self, which):
        self.handles[which].close()
        self.handles[which] = open_store(self.url)

    @rule(
        which=st.integers(0, 1),
        n=st.sampled_from([1, 2, 20]),
        k=st.integers(1, 15),
        where=st.sampled_from([None, {"tag": 0}, {"tag": 1.0}]),
    )
    def search(self, which, n, k, where):
        found = self.handles[which].search(QUERIES[:n], k=k, where=where)
        expected = self.reference.search(QUERIES[:n], k=k, where=where)
        assert found.ids.tolist() == expected.ids.tolist()
        assert np.array_equal(found.scores, expected.scores, equal_nan=True)

    @rule(which=st.integers(0, 1), seed=st.integers(0, 99))
    def gather(self, which, seed):
        present = [text for batch in self.reference.scan() for text in batch.vectors.ids.tolist()]
        asked = np.random.default_rng(seed).choice(np.array(["", *present]), (4, 2))
        found, expected = self.handles[which].gather(asked), self.reference.gather(asked)
        for row, other, text in zip(found.rows.flat, expected.rows.flat, asked.flat, strict=True):
            assert (row < 0) == (other < 0) == (text == "")
            if text:
                assert found.vectors.ids[row] == text
                assert (found.vectors.vectors[row] == expected.vectors.vectors[other]).all()

    @invariant()
    def same(self):
        if not hasattr(self, "handles"):
            return
        expected = [
            (batch.vectors.ids.tolist(), batch.vectors.vectors.tolist(), batch.metadata)
            for batch in self.reference.scan(batch_size=5)
        ]
        for store in self.handles:
            assert store.count() == self.reference.count()
            assert store.notes() == self.reference.notes()
            assert [
                (batch.vectors.ids.tolist(), batch.vectors.vectors.tolist(), batch.metadata)
                for batch in store.scan(batch_size=5)
            ] == expected

    def teardown(self):
        for store in getattr(self, "handles", ()):
            store.close()
        if hasattr(self, "folder"):
            self.folder.cleanup()


Stores.TestCase.settings = settings(
    derandomize=True, deadline=None, max_examples=25, stateful_step_count=25
)
TestStores = Stores.TestCase
