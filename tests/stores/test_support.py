"""docs/stores.md says what the stores declare, and its example runs."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from isthmus.errors import CorruptFileError
from isthmus.stores import schemes, store_class
from isthmus.stores.support import support_table, write_table

PAGE = Path(__file__).parents[2] / "docs" / "stores.md"


def test_the_table_is_fresh(tmp_path):
    copy = tmp_path / "stores.md"
    copy.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    write_table(copy)
    assert copy.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8"), (
        "run `python -m isthmus.stores.support docs/stores.md`"
    )


def test_every_store_has_a_page():
    for scheme in schemes():
        page = PAGE.parent / "stores" / f"{store_class(scheme).__module__.split('.')[-1]}.md"
        assert f"`{scheme}://" in page.read_text(encoding="utf-8")
        assert support_table().count(f"| `{scheme}` |") == 3


@pytest.mark.parametrize("page", sorted((PAGE.parent / "stores").glob("*.md")), ids=str)
def test_the_examples_of_a_page_run(page):
    assert doctest.testfile(str(page), module_relative=False).failed == 0


def test_the_example_runs():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert (result.failed, result.attempted) == (0, 10)


def test_a_page_without_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing", encoding="utf-8")
    with pytest.raises(CorruptFileError, match=r"table: start .* in .page.md.; got no such"):
        write_table(page)
    assert page.read_text(encoding="utf-8") == "nothing"
