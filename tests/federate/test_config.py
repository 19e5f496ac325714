from __future__ import annotations

import json

import numpy as np
import pytest

from isthmus import bridge as bridge_room
from isthmus.errors import (
    ArtifactError,
    ConfigError,
    CorruptStoreError,
    FileError,
    InputError,
    MissingCollectionError,
    MissingFileError,
    NotAStoreError,
    UnknownNameError,
)
from isthmus.federate import Federation, config
from isthmus.federate.config import read
from isthmus.federate.fusion import Rrf, Score
from isthmus.stores import registry

TWO = """
hub = "one"
[[stores]]
name = "one"
url = "double:///one.db?collection=docs"
[[stores]]
name = "two"
url = "double:///dir/two.db?collection=docs"
bridge_to = "bridges/there"
bridge_from = "bridges/back"
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="federation.toml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def world(tmp_path, stores, doubles, monkeypatch):
    """Doubles behind URLs and folders, relative to ``tmp_path``; says what was opened."""
    to_store, to_hub = doubles.bridges(doubles.HUB, doubles.SPOKE)
    urls = {
        f"double:///{tmp_path}/one.db?collection=docs": stores[0],
        f"double:///{tmp_path}/dir/two.db?collection=docs": stores[1],
        f"double:///{tmp_path}/dir/three.db?collection=docs": stores[1],
    }
    folders = {
        tmp_path / "bridges" / "there": to_store,
        tmp_path / "bridges" / "back": to_hub,
        tmp_path / "bridges" / "copy": doubles.bridges(doubles.HUB, doubles.SPOKE)[0],
    }
    opened = []

    def open_store(url):
        if url not in urls:
            raise MissingCollectionError(expected="a collection", got=url, do="create it")
        opened.append(url)
        return urls[url]

    class Bridge:
        @staticmethod
        def load(folder):
            opened.append(str(folder.relative_to(tmp_path)))
            return folders[folder]

    monkeypatch.setattr(registry, "open_store", open_store)
    monkeypatch.setattr(bridge_room, "Bridge", Bridge, raising=False)
    return opened


@pytest.mark.usefixtures("world")
def test_relative_paths_are_relative_to_the_file(write, queries, stores, monkeypatch):
    monkeypatch.chdir("/")
    federation = Federation.load(write(TWO))
    assert [source.name for source in federation.sources] == ["one", "two"]
    assert [source.store for source in federation.sources] == list(stores[:2])
    assert len(federation.search(queries)) == 9
    assert federation.method == Score()


@pytest.mark.usefixtures("world")
def test_options_reach_the_federation(write):
    text = 'fusion = "score"\nweight = 0.4\ndepth = 25\ndedup = "id"\nremember = 7\n' + TWO
    federation = Federation.load(str(write(text)))
    assert federation.method == Score(weight=0.4)
    assert (federation.depth, federation.dedup, federation.remember) == (25, "id", 7)


def test_a_bridge_folder_is_loaded_once_and_equal_bridges_are_one(world, write):
    text = (
        TWO
        + """
[[stores]]
name = "three"
url = "double:///dir/three.db?collection=docs"
bridge_to = "bridges/copy"
bridge_from = "bridges/../bridges/back"
"""
    )
    federation = Federation.load(write(text))
    two, three = federation.sources[1:]
    assert world.count("bridges/back") == 1
    assert two.to_hub is three.to_hub
    assert two.to_store is three.to_store


@pytest.mark.usefixtures("world")
def test_the_hub_may_be_a_space_without_a_store(write, doubles, tmp_path):
    table = TWO.replace('hub = "one"', "")
    fields = "".join(
        f"{key} = {json.dumps(value)}\n" for key, value in doubles.HUB.to_dict().items()
    )
    federation = Federation.load(write(table + "\n[hub_space]\n" + fields))
    assert federation.hub == doubles.HUB
    (tmp_path / "hub.json").write_text(json.dumps(doubles.HUB.to_dict()))
    by_path = Federation.load(write('hub_space = "hub.json"\n' + table))
    assert by_path.hub == doubles.HUB
    with pytest.raises(MissingFileError, match=r"the hub's space; got no file at .*none.json"):
        Federation.load(write('hub_space = "none.json"\n' + table))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hub = ", r"expected TOML in federation.toml; got Invalid value \(at"),
        ('hub = "one"', r"stores: Field required"),
        ('hub = "one"\nstores = []', r"stores: List should have at least 1 item"),
        (TWO.replace('"one"', '"on"', 1), r"hub 'on' is not among the stores: one, two"),
        (TWO.replace('hub = "one"', ""), r"needs either hub \(the name of a store\) or hub_space"),
        ('hub_space = "x"\n' + TWO, r"needs either hub"),
        (TWO.replace('"two"', '"one"'), r"name 'one' stands in more than one store"),
        (TWO.replace("dir/two.db", "one.db"), r"url 'double:///one.db.*more than one store"),
        (TWO.replace("url =", "uri =", 1), r"stores.1.uri: a field that is not known"),
        (TWO.replace("url =", "uri =", 1), r"stores.1.url: Field required"),
        ("k = 10\n" + TWO, r"k: a field that is not known"),
        ('weight = "much"\n' + TWO, r"weight: Input should be a valid number"),
        ("weight = 1.5\n" + TWO, r"weight: Input should be less than or equal to 1"),
        ("x = " + "[" * 100_000, r"TOML in federation.toml; got values inside values, too deep"),
        (f"depth = {'9' * 5_000}\n" + TWO, r"TOML in federation.toml; got Exceeds the limit"),
        (f"remember = {10**18}\n" + TWO, r"remember: Input should be less than or equal to"),
        ("weight = nan\n" + TWO, r"weight: Input should be"),
        ("depth = 0\n" + TWO, r"depth: Input should be greater than or equal to 1"),
        (TWO.replace('"two"', '""'), r"stores.2.name: String should have at least 1 character"),
        (
            TWO.replace('url = "double:///one', 'bridge_to = "b"\nurl = "double:///one'),
            r"the hub 'one' needs no bridges",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(write, text, message):
    with pytest.raises(ConfigError, match=message):
        config.read(write(text))


def test_bytes_that_are_not_text(tmp_path):
    path = tmp_path / "federation.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(
        ConfigError, match=r"federation's file; got bytes that are not UTF-8 in federation.toml"
    ):
        config.read(path)


def test_no_file(tmp_path):
    (tmp_path / "file").touch()
    for path in (
        tmp_path / "none.toml",
        tmp_path,
        tmp_path / "file" / "federation.toml",
        tmp_path / "a\0b",
        tmp_path / ("n" * 5_000),
    ):
        with pytest.raises(MissingFileError, match="a federation's file; got no file at"):
            Federation.load(path)


@pytest.mark.usefixtures("world")
def test_unknown_methods_and_bad_hub_tables(write):
    with pytest.raises(UnknownNameError, match=r"a fusion method among .*; got 'borda'"):
        Federation.load(write('fusion = "borda"\n' + TWO))
    with pytest.raises(UnknownNameError, match=r"dedup.* got 'url'"):
        Federation.load(write('dedup = "url"\n' + TWO))
    with pytest.raises(InputError, match=r"a space with model, dim"):
        Federation.load(write(TWO.replace('hub = "one"', "") + "[hub_space]\nmodel = 'm'\n"))


@pytest.mark.usefixtures("world")
def test_a_missing_direction_is_refused(write):
    with pytest.raises(ConfigError, match=r"a bridge store to hub for source 'two'"):
        Federation.load(write(TWO.replace('bridge_from = "bridges/back"', "")))


@pytest.mark.usefixtures("world")
def test_stores_are_closed_when_a_later_one_cannot_be_opened(write, stores):
    with pytest.raises(MissingCollectionError):
        Federation.load(write(TWO.replace("dir/two.db", "dir/none.db")), require_all=True)
    assert stores[0].closed == 1


@pytest.mark.usefixtures("world")
def test_scores_do_not_depend_on_the_file(write, queries, stores, doubles):
    from isthmus.federate import Source

    bridges = doubles.bridges(doubles.HUB, doubles.SPOKE)
    by_hand = Federation(
        doubles.HUB, [Source("one", stores[0]), Source("two", stores[1], *bridges)]
    )
    by_file = Federation.load(write(TWO))
    np.testing.assert_array_equal(by_hand.search(queries).scores, by_file.search(queries).scores)


@pytest.mark.parametrize(
    "url",
    [
        "double:///./one.db?collection=docs",
        "double:///dir/../one.db?collection=docs",
        "double:///one%2Edb?collection=docs&index=hnsw",
        "double:///link.db?collection=docs",
    ],
)
def test_one_collection_under_two_spellings_is_refused(write, tmp_path, url):
    (tmp_path / "link.db").symlink_to(tmp_path / "one.db")
    path = write(TWO.replace("double:///dir/two.db?collection=docs", url))
    with pytest.raises(ConfigError, match=r"more than one store: 'one' and 'two' are the same"):
        config.read(path)
    config.read(write(TWO.replace("dir/two.db?collection=docs", "one.db?collection=other")))


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("name", [".", "binary", "nul\\u0000", "n" * 5_000, "binary/x"])
def test_a_hub_space_that_cannot_be_read(write, tmp_path, name):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\0")
    text = f'hub_space = "{name}"\n' + TWO.replace('hub = "one"', "")
    with pytest.raises((ConfigError, MissingFileError), match="the hub's space"):
        Federation.load(write(text))


@pytest.mark.parametrize("name", [".", "binary", "nul\\u0000", "n" * 5_000, "binary/x"])
def test_a_bridge_that_cannot_be_read(write, tmp_path, doubles, name):
    from isthmus.stores import open_store

    (tmp_path / "binary").write_bytes(b"\xff\xfe\0")
    for store, space in (("one.db", doubles.HUB), ("two.db", doubles.SPOKE)):
        open_store(f"sqlite:///{tmp_path}/{store}?collection=docs", space=space).close()
    text = TWO.replace("double", "sqlite").replace("dir/", "").replace("bridges/there", name)
    with pytest.raises((FileError, ArtifactError), match="bridge"):
        Federation.load(write(text))


@pytest.mark.parametrize("url", ["sqlite://[x?collection=a", "sqlite:///a.db?collection=%ff"])
def test_a_url_that_is_none(write, url):
    with pytest.raises(InputError, match="a store URL such as"):
        config.read(write(TWO.replace("double:///one.db?collection=docs", url)))


# --- stores that fail ----------------------------------------------------------------------------


@pytest.mark.usefixtures("world")
def test_patience_is_read_from_the_file(write):
    usual = Federation.load(write(TWO))
    assert (usual.timeout, usual.retries, usual.require_all) == (30.0, 2, False)
    assert (usual.budget, usual.calibration) == ("uniform", None)
    lines = 'timeout = 2.5\nretries = 0\nrequire_all = true\ndedup = "vector"\n'
    text = lines + "dedup_similarity = 0.8\n" + TWO + "timeout = 7\n"  # of the last store
    asked = Federation.load(write(text))
    assert (asked.timeout, asked.retries, asked.require_all) == (2.5, 0, True)
    assert (asked.dedup, asked.dedup_similarity) == ("vector", 0.8)
    assert [source.timeout for source in asked.sources] == [None, 7.0]
    assert Federation.load(write('timeout = "none"\n' + TWO)).timeout is None
    changed = Federation.load(write(text), require_all=False, seed=3)
    assert (changed.require_all, changed.seed, changed.retries) == (False, 3, 0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("timeout = 0", "timeout"),
        ("timeout = nan", "timeout"),
        ('timeout = "never"', "timeout"),
        ("retries = -1", "retries"),
        ("require_all = 1", "require_all"),
        ("dedup_similarity = 2", "dedup_similarity"),
        ('calibration = ""', "calibration"),
    ],
)
def test_patience_is_checked(write, line, message):
    with pytest.raises(ConfigError, match=f"got {message}"):
        read(write(line + "\n" + TWO))


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("field", ["budget", "calibration"])
@pytest.mark.parametrize("name", ["none.safetensors", "a\\u0000b", "."])
def test_a_budget_and_a_calibration_are_files(write, field, name):
    path = write(f'{field} = "{name}"\n' + TWO)
    with pytest.raises(FileError) as caught:
        Federation.load(path)
    assert field in str(caught.value) or caught.value.__notes__[0].startswith(f"{field}: ")
    other = {"budget": "uniform", "calibration": None}[field]
    Federation.load(path, **{field: other}).close()


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("dead", ["one", "two"])
def test_a_store_that_is_out_of_reach_takes_part_as_one_that_fails(
    write, queries, dead, monkeypatch
):
    whole = Federation.load(write(TWO)).search(queries)
    reach, down = registry.open_store, [True]

    def open_store(url):
        if dead in url and down:
            raise ConnectionError("no route to host")
        return reach(url)

    monkeypatch.setattr(registry, "open_store", open_store)
    federation = Federation.load(write(TWO), retries=0)
    ranking = federation.search(queries)
    (outage,) = ranking.outages
    assert (outage.store, outage.reason) == (dead, "ConnectionError: no route to host")
    assert dead not in ranking.stores
    with pytest.raises(ConnectionError):
        Federation.load(write(TWO), require_all=True)
    down.clear()
    again = federation.search(queries)
    assert again.complete
    np.testing.assert_array_equal(again.ids, whole.ids)
    federation.close()


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("kind", [MissingFileError, CorruptStoreError, NotAStoreError])
def test_a_store_that_is_missing_or_damaged_is_left_out_and_named(
    write, queries, monkeypatch, kind
):
    def open_store(url):
        if "two" in url:
            raise kind(expected="a store", got="noise", do="restore it")
        return reach(url)

    reach = registry.open_store
    monkeypatch.setattr(registry, "open_store", open_store)
    with Federation.load(write(TWO), retries=0) as federation:
        ranking = federation.search(queries)
    (outage,) = ranking.outages
    assert (outage.store, outage.kind) == ("two", "error")
    assert set(ranking.stores.ravel()) == {"one"}
    with pytest.raises(kind) as caught:
        Federation.load(write(TWO), require_all=True)
    assert caught.value.__notes__[0].startswith("in store 'two', double:///")


@pytest.mark.usefixtures("world")
def test_a_store_that_holds_who_knows_what_is_raised(write, monkeypatch):
    def open_store(url):
        if "two" in url:
            raise error
        return reach(url)

    reach = registry.open_store
    monkeypatch.setattr(registry, "open_store", open_store)
    error = ConnectionError("no route to host")
    without = "\n".join(line for line in TWO.splitlines() if "bridge" not in line)
    with pytest.raises(ConnectionError):
        Federation.load(write('fusion = "rrf"\n' + without))
    error = KeyError("a bug")
    with pytest.raises(KeyError):
        Federation.load(write(TWO))


@pytest.mark.usefixtures("world")
def test_changes_replace_what_the_file_says_of_ranking(write):
    said = "weight = 0.3\ncommon = 0\n"
    with Federation.load(write(said + TWO), fusion="rrf") as federation:
        assert federation.method == Rrf()
    with Federation.load(write(said + TWO), weight=0.6) as federation:
        assert federation.method == Score(weight=0.6, common=0)
    with Federation.load(write("weight = 0.3\n" + TWO), weight=0.6) as federation:
        assert federation.method == Score(weight=0.6)
    with Federation.load(write(said + TWO), fusion=Score(weight=0.1)) as federation:
        assert federation.method == Score(weight=0.1)


@pytest.mark.usefixtures("world")
def test_the_hub_is_out_of_reach_and_no_bridge_names_its_space(write, monkeypatch):
    def open_store(url):
        raise ConnectionError(url)

    monkeypatch.setattr(registry, "open_store", open_store)
    lonely = TWO.split("[[stores]]")
    with pytest.raises(ConnectionError):
        Federation.load(write("[[stores]]".join(lonely[:2])))
