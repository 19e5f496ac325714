"""``isthmus suggest``: a sheet to fill in."""

from isthmus import Pairs, VectorSet


def test_a_sheet_is_written_and_becomes_pairs(cli, files, tmp_path):
    ran = cli("suggest", files.one, "--n", 30, "--out", tmp_path / "sheet.csv", "--json")
    assert ran.code == 0
    assert ran.result["n"] == 30
    assert ran.result["strategy"] == "kmeans"
    lines = (tmp_path / "sheet.csv").read_text().splitlines()
    assert lines[0] == '"source","target"'
    ran = cli(
        "fit", files.one, files.two, "--pairs", tmp_path / "sheet.csv", "--out", tmp_path / "b"
    )
    assert "none in 30 of 30 lines" in ran.err
    assert "fill them in, or delete the lines" in ran.err
    ids = [line.split(",")[0].strip('"') for line in lines[1:]]
    filled = "".join(f"{one},{one}\n" for one in ids)
    (tmp_path / "pairs.csv").write_text(f"source,target\n{filled}")
    sets = [VectorSet.load(path) for path in (files.one, files.two)]
    assert len(Pairs.from_file(tmp_path / "pairs.csv", *sets)) == 30


def test_the_next_pairs_are_others(cli, files, tmp_path):
    for strategy in ("kmeans", "uncertainty"):
        ran = cli(
            "suggest", files.one, files.two, "--pairs", files.pairs, "--n", 140,
            "--strategy", strategy, "--out", tmp_path / "sheet.csv",
        )  # fmt: skip
        assert ran.code == 0
        assert "140 vectors to pair" in ran.err + ran.out
        paired = set(files.pairs.read_text().split()[1:])
        lines = (tmp_path / "sheet.csv").read_text().splitlines()[1:]
        ids = {line.split(",")[0].strip('"') for line in lines}
        assert not ids & {line.split(",")[0] for line in paired}


def test_nothing_is_chosen_for_a_place_that_cannot_be_written(cli, files, tmp_path):
    ran = cli("suggest", files.one, "--n", 3, "--out", tmp_path / "sheet.xlsx", "--json")
    assert ran.error["kind"] == "UnknownFormatError"
    ran = cli("suggest", files.one, "--n", 3, "--out", tmp_path / "no" / "sheet.csv", "--json")
    assert ran.error["kind"] == "WriteFailedError"
    ran = cli("suggest", files.one, "--n", 300, "--out", tmp_path / "sheet.csv", "--json")
    assert ran.error["kind"] == "ParameterError"
    assert not (tmp_path / "sheet.csv").exists()
