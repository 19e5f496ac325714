"""JSON lines."""

import json

import pytest

from isthmus.errors import CorruptFileError, InvalidIdError, InvalidVectorsError
from isthmus.spaces import Space, VectorSet

SPACE = Space(model="m", dim=2)
HEAD = '{"space": {"model": "m", "dim": 2}}\n'
LINE = '{"id": "a", "vector": [1, 2]}\n'


def test_what_we_write(tmp_path):
    VectorSet(["ü"], [[0.5, 2]], SPACE).save(tmp_path / "v.jsonl")
    head, line = (tmp_path / "v.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(head) == {"space": SPACE.to_dict(), "rows": 1}
    assert line == '{"id": "ü", "vector": [0.5, 2.0]}'


@pytest.mark.parametrize(
    "content", [HEAD + LINE, HEAD + "\n" + LINE.rstrip(), "\ufeff" + HEAD + LINE]
)
def test_what_others_wrote(tmp_path, content):
    (tmp_path / "v.jsonl").write_text(content, encoding="utf-8")
    found = VectorSet.load(tmp_path / "v.jsonl")
    assert (found.ids.tolist(), found.matrix().tolist()) == (["a"], [[1, 2]])


def test_no_space_in_the_file(tmp_path):
    (tmp_path / "v.jsonl").write_text('{"id": 7, "vector": [1, 2], "text": "x"}\n')
    assert VectorSet.load(tmp_path / "v.jsonl", space=SPACE).ids.tolist() == ["7"]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (HEAD + '{"id": "a"', CorruptFileError, r"in line 2; got \{\"id\": \"a\""),
        (HEAD + LINE + "[1]\n", CorruptFileError, r"in line 3; got \[1\]"),
        (HEAD + "[" * 100_000, CorruptFileError, "in line 2"),
        (HEAD + '{"vector": [1, 2]}', CorruptFileError, "line 2; got an object with 'vector'"),
        (HEAD + '{"id": "a"}', CorruptFileError, "line 2; got an object with 'id'"),
        (HEAD + '{"id": "a", "vector": 3}', CorruptFileError, "line 2"),
        (HEAD + '{"id": "a", "vector": ["1", 2]}', CorruptFileError, "else than numbers"),
        (HEAD + '{"id": "a", "vector": [true, 2]}', CorruptFileError, "else than numbers"),
        (HEAD + '{"id": "a", "vector": [[1], 2]}', CorruptFileError, "else than numbers"),
        (HEAD + f'{{"id": "a", "vector": [1{"0" * 400}, 2]}}', CorruptFileError, "too large"),
        (HEAD + LINE + '{"id": "b", "vector": [1]}', CorruptFileError, "2 numbers in line 3"),
        (HEAD + '{"id": null, "vector": [1, 2]}', InvalidIdError, "None in row 0"),
        (HEAD + '{"id": "a", "vector": [NaN, 2]}', InvalidVectorsError, "row 0"),
        (HEAD + '{"id": "a", "vector": [1e300, 2]}', InvalidVectorsError, "row 0"),
        (HEAD, CorruptFileError, "at least one vector; got 0"),
        ('{"space": {"model": "m", "dim": 2}, "rows": 2}\n' + LINE, CorruptFileError, "2 vectors"),
        ('{"space": 3}\n' + LINE, CorruptFileError, "a JSON object"),
    ],
)
def test_a_broken_file(tmp_path, content, error, message):
    (tmp_path / "v.jsonl").write_text(content)
    with pytest.raises(error, match=message):
        VectorSet.load(tmp_path / "v.jsonl")


def test_bytes_that_are_not_text(tmp_path):
    (tmp_path / "v.jsonl").write_bytes(b'{"id": "\xff"}')
    with pytest.raises(CorruptFileError, match="text in UTF-8"):
        VectorSet.load(tmp_path / "v.jsonl")


def test_a_file_cut_at_the_end_of_a_line(tmp_path):
    VectorSet(["a", "b"], [[1, 2], [3, 4]], SPACE).save(tmp_path / "v.jsonl")
    lines = (tmp_path / "v.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "v.jsonl").write_text("".join(lines[:2]))
    with pytest.raises(CorruptFileError, match="2 vectors; got 1"):
        VectorSet.load(tmp_path / "v.jsonl")
