"""Fit: how pairs are found, and what is recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isthmus import Pairs, Space, VectorSet, fit_bridge
from isthmus.errors import EmptyInputError, SpaceMismatchError, UnknownIdError
from isthmus.maps import Ridge


@pytest.fixture(scope="module")
def sets() -> tuple[VectorSet, VectorSet]:
    draw = np.random.default_rng(5)
    rows = draw.normal(size=(120, 6))
    ids = [f"d{i}" for i in range(120)]
    turned = rows @ np.linalg.qr(draw.normal(size=(6, 6)))[0]
    return (
        VectorSet(ids, rows, Space(model="a", dim=6)),
        VectorSet(ids[::-1], turned[::-1], Space(model="b", dim=6)),
    )


def test_equal_ids_are_pairs(sets):
    bridge = fit_bridge(*sets, method="procrustes")
    assert bridge.provenance.n_pairs == 120
    assert bridge.provenance.coverage is not None
    assert bridge.provenance.coverage["source"]["covered"] == 1.0
    mapped, native = bridge.apply(sets[0]).matrix(), sets[1].matrix()[::-1]
    cosines = (mapped * native).sum(axis=1)
    assert cosines == pytest.approx(
        np.linalg.norm(mapped, axis=1) * np.linalg.norm(native, axis=1), rel=1e-4
    )


def test_pairs_come_from_a_file_or_an_object(sets, tmp_path: Path):
    for path, vectors in zip(("a.npz", "b.npy"), sets, strict=True):
        vectors.save(tmp_path / path, dtype="float32")
    listed = "".join(f"d{i},d{i}\n" for i in range(50))
    (tmp_path / "pairs.csv").write_text(f"source,target\n{listed}")
    by_file = fit_bridge(
        tmp_path / "a.npz", tmp_path / "b.npy", tmp_path / "pairs.csv", method="procrustes"
    )
    pairs = Pairs.from_rows(*sets, np.arange(50), 119 - np.arange(50))
    by_object = fit_bridge(*sets, pairs, method="procrustes")
    assert by_file.provenance.n_pairs == by_object.provenance.n_pairs == 50
    assert by_file.report.values["retention@10"] == by_object.report.values["retention@10"]


def test_pairs_that_are_not_there(sets, tmp_path: Path):
    (tmp_path / "pairs.csv").write_text("source,target\nd0,nobody\n")
    with pytest.raises(UnknownIdError, match="nobody"):
        fit_bridge(*sets, tmp_path / "pairs.csv")
    stranger = VectorSet(["x"], np.ones((1, 6)), sets[1].space)
    with pytest.raises(EmptyInputError, match="ids that stand in both sets"):
        fit_bridge(sets[0], stranger)


# --- rows without a pair -------------------------------------------------------------------------


@pytest.fixture
def looking(monkeypatch):
    """Let ridge count as a map that looks at rows without a pair: it takes them and is unmoved."""
    monkeypatch.setattr(Ridge, "sees_unpaired", True)


def counts(bridge) -> tuple[int, int]:
    return bridge.provenance.n_unpaired_source, bridge.provenance.n_unpaired_target


def of_rows(sets, n: int) -> Pairs:
    return Pairs.from_rows(*sets, np.arange(n), 119 - np.arange(n))


@pytest.mark.usefixtures("looking")
def test_rows_without_a_pair_are_those_of_the_two_sets(sets):
    bridge = fit_bridge(
        sets[0], sets[1].select(np.arange(10, 120)), of_rows(sets, 50), method="ridge"
    )
    assert counts(bridge) == (70, 60)
    assert counts(fit_bridge(*sets, of_rows(sets, 50), method="procrustes")) == (0, 0)


@pytest.mark.usefixtures("looking")
def test_given_sets_take_their_place_with_their_paired_rows_left_out(sets, tmp_path: Path):
    sets[0].select(np.arange(40, 90)).save(tmp_path / "more.npz")
    given = {"unpaired_source": tmp_path / "more.npz", "unpaired_target": sets[1]}
    bridge = fit_bridge(*sets, of_rows(sets, 50), method="ridge", **given)
    assert counts(bridge) == (40, 70)


@pytest.mark.usefixtures("looking")
@pytest.mark.parametrize("n", [119, 120])
def test_sets_of_paired_rows_have_none_without_and_that_is_no_error(sets, n):
    assert counts(fit_bridge(*sets, of_rows(sets, n), method="ridge")) == (0, 0)


@pytest.mark.parametrize("method", ["ridge", "auto"])
def test_unpaired_rows_of_another_space_are_refused_whether_or_not_they_are_used(sets, method):
    for name, given, side in (("source", sets[1], "source"), ("target", sets[0], "target")):
        with pytest.raises(SpaceMismatchError, match=f"unpaired rows on the {side} side"):
            fit_bridge(*sets, of_rows(sets, 50), method=method, **{f"unpaired_{name}": given})


def test_a_given_set_of_nothing_but_paired_rows_is_refused(sets):
    with pytest.raises(EmptyInputError, match="all 50 stand in pairs"):
        fit_bridge(
            *sets, of_rows(sets, 50), method="ridge", unpaired_source=sets[0].select(range(50))
        )


def test_a_map_that_learns_from_pairs_refuses_to_go_without(sets):
    with pytest.raises(EmptyInputError, match="pairs, which ridge learns from"):
        fit_bridge(*sets, "none", method="ridge")
