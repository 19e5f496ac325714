"""Files of links: what is written is read back as pairs."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from isthmus import Pairs, Space, VectorSet
from isthmus.errors import CountMismatchError, UnknownFormatError, WriteFailedError
from isthmus.spaces.ids import as_ids
from isthmus.spaces.links_file import check_links_path, write_links

ODD = ["a,b", "a\rb", 'say "x"', "two\nlines", "ä \u2028", " spaced ", "=1+1", "-1", "\ttab", "'"]


def a_set(ids, model):
    return VectorSet(
        ids, np.random.default_rng(0).normal(size=(len(ids), 3)), Space(model=model, dim=3)
    )


@pytest.mark.parametrize("name", ["links.csv", "links.parquet", "LINKS.CSV"])
def test_what_is_written_is_read_as_pairs(tmp_path: Path, name):
    source, target = a_set(ODD, "a"), a_set([f"{one}'" for one in ODD], "b")
    posterior = np.linspace(1, 1 / 3, len(ODD))
    write_links(tmp_path / name, source.ids, target.ids, posterior, np.arange(len(ODD)))
    pairs = Pairs.from_file(tmp_path / name, source, target)
    assert pairs.source_ids.tolist() == ODD
    assert pairs.target_ids.tolist() == target.ids.tolist()
    assert pairs.weight is not None
    np.testing.assert_array_equal(pairs.weight, posterior.astype(np.float32))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_columns_of_csv(tmp_path: Path):
    path = tmp_path / "links.csv"
    write_links(path, as_ids(["a"]), as_ids(["b"]), np.array([0.1234567891]), np.array([7]))
    with path.open(newline="") as stream:
        assert list(csv.reader(stream)) == [
            ["source", "target", "posterior", "votes"],
            ["a", "b", "0.123456789", "7"],
        ]


@pytest.mark.parametrize("name", ["links.csv", "links.parquet"])
def test_no_links_are_a_file_with_a_head(tmp_path: Path, name):
    nothing = as_ids([])
    write_links(tmp_path / name, nothing, nothing, np.empty(0), np.empty(0, np.int64))
    with pytest.raises(ValueError, match="at least one pair"):
        Pairs.from_file(tmp_path / name, a_set(["x"], "a"), a_set(["x"], "b"))


def test_what_cannot_be_written(tmp_path: Path):
    one, empty = as_ids(["a"]), np.empty(0)
    with pytest.raises(UnknownFormatError, match=r"ending in \.csv or \.parquet"):
        check_links_path(tmp_path / "links.tsv")
    with pytest.raises(CountMismatchError, match="got 1, 1, 0, 1"):
        write_links(tmp_path / "links.csv", one, one, empty, np.array([1]))
    (tmp_path / "links.csv").mkdir()
    with pytest.raises(WriteFailedError, match=r"to write 'links\.csv'"):
        write_links(tmp_path / "links.csv", one, one, np.ones(1), np.array([1]))
    assert [path.name for path in tmp_path.iterdir()] == ["links.csv"]
