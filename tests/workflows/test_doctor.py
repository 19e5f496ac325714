"""The doctor looks into stores, sets and files, and changes nothing."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest

from isthmus import Space, VectorSet
from isthmus.errors import (
    CorruptFileError,
    DimensionError,
    EmptyInputError,
    MissingFileError,
    ParameterError,
    VerdictError,
)
from isthmus.stores import MemoryStore, open_store
from isthmus.workflows import _doctor_rows
from isthmus.workflows.doctor import diagnose
from isthmus.workflows.drift import drift_between

DIM, ROWS = 64, 800
SPACE = Space(model="m", dim=DIM)
UNIT = Space(model="m", dim=DIM, normalized=True)


def encoded(rows: int, *, model: int = 0, seed: int = 0) -> np.ndarray:
    """Unit rows of a made-up encoder that leaves some directions nearly empty."""
    turn = np.linalg.qr(np.random.default_rng(100 + model).standard_normal((DIM, DIM)))[0]
    draw = np.random.default_rng(seed)
    made = draw.standard_normal((rows, DIM)) * np.geomspace(1, 0.03, DIM) @ turn
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def vectors(rows: np.ndarray, space: Space = SPACE) -> VectorSet:
    return VectorSet([f"d{i}" for i in range(len(rows))], rows, space)


def mixed() -> np.ndarray:
    return np.concatenate([encoded(ROWS - 100), encoded(100, model=1, seed=9)])


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_clean_collection_is_clean_and_its_numbers_are_told():
    found = diagnose(vectors(encoded(ROWS), UNIT))
    assert (found.verdict, found.reasons, found.notes) == ("clean", (), ())
    assert (found.rows, found.dim, found.looked, found.asked) == (ROWS, DIM, ROWS, ROWS)
    assert found.length_low == pytest.approx(1, abs=1e-3)
    assert found.marks.normalized == "all"
    assert (found.invalid_rows, found.zero_rows, found.duplicate_rows) == (0, 0, 0)
    assert found.mixture.smallest_share == pytest.approx(0.02)
    found.require()
    json.dumps(found.to_dict())


def test_rows_of_another_encoder_are_named_and_written(tmp_path: Path):
    out = tmp_path / "posterior.csv"
    found = diagnose(vectors(mixed()), out=out)
    assert found.verdict == "mixed"
    assert "of another space" in found.reasons[0]
    written = {row["id"]: float(row["posterior"]) for row in table(out)}
    assert list(written) == [f"d{i}" for i in range(ROWS)]
    wrong = sum((written[f"d{i}"] > 0.5) != (i >= ROWS - 100) for i in range(ROWS))
    assert wrong < 8
    with pytest.raises(VerdictError, match="mixed"):
        found.require()


def test_a_store_is_read_and_not_written(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/one.db?collection=docs"  # the path brings the fourth slash
    with open_store(url, space=SPACE) as store:
        store.upsert(vectors(mixed()))
        before = store.scan().__next__().vectors.matrix().copy()
    content = (tmp_path / "one.db").read_bytes()
    assert diagnose(url).verdict == "mixed"
    assert (tmp_path / "one.db").read_bytes() == content
    with open_store(url) as store:
        np.testing.assert_array_equal(next(iter(store.scan())).vectors.matrix(), before)
        assert diagnose(store).rows == ROWS
        assert store.count() == ROWS  # a store that was handed in stays open


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_doctor_rows, "BATCH_ROWS", 37)


@pytest.mark.usefixtures("small_batches")
def test_a_sample_is_uniform_over_the_scan_and_holds_no_more():
    collection = _doctor_rows.opened(vectors(encoded(ROWS)))
    drawn = np.zeros(ROWS)
    for seed in range(200):
        read = _doctor_rows.survey(collection, keep=50, every=False, seed=seed)
        rows = [int(name[1:]) for name in read.ids]
        assert len(read.vectors) == len(read.hashes) == 50 == len(set(rows))
        assert rows == sorted(rows)
        np.testing.assert_array_equal(read.vectors, encoded(ROWS)[rows])
        drawn[rows] += 1
    assert drawn.sum() == 200 * 50
    tenths = drawn.reshape(10, -1).sum(axis=1)
    assert (np.abs(tenths - 1000) < 4 * np.sqrt(1000 * 0.9)).all()


@pytest.mark.usefixtures("small_batches")
def test_rows_that_were_not_kept_are_scored_in_a_second_pass(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("isthmus.workflows.doctor.KEPT_ROWS", 500)
    out = tmp_path / "posterior.csv"
    found = diagnose(vectors(mixed()), out=out)
    assert (found.verdict, found.looked, len(found.ids)) == ("mixed", ROWS, 500)
    rows = table(out)
    foreign = np.array([float(row["posterior"]) > 0.5 for row in rows])
    assert len(rows) == ROWS
    assert (foreign != (np.arange(ROWS) >= ROWS - 100)).mean() < 0.02
    sampled = diagnose(vectors(mixed()), sample=400, out=out)
    assert (sampled.rows, sampled.looked) == (ROWS, 400)
    assert len(table(out)) == 400


def test_rows_that_were_cut_are_a_part_of_their_own():
    rows = encoded(ROWS)
    rows[:100, 32:] = 0
    found = diagnose(vectors(rows))
    assert found.verdict == "mixed"
    assert found.reasons[0] == "width: width 64 87.5%, width 32 12.5%"
    assert found.posterior[:100].tolist() == [1.0] * 100
    assert found.mixture.verdict == "one space"


def test_dimensions_that_are_empty_everywhere_are_counted_and_left_out():
    rows = mixed()
    rows[:, 60:] = 0
    rows[:, 0] = 0.25
    found = diagnose(vectors(rows))
    assert found.zero_dimensions == (60, 61, 62, 63)
    assert found.constant_dimensions == (0, 60, 61, 62, 63)
    assert found.mixture.verdict == "mixed"


def test_lengths_that_the_space_rules_out_are_damage():
    rows = encoded(ROWS)
    rows[:2] *= 1.005  # near enough for a VectorSet
    found = diagnose(vectors(rows, UNIT))
    assert found.verdict == "damaged"
    assert "not so in 2 rows" in found.reasons[0]
    assert "which the recorded space does not say" in diagnose(vectors(encoded(ROWS))).notes[0]


def test_a_file_that_nothing_else_takes_is_looked_at(tmp_path: Path):
    rows = encoded(ROWS)
    rows[0, 0], rows[1, 0], rows[2] = np.nan, np.inf, 0
    rows[4] = rows[3]
    ids = np.array([f"d{i}" for i in range(ROWS)])
    np.savez(tmp_path / "bad.npz", ids=ids, vectors=rows)
    found = diagnose(tmp_path / "bad.npz", out=tmp_path / "out.csv")
    assert (found.verdict, found.space) == ("damaged", None)
    assert (found.invalid_rows, found.zero_rows, found.duplicate_rows) == (2, 1, 1)
    assert "no space is recorded" in found.notes[0]
    assert (tmp_path / "out.csv").read_text().splitlines()[1:4] == ["d0,", "d1,", "d2,"]


def bad_table(sql: Callable[[str], object], kind: str) -> None:
    """Make a table whose rows no other command takes."""
    sql(f"CREATE TABLE docs (id int, v {kind})")
    for name, row in enumerate(encoded(60).tolist()):
        sql(f"INSERT INTO docs VALUES ({name}, '{row}')")
    for name in range(100, 112):
        sql(f"INSERT INTO docs VALUES ({name}, '[1, 2]')")
    sql(f"INSERT INTO docs VALUES (200, '{[0] * DIM}'), (201, '[3]')")


def check_bad_table(url: str, out: Path) -> None:
    found = diagnose(url, out=out)
    assert (found.verdict, found.space, found.rows, found.looked) == ("mixed", None, 74, 61)
    assert (found.zero_rows, found.zero_ids) == (1, ("200",))
    told = [(one.numbers, one.rows, one.ids[0], len(one.ids)) for one in found.other_lengths]
    assert told == [(1, 1, "201", 1), (2, 12, "100", 10)]
    first = ", ".join(repr(str(name)) for name in range(100, 110))
    assert found.reasons[:2] == (
        "vectors of 1 numbers, not 64, in 1 row: '201'",
        f"vectors of 2 numbers, not 64, in 12 rows: {first}, ...",
    )
    assert "nothing but zeros in 1 row: '200'" in found.reasons
    written = {row["id"]: row["posterior"] for row in table(out)}
    assert len(written) == 74
    assert (written["111"], written["200"], written["0"]) == ("1", "", "0")
    assert "other_lengths" in json.loads(json.dumps(found.to_dict()))
    assert diagnose(url, sample=50).other_lengths == found.other_lengths
    assert drift_between(url, url).rows == 74


def test_a_column_of_lists_is_looked_at_whatever_is_in_it(tmp_path: Path):
    with duckdb.connect(str(tmp_path / "one.duckdb")) as connection:
        bad_table(connection.execute, "FLOAT[]")
        connection.execute("INSERT INTO docs VALUES (300, ['nan'::FLOAT] || repeat([1], 63))")
        connection.execute("INSERT INTO docs VALUES (301, ['inf'::FLOAT] || repeat([1], 63))")
    url = f"duckdb:///{tmp_path}/one.duckdb?collection=docs"
    found = diagnose(url)
    assert (found.invalid_rows, found.invalid_ids) == (2, ("300", "301"))
    assert "NaN or infinity in 2 rows: '300', '301'" in found.reasons
    with duckdb.connect(str(tmp_path / "one.duckdb")) as connection:
        connection.execute("DELETE FROM docs WHERE id >= 300")
    check_bad_table(url, tmp_path / "out.csv")
    with duckdb.connect(str(tmp_path / "one.duckdb")) as connection:
        connection.execute(f"DELETE FROM docs WHERE len(v) = {DIM}")
    with open_store(url) as store:
        assert diagnose(store).dim == store.space.dim == 2


def test_a_vector_column_without_length_is_looked_at(postgres_server, monkeypatch, tmp_path: Path):
    name = "doctor_" + tmp_path.name
    monkeypatch.setenv("ISTHMUS_POSTGRESQL_SECRET", postgres_server.password)
    with postgres_server.connect() as connection:
        connection.autocommit = True
        connection.execute(f'CREATE SCHEMA "{name}"')
        connection.execute(f'SET search_path TO "{name}", public')
        bad_table(connection.execute, "vector")
        at = f"postgresql://{postgres_server.username}@{postgres_server.url}"
        url = f"{at}/{postgres_server.database}?collection=docs&schema={name}"
        check_bad_table(url, tmp_path / "out.csv")
        connection.execute("INSERT INTO docs SELECT id, v FROM docs WHERE id IN (0, 1)")
        assert "2 rows under the id of an earlier one" in diagnose(url).reasons


def test_rows_that_are_all_of_another_length_are_told(tmp_path: Path):
    with duckdb.connect(str(tmp_path / "one.duckdb")) as connection:
        connection.execute("CREATE TABLE docs (id int, v FLOAT[])")
    url = f"duckdb:///{tmp_path}/one.duckdb?collection=docs"
    open_store(url, space=SPACE).close()
    with duckdb.connect(str(tmp_path / "one.duckdb")) as connection:
        connection.execute("INSERT INTO docs VALUES (1, [1, 2]), (2, [1, 2])")
    with pytest.raises(EmptyInputError, match=r"vector of 64 numbers.*2 of 2"):
        diagnose(url)


def test_what_is_not_recorded_is_not_spoken_of(tmp_path: Path):
    with duckdb.connect(str(tmp_path / "one.duckdb")) as connection:
        connection.execute(f"CREATE TABLE docs (id int, v FLOAT[{DIM}])")
        rows = [(i, row) for i, row in enumerate(encoded(50).tolist())]
        connection.executemany("INSERT INTO docs VALUES (?, ?)", rows)
    notes = diagnose(f"duckdb:///{tmp_path}/one.duckdb?collection=docs").notes
    assert notes[0].endswith("isthmus store record URL --model NAME --normalized")
    assert "recorded space" not in " ".join(notes)


def test_vectors_that_a_bridge_made_are_said_to_be_first():
    space = Space(model="m", dim=DIM, bridged_from="abcdef0123456789")
    rows = encoded(ROWS) * 2
    rows[1] = rows[0]
    notes = diagnose(vectors(rows, space)).notes
    assert notes[0].startswith("a bridge made these vectors (abcdef012345), not the model")
    assert notes[1] == "1 row repeats an earlier one: equal rows tie in every search"


@pytest.mark.parametrize(
    "rows",
    [
        np.ones((1, 4)),
        np.ones((300, 4)),
        np.random.default_rng(0).standard_normal((30, 3)),
        np.random.default_rng(0).standard_normal((20, 200)),
    ],
)
def test_little_is_never_clean(rows):
    found = diagnose(VectorSet(list(range(len(rows))), rows, Space(model="m", dim=rows.shape[1])))
    assert found.verdict == "not enough data"
    json.dumps(found.to_dict())


def test_what_is_not_there_or_empty_or_broken_is_refused(tmp_path: Path):
    with pytest.raises(EmptyInputError):
        diagnose(MemoryStore(SPACE))
    with pytest.raises(MissingFileError):
        diagnose(tmp_path / "none.npz")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(CorruptFileError):
        diagnose(tmp_path / "broken.npz")
    with pytest.raises(ParameterError):
        diagnose(vectors(encoded(10)), sample=0)


def test_numbers_that_float32_cannot_hold_are_bad_rows(tmp_path: Path):
    rows = np.random.default_rng(0).standard_normal((50, 4))
    rows[:3] *= 1e200
    np.savez(tmp_path / "big.npz", ids=np.arange(50), vectors=rows)
    assert diagnose(tmp_path / "big.npz").invalid_rows == 3


def test_drift_between_two_snapshots():
    before, after = vectors(encoded(600)), vectors(encoded(600, seed=1))
    found = drift_between(before, after)
    assert (found.drift.verdict, found.same_space, found.rows) == ("no drift", True, 600)
    found.require()
    moved = drift_between(before, vectors(encoded(600, model=1, seed=1), Space(model="n", dim=DIM)))
    assert (moved.drift.verdict, moved.same_space) == ("drift", False)
    with pytest.raises(VerdictError, match="drift"):
        moved.require()
    assert drift_between(before, after, sample=100).drift.rows == 100
    with pytest.raises(DimensionError, match="64 and 2 numbers a row"):
        drift_between(before, VectorSet(["a"], [[1.0, 2.0]], Space(model="m", dim=2)))


def test_drift_of_nothing_but_bad_rows_is_refused(tmp_path: Path):
    np.savez(tmp_path / "bad.npz", ids=np.arange(30), vectors=np.full((30, DIM), np.nan))
    with pytest.raises(EmptyInputError, match="none among 30"):
        drift_between(vectors(encoded(30)), tmp_path / "bad.npz")


def test_numbers_that_a_store_rounds_itself_are_no_parts(tmp_path):
    space = Space(model="m", dim=8)
    rows = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float16)
    url = f"chroma:///{tmp_path}/chroma?collection=docs"
    with open_store(url, space=space) as store:
        assert store.capabilities.read_back_error > 0
        store.upsert(VectorSet([str(row) for row in range(300)], rows, space))
    found = diagnose(url)
    assert found.marks.grids == ()
    assert not any("number type" in reason for reason in found.reasons)
