"""``isthmus fit`` with rows without a pair, and with no pairs at all."""

import pytest

from isthmus.maps import Ridge


def test_rows_that_the_map_does_not_look_at_are_named(cli, files, tmp_path):
    given = ("--pairs", files.pairs, "--unpaired-source", files.one, "--out", tmp_path / "bridge")
    ran = cli("fit", files.one, files.two, "--method", "ridge", *given)
    assert ran.code == 0
    assert "ridge does not look at rows without a pair: one.npz unused" in ran.err


def test_rows_that_it_looks_at_are_counted(cli, files, tmp_path, monkeypatch):
    monkeypatch.setattr(Ridge, "sees_unpaired", True)
    given = ("--pairs", files.pairs, "--unpaired-source", files.one, "--out", tmp_path / "bridge")
    ran = cli("fit", files.one, files.two, "--method", "ridge", *given, "--json")
    assert ran.result["n_unpaired_source"] == ran.result["n_unpaired_target"] == 140
    shown = cli("info", tmp_path / "bridge")
    assert "140 source and 140 target rows" in shown.out + shown.err


@pytest.mark.parametrize("side", ["source", "target"])
def test_rows_of_the_other_side_are_refused(cli, files, tmp_path, side):
    wrong = files.two if side == "source" else files.one
    given = (f"--unpaired-{side}", wrong, "--out", tmp_path / "bridge", "--json")
    ran = cli("fit", files.one, files.two, "--method", "ridge", *given)
    assert ran.error["kind"] == "SpaceMismatchError"
    assert not (tmp_path / "bridge").exists()


def test_a_map_that_learns_from_pairs_is_not_fitted_without(cli, files, tmp_path):
    given = ("--pairs", "none", "--out", tmp_path / "bridge", "--json")
    ran = cli("fit", files.one, files.two, "--method", "ridge", *given)
    assert ran.error["kind"] == "EmptyInputError"
    assert "unpaired_iterative" in ran.error["do"]


def test_a_fit_without_pairs_claims_nothing(cli, files, tmp_path):
    given = ("--pairs", "none", "--param", "attempts=2", "--out", tmp_path / "bridge", "--json")
    ran = cli("fit", files.one, files.two, "--method", "unpaired_iterative", *given)
    assert ran.code == 0
    assert ran.result["verdict"]["status"] in {"insufficient_pairs", "reindex"}
    assert ran.result["verdict"]["usable_for"] == []
    assert ran.result["report"]["values"] == {}
    assert (ran.result["n_pairs"], ran.result["paired"]) == (0, False)
    assert cli("apply", tmp_path / "bridge", files.one, "--out", tmp_path / "m.npz").code == 0
