"""Optional libraries: there, not there, and there with something missing of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isthmus._optional import require
from isthmus.errors import MissingExtraError


def test_a_library_that_is_there():
    assert require("json", extra="plot") is json


@pytest.mark.parametrize("module", ["no_such_library", "no_such_library.inner"])
def test_a_library_that_is_not_there_names_the_line_to_install_it(module):
    with pytest.raises(MissingExtraError) as caught:
        require(module, extra="plot")
    assert caught.value.expected == "the library 'no_such_library'"
    assert caught.value.do == "pip install 'isthmus[plot]'"
    assert isinstance(caught.value, ImportError)


@pytest.mark.parametrize("needed", ["no_such_library", "lame"])
def test_a_library_with_something_missing_says_what(tmp_path: Path, monkeypatch, needed):
    """``lame`` begins the name that is asked for, and is another library all the same."""
    (tmp_path / "lame_library.py").write_text(f"import {needed}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match=f"No module named '{needed}'") as caught:
        require("lame_library", extra="plot")
    assert not isinstance(caught.value, MissingExtraError)
    assert caught.value.name == needed


def test_a_library_that_fails_in_another_way_fails_so(tmp_path: Path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("from json import no_such_name\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="no_such_name") as caught:
        require("broken_library", extra="plot")
    assert not isinstance(caught.value, MissingExtraError)
