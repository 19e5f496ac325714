"""``isthmus integrate``."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus import Bridge, Pairs, VectorSet
from isthmus.stores import open_store


@pytest.fixture
def place(files, tmp_path):
    one, two = VectorSet.load(files.one), VectorSet.load(files.two)
    pairs = Pairs.from_ids(one, two)
    Bridge.fit(pairs.reverse(), method="procrustes").save(tmp_path / "back")
    Bridge.fit(pairs, method="procrustes").save(tmp_path / "there")
    for name, vectors in (("one", one), ("two", two)):
        url = f"sqlite:///{tmp_path}/{name}.db?collection=docs"
        with open_store(url, space=vectors.space) as store:
            store.upsert(vectors.select(np.arange(20)))
    (tmp_path / "f.toml").write_text(
        'hub = "one"\n'
        '[[stores]]\nname = "one"\nurl = "sqlite:///one.db?collection=docs"\n'
        '[[stores]]\nname = "two"\nurl = "sqlite:///two.db?collection=docs"\n'
        'bridge_to = "there"\nbridge_from = "back"\n'
    )
    return tmp_path


def into(place):
    return f"sqlite:///{place}/new.db?collection=all"


def test_ec_by_default(cli, place):
    ran = cli("integrate", place / "f.toml", "--into", into(place))
    assert (ran.code, ran.err) == (0, "")
    assert "40 rows of 2 stores" in ran.out
    with open_store(into(place)) as store:
        assert store.count() == 40


def test_mig_from_a_file(cli, place, files):
    asked = ("integrate", place / "f.toml", "--into", into(place), "--method", "mig", "--json")
    told = cli(*asked, "--native", f"two={files.one}").result
    assert (told["rows"], told["mapped"]) == ({"one": 20, "two": 20}, 0)
    again = cli("integrate", place / "f.toml", "--into", into(place), "--json")
    assert again.error["exit_code"] == 22


def test_what_is_refused(cli, place):
    bad = cli("integrate", place / "f.toml", "--into", into(place), "--native", "two", "--json")
    assert bad.error["exit_code"] == 11
    gone = cli("integrate", place / "f.toml", "--into", "memory://x?collection=y", "--json")
    assert gone.error["exit_code"] == 27
    name = cli("integrate", place / "f.toml", "--into", into(place), "--method", "da", "--json")
    assert name.error["exit_code"] == 23
    twice = ["--native", "two=a.npz", "--native", "two=b.npz"]
    bad = cli("integrate", place / "f.toml", "--into", into(place), *twice, "--json")
    assert bad.error["got"] == "'two=b.npz', the name a second time"
