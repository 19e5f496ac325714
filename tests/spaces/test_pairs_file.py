"""Files of pairs."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isthmus.errors import (
    CorruptFileError,
    DuplicateIdError,
    EmptyInputError,
    InvalidIdError,
    MissingFileError,
    ParameterError,
    UnknownFormatError,
    UnknownIdError,
)
from isthmus.spaces import Pairs, Space, VectorSet

SOURCE = VectorSet(list("abcde"), np.arange(1, 11).reshape(5, 2), Space(model="m", dim=2))
TARGET = VectorSet(list("vwxyz"), np.arange(1, 11).reshape(5, 2), Space(model="n", dim=2))


def read(path):
    return Pairs.from_file(path, SOURCE, TARGET)


def ids(pairs):
    return list(zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), strict=True))


@pytest.mark.parametrize(
    "content",
    [
        "source,target\na,z\nc,v\n",
        "\ufeffsource,target\r\na,z\r\n\r\nc,v",
        'note,target, source \n"x, y",z,a\n,v,"c"\n',
    ],
)
def test_csv(tmp_path, content):
    (tmp_path / "p.csv").write_text(content, encoding="utf-8", newline="")
    pairs = read(tmp_path / "p.csv")
    assert ids(pairs) == [("a", "z"), ("c", "v")]
    assert pairs.source.tolist() == [[1, 2], [5, 6]]
    assert pairs.weight is None


def test_the_posterior_becomes_the_weight(tmp_path):
    (tmp_path / "p.csv").write_text("source,target,posterior\na,z,0.25\nb,y,1\n")
    assert read(tmp_path / "p.csv").weight.tolist() == [0.25, 1]


def test_parquet(tmp_path):
    table = pa.table({"posterior": [0.25, 1.0], "target": ["z", "y"], "source": ["a", "b"]})
    pq.write_table(table, tmp_path / "p.parquet")
    pairs = read(tmp_path / "p.parquet")
    assert ids(pairs) == [("a", "z"), ("b", "y")]
    assert pairs.weight.tolist() == [0.25, 1]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (
            "a,z\n",
            CorruptFileError,
            "header with 'source' and 'target'.*; got the columns 'a', 'z'",
        ),
        ("source\na\n", CorruptFileError, "got the columns 'source'"),
        ("source,target,source\na,z,b\n", CorruptFileError, "got the columns"),
        ("", CorruptFileError, "the header 'source,target'; got an empty file"),
        ("source,target\n", EmptyInputError, "at least one pair in 'p.csv'; got none"),
        ("source,target\na,z\nb\n", CorruptFileError, "2 cells in each line; got 1 in line 3"),
        ("source,target\na,z,1\n", CorruptFileError, "2 cells in each line; got 3 in line 2"),
        ('source,target\n"a,z\n', CorruptFileError, "csv text in UTF-8; got .*after line 2"),
        ("source,target\na,\n", InvalidIdError, "a target id in every line .* none in 1 of 1"),
        (
            "source,target\na,z\nq,y\nr,x\ns,w\nt,v\n",
            UnknownIdError,
            "two sets have; got 4 source ids .'q', 'r', 's', .... that they do not have",
        ),
        (
            "source,target\na,z\nq,r\n",
            UnknownIdError,
            "1 source ids .'q'. and 1 target ids .'r'. that",
        ),
        ("source,target\nz,a\ny,b\n", UnknownIdError, "swap the two columns"),
        (
            "source,target\na,z\na,z\nb,y\n",
            DuplicateIdError,
            "'a' with 'z' 2 times; 2 lines repeat an id.*one line for each object",
        ),
        (
            "source,target\na,z\na,y\n",
            DuplicateIdError,
            "under 'source' in 'p.csv'; got 'a' with 'y', 'z'; .*keep the right pair",
        ),
        ("source,target\na,z\nb,z\n", DuplicateIdError, "under 'target'.*'z' with 'a', 'b'"),
        ("source,target,posterior\na,z,1.5\n", ParameterError, "got 1.5 in pair 1"),
        ("source,target,posterior\na,z,-1\n", ParameterError, "posteriors from 0 to 1"),
        ("source,target,posterior\na,z,nan\n", ParameterError, "got nan in pair 1"),
        ("source,target,posterior\na,z,high\n", CorruptFileError, "numbers under 'posterior'"),
        ("source,target,posterior\na,z,0\n", ParameterError, "not all zero"),
    ],
)
def test_a_broken_csv(tmp_path, content, error, message):
    (tmp_path / "p.csv").write_text(content)
    with pytest.raises(error, match=message):
        read(tmp_path / "p.csv")


def test_csv_that_is_not_text(tmp_path):
    (tmp_path / "p.csv").write_bytes(b"source,target\n\xff,z\n")
    with pytest.raises(CorruptFileError, match="csv text in UTF-8"):
        read(tmp_path / "p.csv")


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"source": ["a"]}, CorruptFileError, "got the columns 'source'"),
        ({"source": ["a", None], "target": ["z", "y"]}, CorruptFileError, "no empty cell under"),
        ({"source": ["a"], "target": [1.5]}, InvalidIdError, "target ids in p.parquet as text"),
        (
            {"source": ["a"], "target": ["z"], "posterior": ["high"]},
            CorruptFileError,
            "numbers under 'posterior'",
        ),
        ({"source": ["a"], "target": ["z"], "posterior": [2]}, ParameterError, "got 2 in pair 1"),
    ],
)
def test_a_broken_parquet(tmp_path, columns, error, message):
    pq.write_table(pa.table(columns), tmp_path / "p.parquet")
    with pytest.raises(error, match=message):
        read(tmp_path / "p.parquet")


def test_a_parquet_cut_short(tmp_path):
    pq.write_table(pa.table({"source": ["a"], "target": ["z"]}), tmp_path / "p.parquet")
    content = (tmp_path / "p.parquet").read_bytes()
    (tmp_path / "p.parquet").write_bytes(content[:-20])
    with pytest.raises(CorruptFileError, match=r"'p\.parquet' with a parquet file"):
        read(tmp_path / "p.parquet")


def test_no_file_and_another_ending(tmp_path):
    with pytest.raises(MissingFileError, match="a file of pairs at"):
        read(tmp_path / "p.csv")
    with pytest.raises(UnknownFormatError, match=r"ending in \.csv or \.parquet; got 'p\.tsv'"):
        read(tmp_path / "p.tsv")


def test_whole_numbers_in_parquet(tmp_path):
    source = VectorSet([1, 2], [[1, 2], [3, 4]], Space(model="m", dim=2))
    pq.write_table(pa.table({"source": [2], "target": ["z"]}), tmp_path / "p.parquet")
    assert ids(Pairs.from_file(tmp_path / "p.parquet", source, TARGET)) == [("2", "z")]
