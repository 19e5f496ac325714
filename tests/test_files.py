"""Files appear whole or not at all."""

from pathlib import Path

import pytest

from isthmus._files import atomic_path, atomic_set
from isthmus.errors import WriteFailedError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_set(paths: list[Path]) -> None:
    with atomic_set(paths) as temporaries:
        for temporary in temporaries:
            temporary.write_text("new")


def write_and_stop(path: Path) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        raise RuntimeError("stop")


def test_a_failing_block_leaves_the_old_file_and_no_other(tmp_path: Path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="stop"):
        write_and_stop(path)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("parent", ["missing", "file"])
def test_a_parent_that_is_no_folder(tmp_path: Path, parent: str):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(WriteFailedError, match="to write 'a'"),
        atomic_path(tmp_path / parent / "a") as temporary,
    ):
        temporary.write_text("new")
    assert names(tmp_path) == ["file"]


def test_a_set_is_moved_together(tmp_path: Path):
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_text("old")
    with atomic_set(paths) as temporaries:
        for temporary in temporaries:
            temporary.write_text("new")
        assert paths[0].read_text() == "old"
    assert [path.read_text() for path in paths] == ["new", "new"]
    assert names(tmp_path) == ["a", "b"]


def test_a_set_with_one_file_that_cannot_move_stays_as_it_was(tmp_path: Path):
    paths = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    paths[0].write_text("old")
    paths[2].mkdir()
    (paths[2] / "kept").write_text("")
    with pytest.raises(WriteFailedError, match="'c' is a folder"):
        write_set(paths)
    assert paths[0].read_text() == "old"
    assert names(tmp_path) == ["a", "c"]
    assert names(paths[2]) == ["kept"]


def test_a_set_that_was_not_written_whole_is_refused(tmp_path: Path):
    paths = [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(WriteFailedError, match="No such file"), atomic_set(paths) as temporaries:
        temporaries[0].write_text("new")
    assert names(tmp_path) == []


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path):
    (tmp_path / "real").mkdir()
    for name in ("a", "b"):
        (tmp_path / "real" / name).write_text("old")
        (tmp_path / name).symlink_to(tmp_path / "real" / name)
    with atomic_path(tmp_path / "a") as temporary:
        temporary.write_text("one")
    assert (tmp_path / "real" / "a").read_text() == "one"
    write_set([tmp_path / "a", tmp_path / "b"])
    assert all((tmp_path / name).is_symlink() for name in ("a", "b"))
    assert [(tmp_path / "real" / name).read_text() for name in ("a", "b")] == ["new", "new"]
    assert names(tmp_path / "real") == ["a", "b"]


def test_links_that_lead_to_each_other(tmp_path: Path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(WriteFailedError, match=r"got a link that leads nowhere"):
        write_set([tmp_path / "a"])
